"""Products and norms with NumPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ops.core.promote import as_tensor, cast, promote, to_floating
from lucid.ops.elementwise import complexes
from lucid.ops.linalg import contraction, products
from lucid.ops.reduce import statistics
from lucid.ops.reduce.reduction import reduced_axes
from lucid.ops.shape import joining, shaping
from lucid.tensors.numpy_protocols import numpy_promotion


def dot(a: Any, b: Any, out: None = None) -> Any:
    a, b = as_tensor(a), as_tensor(b)
    if not a.ndim or not b.ndim:
        return a * b
    if b.ndim <= 2:
        return contraction.matmul(a, b)
    return products.tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 2]))


def vdot(a: Any, b: Any, /) -> Any:
    return products.vdot(shaping.ravel(as_tensor(a)), shaping.ravel(as_tensor(b)))


def inner(a: Any, b: Any, /) -> Any:
    a, b = as_tensor(a), as_tensor(b)
    return a * b if not a.ndim or not b.ndim else products.inner(a, b)


def outer(a: Any, b: Any, out: None = None) -> Any:
    return products.outer(shaping.ravel(as_tensor(a)), shaping.ravel(as_tensor(b)))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = numpy_promotion((as_tensor(a), as_tensor(b)))
    if isinstance(axes, int):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    pairs = [list(d) if isinstance(d, (list, tuple, range)) else [d] for d in axes]
    sizes = [(a.shape[i], b.shape[j]) for i, j in zip(*pairs)]
    if any(m != n for m, n in sizes):
        facts = f"axes {pairs[0]} of {a.shape} and {pairs[1]} of {b.shape} differ in size"
        raise ShapeError(f"np.tensordot: {facts}")
    return products.tensordot(a, b, axes=pairs)


def einsum(
    *operands: Any,
    out: None = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> Any:
    if operands and not isinstance(operands[0], str):
        operands = contraction.with_equation(operands)
    equation, *arrays = operands
    arrays = [as_tensor(x) if dtype is None else cast(as_tensor(x), dtype) for x in arrays]
    return contraction.einsum(equation, *numpy_promotion(arrays))


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (shaping.movedim(as_tensor(x), at, -1) for x, at in ((a, axisa), (b, axisb)))
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ShapeError(f"np.cross: vectors of sizes {a.shape[-1]} and {b.shape[-1]}, not 3")
    a, b = promote(a, b)  # their components may have no axes
    (a0, a1, a2), (b0, b1, b2) = shaping.unbind(a, -1), shaping.unbind(b, -1)
    y = joining.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1)
    return shaping.movedim(y, -1, axisc)


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = as_tensor(a), as_tensor(v)
    a, v = (v, a) if v.shape[0] > a.shape[0] else (a, v)
    n, m = a.shape[0], v.shape[0]
    padded = joining.pad(a, (m - 1, m - 1))
    windows = padded[np.arange(n + m - 1)[:, None] + np.arange(m)]
    full = windows @ v.flip(0)
    if mode == "full":
        return full
    if mode == "same":
        return full[(m - 1) // 2 : (m - 1) // 2 + n]
    if mode == "valid":
        return full[m - 1 : n]
    raise ShapeError(f"np.convolve: mode {mode!r} is not 'full', 'same' or 'valid'")


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = as_tensor(a), as_tensor(v)
    full = convolve(a, complexes.conj(v).flip(0))
    n, m = a.shape[0], v.shape[0]
    if mode == "full":
        return full
    if mode == "same":
        start = (m - 1) // 2 if n >= m else n // 2
        return full[start : start + max(n, m)]
    if mode == "valid":
        return full[min(n, m) - 1 : max(n, m)]
    raise ShapeError(f"np.correlate: mode {mode!r} is not 'full', 'same' or 'valid'")


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    x = to_floating(x)
    axes = reduced_axes("norm", x.ndim, None, axis)
    if ord is None or len(axes) == 1 or (axis is None and x.ndim == 1):
        return statistics.norm(x, 2 if ord is None else ord, axis=axes, keepdims=keepdims)
    from lucid.linalg import matrix_norm

    return matrix_norm(x, ord, axes if axis is None else axis, keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    return statistics.norm(x, ord, axis=axis, keepdims=keepdims)
