"""Counts of equal elements, or of elements between edges: bincount, histc, histogram."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.rounding import floor
from lucid.ops.index.gather_scatter import ScatterAdd
from lucid.ops.index.lookup import diff
from lucid.ops.index.searching import Searchsorted
from lucid.ops.reduce.extrema import amax, amin
from lucid.ops.reduce.reduction import sum
from lucid.ops.shape.shaping import ravel
from lucid.tape.bind import bind
from lucid.tape.node import Traced, wrap

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


class Histogram(NamedTuple):
    """The counts of every bin, and the edges between bins."""

    hist: Tensor
    bin_edges: Tensor


@public_function("lucid", "Tensor")
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """The number of occurrences of each of 0, 1, 2, ..., or the sum of their weights.

    The size of the result depends on the values: it is one more than the largest.

    >>> import lucid
    >>> lucid.bincount(lucid.tensor([1, 3, 1]))
    Tensor([0, 2, 0, 1])
    """
    x = as_tensor(input)
    if x.dtype.kind not in "iu" or x.ndim != 1:
        raise DTypeError(f"bincount: {x.dtype} {x.shape}; it takes a vector of integers")
    size = operator.index(minlength)
    if size < 0:
        raise ArgumentError(f"bincount: minlength {size} is negative")
    if x.shape[0]:
        if int(amin(x)) < 0:
            raise ArgumentError("bincount: negative integers cannot be counted")
        size = max(size, int(amax(x)) + 1)
    if weights is None:
        counted = wrap(np.ones(x.shape, np.int64))
    else:
        counted = as_tensor(weights)
        counted = counted if counted.dtype.kind == "f" else cast(counted, "float64")
        if counted.shape != x.shape:
            raise ShapeError(f"bincount: weights of shape {counted.shape} for {x.shape}")
    if x.shape[0]:  # a compiled program writes before its guard on the size is checked
        x = clamp(x, 0, size - 1)
    return bind(ScatterAdd((size,), (0,)), counted, x)


@public_function("lucid", "Tensor")
def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """The number of elements in each of `bins` equal parts of [min, max], by default their range.

    >>> import lucid
    >>> lucid.histc(lucid.tensor([1.0, 2.0, 1.0]), bins=3, min=0, max=3)
    Tensor([0., 2., 1.])
    """
    x = ravel(as_tensor(input)).detach()
    if x.dtype.kind != "f":
        raise dtype_error("histc", x.dtype, "it takes floating dtypes")
    n = operator.index(bins)
    if n < 1 or min > max:
        facts = f"{n} bins from {min} to {max}; there must be a bin, and min <= max"
        raise ArgumentError(f"histc: {facts}")
    low, high = bin_range(x, min, max, 1.0)
    inside = (x >= low) & (x <= high)
    place = floor((where(inside, x, low) - low) / (high - low) * float(n))
    place = clamp(cast(place, "int64"), 0, n - 1)
    return bind(ScatterAdd((n,), (0,)), cast(inside, x.dtype), place)


def bin_range(x: Any, low: Any, high: Any, more: float) -> tuple[Any, Any]:
    """Return the range of the elements if none is given; a single point is widened by `more`."""
    if low == high == 0 and x.shape[0]:
        low, high = amin(x), amax(x)
    low, high = as_tensor(low, x.dtype), as_tensor(high, x.dtype)
    same = low == high
    return where(same, low - more, low), where(same, high + more, high)


@public_function("lucid", "Tensor")
def histogram(
    input: Any, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False
) -> Histogram:
    """The counts (or weights) between edges, and the edges; `bins` is a number or the edges.

    The last bin includes its right edge. With `density` the result integrates to 1.

    >>> import lucid
    >>> lucid.histogram(lucid.tensor([1.0, 2.0, 1.0]), 3, range=(0.0, 3.0)).hist
    Tensor([0., 2., 1.])
    """
    x = ravel(as_tensor(input))
    if x.dtype.kind != "f":
        raise dtype_error("histogram", x.dtype, "it takes floating dtypes")
    x, edges = x.detach(), bin_edges(x.detach(), bins, range)
    n = edges.shape[0] - 1
    inside = (x >= edges[0]) & (x <= edges[n])
    place = bind(Searchsorted(True), edges, x) - 1
    place = clamp(place, 0, n - 1)
    weights = cast(inside, x.dtype)
    if weight is not None:
        given = ravel(as_tensor(weight))
        if given.shape != x.shape:
            raise ShapeError(f"histogram: weights of shape {given.shape} for {x.shape} elements")
        weights = where(inside, cast(given, x.dtype), 0.0)
    counts = bind(ScatterAdd((n,), (0,)), weights, place)
    if density:
        counts = counts / (sum(counts) * diff(edges))
    return Histogram(counts, edges)


def bin_edges(x: Any, bins: Any, range: Any) -> Any:
    if isinstance(bins, (Traced, np.ndarray, list, tuple)):
        edges = as_tensor(bins, x.dtype)
        if edges.ndim != 1 or edges.shape[0] < 2:
            facts = f"edges of shape {edges.shape}"
            raise ShapeError(f"histogram: {facts}; they must be a sorted vector")
        return edges
    n = operator.index(bins)
    if n < 1:
        raise ArgumentError(f"histogram: {n} bins; there must be at least one")
    low, high = (0, 0) if range is None else range
    if low > high:
        raise ArgumentError(f"histogram: the range from {low} to {high} is empty")
    low, high = bin_range(x, low, high, 0.5)
    part = wrap((np.arange(n + 1) / n).astype(x.dtype))
    return where(part == 1, high, low + (high - low) * part)
