"""closure_guards: the outer variables that a function, and the functions it calls, read.

A jitted function is recorded with their values. If one of them is rebound later, to a new model
for instance, the function must be recorded again.
"""

from __future__ import annotations

from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

Variable = tuple[Any, str, Any]
UNBOUND = object()
MAX_ELEMENTS = 256  # longer lists and dictionaries are not compared at every call


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


class ElementIds(tuple[int, ...]):
    """The ids of the objects that a list or a dictionary holds."""


class Contents:
    """The identities of the elements of a list or a dictionary."""

    __slots__ = ("container", "kept")

    def __init__(self, container: Any) -> None:
        self.container = container
        self.kept = list(elements(container))  # keeps their ids unique

    def get(self, name: str) -> ElementIds:
        return ElementIds(map(id, elements(self.container)))


def elements(container: Any) -> Any:
    return container if type(container) is list else (*container, *container.values())


def equal_constants(x: Any, y: Any) -> bool:
    """True if these are equal constants of the same type."""
    return type(x) is type(y) and isinstance(x, COMPARABLE) and x == y


COMPARABLE = (int, float, complex, str, bytes, ElementIds)


def closure_guards(function: Any) -> list[Variable]:
    """Return (scope, name, value) of the outer variables that a user's function reads."""
    found: list[Variable] = []
    pending, seen = [unwrap_function(function)], set()
    while pending:
        f = pending.pop()
        if f is None or f.__code__ in seen or is_lucid_function(f):
            continue
        seen.add(f.__code__)
        for variable in outer_variables(f):
            found.append(variable)
            pending.append(unwrap_function(variable[2]))
            if type(variable[2]) in (list, dict) and len(variable[2]) <= MAX_ELEMENTS:
                contents = Contents(variable[2])
                found.append((contents, variable[1], contents.get("")))
    return found


def unwrap_function(f: Any) -> FunctionType | None:
    """Return the Python function behind a method, a partial or a wrapper, or None."""
    if isinstance(f, MethodType):
        return unwrap_function(f.__func__)
    if isinstance(f, partial):
        return unwrap_function(f.func)
    inside = getattr(f, "__dict__", None)
    if isinstance(inside, dict) and "__wrapped__" in inside:
        return unwrap_function(inside["__wrapped__"])
    return f if isinstance(f, FunctionType) else None


def is_lucid_function(f: FunctionType) -> bool:
    return (f.__module__ or "").partition(".")[0] == "lucid"


def outer_variables(f: FunctionType) -> list[Variable]:
    names = names_in(f.__code__)
    enclosed = ClosureCells(dict(zip(f.__code__.co_freevars, f.__closure__ or ())))
    found: list[Variable] = [(enclosed, name, enclosed.get(name)) for name in enclosed.cells]
    found += [(f.__globals__, name, f.__globals__[name]) for name in names if name in f.__globals__]
    return [variable for variable in found if is_guarded(variable[2])]


def names_in(code: CodeType) -> set[str]:
    """Return the global and attribute names in a function and its nested functions."""
    inner = [names_in(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inner)


def is_guarded(value: Any) -> bool:
    """True if a user's program may rebind this: not a module, a class or a function of Lucid."""
    if value is UNBOUND or isinstance(value, (ModuleType, type)):
        return False
    return not (isinstance(value, FunctionType) and is_lucid_function(value))
