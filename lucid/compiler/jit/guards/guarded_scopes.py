"""guarded_scopes: what holds the variables that a jitted function reads, as dictionaries.

A guard compares `scope.get(name)` with what it was: closure cells, slots, arrays, the contents of
containers, and names that are not bound.
"""

from __future__ import annotations

from collections import deque
from operator import is_
from types import CellType
from typing import Any

import numpy as np

from lucid.ops.core.constant_key import ByIdentity, constant_key

UNBOUND = object()
MAX_ELEMENTS = 256  # longer lists and dictionaries are not compared at every call
CONTAINERS = (list, dict, set, deque)


class ClosureCells:
    """The closure cells of a function, with the interface of a dictionary."""

    __slots__ = ("cells",)

    def __init__(self, cells: dict[str, CellType]) -> None:
        self.cells = cells

    def get(self, name: str) -> Any:
        try:
            return self.cells[name].cell_contents
        except ValueError:  # not assigned yet, or deleted
            return UNBOUND


class Slots:
    """The slots of an object, with the interface of a dictionary."""

    __slots__ = ("object",)

    def __init__(self, object: Any) -> None:
        self.object = object

    def get(self, name: str) -> Any:
        return getattr(self.object, name, UNBOUND)


class Names(frozenset[str]):
    """Names that are not bound in a scope."""

    def __str__(self) -> str:
        return " or ".join(sorted(self))


class Absent:
    """A scope, with the interface of a dictionary that tells if Names are still not bound in it."""

    __slots__ = ("get", "keys")

    def __init__(self, scope: Any) -> None:
        self.keys = scope.keys()
        self.get = self.keys.isdisjoint


class ModuleAttributes:
    """Names that are not bound in a Module, which counts the attributes that are set."""

    def __init__(self, scopes: list[Any], names: set[str]) -> None:
        for name in names:
            self.__dict__[name] = (name, scopes)


def is_absent(attribute: tuple[str, list[Any]]) -> bool:
    name, scopes = attribute
    return all([name not in scope for scope in scopes])


class ArrayBytes:
    """An array of NumPy's, with the interface of a dictionary that holds its bytes."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def get(self, name: str) -> bytes:
        return self.array.tobytes()


class Elements(tuple[Any, ...]):
    """The constants in a list or a dictionary, and the identities of other objects in it."""


class Contents:
    """A list or a dictionary, with the interface of a dictionary that holds its Elements."""

    __slots__ = ("container", "has_containers", "kept", "key")

    def __init__(self, container: Any) -> None:
        self.container = container
        self.kept = list(elements(container))
        self.has_containers = any(isinstance(x, CONTAINERS) for x in self.kept)
        self.key = self.current_key()

    def get(self, name: str) -> Elements:
        now = elements(self.container)
        if not self.has_containers and len(now) == len(self.kept) and all(map(is_, now, self.kept)):
            return self.key
        return self.current_key()

    def current_key(self) -> Elements:
        return Elements([element_key(x) for x in elements(self.container)])


def element_key(x: Any) -> Any:
    is_long = isinstance(x, CONTAINERS) and len(x) > MAX_ELEMENTS
    return ByIdentity(x) if is_long else constant_key(x)


def elements(container: Any) -> Any:
    if isinstance(container, dict):
        return (*container, *container.values())
    return container if type(container) is list else list(container)


def equal_constants(x: Any, y: Any) -> bool:
    """True if these are equal constants of the same type, and zeros of the same sign."""
    if type(x) is not type(y) or not isinstance(x, COMPARABLE):
        return False
    return repr(x) == repr(y) if isinstance(x, (float, complex)) else x == y


COMPARABLE = (int, float, complex, str, bytes, Elements)
