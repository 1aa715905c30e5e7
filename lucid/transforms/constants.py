"""Constants that a derivative starts from, as equations where a trace is recording.

So the Graph of a gradient holds its own seed (`full 1.0`) and has the inputs of the function alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ir.types import SHORT_NAMES, Shape
from lucid.ops.core.promote import cast, literal
from lucid.ops.shape.creation import Full, Iota
from lucid.tape.bind import record_constant
from lucid.tape.node import wrap


def filled(number: float, shape: Shape, dtype: np.dtype, tracing: Any) -> Any:
    """An array of one number; `tracing` says whether somebody records it."""
    if not tracing:
        return wrap(np.full(shape, number, dtype))
    return record_constant(Full(shape, SHORT_NAMES[dtype]), [literal(number, dtype)])


def zeros_like(x: Any, tracing: Any = False) -> Any:
    return filled(0.0, x.shape, x.dtype, tracing)


def unit_rows(like: Any, offset: int, start: int, stop: int, tracing: Any = False) -> Any:
    """Rows `start` to `stop` of an identity matrix: columns from `offset` on, shaped as `like`."""
    size = math.prod(like.shape)
    shape = (stop - start, *like.shape)
    if tracing and size == 1 and stop - start == 1:
        return filled(float(start == offset), shape, like.dtype, True)
    if tracing and size and stop > start:
        rows = record_constant(Iota((stop - start, size), 0, "i64"), [])
        columns = record_constant(Iota((stop - start, size), 1, "i64"), [])
        diagonal = rows == columns + (offset - start) if offset != start else rows == columns
        unit = cast(diagonal, like.dtype)
        return unit if unit.shape == shape else unit.reshape(shape)
    return wrap(np.eye(stop - start, size, start - offset, like.dtype).reshape(shape))
