"""Axes and shapes as users write them, made plain and checked, with errors that name the op."""

from __future__ import annotations

import math
import operator
from typing import Any

from lucid.errors import ArgumentError, AxisError, ShapeError
from lucid.ir.source import at_line

Axes = Any  # None, an int, or a sequence of ints
_UNSET: Any = object()
LARGEST = 2**63 - 1


def axis_of(name: str, axis: Any, ndim: int) -> int:
    """One axis, counted from the front."""
    try:
        number = operator.index(axis)
    except TypeError:
        raise AxisError(f"{name}: axis {axis!r} is not an integer{at_line()}") from None
    if not -max(ndim, 1) <= number < max(ndim, 1):
        raise AxisError(
            f"{name}: axis {number} is out of range for {ndim} axes; "
            f"it lies between {-max(ndim, 1)} and {max(ndim, 1) - 1}{at_line()}"
        )
    return number % max(ndim, 1)


def axes_of(name: str, axes: Axes, ndim: int) -> tuple[int, ...]:
    """Axes in order, counted from the front; None is all of them."""
    if axes is None:
        return tuple(range(ndim))
    if not isinstance(axes, (tuple, list)):
        return (axis_of(name, axes, ndim),) if ndim else (axis_of(name, axes, 0),)[:0]
    numbers = [axis_of(name, axis, ndim) for axis in axes]
    if len(set(numbers)) != len(numbers):
        raise AxisError(f"{name}: an axis appears twice in {tuple(axes)}{at_line()}")
    return tuple(sorted(numbers)) if ndim else ()


def either(name: str, first: tuple[str, Any], second: tuple[str, Any], default: Any = None) -> Any:
    """The one of two spellings (`dim`/`axis`, `keepdim`/`keepdims`) that was given."""
    (name_a, a), (name_b, b) = first, second
    if b is None or b is a:
        return default if a is None else a
    if a is not None and a != default:
        raise ArgumentError(f"{name}: give {name_a} or {name_b}, not both{at_line()}")
    return b


def by_word(name: str, word: str, given: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    """Numbers given one by one, as one sequence, or by a word: `permute(x, dims=(1, 0))`."""
    if given:
        raise ArgumentError(f"{name}: give {word} once, by position or by name{at_line()}")
    return (value,)


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    """A shape given as ints or as one sequence: `reshape(2, 3)` and `reshape((2, 3))`."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    try:
        sizes = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise ShapeError(
            f"{name}: {shape!r} is not a shape: sizes are integers{at_line()}"
        ) from None
    if max(sizes, default=0) > LARGEST:
        raise ShapeError(f"{name}: {sizes}: a size does not fit into 64 bits{at_line()}")
    return sizes


def resolve_shape(name: str, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """A shape whose -1, if any, is replaced by what makes the size right."""
    if any(n < -1 for n in shape) or shape.count(-1) > 1:
        raise ShapeError(
            f"{name}: {shape} is not a shape: at most one size may be -1, none less{at_line()}"
        )
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        if rest == 0 or size % rest:
            raise ShapeError(f"{name}: {size} elements do not fill shape {shape}{at_line()}")
        shape = tuple(size // rest if n == -1 else n for n in shape)
    if math.prod(shape) != size:
        raise ShapeError(f"{name}: {size} elements do not fill shape {shape}{at_line()}")
    return shape


def without(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def with_ones(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(shape))
