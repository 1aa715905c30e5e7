"""Lists and dictionaries that report changes, since a compiled step depends on their contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def ignore_change() -> None:
    """The default callback, which does nothing."""


class ObservedList(list[Any]):
    """A list that calls `on_change` after every change."""

    on_change: Callable[[], None] = staticmethod(ignore_change)

    def __init__(self, items: Any = (), on_change: Callable[[], None] = ignore_change) -> None:
        super().__init__(items)
        self.on_change = on_change


class ObservedDict(dict[Any, Any]):
    """A dictionary that calls `on_change` after every change."""

    on_change: Callable[[], None] = staticmethod(ignore_change)

    def __init__(self, items: Any = (), on_change: Callable[[], None] = ignore_change) -> None:
        super().__init__(items)
        self.on_change = on_change


def notifying(cls: type, name: str) -> Any:
    """Return a method of list or dict that calls `on_change` after it."""
    method = getattr(cls, name)

    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        finally:
            self.on_change()

    change.__name__ = name
    return change


MUTATORS = {
    ObservedList: "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove "
    "reverse sort",
    ObservedDict: "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update",
}
for _cls, _names in MUTATORS.items():
    for _name in _names.split():
        setattr(_cls, _name, notifying(_cls.__mro__[1], _name))


class States(ObservedDict):
    """The states of parameters; reading a missing one creates an empty state."""

    was_read = False

    def __setitem__(self, p: Any, state: dict[str, Any]) -> None:
        super().__setitem__(p, ObservedDict(state, self.on_change))

    def __missing__(self, p: Any) -> dict[str, Any]:
        self.was_read = True
        self[p] = {}
        return self[p]
