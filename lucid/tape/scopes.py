"""scopes: names of the parts of a program, and of the tensors that a Graph reads.

A Module sets its scope when it is called, `named_scope` sets one by hand, and equations keep it
beside their line. Through the scopes of its equations a Graph knows the modules and optimizers that
it comes from, and those know the names of their tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator
from functools import partial
from types import FunctionType, MethodType
from typing import Any, TypeVar

from lucid.errors import ArgumentError
from lucid.ir.graph import Graph, Var
from lucid.ir.pytree import flatten
from lucid.ir.rewrite import with_graphs
from lucid.public.declare import public
from lucid.support.source import Scope, at_line
from lucid.support.structures import NAMESPACE, optree, subscripts
from lucid.tape.modes import Modes, current, leave, set_modes
from lucid.tape.node import Traced

F = TypeVar("F", bound=Callable[..., Any])
MAX_ELEMENTS = 256  # a longer list or dictionary that a function closes over names no tensors


@public()
class named_scope(ContextDecorator):
    """Name the equations that a block or a function creates.

    >>> import lucid
    >>> @lucid.named_scope("attention")
    ... def attend(q, k):
    ...     return lucid.softmax(q @ k.T, -1)
    >>> graph = lucid.ir.trace(attend)(lucid.ones(2, 3), lucid.ones(2, 3))
    >>> [str(equation.source.scope) for equation in graph.equations]
    ['attention', 'attention', 'attention']
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.strip():
            facts = f"named_scope: the name must be a nonempty string, not {name!r}"
            raise ArgumentError(f"{facts}{at_line()}")
        self.name = " ".join(name.split())
        self._entered: list[tuple[Modes, Modes]] = []

    def _recreate_cm(self) -> named_scope:
        return named_scope(self.name)  # calls of a decorated function may overlap

    def __enter__(self) -> named_scope:
        outer = current()
        around = outer.scope
        path = self.name if around is None else around.join(self.name, "/")
        inner = outer.with_mode("scope", Scope(path, "", None, around))
        self._entered.append((inner, outer))
        set_modes(inner)
        return self

    def __exit__(self, *_: object) -> None:
        leave(*self._entered.pop())


def in_own_scope(method: F) -> F:
    """Decorate a method: the equations it makes are in the scope of its object."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        outer = current()
        inner = outer.inside(self)
        set_modes(inner)
        try:
            return method(self, *args, **kwargs)
        finally:
            leave(inner, outer)

    return call  # type: ignore[return-value]


def scope_of(source: Any) -> Scope | None:
    """Return the Scope of a Node's source: (code, offset, Scope), a Source, or None."""
    return source[2] if source.__class__ is tuple else getattr(source, "scope", None)


def tensor_names(sources: Iterable[Any], function: Any = None) -> dict[int, str]:
    """Return names of tensors by the ids of the tensors, of their Nodes and gradient cells.

    sources     of equations: the modules, optimizers and generators of their scopes name tensors
    function    what it closes over names tensors as well
    """
    names: dict[int, str] = {}
    taken: set[str] = set()

    def add(name: str, x: Any, kind: str) -> None:
        if id(x) in names or not isinstance(x, Traced):
            return
        if name in taken or name[:1].isdigit():  # `0.weight` of a Sequential is not a name
            name = f"{kind}.{name}" if kind else name
        taken.add(name)
        names[id(x)] = name
        if x.node is not None:
            names[id(x.node)] = name
            if x.node.cell is not None:
                names[id(x.node.cell)] = f"{name}.grad"

    for scope in _owning_scopes(sources):
        owner = scope.owner()
        for name, x in () if owner is None else owner.named_tensors(names):
            add(scope.join(name) if hasattr(owner, "path_of") else name, x, scope.kind)
    for name, value in _outer_variables(function):
        if hasattr(type(value), "named_tensors"):
            for inside, x in value.named_tensors(names):
                add(inside, x, name)
        elif isinstance(value, Traced):
            add(name, value, "")
        else:
            for inside, x in zip(argument_names(value, name), flatten(value)[0]):
                add(inside, x, "")
    return names


def _owning_scopes(sources: Iterable[Any]) -> list[Scope]:
    """Return the scopes with an owner around these sources: modules first, outer ones first."""
    found: dict[int, Scope] = {}
    seen = set()
    for source in sources:
        chain = []
        scope = scope_of(source)
        while scope is not None and scope not in seen:
            seen.add(scope)
            chain.append(scope)
            scope = scope.outer
        for scope in reversed(chain):
            owner = None if scope.owner is None else scope.owner()
            if owner is not None:
                found.setdefault(id(owner), scope)
    return sorted(found.values(), key=lambda s: not hasattr(s.owner(), "path_of"))


def _outer_variables(function: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over what a function, and the user's functions that it calls, close over."""
    stack, seen = [function], set()
    while stack:
        f = stack.pop()
        while True:
            if isinstance(f, partial):
                f = f.func
            elif isinstance(f, MethodType):
                f = f.__func__
            elif "__wrapped__" in getattr(f, "__dict__", ()):
                f = f.__wrapped__
            else:
                break
        if (
            not isinstance(f, FunctionType)
            or f in seen
            or (f.__module__ or "").startswith("lucid.")
        ):
            continue
        seen.add(f)
        for name, value in _variables_of(f):
            if isinstance(value, (FunctionType, MethodType, partial)):
                stack.append(value)
            elif isinstance(value, Traced) or hasattr(type(value), "named_tensors"):
                yield name, value
            elif type(value) in (list, tuple, dict) and len(value) <= MAX_ELEMENTS:
                yield name, value


def _variables_of(f: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            pass
    for name in f.__code__.co_names:
        if name in f.__globals__:
            yield name, f.__globals__[name]


def argument_names(tree: Any, name: str) -> list[str]:
    """Return an expression for every leaf of a variable `name`: `params['w']`, `pair[0]`."""
    inside = subscripts(flatten(tree)[1])
    if inside is not None:
        return [name + text for text in inside]
    paths = optree.tree_accessors(tree, namespace=NAMESPACE)
    return [name + "".join(map(_entry_text, path)) for path in paths]


def _entry_text(entry: Any) -> str:
    if isinstance(entry, optree.NamedTupleEntry):
        return f".{entry.field}"
    is_plain = isinstance(entry, (optree.MappingEntry, optree.SequenceEntry))
    is_field = isinstance(entry.entry, str) and not is_plain
    return f".{entry.entry}" if is_field else f"[{entry.entry!r}]"


def name_captures(op: Any, inputs: Sequence[Any]) -> Any:
    """Give what the bodies of a loop or branch capture (c0, c1, ...) the names it has outside."""
    operands = dict(op.body_operands(inputs))

    def named(graph: Graph) -> Graph:
        new: dict[Any, Any] = {}
        taken = {x.name for x in graph.inputs}
        for var, outer in zip(graph.inputs, operands.get(graph, ())):
            name = getattr(outer, "name", "")
            if is_placeholder(var.name) and not is_placeholder(name) and name not in taken:
                new[var] = Var(var.type, name)
                taken.add(name)
        if not new:
            return graph
        equations = []
        for eqn in graph.equations:
            xs = tuple([new.get(x, x) if isinstance(x, Var) else x for x in eqn.inputs])
            inner = name_captures(eqn.op, xs) if eqn.op.control_flow else eqn.op
            equations.append(eqn._replace(op=inner, inputs=xs))
        ends = tuple([new.get(x, x) if isinstance(x, Var) else x for x in graph.outputs])
        starts = tuple([new.get(x, x) for x in graph.inputs])
        return Graph(graph.name, starts, tuple(equations), ends)

    return with_graphs(op, named)


def is_placeholder(name: str) -> bool:
    """True if a name says nothing: none, or that of the i-th captured value."""
    return not name or (name[0] == "c" and name[1:].isdigit())
