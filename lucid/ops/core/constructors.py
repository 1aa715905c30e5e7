"""ClearConstructor: constructors of Lucid's classes check their arguments and raise clear errors.

Arguments are checked against the annotations of `__init__` (int, float, bool, str, or None) and, by
name, against RANGES; what Python or NumPy raise for the rest becomes an ArgumentError.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ops.core.arguments import clear_errors
from lucid.tape.node import Traced

Check = tuple[str, Callable[[Any], bool]]


class ClearConstructor:
    """The base of classes whose constructors check their arguments; users' subclasses do not."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = cls.__dict__.get("__init__")
        if own is not None and cls.__module__.startswith("lucid."):
            cls.__init__ = checked_constructor(own)  # type: ignore[method-assign]


def checked_constructor(init: Callable[..., Any]) -> Callable[..., Any]:
    """Return an `__init__` that checks its arguments and explains the errors it raises."""
    checks: list[tuple[str, str]] = []
    clear = clear_errors(init)

    @functools.wraps(init)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        if not checks:
            checks.extend(annotations_of(init) or [("", "")])
        for (name, kind), x in zip(checks, args):
            check_argument(type(self).__name__, name, kind, x)
        if kwargs:
            kinds = dict(checks)
            for name, x in kwargs.items():
                check_argument(type(self).__name__, name, kinds.get(name, ""), x)
        clear(self, *args, **kwargs)

    return call


def annotations_of(init: Callable[..., Any]) -> list[tuple[str, str]]:
    """Return (name, annotation) of the arguments after `self`, up to *args."""
    found = []
    for p in list(inspect.signature(init).parameters.values())[1:]:
        if p.kind is p.VAR_POSITIONAL:
            break
        found.append((p.name, str(p.annotation)))
    return found


def check_argument(owner: str, name: str, kind: str, x: Any) -> None:
    """Raise ArgumentError if an argument is not of its annotated kind, or out of its range."""
    if kind in KINDS:
        what, holds = KINDS[kind]
        if not holds(x):
            raise ArgumentError(f"{owner}: {name}={x!r:.60} is not {what}")
    check_range(owner, name, x)


def check_range(owner: str, name: str, x: Any) -> None:
    """Raise ArgumentError if a number is out of the range that its name allows."""
    if name in RANGES and is_real(x):
        what, holds = RANGES[name]
        if not holds(x):
            raise ArgumentError(f"{owner}: {name}={x!r} is not {what}")


def is_integer(x: Any) -> bool:
    if isinstance(x, Traced):
        return x.raw is not None and x.value.size == 1 and x.value.dtype.kind in "iu"
    return hasattr(x, "__index__") and not isinstance(x, (bool, np.bool_, np.ndarray))


def is_real(x: Any) -> bool:
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


def is_number(x: Any) -> bool:
    """True for a real number, and for a tensor of one."""
    if isinstance(x, (Traced, np.ndarray)):
        array: Any = x
        return math.prod(array.shape) == 1 and array.dtype.kind in "biuf"
    return is_real(x)


def is_flag(x: Any) -> bool:
    return isinstance(x, (bool, np.bool_)) or (isinstance(x, int) and x in (0, 1))


def optional(check: Check) -> Check:
    what, holds = check
    return f"{what} or None", lambda x: x is None or holds(x)


INTEGER: Check = ("an integer", is_integer)
NUMBER: Check = ("a real number", is_number)
FLAG: Check = ("a bool", is_flag)
TEXT: Check = ("a string", lambda x: isinstance(x, str))
KINDS: dict[str, Check] = {
    "int": INTEGER,
    "float": NUMBER,
    "bool": FLAG,
    "str": TEXT,
    "int | None": optional(INTEGER),
    "float | None": optional(NUMBER),
    "bool | None": optional(FLAG),
    "str | None": optional(TEXT),
}

NOT_NEGATIVE: Check = ("a number of at least 0", lambda x: 0 <= x < math.inf)
PROBABILITY: Check = ("a number from 0 to 1", lambda x: 0 <= x <= 1)
COUNT: Check = ("at least 1", lambda x: x >= 1)
RANGES: dict[str, Check] = {
    "eps": NOT_NEGATIVE,
    "layer_norm_eps": NOT_NEGATIVE,
    "momentum": PROBABILITY,
    "dropout": PROBABILITY,
    "label_smoothing": PROBABILITY,
    "max_norm": NOT_NEGATIVE,
    "norm_type": ("a positive number", lambda x: x > 0),
    "groups": COUNT,
    "num_groups": COUNT,
    "num_heads": COUNT,
    "nhead": COUNT,
    "num_layers": COUNT,
    "batch_size": COUNT,
    "num_workers": NOT_NEGATIVE,
    "timeout": NOT_NEGATIVE,
    "prefetch_factor": COUNT,
    "step_size": COUNT,
    "T_max": COUNT,
    "T_0": COUNT,
    "patience": NOT_NEGATIVE,
    "cooldown": NOT_NEGATIVE,
    "total_iters": NOT_NEGATIVE,
}
