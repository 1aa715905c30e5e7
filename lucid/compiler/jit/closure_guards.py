"""closure_guards: the outer variables that a function, and the functions it calls, read.

A jitted function is recorded with their values. If one of them is rebound later, to a new model
for instance, the function must be recorded again. The same holds for the attributes and elements of
the objects and containers in them.
"""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from lucid.ops.core.constant_key import ByIdentity, constant_key
from lucid.tape.node import Traced

Variable = tuple[Any, str, Any]
UNBOUND = object()
MAX_ELEMENTS = 256  # longer lists and dictionaries are not compared at every call
MAX_BYTES = 1 << 16  # nor are larger arrays
MAX_OBJECTS = 4096
CONTAINERS = (list, dict, set, deque)
DATA = (Traced, np.generic, str, bytes, int, float, complex, type(None))  # nothing to look into


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


def closure_guards(function: Any) -> list[Variable]:
    """Return (scope, name, value) of the outer variables that a user's function reads.

    They include the attributes of objects that can be reached, the elements of lists and
    dictionaries, and the variables that the functions and methods it calls read.
    """
    return GuardFinder(function).found


class GuardFinder:
    """Walks through the functions that a function calls and the objects that they read.

    Any of the functions may get any of the objects as an argument. So an object is looked into for
    the names that stand in the code of all of them.
    """

    def __init__(self, function: Any) -> None:
        self.found: list[Variable] = []
        self.names: set[str] = set()
        self.seen: set[Any] = set()
        self.pending: list[tuple[FunctionType, Any]] = []
        self.objects: dict[int, tuple[Any, set[str]]] = {}  # with the names it was looked into for
        self.kept: list[Any] = []  # containers, whose ids are in `seen`
        self.reach("the function", function)
        while self.pending or self.look_into_objects():
            f, owner = self.pending.pop() if self.pending else (None, None)
            if f is None or (f, id(owner)) in self.seen or is_library_function(f):
                continue
            self.seen.add((f, id(owner)))  # not its code: closures share that
            self.visit(f, owner)

    def visit(self, f: FunctionType, owner: Any) -> None:
        self.names |= names_in(f.__code__)
        self.reach("self", owner)
        for name, x in default_values(f):
            self.reach(name, x)
        for scope, name, value in outer_variables(f):
            self.add(scope, name, value)

    def add(self, scope: Any, name: str, value: Any) -> None:
        if is_guarded(value):
            self.found.append((scope, name, value))
        self.reach(name, value)

    def reach(self, name: str, value: Any) -> None:
        """Look into a value that the function can read."""
        if isinstance(value, DATA):
            return
        if isinstance(value, np.ndarray):
            self.add_array(name, value)
        elif isinstance(value, (*CONTAINERS, tuple)):
            self.add_contents(name, value)
        elif isinstance(value, partial):
            for key, x in value.keywords.items():
                self.add(value.keywords, key, x)
            self.reach(name, value.args)
            self.reach(name, value.func)
        else:
            self.add_function(value)
            if is_plain_object(value) or is_user_scope(value) or is_lucid_module(value):
                self.add_object(value)

    def add_object(self, x: Any) -> None:
        if id(x) in self.objects or len(self.objects) >= MAX_OBJECTS:
            return
        self.objects[id(x)] = (x, set())
        if is_lucid_module(x):
            forward = getattr(type(x), "forward", None)
            if isinstance(forward, FunctionType):
                self.pending.append((forward, x))
            for name in ("_modules", "_forward_hooks", "_forward_pre_hooks"):
                self.reach(name, tuple(vars(x).get(name, {}).values()))

    def add_function(self, value: Any) -> None:
        """Visit the Python function behind a callable, if there is one."""
        f, owner = unwrap_function(value)
        if f is not None:
            self.pending.append((f, owner))

    def add_array(self, name: str, value: np.ndarray) -> None:
        if id(value) not in self.seen and value.nbytes <= MAX_BYTES:
            self.seen.add(id(value))
            contents = ArrayBytes(value)
            self.found.append((contents, name, contents.get(name)))

    def add_contents(self, name: str, value: Any) -> None:
        if id(value) in self.seen or len(value) > MAX_ELEMENTS:
            return
        self.seen.add(id(value))
        self.kept.append(value)
        if not isinstance(value, tuple):
            contents = Contents(value)
            self.found.append((contents, name, contents.key))
        for x in elements(value):
            self.reach(name, x)

    def look_into_objects(self) -> bool:
        """Look into the objects for names they were not looked into for; True if there were any."""
        found = False
        for x, looked in list(self.objects.values()):
            new = self.names - looked
            if new:
                found = True
                looked |= new
                self.look_into(x, new)
        return found

    def look_into(self, x: Any, names: set[str]) -> None:
        if is_lucid_module(x):  # a Recorder sees which of its attributes are read
            for name in sorted(names & vars(x).keys()):
                self.reach(name, vars(x)[name])
        elif isinstance(x, (ModuleType, type)):
            self.add_class_attributes(x, x, names)
            return
        else:
            inside = getattr(x, "__dict__", None)
            scope = inside if isinstance(inside, dict) else {}
            for name in sorted(names & scope.keys()):
                self.add(scope, name, scope[name])
            for name in sorted(names & slot_names(type(x))):
                slots = Slots(x)
                self.add(slots, name, slots.get(name))
        for cls in type(x).__mro__:
            if is_user_scope(cls):
                self.add_class_attributes(cls, x, names)

    def add_class_attributes(self, scope: Any, owner: Any, names: set[str]) -> None:
        """Add attributes of a class or a module, and visit the functions among them."""
        inside = vars(scope)
        for name in sorted(names & inside.keys()):
            value = inside[name]
            if isinstance(value, property):
                self.add_function(value.fget)
            elif isinstance(value, (staticmethod, classmethod, FunctionType)):
                f, _ = unwrap_function(getattr(value, "__func__", value))
                if f is not None:
                    self.pending.append((f, None if isinstance(owner, ModuleType) else owner))
            elif not hasattr(value, "__set__"):  # not a slot or another descriptor
                self.add(inside, name, value)


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
    if not isinstance(getattr(x, "__dict__", None), dict) and not slot_names(type(x)):
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


def is_library(name: str, file: str) -> bool:
    """True for a module of Lucid, of Python or of an installed package, which does not change."""
    root = name.partition(".")[0]
    if root in ("lucid", "builtins") or root in sys.stdlib_module_names:
        return root != "__main__"
    return "site-packages" in file or "dist-packages" in file


def is_library_function(f: FunctionType) -> bool:
    return is_library(f.__module__ or "", f.__code__.co_filename)


def is_user_scope(x: Any) -> bool:
    """True for a class or a module that belongs to the user's program."""
    if isinstance(x, ModuleType):
        return not is_library(x.__name__, getattr(x, "__file__", None) or "")
    if not isinstance(x, type):
        return False
    module = sys.modules.get(x.__module__)
    return not is_library(x.__module__, getattr(module, "__file__", None) or "")


def is_lucid_module(x: Any) -> bool:
    """True for a Module, whose attributes a Recorder watches."""
    inside = getattr(x, "__dict__", None)
    return isinstance(inside, dict) and "_modules" in inside and not is_plain_object(x)


def slot_names(cls: type) -> set[str]:
    """Return the names of the slots of objects of a user's class."""
    if cls.__module__ == "builtins":
        return set()
    slots = [vars(base).get("__slots__", ()) for base in cls.__mro__]
    return {name for names in slots for name in ([names] if isinstance(names, str) else names)}


def outer_variables(f: FunctionType) -> list[Variable]:
    names = names_in(f.__code__)
    enclosed = ClosureCells(dict(zip(f.__code__.co_freevars, f.__closure__ or ())))
    found: list[Variable] = [(enclosed, name, enclosed.get(name)) for name in enclosed.cells]
    found += [(f.__globals__, name, f.__globals__[name]) for name in names if name in f.__globals__]
    return [variable for variable in found if variable[2] is not UNBOUND]


def names_in(code: CodeType) -> set[str]:
    """Return the global and attribute names in a function and its nested functions."""
    inner = [names_in(part) for part in code.co_consts if isinstance(part, CodeType)]
    for_getattr = [x for x in code.co_consts if isinstance(x, str) and x.isidentifier()]
    return set(code.co_names).union(for_getattr, *inner)


def is_guarded(value: Any) -> bool:
    """True if a user's program may rebind this: not a module, a class or a function of Lucid."""
    if value is UNBOUND or isinstance(value, (ModuleType, type)):
        return False
    return not (isinstance(value, FunctionType) and is_library_function(value))
