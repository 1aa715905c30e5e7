"""histogramdd: the number of points in each box of a grid."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.errors import ArgumentError, ShapeError
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.index.gather_scatter import ScatterAdd
from lucid.ops.index.lookup import diff
from lucid.ops.index.searching import Searchsorted
from lucid.ops.reduce.counting import bin_edges
from lucid.tape.bind import bind
from lucid.tape.node import Traced

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


class Grid(NamedTuple):
    """The counts of every box, and the edges along every axis."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def per_axis(bins: Any, axes: int) -> list[Any]:
    """Return the number of bins, or the edges, along every axis."""
    given = list(bins) if isinstance(bins, (list, tuple)) else [bins] * axes
    if len(given) != axes:
        facts = f"bins for {len(given)} axes and points with {axes} coordinates"
        raise ShapeError(f"histogramdd: {facts}")
    return given


@public_function()
def histogramdd(
    input: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False
) -> Grid:
    """The counts (or weights) of points, the last axis of `input`, in the boxes of a grid.

    `bins` is a number, or a number or the edges for every axis; `range` lists the two ends of each
    axis in turn. With `density` the result integrates to 1.

    >>> import lucid
    >>> points = lucid.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]])
    >>> lucid.histogramdd(points, bins=[3, 2]).hist
    Tensor([[0., 1.],
            [1., 0.],
            [1., 0.]])
    """
    x = as_tensor(input).detach()
    if x.dtype.kind != "f":
        raise dtype_error("histogramdd", x.dtype, "it takes floating dtypes")
    if x.ndim < 2 or not x.shape[-1]:
        raise ShapeError(f"histogramdd: {x.shape} is not a list of points (..., n)")
    axes = x.shape[-1]
    x, outer = x.reshape(-1, axes), x.shape[:-1]
    given = per_axis(bins, axes)
    ends = [None] * axes if range is None else list(zip(range[::2], range[1::2], strict=True))
    if len(ends) != axes or any(isinstance(b, Traced) for b in given if range is not None):
        facts = f"a range of {len(ends)} axes for {axes}, with bins {bins}"
        raise ArgumentError(f"histogramdd: {facts}; give two numbers per axis and no edges")
    edges = [bin_edges(x[:, i], b, e) for i, (b, e) in enumerate(zip(given, ends))]
    shape = tuple(part.shape[0] - 1 for part in edges)
    inside, place = x[:, 0] == x[:, 0], 0
    for i, (part, n) in enumerate(zip(edges, shape)):
        along = x[:, i].contiguous()
        inside = inside & (along >= part[0]) & (along <= part[n])
        place = place * n + clamp(bind(Searchsorted(True), part, along) - 1, 0, n - 1)
    counts = bind(
        ScatterAdd((math.prod(shape),), (0,)), point_weights(x, weight, inside, outer), place
    )
    counts = counts.reshape(shape)
    if density:
        counts = counts / counts.sum()
        for i, part in enumerate(edges):
            counts = counts / diff(part).reshape(-1, *[1] * (axes - 1 - i))
    return Grid(counts, tuple(edges))


def point_weights(x: Any, weight: Any, inside: Any, outer: tuple[int, ...]) -> Any:
    if weight is None:
        return cast(inside, x.dtype)
    given = as_tensor(weight)
    if given.shape != outer:
        raise ShapeError(f"histogramdd: weights of shape {given.shape} for points of {outer}")
    return where(inside, cast(given, x.dtype).reshape(-1), 0.0)
