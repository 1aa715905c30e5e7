"""surroundings: the variables outside of a function that it reads, and so does what it calls.

A jitted function is recorded with what they hold. Where one of them holds something else later, a
new model say, the function must be recorded again.
"""

from __future__ import annotations

from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

Variable = tuple[Any, str, Any]
NOTHING = object()
MOST = 256  # elements of a list or a dictionary that are compared at every call


class Enclosed:
    """The variables of the functions around one, looked at as a dictionary is."""

    __slots__ = ("cells",)

    def __init__(self, cells: dict[str, CellType]) -> None:
        self.cells = cells

    def get(self, name: str) -> Any:
        try:
            return self.cells[name].cell_contents
        except ValueError:  # not assigned yet, or deleted
            return NOTHING


class Ids(tuple[int, ...]):
    """Which objects a list or a dictionary holds."""


class Contents:
    """A list or a dictionary, looked at for which objects it holds."""

    __slots__ = ("container", "kept")

    def __init__(self, container: Any) -> None:
        self.container = container
        self.kept = list(elements(container))  # so that their ids stay theirs

    def get(self, name: str) -> Ids:
        return Ids(map(id, elements(self.container)))


def elements(container: Any) -> Any:
    return container if type(container) is list else (*container, *container.values())


def are_equal(x: Any, y: Any) -> bool:
    """Are these plain values, and the same ones?"""
    return type(x) is type(y) and isinstance(x, PLAIN) and x == y


PLAIN = (int, float, complex, str, bytes, Ids)


def surroundings(function: Any) -> list[Variable]:
    """(where, name, value) of the variables that a user's function reads outside of itself."""
    found: list[Variable] = []
    waiting, seen = [plain(function)], set()
    while waiting:
        f = waiting.pop()
        if f is None or f.__code__ in seen or is_ours(f):
            continue
        seen.add(f.__code__)
        for variable in variables(f):
            found.append(variable)
            waiting.append(plain(variable[2]))
            if type(variable[2]) in (list, dict) and len(variable[2]) <= MOST:
                contents = Contents(variable[2])
                found.append((contents, variable[1], contents.get("")))
    return found


def plain(f: Any) -> FunctionType | None:
    """The function of Python behind a method, a partial application or a wrapper."""
    if isinstance(f, MethodType):
        return plain(f.__func__)
    if isinstance(f, partial):
        return plain(f.func)
    inside = getattr(f, "__dict__", None)
    if isinstance(inside, dict) and "__wrapped__" in inside:
        return plain(inside["__wrapped__"])
    return f if isinstance(f, FunctionType) else None


def is_ours(f: FunctionType) -> bool:
    return (f.__module__ or "").partition(".")[0] == "lucid"


def variables(f: FunctionType) -> list[Variable]:
    names = names_in(f.__code__)
    enclosed = Enclosed(dict(zip(f.__code__.co_freevars, f.__closure__ or ())))
    found: list[Variable] = [(enclosed, name, enclosed.get(name)) for name in enclosed.cells]
    found += [(f.__globals__, name, f.__globals__[name]) for name in names if name in f.__globals__]
    return [variable for variable in found if can_change(variable[2])]


def names_in(code: CodeType) -> set[str]:
    """The global names, and those of attributes, in a function and the functions inside it."""
    inner = [names_in(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inner)


def can_change(value: Any) -> bool:
    """Is this a thing that a user's program may exchange: no library, and nothing of one?"""
    if value is NOTHING or isinstance(value, (ModuleType, type)):
        return False
    return not (isinstance(value, FunctionType) and is_ours(value))
