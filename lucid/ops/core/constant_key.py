"""constant_key: keys that tell apart Python constants which compare equal.

1, 1.0 and True are equal to Python, and so are 0.0 and -0.0, but they make different programs. All
nans are one constant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

PLAIN_TYPES = (int, str, bool, bytes, type(None))


class ByIdentity:
    """A wrapper that compares by identity."""

    __slots__ = ("object",)

    def __init__(self, object: Any) -> None:
        self.object = object

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ByIdentity) and self.object is other.object

    def __hash__(self) -> int:
        return id(self.object)


def constant_key(x: Any, key_of_object: Callable[[Any], Any] = ByIdentity) -> Any:
    """Return a key of numbers, strings and containers of them, with their types.

    key_of_object    the key of any other object; by default it compares by identity
    """
    kind = x.__class__
    if kind in PLAIN_TYPES:
        return (kind, x)
    if kind is float or kind is complex:
        return (kind, repr(x))
    if kind in (tuple, list):
        return (kind, tuple([constant_key(y, key_of_object) for y in x]))
    if kind in (set, frozenset):
        return (kind, frozenset([constant_key(y, key_of_object) for y in x]))
    if kind is dict:
        items = [(constant_key(k, key_of_object), constant_key(v, key_of_object)) for k, v in
                 x.items()]  # fmt: skip
        return (kind, tuple(items))
    if isinstance(x, np.generic):
        return (kind, x.tobytes())
    return key_of_object(x)


def value_key(x: Any) -> Any:
    """Return the key of an object that compares by its own ==, its class and its fields."""
    fields: tuple[Any, ...] = ()
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        names = [f.name for f in dataclasses.fields(x) if f.compare]
        fields = tuple([constant_key(getattr(x, name), value_key) for name in names])
    return (x.__class__, x, fields)
