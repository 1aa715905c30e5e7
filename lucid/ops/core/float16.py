"""in_float32: functions of float16 whose squares and sums only float32 holds.

The norm of (300, 400) is 500, but 300² is more than float16 can say: without a wider step between,
`layer_norm` of such numbers would be 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lucid.ops.core.promote import as_tensor, cast
from lucid.tape.node import Traced

F = TypeVar("F", bound=Callable[..., Any])
HALF = np.dtype("float16")


def is_half(x: Any) -> bool:
    return bool(getattr(x, "dtype", None) == HALF)


def in_float32(function: F) -> F:
    """`function`, computed in float32 where its first operand is of float16, as its result is."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_half(args[0] if args else next(iter(kwargs.values()), None)):
            return function(*args, **kwargs)
        named = {name: widened(x) for name, x in kwargs.items()}
        return narrowed(function(*map(widened, args), **named))

    return call  # type: ignore[return-value]


def widened(x: Any) -> Any:
    return as_tensor(x, "float32") if is_half(x) else x


def narrowed(y: Any) -> Any:
    if isinstance(y, tuple):
        return tuple(map(narrowed, y))
    return cast(y, HALF) if isinstance(y, Traced) and y.dtype.kind == "f" else y
