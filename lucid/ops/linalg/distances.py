"""Distances between vectors: dist, cdist, pdist, renorm. At distance 0 the gradient is 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import canonicalize_axis, keepdims_shape
from lucid.ops.core.float16 import in_float32
from lucid.ops.core.promote import as_tensor, promote, to_floating
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.gather_scatter import Gather
from lucid.ops.reduce.reduction import Sum
from lucid.ops.reduce.statistics import abs_square, norm, order_of, p_norm, safe_sqrt
from lucid.ops.shape.shaping import mT
from lucid.tape.bind import bind
from lucid.tape.node import wrap

MATMUL_THRESHOLD = 25  # with more vectors, Euclidean distances are computed by a matrix product
MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@public_function("lucid", "Tensor")
def dist(input: Any, other: Any, p: Any = 2) -> Any:
    """The p-norm of `input - other`."""
    x, other = promote(as_tensor(input), as_tensor(other))
    return norm(x - other, p)


@public_function()
def cdist(x1: Any, x2: Any, p: Any = 2.0, compute_mode: Any = MODES[0]) -> Any:
    """The p-norm distance of every vector in `x1` (..., m, k) from every one in `x2` (..., n, k).

    >>> import lucid
    >>> lucid.cdist(lucid.zeros(1, 2), lucid.tensor([[3.0, 4.0], [0.0, 1.0]]))
    Tensor([[5., 1.]])
    """
    a, b = promote(as_tensor(x1), as_tensor(x2), floating=True)
    if a.dtype.kind == "c":
        raise dtype_error("cdist", a.dtype, "it takes real vectors")
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-1]:
        facts = f"shapes {a.shape} and {b.shape}"
        raise ShapeError(f"cdist: {facts}; they must be (..., m, k) and (..., n, k)")
    if compute_mode is None:
        compute_mode = MODES[0]
    if compute_mode not in MODES:
        facts = f"compute_mode {compute_mode!r} is not one of {', '.join(MODES)}"
        raise ArgumentError(f"cdist: {facts}")
    p = distance_order("cdist", p)
    many = max(a.shape[-2], b.shape[-2]) > MATMUL_THRESHOLD
    if p == 2 and (compute_mode == MODES[1] or (many and compute_mode == MODES[0])):
        return euclidean_by_matmul(a, b)
    rows = a.reshape(*a.shape[:-1], 1, a.shape[-1])
    return row_norms(rows - b.reshape(*b.shape[:-2], 1, *b.shape[-2:]), p)


def euclidean_by_matmul(a: Any, b: Any) -> Any:
    """Return the root of |a|² + |b|² - 2 a·b, which rounding may make slightly negative."""
    lengths = [bind(Sum((x.ndim - 1,)), abs_square(x)) for x in (a, b)]
    cross = a @ mT(b)
    rows, columns = (*a.shape[:-1], 1), (*b.shape[:-2], 1, b.shape[-2])
    total = lengths[0].reshape(rows) + lengths[1].reshape(columns) - 2.0 * cross
    return safe_sqrt(where(total < 0, 0.0, total))


def row_norms(x: Any, p: float) -> Any:
    """Return the p-norm over the last axis; it is 0 for an empty axis."""
    if x.shape[-1] == 0:
        return bind(Sum((x.ndim - 1,)), x)
    return p_norm(x, p, (x.ndim - 1,))


def distance_order(name: str, p: Any) -> float:
    p = order_of(name, p)
    if not p >= 0:
        raise ArgumentError(f"{name}: p={p}; it must be nonnegative")
    return p


@public_function("lucid", "nn.functional")
def pdist(input: Any, p: Any = 2) -> Any:
    """The p-norm distances of all pairs of rows of a matrix, as a vector.

    >>> import lucid
    >>> lucid.pdist(lucid.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    Tensor([5., 3., 4.])
    """
    x = to_floating(input)
    if x.ndim != 2:
        raise ShapeError(f"pdist: {x.shape} is not the shape of a matrix")
    if x.dtype.kind == "c":
        raise dtype_error("pdist", x.dtype, "it takes real vectors")
    p = distance_order("pdist", p)
    first, second = [bind(Gather((0,)), x, wrap(i)) for i in np.triu_indices(x.shape[0], 1)]
    return row_norms(first - second, p)


@public_function("lucid", "Tensor", inplace=True)
@aliases(dim="axis")
@in_float32
def renorm(input: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """`input` with every slice along `dim` whose p-norm exceeds `maxnorm` scaled down to it.

    >>> import lucid
    >>> lucid.renorm(lucid.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0, 5.0)
    Tensor([[3., 4.],
            [0., 1.]])
    """
    x = as_tensor(input)
    if x.dtype.kind not in "fc":
        raise dtype_error("renorm", x.dtype, "it takes floating and complex dtypes")
    if x.ndim < 2:
        raise ShapeError(f"renorm: {x.shape} has fewer than two axes")
    p, maxnorm = order_of("renorm", p), float(maxnorm)
    if not p > 0 or not maxnorm >= 0:
        raise ArgumentError(f"renorm: p={p} must be positive and maxnorm={maxnorm} nonnegative")
    at = canonicalize_axis("renorm", dim, x.ndim)
    axes = tuple(i for i in range(x.ndim) if i != at)
    lengths = p_norm(x, p, axes).reshape(keepdims_shape(x.shape, axes))
    large = lengths > maxnorm
    return x * where(large, maxnorm / (where(large, lengths, 1.0) + 1e-7), 1.0)
