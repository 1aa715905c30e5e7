"""Order statistics: kthvalue, mode, nanmedian, quantiles, all by sorting along one axis.

The gradient goes to the chosen elements, or is split between neighbors if a quantile lies between
them.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import maximum, minimum, where
from lucid.ops.elementwise.logic import isinf
from lucid.ops.elementwise.rounding import ceil, floor, round
from lucid.ops.index.gather_scatter import TakeAlong
from lucid.ops.index.selection import Selected, take_one
from lucid.ops.reduce.cumulative import Cummax
from lucid.ops.reduce.extrema import Argmax
from lucid.ops.reduce.reduction import sum
from lucid.ops.reduce.sorting import Sort, TopK, sort
from lucid.ops.shape.movement import broadcast_to, slice_axis
from lucid.ops.shape.shaping import movedim, ravel
from lucid.public.declare import Dynamic
from lucid.tape.bind import bind
from lucid.tape.node import wrap

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def row_along(name: str, x: Any, dim: Any, axis: Any) -> tuple[Any, int]:
    """Check an operand and its axis; a scalar becomes a vector of one element."""
    x = as_tensor(x)
    if x.dtype.kind == "c":
        raise dtype_error(name, x.dtype, "complex numbers have no order")
    number = canonicalize_axis(name, dim if axis is None else axis, x.ndim)
    row = x if x.ndim else x.reshape(1)
    if row.shape[number] == 0:
        raise ShapeError(f"{name}: axis {number} of shape {x.shape} is empty: it has no {name}")
    return row, number


def squeeze_scalar(found: Selected, x: Any, keep: Any) -> Selected:
    """Return scalars if `x` is a scalar."""
    return found if as_tensor(x).ndim else Selected(*[part.reshape(()) for part in found])


@public_function("lucid", "Tensor")
def msort(input: Any) -> Any:
    """The elements in order along axis 0."""
    return sort(input, 0).values


@public_function("lucid", "Tensor")
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
        raise ShapeError(f"kthvalue: k={k} is not between 1 and {n}")
    largest = 2 * k > n
    count = n - k + 1 if largest else k
    found = bind(TopK(at, count, largest), row)
    keep = keepdim if keepdims is None else keepdims
    last = [slice_axis(part, at, count - 1, count) for part in found]
    shape = tuple(size for i, size in enumerate(row.shape) if i != at)
    out = Selected(*[part if keep else part.reshape(shape) for part in last])
    return squeeze_scalar(out, input, keep)


@public_function("lucid", "Tensor")
def mode(
    input: Any, dim: int = -1, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Selected:
    """The most frequent elements along `dim` (the smallest of a tie), and an index of each.

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
    chosen = take_one(indices, place, at, False).values
    return squeeze_scalar(take_one(row, chosen, at, keep), input, keep)


@public_function("lucid", "Tensor")
def nanmedian(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Dynamic:
    """The median of the elements that are not nan; the lower one of an even number; see `median`.

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
    found = take_one(row, take_one(indices, place, at, False).values, at, keep)
    found = squeeze_scalar(found, input, keep)
    return found.values if dim is None else found


@public_function("lucid", "Tensor")
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

    `interpolation` between two elements is linear, lower, higher, midpoint or nearest. If there is
    a nan, the result is nan.

    >>> import lucid
    >>> lucid.quantile(lucid.tensor([1.0, 2.0, 4.0]), lucid.tensor([0.5, 0.75]))
    Tensor([2., 3.])
    """
    dim, keep = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    return quantiles("quantile", input, q, dim, keep, interpolation, False)


@public_function("lucid", "Tensor")
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


def quantiles(name: str, x: Any, q: Any, dim: Any, keep: Any, method: str, skips_nan: bool) -> Any:
    x = as_tensor(x)
    if x.dtype.kind != "f":
        raise dtype_error(name, x.dtype, "it takes floating dtypes; cast first")
    if method not in INTERPOLATIONS:
        raise ArgumentError(
            f"{name}: interpolation {method!r} is not one of {', '.join(INTERPOLATIONS)}"
        )
    q = check_levels(name, q, x)
    rows, shape = reduced_rows(name, x, dim, keep)
    ordered = bind(Sort(rows.ndim - 1), rows)[0]
    n = rows.shape[-1]
    levels_last = q.reshape(-1)
    if skips_nan:
        numbers = cast(sum(rows == rows, axis=-1, keepdims=True), x.dtype)
        last = maximum(numbers - 1, 0.0)
        positions = levels_last * last
    else:
        last = float(n - 1)
        positions = levels_last * last
        positions = broadcast_to(positions, (*rows.shape[:-1], levels_last.shape[0]))
    found = interpolate(ordered, positions, method, last)
    if not skips_nan:
        found = where((rows != rows).any(-1, True), math.nan, found)
    return movedim(found, -1, 0).reshape((*q.shape, *shape))


def check_levels(name: str, q: Any, x: Any) -> Any:
    q = as_tensor(q, x.dtype) if isinstance(q, (int, float)) else as_tensor(q)
    if q.ndim > 1:
        raise ShapeError(f"{name}: q of shape {q.shape} is not a number or a vector")
    if q.dtype != x.dtype:
        raise DTypeError(f"{name}: q of {q.dtype} for elements of {x.dtype}; cast one")
    known = q.value
    if known is not None and not ((known >= 0) & (known <= 1)).all():
        raise ArgumentError(f"{name}: q={known.tolist()} is outside [0, 1]")
    return q


def reduced_rows(name: str, x: Any, dim: Any, keep: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the operand with the reduced axis last, and the shape of one result."""
    if dim is None:
        shape: tuple[int, ...] = (1,) * x.ndim if keep else ()
        rows = ravel(x)
    else:
        at = canonicalize_axis(name, dim, x.ndim)
        rows = movedim(x, at, -1) if x.ndim else x.reshape(1)
        shape = rows.shape[:-1]
        if keep and x.ndim:
            shape = tuple(1 if i == at else n for i, n in enumerate(x.shape))
    if rows.shape[-1] == 0:
        raise ShapeError(f"{name}: no elements to reduce in shape {x.shape}")
    return rows, shape


def interpolate(ordered: Any, positions: Any, method: str, last: Any) -> Any:
    """Return the sorted elements at fractional positions, of which `last` is the largest."""
    if method == "nearest":
        return take_sorted(ordered, round(positions))
    low = floor(positions)
    if method == "lower":
        return take_sorted(ordered, low)
    high = ceil(positions)
    if method == "higher":
        return take_sorted(ordered, high)
    if method == "linear":  # at an element too, the derivative in q is the slope to the next one
        high = minimum(low + 1, last)
    below, above = take_sorted(ordered, low), take_sorted(ordered, high)
    found = below + (above - below) * (0.5 if method == "midpoint" else positions - low)
    ends = where(positions == low, below, below + above)
    return where(isinf(below) | isinf(above), ends, found)


def take_sorted(ordered: Any, positions: Any) -> Any:
    return bind(TakeAlong(ordered.ndim - 1), ordered, cast(positions, "int64"))
