"""Functions over spatial axes: one definition for 1, 2 and 3 axes, and argument checks.

Such functions take (N, C, *spatial) or, without a batch axis, (C, *spatial).
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.promote import as_tensor
from lucid.ops.nn.convolution import Convolution
from lucid.ops.shape.creation import ones
from lucid.tape.bind import bind

Sizes = tuple[int, ...]
LARGEST = 1 << 24  # size, stride, padding or dilation along an axis
NAMING = ("__module__", "__name__", "__qualname__", "__doc__")


def over_axes(axes: int, function: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """Return a decorator: a name and a docstring become `function(name, axes, ...)`."""
    whole = inspect.signature(function)
    signature = whole.replace(parameters=list(whole.parameters.values())[2:])

    def decorate(named: Callable[[], None]) -> Callable[..., Any]:
        name = named.__name__

        @functools.wraps(named, NAMING)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(name, axes, *args, **kwargs)
            except TypeError:
                signature.bind(*args, **kwargs)  # names the argument that is missing or too many
                raise

        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorate


def int_tuple(name: str, what: str, value: Any, axes: int, least: int = 0) -> Sizes:
    """Return one integer per axis, from one integer or a sequence."""
    if is_plain_sizes(value) and value.__class__ is tuple and len(value) == axes:
        if min(value) >= least and max(value) <= LARGEST:
            return value
    given = list(value) if isinstance(value, (tuple, list)) else [value]
    try:
        found = tuple(operator.index(n) for n in given)
    except TypeError:
        facts = f"{what} {value!r} is not an integer or {axes} integers"
        raise ArgumentError(f"{name}: {facts}") from None
    found = found * axes if len(found) == 1 else found
    if len(found) != axes or any(isinstance(n, bool) for n in given):
        raise ShapeError(f"{name}: {what} {value!r} for {axes} axes; give 1 or {axes} integers")
    if min(found, default=least) < least:
        raise ShapeError(f"{name}: {what} {value!r}; it must be at least {least}")
    if max(found, default=0) > LARGEST:
        raise ShapeError(f"{name}: {what} {value!r} is too large")
    return found


def is_plain_sizes(value: Any) -> bool:
    """True for an int or a tuple of them, and no other type that compares equal to one."""
    if value.__class__ is tuple:
        return value != () and {n.__class__ for n in value} == _INT
    return value.__class__ is int


_INT = {int}


def add_batch_axis(name: str, x: Any, axes: int) -> tuple[Any, bool]:
    """Return the input as (N, C, *spatial), and whether it had a batch axis."""
    x = as_tensor(x)
    if x.ndim == axes + 2:
        return x, True
    if x.ndim != axes + 1:
        facts = f"an input of shape {x.shape}; it must have {axes} axes after (N, C) or (C,)"
        raise ShapeError(f"{name}: {facts}")
    return x.reshape(1, *x.shape), False


def drop_batch_axis(y: Any, was_batched: bool) -> Any:
    """Remove the batch axis that `add_batch_axis` added."""
    return y if was_batched else y.reshape(y.shape[1:])


def as_floating(name: str, x: Any) -> Any:
    """Return `x` as a tensor; raise DTypeError unless it is floating or complex."""
    x = as_tensor(x)
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{name}: an input of dtype {x.dtype}; cast it to a floating dtype")
    return x


def window_sums(x: Any, size: Sizes, window: Sizes, stride: Sizes, padding: Sizes) -> Any:
    """Return the sum of every window of each channel: a convolution with ones."""
    planes = x.reshape(x.shape[0] * x.shape[1], 1, *x.shape[2:])
    weight = ones(1, 1, *window, dtype=x.dtype)
    total = bind(Convolution(size, stride, padding, (1,) * len(size)), planes, weight)
    return total.reshape(*x.shape[:2], *size)
