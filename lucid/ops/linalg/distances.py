"""Distances between vectors: dist, cdist, pdist, renorm. At distance 0 the gradient is 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.ir.source import at_line
from lucid.ops.core.apply import refuse
from lucid.ops.core.arguments import also, explained
from lucid.ops.core.axes import axis_of, with_ones
from lucid.ops.core.float16 import in_float32
from lucid.ops.core.promote import as_tensor, promote, to_floating
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.gather_scatter import Gather
from lucid.ops.reduce.reduction import Sum
from lucid.ops.reduce.statistics import norm, order_of, p_norm, root, square
from lucid.ops.shape.shaping import mT
from lucid.tape.bind import bind
from lucid.tape.node import wrap

MANY = 25  # with more vectors than this, Euclidean distances go by a matrix product
MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@explained
def dist(input: Any, other: Any, p: Any = 2) -> Any:
    """The p-norm of `input - other`."""
    x, other = promote(as_tensor(input), as_tensor(other))
    return norm(x - other, p)


@explained
def cdist(x1: Any, x2: Any, p: Any = 2.0, compute_mode: Any = MODES[0]) -> Any:
    """The p-norm distance of every vector in `x1` (..., m, k) from every one in `x2` (..., n, k).

    >>> import lucid
    >>> lucid.cdist(lucid.zeros(1, 2), lucid.tensor([[3.0, 4.0], [0.0, 1.0]]))
    Tensor([[5., 1.]])
    """
    a, b = promote(as_tensor(x1), as_tensor(x2), floating=True)
    if a.dtype.kind == "c":
        raise refuse("cdist", a.dtype, "it takes real vectors")
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-1]:
        facts = f"shapes {a.shape} and {b.shape}"
        raise ShapeError(f"cdist: {facts}: (..., m, k) and (..., n, k), k the same{at_line()}")
    if compute_mode is None:
        compute_mode = MODES[0]
    if compute_mode not in MODES:
        facts = f"compute_mode {compute_mode!r}; it is one of {', '.join(MODES)}"
        raise ArgumentError(f"cdist: {facts}{at_line()}")
    p = distance_order("cdist", p)
    many = max(a.shape[-2], b.shape[-2]) > MANY
    if p == 2 and (compute_mode == MODES[1] or (many and compute_mode == MODES[0])):
        return by_product(a, b)
    ways = a.reshape(*a.shape[:-1], 1, a.shape[-1]) - b.reshape(*b.shape[:-2], 1, *b.shape[-2:])
    return norm_of_rows(ways, p)


def by_product(a: Any, b: Any) -> Any:
    """|a|² + |b|² - 2 a·b, which rounding may make a little less than 0."""
    lengths = [bind(Sum((x.ndim - 1,)), square(x)) for x in (a, b)]
    cross = a @ mT(b)
    rows, columns = (*a.shape[:-1], 1), (*b.shape[:-2], 1, b.shape[-2])
    total = lengths[0].reshape(rows) + lengths[1].reshape(columns) - 2.0 * cross
    return root(where(total < 0, 0.0, total))


def norm_of_rows(x: Any, p: float) -> Any:
    """The p-norm over the last axis; of nothing it is 0."""
    if x.shape[-1] == 0:
        return bind(Sum((x.ndim - 1,)), x)
    return p_norm(x, p, (x.ndim - 1,))


def distance_order(name: str, p: Any) -> float:
    p = order_of(name, p)
    if not p >= 0:
        raise ArgumentError(f"{name}: p={p}; a distance has p >= 0{at_line()}")
    return p


@explained
def pdist(input: Any, p: Any = 2) -> Any:
    """The p-norm distances of all pairs of rows of a matrix, as a vector.

    >>> import lucid
    >>> lucid.pdist(lucid.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    Tensor([5., 3., 4.])
    """
    x = to_floating(input)
    if x.ndim != 2:
        raise ShapeError(f"pdist: a tensor of shape {x.shape}; it takes a matrix{at_line()}")
    if x.dtype.kind == "c":
        raise refuse("pdist", x.dtype, "it takes real vectors")
    p = distance_order("pdist", p)
    first, second = [bind(Gather((0,)), x, wrap(i)) for i in np.triu_indices(x.shape[0], 1)]
    return norm_of_rows(first - second, p)


@explained
@also(dim="axis")
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
        raise refuse("renorm", x.dtype, "it takes floating and complex dtypes")
    if x.ndim < 2:
        raise ShapeError(f"renorm: {x.shape} has no slices; it takes two axes or more{at_line()}")
    p, maxnorm = order_of("renorm", p), float(maxnorm)
    if not p > 0 or not maxnorm >= 0:
        raise ArgumentError(f"renorm: p={p} and maxnorm={maxnorm}; p > 0, maxnorm >= 0{at_line()}")
    at = axis_of("renorm", dim, x.ndim)
    axes = tuple(i for i in range(x.ndim) if i != at)
    lengths = p_norm(x, p, axes).reshape(with_ones(x.shape, axes))
    large = lengths > maxnorm
    return x * where(large, maxnorm / (where(large, lengths, 1.0) + 1e-7), 1.0)
