"""closure_guards: the outer variables that a function, and the functions it calls, read.

A jitted function is recorded with their values. If one of them is rebound later, to a new model
for instance, the function must be recorded again. The same holds for the attributes and elements of
the objects and containers in them, and for names that are not bound yet where they would be found
first.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property, partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from lucid.compiler.jit.guards.code_names import loaded_names, names_in, optional_names
from lucid.compiler.jit.guards.guarded_scopes import (
    CONTAINERS,
    MAX_ELEMENTS,
    UNBOUND,
    Absent,
    ArrayBytes,
    ClosureCells,
    Contents,
    ModuleAttributes,
    Names,
    Slots,
    elements,
    equal_constants,
    is_absent,
)
from lucid.tape.node import Traced

Variable = tuple[Any, Any, Any]
MAX_BYTES = 1 << 16  # larger arrays are not compared at every call
MAX_OBJECTS = 4096
DATA = (Traced, np.generic, str, bytes, int, float, complex, type(None))  # nothing to look into
COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
SYNTAX = {
    *COMPARISONS, *[f"__{kind}{name}__" for kind in ("", "r", "i") for name in ARITHMETIC],
    *"__getitem__ __missing__ __contains__ __len__ __iter__ __next__ __reversed__".split(),
    *"__bool__ __int__ __float__ __index__ __array__ __neg__ __pos__ __abs__ __invert__".split(),
    *"__call__ __enter__ __exit__ __get__ __getattr__ __getattribute__".split(),
}  # fmt: skip
CONSTRUCTION = {"__new__", "__init__", "__post_init__"}
CALLED = {"forward", "__call__"}
REGISTERED = ("_parameters", "_buffers", "_modules")  # where a Module keeps attributes


class Unimported:
    """A module that a run may import, with the names that are then read from it."""

    __slots__ = ("names",)

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def variables(self, name: str) -> list[Variable]:
        module = sys.modules.get(name)
        inside = vars(module) if module is not None and is_user_scope(module) else {}
        found = [(inside, name, inside[name]) for name in sorted(self.names & inside.keys())]
        return [variable for variable in found if is_guarded(*variable[1:])]


def closure_guards(function: Any, static: Sequence[Any] = ()) -> list[Variable]:
    """Return (scope, name, value) of the outer variables that a user's function reads.

    They include the attributes of objects that can be reached, the elements of lists and
    dictionaries, and the variables that the functions and methods it calls read.

    static    the arguments that are not tensors
    """
    return GuardFinder(function, static).found


def guard_unchanged(recorder: Any, variables: Sequence[Variable]) -> None:
    """Guard on those of the variables that the recorded run itself has not changed."""
    for scope, name, value in variables:
        if isinstance(scope, ModuleAttributes):
            if is_absent(vars(scope)[name]):
                recorder.guard_attribute(scope, name, is_absent)
        elif isinstance(scope, Absent):
            recorder.guard_entry(scope, Names(name - scope.keys))
        elif isinstance(scope, Unimported):
            guard_unchanged(recorder, scope.variables(name))
        else:
            now = scope.get(name)
            if now is value or equal_constants(now, value):
                recorder.guard_entry(scope, name)


class GuardFinder:
    """Walks through the functions that a function calls and the objects that they read.

    Any of the functions may get any of the objects as an argument. So an object is looked into for
    the names that stand in the code of all of them.
    """

    def __init__(self, function: Any, static: Sequence[Any] = ()) -> None:
        self.found: list[Variable] = []
        self.names: set[str] = set()
        self.optional: set[str] = set()  # of attributes that need not be there
        self.absent: dict[int, tuple[Any, set[str]]] = {}  # scopes and names not bound in them
        self.scopes: dict[int, Any] = {}  # the dictionaries of classes
        self.shadowed: dict[type, set[str]] = {}  # names that attributes of its objects can shadow
        self.seen: set[Any] = set()
        self.pending: list[tuple[FunctionType, Any]] = []
        self.objects: dict[int, tuple[Any, set[str]]] = {}  # with the names it was looked into for
        self.kept: list[Any] = []  # containers, whose ids are in `seen`
        self.reach("the function", function)
        for x in static:
            self.reach("a static argument", tuple(elements(x)) if is_container(x) else x)
        while self.pending or self.look_into_objects():
            f, owner = self.pending.pop() if self.pending else (None, None)
            if f is None or (f, id(owner)) in self.seen or is_library_function(f):
                continue
            self.seen.add((f, id(owner)))  # not its code: closures share that
            self.visit(f, owner)
        for x, _ in self.objects.values():
            self.add_absent_attributes(x)
        for scope, names in self.absent.values():
            self.found.append((Absent(scope), Names(names), True))

    def visit(self, f: FunctionType, owner: Any) -> None:
        self.names |= names_in(f.__code__)
        self.optional |= optional_names(f.__code__)
        self.reach("self", owner)
        for name, x in default_values(f):
            self.reach(name, x)
        read, imported = loaded_names(f.__code__)
        for scope, name, value in outer_variables(f, read):
            self.add(scope, name, value)
        package = f.__globals__.get("__package__")
        for name in imported:
            for full in (name, name.partition(".")[0], f"{package}.{name}"):
                if full in sys.modules:
                    self.reach(name, sys.modules[full])
                else:
                    self.found.append((Unimported(self.names), full, None))

    def add(self, scope: Any, name: str, value: Any) -> None:
        if is_guarded(name, value):
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
            if is_user_scope(type(value)):
                self.add_object(value)
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
        if not isinstance(x, ModuleType):
            for cls in user_classes(x):
                self.add_class_attributes(cls, x, CALLED)
                self.add_syntax(cls, x)

    def add_syntax(self, cls: type, owner: Any) -> None:
        """Visit the methods that Python calls for operators, loops and the like."""
        names = SYNTAX | CONSTRUCTION if isinstance(owner, type) else SYNTAX
        if "__dataclass_fields__" in vars(cls):  # those it generates read every field
            names = names - COMPARISONS - CONSTRUCTION | {"__post_init__"}
        for name in sorted(names & vars(cls).keys()):
            f, _ = unwrap_function(getattr(vars(cls)[name], "__func__", vars(cls)[name]))
            if f is not None:
                self.pending.append((f, owner))

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
        elif isinstance(x, ModuleType):
            self.add_class_attributes(x, x, names)
            return
        elif not isinstance(x, type):
            inside = getattr(x, "__dict__", None)
            scope = inside if isinstance(inside, dict) else {}
            for name in sorted(names & scope.keys()):
                self.add(scope, name, scope[name])
            for name in sorted(names & slot_names(type(x))):
                slots = Slots(x)
                self.add(slots, name, slots.get(name))
        for cls in user_classes(x):
            self.add_class_attributes(cls, x, names)

    def add_class_attributes(self, scope: Any, owner: Any, names: set[str]) -> None:
        """Add attributes of a class or a module, and visit the functions among them."""
        inside = self.inside(scope)
        for name in sorted(names & inside.keys()):
            value = inside[name]
            if isinstance(value, (property, cached_property)):
                self.add_binding(inside, name)
                self.add_function(value.fget if isinstance(value, property) else value.func)
            elif isinstance(value, (staticmethod, classmethod, FunctionType)):
                self.add_binding(inside, name)
                f, _ = unwrap_function(getattr(value, "__func__", value))
                if f is not None:
                    self.pending.append((f, None if isinstance(owner, ModuleType) else owner))
            elif not hasattr(value, "__set__") or is_plain_object(value):  # not a slot
                self.add_binding(inside, name)
                self.reach(name, value)

    def inside(self, scope: Any) -> Any:
        """Return the dictionary of a class or a module, the same one every time."""
        found = self.scopes.get(id(scope))
        if found is None:
            found = self.scopes[id(scope)] = vars(scope)
        return found

    def add_binding(self, scope: Any, name: str) -> None:
        """Guard on the value of a name in a class or a module, once for all of its objects."""
        if (id(scope), name) not in self.seen and is_guarded(name, scope[name]):
            self.seen.add((id(scope), name))
            self.found.append((scope, name, scope[name]))

    def add_absent(self, scope: Any, names: set[str]) -> None:
        names = names - scope.keys()
        if names:
            self.absent.setdefault(id(scope), (scope, set()))[1].update(names)

    def add_absent_attributes(self, x: Any) -> None:
        """Guard on the absence of names from an object and its classes, where they are looked up
        before they are found, or where they need not be found."""
        if isinstance(x, ModuleType):
            return self.add_absent(vars(x), self.optional)
        cls = x if isinstance(x, type) else type(x)
        if cls not in self.shadowed:
            self.shadowed[cls] = self.add_absent_from_classes(cls)
        if is_lucid_module(x):
            self.add_absent_from_module(x, self.shadowed[cls])
        elif x is not cls and isinstance(getattr(x, "__dict__", None), dict):
            self.add_absent(vars(x), self.shadowed[cls])

    def add_absent_from_classes(self, cls: type) -> set[str]:
        """Return the names that an attribute of an object of this class can shadow."""
        names, known = self.names | {"forward"}, set(self.optional)
        for base in reversed(cls.__mro__):
            inside = self.inside(base)
            if is_user_scope(base):
                self.add_absent(inside, known)
            here = names & inside.keys()
            known = known - here | {name for name in here if not hasattr(inside[name], "__set__")}
        return known

    def add_absent_from_module(self, x: Any, names: set[str]) -> None:
        inside = vars(x)
        scopes = [inside, *[inside[place] for place in REGISTERED if place in inside]]
        names = {name for name in names if is_absent((name, scopes))}
        attributes = ModuleAttributes(scopes, names)
        self.found += [(attributes, name, None) for name in sorted(names)]


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


def is_container(x: Any) -> bool:
    return isinstance(x, (*CONTAINERS, tuple))


def classes_of(x: Any) -> tuple[type, ...]:
    """Return the classes in which an attribute of an object or of a class is looked up."""
    return x.__mro__ if isinstance(x, type) else type(x).__mro__


def user_classes(x: Any) -> list[type]:
    return [cls for cls in classes_of(x) if is_user_scope(cls)]


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


def outer_variables(f: FunctionType, read: set[str]) -> list[Variable]:
    names = names_in(f.__code__) if "globals" in read else read
    enclosed = ClosureCells(dict(zip(f.__code__.co_freevars, f.__closure__ or ())))
    found: list[Variable] = [(enclosed, name, enclosed.get(name)) for name in enclosed.cells]
    found += [(f.__globals__, name, f.__globals__[name]) for name in names if name in f.__globals__]
    return [variable for variable in found if variable[2] is not UNBOUND]


def is_guarded(name: str, value: Any) -> bool:
    """True if a user's program may rebind this: not a module, or a class or function of Lucid
    under its own name."""
    if value is UNBOUND or isinstance(value, ModuleType):
        return False
    if isinstance(value, type):
        return is_user_scope(value) or value.__name__ != name
    return not (
        isinstance(value, FunctionType) and value.__name__ == name and is_library_function(value)
    )
