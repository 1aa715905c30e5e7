"""Order statistics: kthvalue, mode, nanmedian, quantiles, all by sorting along one axis.

The gradient goes to the elements that were chosen, shared between neighbours where a quantile lies
between them.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.ops.core.apply import refuse
from lucid.ops.core.arguments import explained
from lucid.ops.core.axes import axis_of
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import maximum, where
from lucid.ops.elementwise.logic import isinf
from lucid.ops.elementwise.rounding import ceil, floor, round
from lucid.ops.index.gather_scatter import TakeAlong
from lucid.ops.index.selection import Selected, pick
from lucid.ops.reduce.cumulative import Cummax
from lucid.ops.reduce.extrema import Argmax
from lucid.ops.reduce.reduction import sum
from lucid.ops.reduce.sorting import Sort, TopK, sort
from lucid.ops.shape.movement import broadcast_to, slice_axis
from lucid.ops.shape.shaping import movedim, ravel
from lucid.tape.bind import bind
from lucid.tape.node import wrap

WAYS = ("linear", "lower", "higher", "midpoint", "nearest")


def row_along(name: str, x: Any, dim: Any, axis: Any) -> tuple[Any, int]:
    """A tensor that has an order, with elements along the axis; a number is a row of one."""
    x = as_tensor(x)
    if x.dtype.kind == "c":
        raise refuse(name, x.dtype, "complex numbers have no order")
    number = axis_of(name, dim if axis is None else axis, x.ndim)
    row = x if x.ndim else x.reshape(1)
    if row.shape[number] == 0:
        facts = f"axis {number} of shape {x.shape} is empty"
        raise ShapeError(f"{name}: {facts}: it has no {name}{at_line()}")
    return row, number


def as_given(found: Selected, x: Any, keep: Any) -> Selected:
    """A number that was taken as a row of one gives numbers."""
    return found if as_tensor(x).ndim else Selected(*[part.reshape(()) for part in found])


@explained
def msort(input: Any) -> Any:
    """The elements in order along axis 0."""
    return sort(input, 0).values


@explained
def kthvalue(
    input: Any,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: Any = None,
) -> Selected:
    """The k-th smallest elements along `dim`, counted from 1, and their indices.

    >>> import lucid
    >>> lucid.kthvalue(lucid.tensor([3.0, 1.0, 2.0]), 2)
    Selected(values=Tensor(2.), indices=Tensor(2))
    """
    row, at = row_along("kthvalue", input, dim, axis)
    n, k = row.shape[at], operator.index(k)
    if not 1 <= k <= n:
        raise ShapeError(f"kthvalue: k={k} of {n} elements; it is between 1 and {n}{at_line()}")
    largest = 2 * k > n
    count = n - k + 1 if largest else k
    found = bind(TopK(at, count, largest), row)
    keep = keepdim if keepdims is None else keepdims
    last = [slice_axis(part, at, count - 1, count) for part in found]
    shape = tuple(size for i, size in enumerate(row.shape) if i != at)
    out = Selected(*[part if keep else part.reshape(shape) for part in last])
    return as_given(out, input, keep)


@explained
def mode(
    input: Any, dim: int = -1, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Selected:
    """The elements that occur most often along `dim`, of a tie the smallest, and an index of each.

    >>> import lucid
    >>> lucid.mode(lucid.tensor([1, 2, 2, 3])).values
    Tensor(2)
    """
    row, at = row_along("mode", input, dim, axis)
    ordered, indices = bind(Sort(at, stable=True), row.detach())
    n = row.shape[at]
    sizes = [n if i == at else 1 for i in range(row.ndim)]
    number = wrap(np.arange(n).reshape(sizes))
    before = slice_axis(ordered, at, 0, n - 1)
    changed = slice_axis(ordered, at, 1, n) != before
    starts = where(changed, slice_axis(number, at, 1, n), 0)
    from lucid.ops.shape.joining import cat

    first = slice_axis(where(ordered == ordered, 0, 0), at, 0, 1)
    began = bind(Cummax(at), cat([first, starts], at))[0]
    place = bind(Argmax(at), number - began)
    keep = keepdim if keepdims is None else keepdims
    chosen = pick(indices, place, at, False).values
    return as_given(pick(row, chosen, at, keep), input, keep)


@explained
def nanmedian(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The middle of the elements that are not nan; of an even number the lower one; see `median`.

    >>> import lucid
    >>> lucid.nanmedian(lucid.tensor([3.0, lucid.nan, 1.0]))
    Tensor(1.)
    """
    keep = keepdim if keepdims is None else keepdims
    if dim is None and axis is None:
        input = as_tensor(input)
        values = nanmedian(ravel(input), 0).values
        return values.reshape([1] * input.ndim) if keep else values
    row, at = row_along("nanmedian", input, dim if axis is None else axis, None)
    indices = bind(Sort(at, stable=True), row.detach())[1]
    place = maximum(sum(row == row, axis=at) - 1, 0) // 2
    found = pick(row, pick(indices, place, at, False).values, at, keep)
    found = as_given(found, input, keep)
    return found.values if dim is None else found


@explained
def quantile(
    input: Any,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The q-quantiles along `dim` (of all elements by default), q in [0, 1]: one for each q.

    Between two elements it is what `interpolation` says: linear, lower, higher, midpoint, nearest.
    Where there is a nan the result is nan.

    >>> import lucid
    >>> lucid.quantile(lucid.tensor([1.0, 2.0, 4.0]), lucid.tensor([0.5, 0.75]))
    Tensor([2., 3.])
    """
    dim, keep = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    return quantiles("quantile", input, q, dim, keep, interpolation, False)


@explained
def nanquantile(
    input: Any,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """`quantile` of the elements that are not nan."""
    dim, keep = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    return quantiles("nanquantile", input, q, dim, keep, interpolation, True)


def quantiles(name: str, x: Any, q: Any, dim: Any, keep: Any, way: str, skips_nan: bool) -> Any:
    x = as_tensor(x)
    if x.dtype.kind != "f":
        raise refuse(name, x.dtype, "quantiles lie between floating numbers; cast first")
    if way not in WAYS:
        raise ArgumentError(
            f"{name}: interpolation {way!r}; it is one of {', '.join(WAYS)}{at_line()}"
        )
    q = levels(name, q, x)
    rows, shape = rows_of(name, x, dim, keep)
    ordered = bind(Sort(rows.ndim - 1), rows)[0]
    n = rows.shape[-1]
    levels_last = q.reshape(-1)
    if skips_nan:
        numbers = cast(sum(rows == rows, axis=-1, keepdims=True), x.dtype)
        places = levels_last * maximum(numbers - 1, 0.0)
    else:
        places = levels_last * float(n - 1)
        places = broadcast_to(places, (*rows.shape[:-1], levels_last.shape[0]))
    found = between(ordered, places, way)
    if not skips_nan:
        found = where((rows != rows).any(-1, True), math.nan, found)
    return movedim(found, -1, 0).reshape((*q.shape, *shape))


def levels(name: str, q: Any, x: Any) -> Any:
    q = as_tensor(q, x.dtype) if isinstance(q, (int, float)) else as_tensor(q)
    if q.ndim > 1:
        raise ShapeError(f"{name}: q of shape {q.shape}; it is a number or a vector{at_line()}")
    if q.dtype != x.dtype:
        raise DTypeError(f"{name}: q of {q.dtype} for elements of {x.dtype}; cast one{at_line()}")
    known = q.value
    if known is not None and not ((known >= 0) & (known <= 1)).all():
        raise ArgumentError(f"{name}: q={known.tolist()} lies outside of [0, 1]{at_line()}")
    return q


def rows_of(name: str, x: Any, dim: Any, keep: Any) -> tuple[Any, tuple[int, ...]]:
    """The operand with what is reduced as the last axis, and the shape of one result."""
    if dim is None:
        shape: tuple[int, ...] = (1,) * x.ndim if keep else ()
        rows = ravel(x)
    else:
        at = axis_of(name, dim, x.ndim)
        rows = movedim(x, at, -1) if x.ndim else x.reshape(1)
        shape = rows.shape[:-1]
        if keep and x.ndim:
            shape = tuple(1 if i == at else n for i, n in enumerate(x.shape))
    if rows.shape[-1] == 0:
        raise ShapeError(f"{name}: nothing has no quantiles; the shape is {x.shape}{at_line()}")
    return rows, shape


def between(ordered: Any, places: Any, way: str) -> Any:
    """The sorted elements at places that may lie between two of them."""
    if way == "nearest":
        return at_places(ordered, round(places))
    low = floor(places)
    if way == "lower":
        return at_places(ordered, low)
    high = ceil(places)
    if way == "higher":
        return at_places(ordered, high)
    below, above = at_places(ordered, low), at_places(ordered, high)
    found = below + (above - below) * (0.5 if way == "midpoint" else places - low)
    return where(isinf(below) | isinf(above), below + above, found)


def at_places(ordered: Any, places: Any) -> Any:
    return bind(TakeAlong(ordered.ndim - 1), ordered, cast(places, "int64"))
