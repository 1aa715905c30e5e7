"""Constants that a derivative starts from, recorded as equations while tracing.

The Graph of a gradient thus contains its own seed (`full 1.0`) and has only the function's inputs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ir.types import SHORT_NAMES, Shape
from lucid.ops.core.promote import cast, literal
from lucid.ops.shape.full_and_iota import Full, Iota
from lucid.tape.bind import record_constant
from lucid.tape.node import wrap


def full_constant(number: float, shape: Shape, dtype: np.dtype, tracing: Any) -> Any:
    """Return an array filled with one number, recorded as an equation if `tracing`."""
    if not tracing:
        return wrap(np.full(shape, number, dtype))
    return record_constant(Full(shape, SHORT_NAMES[dtype]), [literal(number, dtype)])


def zeros_like(x: Any, tracing: Any = False) -> Any:
    return full_constant(0.0, x.shape, x.dtype, tracing)


def unit_rows(like: Any, offset: int, start: int, stop: int, tracing: Any = False) -> Any:
    """Return rows `start` to `stop` of an identity, columns from `offset`, shaped as `like`."""
    size = math.prod(like.shape)
    shape = (stop - start, *like.shape)
    if tracing and size == 1 and stop - start == 1:
        return full_constant(float(start == offset), shape, like.dtype, True)
    if tracing and size and stop > start:
        rows = record_constant(Iota((stop - start, size), 0, "i64"), [])
        columns = record_constant(Iota((stop - start, size), 1, "i64"), [])
        diagonal = rows == columns + (offset - start) if offset != start else rows == columns
        unit = cast(diagonal, like.dtype)
        return unit if unit.shape == shape else unit.reshape(shape)
    return wrap(np.eye(stop - start, size, start - offset, like.dtype).reshape(shape))
