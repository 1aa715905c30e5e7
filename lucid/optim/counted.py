"""Lists and dictionaries that tell of a change: a compiled step has read what they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def nothing() -> None:
    """Nobody listens."""


class CountedList(list[Any]):
    """A list that calls `tell` after every change."""

    tell: Callable[[], None] = staticmethod(nothing)

    def __init__(self, items: Any = (), tell: Callable[[], None] = nothing) -> None:
        super().__init__(items)
        self.tell = tell


class CountedDict(dict[Any, Any]):
    """A dictionary that calls `tell` after every change."""

    tell: Callable[[], None] = staticmethod(nothing)

    def __init__(self, items: Any = (), tell: Callable[[], None] = nothing) -> None:
        super().__init__(items)
        self.tell = tell


def telling(cls: type, name: str) -> Any:
    """A method of a list or a dictionary that tells of the change it makes."""
    method = getattr(cls, name)

    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        finally:
            self.tell()

    change.__name__ = name
    return change


CHANGES = {
    CountedList: "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove "
    "reverse sort",
    CountedDict: "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update",
}
for _cls, _names in CHANGES.items():
    for _name in _names.split():
        setattr(_cls, _name, telling(_cls.__mro__[1], _name))


class States(CountedDict):
    """The states of parameters; one that is asked for has a state, at first an empty one."""

    asked = False

    def __setitem__(self, p: Any, state: dict[str, Any]) -> None:
        super().__setitem__(p, CountedDict(state, self.tell))

    def __missing__(self, p: Any) -> dict[str, Any]:
        self.asked = True
        self[p] = {}
        return self[p]
