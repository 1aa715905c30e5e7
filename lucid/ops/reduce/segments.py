"""segment_reduce: consecutive rows reduced in segments of given lengths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.arguments import concrete_array, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.lookup import diff
from lucid.ops.index.scatter_reduce import scatter_reduce
from lucid.ops.index.searching import searchsorted
from lucid.ops.reduce.cumulative import cumsum
from lucid.ops.shape.creation import full
from lucid.tape.node import wrap

INITIAL_VALUES = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
SCATTER_REDUCTIONS = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


def lengths_of(x: Any, axis: int, lengths: Any, offsets: Any) -> Any:
    """Return the number of rows of each segment, along the last axis."""
    if (lengths is None) == (offsets is None):
        raise ArgumentError("segment_reduce: give either lengths or offsets")
    given = as_tensor(offsets if lengths is None else lengths)
    if given.dtype.kind not in "iu":
        facts = f"lengths or offsets of dtype {given.dtype}"
        raise DTypeError(f"segment_reduce: {facts}; they must be integers")
    if given.ndim != axis + 1 or given.shape[:-1] != x.shape[:axis]:
        facts = f"data of shape {x.shape} with lengths or offsets of {given.shape} for axis {axis}"
        raise ShapeError(f"segment_reduce: {facts}; the axes before it must agree")
    if lengths is None and not given.shape[-1]:
        raise ShapeError("segment_reduce: offsets must have at least one element")
    return cast(given, "int64") if offsets is None else diff(cast(given, "int64"))


def check_lengths(sizes: Any, rows: int) -> None:
    known = concrete_array(sizes)
    if known is None:
        return
    if known.size and known.min() < 0:
        raise ArgumentError("segment_reduce: a length is negative")
    if (known.sum(-1) != rows).any():
        facts = f"the lengths add up to {known.sum(-1).tolist()}, but the data has {rows} rows"
        raise ArgumentError(f"segment_reduce: {facts}; unsafe=True skips this check")


@public_function()
def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Any:
    """`data` reduced by "sum", "mean", "max", "min" or "prod" within segments of these lengths.

    An empty segment gives the initial value: `initial`, or 0, nan, -inf, inf, 1.

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0, 3.0, 4.0])
    >>> lucid.segment_reduce(x, "sum", lengths=lucid.tensor([1, 3]))
    Tensor([1., 9.])
    """
    x = as_tensor(data)
    if x.dtype.kind != "f":
        raise DTypeError(f"segment_reduce: data of dtype {x.dtype}; it takes floating dtypes")
    if reduce not in INITIAL_VALUES:
        known = ", ".join(INITIAL_VALUES)
        raise ArgumentError(f"segment_reduce: reduce={reduce!r} is not one of {known}")
    if indices is not None:
        raise ArgumentError("segment_reduce: give lengths or offsets, not indices")
    axis = canonicalize_axis("segment_reduce", axis, x.ndim)
    sizes = lengths_of(x, axis, lengths, offsets)
    if not unsafe:
        check_lengths(sizes, x.shape[axis])
    return reduce_segments(x, axis, sizes, reduce, None if initial is None else float(initial))


def reduce_segments(x: Any, axis: int, sizes: Any, reduce: str, initial: float | None) -> Any:
    outer, inner = x.shape[: axis + 1], x.shape[axis + 1 :]
    ends = cumsum(sizes, -1)
    rows = wrap(np.broadcast_to(np.arange(outer[-1]), outer).copy())
    owner = searchsorted(ends, rows, right=True)  # rows beyond all segments go to an extra one
    owner = owner.reshape(*outer, *[1] * len(inner)).expand(x.shape)
    count = sizes.shape[-1]
    begun = INITIAL_VALUES[reduce] if initial is None else initial
    start = full((*outer[:-1], count + 1, *inner), begun, dtype=x.dtype)
    y = scatter_reduce(start, axis, owner, x, SCATTER_REDUCTIONS[reduce]).narrow(axis, 0, count)
    if reduce != "mean":
        return y
    shaped = cast(sizes, x.dtype).reshape(*sizes.shape, *[1] * len(inner))
    empty = math.nan if initial is None else initial
    return where(shaped == 0, empty, y / where(shaped == 0, 1.0, shaped))
