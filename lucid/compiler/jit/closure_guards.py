"""closure_guards: the outer variables that a function, and the functions it calls, read.

A jitted function is recorded with their values. If one of them is rebound later, to a new model
for instance, the function must be recorded again.
"""

from __future__ import annotations

from functools import partial
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from lucid.ops.core.constant_key import ByIdentity, constant_key

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


class Elements(tuple[Any, ...]):
    """The constants in a list or a dictionary, and the identities of other objects in it."""


class Contents:
    """A list or a dictionary, with the interface of a dictionary that holds its Elements."""

    __slots__ = ("container", "has_containers", "kept", "key")

    def __init__(self, container: Any) -> None:
        self.container = container
        self.kept = list(elements(container))
        self.has_containers = any(isinstance(x, (list, dict)) for x in self.kept)
        self.key = self.current_key()

    def get(self, name: str) -> Elements:
        now = elements(self.container)
        if not self.has_containers and len(now) == len(self.kept) and all(map(is_, now, self.kept)):
            return self.key
        return self.current_key()

    def current_key(self) -> Elements:
        return Elements([element_key(x) for x in elements(self.container)])


def element_key(x: Any) -> Any:
    is_long = isinstance(x, (list, dict)) and len(x) > MAX_ELEMENTS
    return ByIdentity(x) if is_long else constant_key(x)


def elements(container: Any) -> Any:
    return container if type(container) is list else (*container, *container.values())


def equal_constants(x: Any, y: Any) -> bool:
    """True if these are equal constants of the same type, and zeros of the same sign."""
    if type(x) is not type(y) or not isinstance(x, COMPARABLE):
        return False
    return repr(x) == repr(y) if isinstance(x, (float, complex)) else x == y


COMPARABLE = (int, float, complex, str, bytes, Elements)


def closure_guards(function: Any) -> list[Variable]:
    """Return (scope, name, value) of the outer variables that a user's function reads.

    They include the attributes of objects that it closes over, the elements of lists and
    dictionaries, and the variables that the functions and methods it calls read.
    """
    return GuardFinder(function).found


class GuardFinder:
    """Walks through the functions that a function calls and the objects that they read."""

    def __init__(self, function: Any) -> None:
        self.found: list[Variable] = []
        self.seen: set[Any] = set()
        self.pending: list[tuple[FunctionType, Any]] = []
        self.add_function(function)
        while self.pending:
            f, owner = self.pending.pop()
            if (f, id(owner)) not in self.seen and not is_lucid_function(f):
                self.seen.add((f, id(owner)))  # not its code: closures share that
                self.visit(f, owner)

    def add_function(self, value: Any) -> None:
        """Visit the Python function behind a callable, if there is one."""
        if isinstance(value, partial):
            self.add_entries(value.keywords, value.keywords)
            for x in value.args:
                self.add_contents("an argument of partial", x)
            self.add_function(value.func)
            return
        f, owner = unwrap_function(value)
        if f is not None:
            self.pending.append((f, owner))

    def visit(self, f: FunctionType, owner: Any) -> None:
        names = names_in(f.__code__)
        self.add_attributes(owner, names)
        for name, x in default_values(f):
            self.add_contents(name, x)
            self.add_attributes(x, names)
        for scope, name, value in outer_variables(f):
            self.add(scope, name, value)
            self.add_attributes(value, names)

    def add(self, scope: Any, name: str, value: Any) -> None:
        self.found.append((scope, name, value))
        self.add_function(value)
        self.add_contents(name, value)

    def add_contents(self, name: str, value: Any) -> None:
        if type(value) in (list, dict) and len(value) <= MAX_ELEMENTS:
            contents = Contents(value)
            self.found.append((contents, name, contents.key))

    def add_entries(self, scope: dict[str, Any], names: Any) -> None:
        for name in sorted(names):
            if name in scope and is_guarded(scope[name]):
                self.add(scope, name, scope[name])

    def add_attributes(self, x: Any, names: set[str]) -> None:
        """Add the attributes of a user's object that have one of these names."""
        if not is_plain_object(x) or (id(x), frozenset(names)) in self.seen:
            return
        self.seen.add((id(x), frozenset(names)))
        inside = vars(x)
        self.add_entries(inside, names)
        for name in names:
            if name in inside:
                self.add_attributes(inside[name], names)
            else:
                method = getattr(type(x), name, None)
                method = method.fget if isinstance(method, property) else method
                if isinstance(method, FunctionType):
                    self.pending.append((method, x))


def unwrap_function(f: Any) -> tuple[FunctionType | None, Any]:
    """Return the Python function behind a method, a wrapper or a callable, and its object."""
    owner = None
    if isinstance(f, MethodType):
        f, owner = f.__func__, f.__self__
    elif is_plain_object(f):
        f, owner = vars(type(f)).get("__call__"), f
    inside = getattr(f, "__dict__", None)
    if isinstance(inside, dict) and "__wrapped__" in inside:
        method_of = inside.get("method_of")
        owner = owner if method_of is None else method_of()
        found, inner = unwrap_function(inside["__wrapped__"])
        return found, inner if owner is None else owner
    return (f if isinstance(f, FunctionType) else None), owner


def is_plain_object(x: Any) -> bool:
    """True for an object of a user's class, whose attributes nothing else guards."""
    if not isinstance(getattr(x, "__dict__", None), dict):
        return False
    if isinstance(x, (FunctionType, MethodType, ModuleType, type, partial)):
        return False
    inside = [cls.__module__.partition(".")[0] for cls in type(x).__mro__]
    return inside[0] != "builtins" and "lucid" not in inside


def default_values(f: FunctionType) -> list[tuple[str, Any]]:
    """Return the names of arguments with default values, and those values."""
    given = f.__defaults__ or ()
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    return [*zip(names[len(names) - len(given) :], given), *(f.__kwdefaults__ or {}).items()]


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
