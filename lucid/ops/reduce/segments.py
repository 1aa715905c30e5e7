"""segment_reduce: rows that stand one after the other, reduced in groups of given lengths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.ops.core.arguments import explained, known_array
from lucid.ops.core.axes import axis_of
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.lookup import diff
from lucid.ops.index.scatter_reduce import scatter_reduce
from lucid.ops.index.searching import searchsorted
from lucid.ops.reduce.cumulative import cumsum
from lucid.ops.shape.creation import full
from lucid.tape.node import wrap

STARTS = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
KINDS = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


def lengths_of(x: Any, axis: int, lengths: Any, offsets: Any) -> Any:
    """How many rows each segment has, along the last axis."""
    if (lengths is None) == (offsets is None):
        raise ArgumentError(f"segment_reduce: give lengths or offsets, one of them{at_line()}")
    given = as_tensor(offsets if lengths is None else lengths)
    if given.dtype.kind not in "iu":
        facts = f"lengths or offsets of dtype {given.dtype}"
        raise DTypeError(f"segment_reduce: {facts}; they are integers{at_line()}")
    if given.ndim != axis + 1 or given.shape[:-1] != x.shape[:axis]:
        facts = f"data of shape {x.shape} with lengths or offsets of {given.shape} for axis {axis}"
        raise ShapeError(f"segment_reduce: {facts}; the axes before it are equal{at_line()}")
    if lengths is None and not given.shape[-1]:
        raise ShapeError(f"segment_reduce: no offsets; there is at least one{at_line()}")
    return cast(given, "int64") if offsets is None else diff(cast(given, "int64"))


def check_lengths(sizes: Any, rows: int) -> None:
    known = known_array(sizes)
    if known is None:
        return
    if known.size and known.min() < 0:
        raise ArgumentError(f"segment_reduce: a length is negative{at_line()}")
    if (known.sum(-1) != rows).any():
        facts = f"the lengths add up to {known.sum(-1).tolist()}, the data has {rows} rows"
        raise ArgumentError(f"segment_reduce: {facts}; unsafe=True lets that pass{at_line()}")


@explained
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

    An empty segment is what the reduction starts from: `initial`, or 0, nan, -inf, inf, 1.

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0, 3.0, 4.0])
    >>> lucid.segment_reduce(x, "sum", lengths=lucid.tensor([1, 3]))
    Tensor([1., 9.])
    """
    x = as_tensor(data)
    if x.dtype.kind != "f":
        facts = f"data of dtype {x.dtype}; it takes floating dtypes"
        raise DTypeError(f"segment_reduce: {facts}{at_line()}")
    if reduce not in STARTS:
        known = ", ".join(STARTS)
        raise ArgumentError(f"segment_reduce: reduce={reduce!r}; it is one of {known}{at_line()}")
    if indices is not None:
        raise ArgumentError(f"segment_reduce: give lengths or offsets, not indices{at_line()}")
    axis = axis_of("segment_reduce", axis, x.ndim)
    sizes = lengths_of(x, axis, lengths, offsets)
    if not unsafe:
        check_lengths(sizes, x.shape[axis])
    return reduced(x, axis, sizes, reduce, None if initial is None else float(initial))


def reduced(x: Any, axis: int, sizes: Any, reduce: str, initial: float | None) -> Any:
    outer, inner = x.shape[: axis + 1], x.shape[axis + 1 :]
    ends = cumsum(sizes, -1)
    rows = wrap(np.broadcast_to(np.arange(outer[-1]), outer).copy())
    owner = searchsorted(ends, rows, right=True)  # rows beyond all segments go to one more
    owner = owner.reshape(*outer, *[1] * len(inner)).expand(x.shape)
    count = sizes.shape[-1]
    begun = STARTS[reduce] if initial is None else initial
    start = full((*outer[:-1], count + 1, *inner), begun, dtype=x.dtype)
    y = scatter_reduce(start, axis, owner, x, KINDS[reduce]).narrow(axis, 0, count)
    if reduce != "mean":
        return y
    shaped = cast(sizes, x.dtype).reshape(*sizes.shape, *[1] * len(inner))
    empty = math.nan if initial is None else initial
    return where(shaped == 0, empty, y / where(shaped == 0, 1.0, shaped))
