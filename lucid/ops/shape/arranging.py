"""Further rearrangements: blocks, combinations, windows, complex numbers as pairs."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.types import broadcast_shapes as broadcast
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import canonicalize_axis, canonicalize_shape
from lucid.ops.core.kinds import sum_to
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.elementwise.complexes import complex, conj, imag, real
from lucid.ops.index.gather_scatter import Gather
from lucid.ops.index.lookup import narrow
from lucid.ops.shape.diagonals import diag_embed
from lucid.ops.shape.joining import cat, meshgrid, split, stack, tensor_split
from lucid.ops.shape.joining import pad as pad_with_mode
from lucid.ops.shape.movement import Pad
from lucid.ops.shape.shaping import atleast_2d, mT, ravel
from lucid.ops.shape.strided import windows
from lucid.tape.bind import bind
from lucid.tape.node import wrap


@public_function()
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that all these shapes broadcast to.

    >>> import lucid
    >>> lucid.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    sequences = [s if isinstance(s, (tuple, list)) else (s,) for s in shapes]
    canonical = [canonicalize_shape("broadcast_shapes", (s,)) for s in sequences]
    try:
        return broadcast(*canonical)
    except ShapeError as error:
        raise ShapeError(f"broadcast_shapes: {error}") from None


@public_function("lucid", "Tensor")
@aliases(indices_or_sections=("sections", "indices"))
def hsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Split horizontally, into equal sections or at indices: along axis 1, vectors along axis 0."""
    x = as_tensor(input)
    return split_equally("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1, 1)


@public_function("lucid", "Tensor")
@aliases(indices_or_sections=("sections", "indices"))
def vsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Split vertically, into equal sections or at indices, along axis 0."""
    return split_equally("vsplit", as_tensor(input), indices_or_sections, 0, 2)


@public_function("lucid", "Tensor")
@aliases(indices_or_sections=("sections", "indices"))
def dsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Split depthwise, into equal sections or at indices, along axis 2."""
    return split_equally("dsplit", as_tensor(input), indices_or_sections, 2, 3)


def split_equally(name: str, x: Any, parts: Any, axis: int, min_ndim: int) -> tuple[Any, ...]:
    """Split along `axis` into equal sections, or at indices."""
    if x.ndim < min_ndim:
        raise ShapeError(f"{name}: {x.shape} has fewer than {min_ndim} axes")
    if not isinstance(parts, (list, tuple)):
        count = operator.index(parts)
        if count < 1 or x.shape[axis] % count:
            facts = f"axis {axis} of {x.shape} does not split into {count} equal sections"
            raise ShapeError(f"{name}: {facts}; use tensor_split")
    return tensor_split(x, parts, axis)


@public_function("lucid", "Tensor", aliases=("unsafe_split_with_sizes",))
@aliases(dim="axis")
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """Split along `dim` into pieces of the given sizes."""
    return split(input, list(split_sizes), dim)


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    """A copy of `narrow(input, dim, start, length)`."""
    from lucid.ops.shape.copying import clone

    return clone(narrow(input, dim, start, length))


@public_function("lucid", "Tensor")
def diagflat(input: Any, offset: int = 0) -> Any:
    """A matrix with the flattened `input` on a diagonal."""
    return diag_embed(ravel(as_tensor(input)), offset)


@public_function()
def block_diag(*tensors: Any) -> Any:
    """A matrix with matrices along its diagonal and zeros elsewhere; vectors are rows.

    >>> import lucid
    >>> lucid.block_diag(lucid.ones(1, 2), lucid.tensor([5.0]))
    Tensor([[1., 1., 0.],
            [0., 0., 5.]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    blocks = [atleast_2d(x) for x in promote(*[as_tensor(x) for x in tensors or ([[]],)])]
    if any(x.ndim != 2 for x in blocks):
        shapes = ", ".join(str(x.shape) for x in blocks)
        raise ShapeError(f"block_diag: shapes {shapes}; blocks must have at most two axes")
    width, left, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        right = width - left - x.shape[1]
        rows.append(bind(Pad((0, left), (0, right), (0, 0)), x))
        left += x.shape[1]
    return cat(rows, 0)


@public_function()
def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of one element from each vector, as rows; a single vector is returned as is.

    >>> import lucid
    >>> lucid.cartesian_prod(lucid.tensor([1, 2]), lucid.tensor([3, 4]))
    Tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    xs = [as_tensor(x) for x in tensors]
    if not xs or any(x.ndim > 1 for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"cartesian_prod: ({shapes}); give vectors")
    if len(xs) == 1:
        return xs[0]
    return stack([ravel(grid) for grid in meshgrid(*promote(*xs))], 1)


@public_function()
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All combinations of r elements of a vector, in order, as rows."""
    x = as_tensor(input)
    if x.ndim != 1 or r < 0:
        raise ShapeError(f"combinations: r={r} and shape {x.shape}; give r >= 0 and a vector")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(x.shape[0]), r)), np.int64).reshape(-1, r)
    if r == 0:
        return x.new_zeros(0)
    return bind(Gather((0,)), x, wrap(rows))


@public_function("Tensor")
def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    """A view of windows of `size` elements along an axis, `step` apart, as a new last axis.

    >>> import lucid
    >>> lucid.arange(5).unfold(0, 2, 3)
    Tensor([[0, 1],
            [3, 4]])
    """
    x = as_tensor(x)
    axis = canonicalize_axis("unfold", dimension, x.ndim)
    if not x.ndim:
        return unfold(x.reshape(1), 0, size, step).reshape(-1)
    n = x.shape[axis]
    size, step = operator.index(size), operator.index(step)
    if not 0 <= size <= n or step < 1:
        raise ShapeError(f"unfold: size {size} and step {step} for an axis of size {n}")
    return windows(x, axis, size, step)


@public_function("lucid", "Tensor")
def adjoint(input: Any) -> Any:
    """The conjugate transpose of the matrices in the last two axes."""
    return conj(mT(input))


@public_function()
def view_as_real(input: Any) -> Any:
    """Complex numbers as pairs of their real and imaginary parts, in a new last axis."""
    x = as_tensor(input)
    if x.dtype.kind != "c":
        raise DTypeError(f"view_as_real: {x.dtype}; it takes complex dtypes")
    return stack([real(x), imag(x)], -1)


@public_function()
def view_as_complex(input: Any) -> Any:
    """Pairs in the last axis as complex numbers.

    >>> import lucid
    >>> lucid.view_as_complex(lucid.tensor([[1.0, 2.0]]))
    Tensor([1.+2.j], dtype=complex64)
    """
    x = as_tensor(input)
    if x.dtype.kind != "f" or not x.ndim or x.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: {x.dtype} {x.shape}; it takes pairs of floats")
    return complex(x[..., 0], x[..., 1])


@public_function()
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """The Vandermonde matrix: the powers of the elements of a vector, as columns.

    >>> import lucid
    >>> lucid.vander(lucid.tensor([1, 2, 3]))
    Tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    x = as_tensor(x)
    if x.ndim != 1:
        raise ShapeError(f"vander: a tensor of shape {x.shape}; it takes a vector")
    count = x.shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ShapeError(f"vander: N={count} is negative")
    if x.dtype.kind == "b":
        x = x.long()
    exponents = np.arange(count) if increasing else np.arange(count)[::-1]
    return x.reshape(-1, 1) ** wrap(exponents.astype(x.dtype))


@public_function("Tensor")
def sum_to_size(x: Any, *size: Any) -> Any:
    """Sum `x` over the axes along which `size` broadcasts to its shape."""
    x, shape = as_tensor(x), canonicalize_shape("sum_to_size", size)
    try:
        fits = broadcast(shape, x.shape) == x.shape
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(f"sum_to_size: {shape} does not broadcast to {x.shape}")
    return sum_to(x, shape)


@public_function()
def constant_pad_nd(input: Any, pad: Any, value: Any = 0) -> Any:
    """Pad `input` with a constant: pairs (before, after), the last axis first."""
    return pad_with_mode(input, pad, "constant", value)
