"""in_float32: compute functions of float16 in float32, whose range holds their squares and sums.

The norm of (300, 400) is 500, but 300² overflows float16: without a wider intermediate dtype,
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
FLOAT16 = np.dtype("float16")


def is_float16(x: Any) -> bool:
    return bool(getattr(x, "dtype", None) == FLOAT16)


def in_float32(function: F) -> F:
    """Compute `function` in float32 if its first operand is float16, and return float16."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_float16(args[0] if args else next(iter(kwargs.values()), None)):
            return function(*args, **kwargs)
        named = {name: upcast(x) for name, x in kwargs.items()}
        return downcast(function(*map(upcast, args), **named))

    return call  # type: ignore[return-value]


def upcast(x: Any) -> Any:
    return as_tensor(x, "float32") if is_float16(x) else x


def downcast(y: Any) -> Any:
    if isinstance(y, tuple):
        return tuple(map(downcast, y))
    return cast(y, FLOAT16) if isinstance(y, Traced) and y.dtype.kind == "f" else y
