"""Canonical axes and shapes from what users pass, with errors that name the op."""

from __future__ import annotations

import math
import operator
from typing import Any

from lucid.errors import ArgumentError, AxisError, ShapeError
from lucid.support.caches import new_cache

Axes = Any  # None, an int, or a sequence of ints
_UNSET: Any = object()
LARGEST = 2**63 - 1
_ops: dict[tuple[type[Any], int, int], Any] = new_cache(f"{__name__}._ops", {})


def canonicalize_axis(name: str, axis: Any, ndim: int) -> int:
    """Return `axis` counted from the front, checked against `ndim`."""
    number = as_index(name, axis)
    if not -max(ndim, 1) <= number < max(ndim, 1):
        raise AxisError(
            f"{name}: axis {number} is out of range for {ndim} axes; "
            f"it must be between {-max(ndim, 1)} and {max(ndim, 1) - 1}"
        )
    return number % max(ndim, 1)


def axis_op(op: type[Any], name: str, ndim: int, dim: Any, axis: Any, default: Any = None) -> Any:
    """Return the primitive `op` along the axis that `dim` or `axis` gives."""
    if dim is None:
        dim = default
    if axis is None and dim.__class__ is int:
        found = _ops.get((op, ndim, dim))
        if found is not None:
            return found
    at = resolve_alias(name, ("dim", dim), ("axis", axis), default)
    if at is None:
        raise ArgumentError(f"{name}: give dim (or axis)")
    at = as_index(name, at)
    return _ops.setdefault((op, ndim, at), op(canonicalize_axis(name, at, ndim)))


def as_index(name: str, axis: Any) -> int:
    """Return an axis as a Python integer."""
    try:
        return operator.index(axis)
    except TypeError:
        raise AxisError(f"{name}: axis {axis!r} is not an integer") from None


def canonicalize_axes(name: str, axes: Axes, ndim: int) -> tuple[int, ...]:
    """Return sorted axes, counted from the front; None means all axes."""
    if axes is None:
        return tuple(range(ndim))
    if not isinstance(axes, (tuple, list)):
        return (
            (canonicalize_axis(name, axes, ndim),)
            if ndim
            else (canonicalize_axis(name, axes, 0),)[:0]
        )
    numbers = [canonicalize_axis(name, axis, ndim) for axis in axes]
    if len(set(numbers)) != len(numbers):
        raise AxisError(f"{name}: an axis appears twice in {tuple(axes)}")
    return tuple(sorted(numbers)) if ndim else ()


def resolve_alias(
    name: str, first: tuple[str, Any], second: tuple[str, Any], default: Any = None
) -> Any:
    """Return whichever of two aliases (`dim`/`axis`, `keepdim`/`keepdims`) was given."""
    (name_a, a), (name_b, b) = first, second
    if b is None or b is a:
        return default if a is None else a
    if a is not None and a != default:
        raise ArgumentError(f"{name}: give {name_a} or {name_b}, not both")
    return b


def exclusive_keyword(
    name: str, keyword: str, given: tuple[Any, ...], value: Any
) -> tuple[Any, ...]:
    """Return a keyword's value as varargs: `permute(x, dims=(1, 0))` is `permute(x, (1, 0))`."""
    if given:
        raise ArgumentError(f"{name}: give {keyword} once, by position or by name")
    return (value,)


def canonicalize_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape given as ints or as one sequence: `reshape(2, 3)` or `reshape((2, 3))`."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    try:
        sizes = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise ShapeError(f"{name}: {shape!r} is not a shape: sizes must be integers") from None
    if max(sizes, default=0) > LARGEST:
        raise ShapeError(f"{name}: {sizes}: a size does not fit into 64 bits")
    return sizes


def resolve_shape(name: str, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return `shape` with -1, if any, replaced by the size that fits `size` elements."""
    if any(n < -1 for n in shape) or shape.count(-1) > 1:
        raise ShapeError(f"{name}: {shape} is not a shape: at most one size may be -1, others >= 0")
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        if rest == 0 or size % rest:
            raise ShapeError(f"{name}: {size} elements do not fill shape {shape}")
        shape = tuple(size // rest if n == -1 else n for n in shape)
    if math.prod(shape) != size:
        raise ShapeError(f"{name}: {size} elements do not fill shape {shape}")
    return shape


def drop_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` without `axes`."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def keepdims_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` with size 1 in `axes`."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))
