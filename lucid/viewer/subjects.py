"""subjects: what `lucid.view` is given -> the programs to show, with values to measure them on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lucid.compiler.jit.jit import jit
from lucid.compiler.jit.jitted import Jitted
from lucid.errors import ArgumentError, LucidError
from lucid.func.derivatives import vjp
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.rewrite import inline_regions, with_graphs
from lucid.ir.types import is_differentiable
from lucid.support.source import Scope
from lucid.tape.cut import cut_to_leaves
from lucid.tape.node import GRAD, Traced, node_type
from lucid.tape.recording.trace import check_arguments, replay, trace
from lucid.tape.views import node_of


class Origin:
    """A numbered source: passes hand it on, so every equation knows the one it comes from.

    source     what the equation had: a Source, a ParsedSource or None
    forward    the number of the equation whose derivative this is part of, or -1
    """

    __slots__ = ("forward", "number", "source")

    def __init__(self, number: int, source: Any) -> None:
        self.number = number
        self.forward = source.number if isinstance(source, Origin) else -1
        self.source: Any = source.source if isinstance(source, Origin) else source

    @property
    def scope(self) -> Scope | None:
        return getattr(self.source, "scope", None)

    def __bool__(self) -> bool:
        return self.source is not None

    def __str__(self) -> str:
        return str(self.source)


@dataclass
class Program:
    """A Graph to show.

    title     "forward", "gradient", or the name of the function
    values    arrays for its inputs, on which it is measured; None if there are none
    into      outputs that are computed in the memory of inputs
    given     how many inputs are arguments; the others are read from outside
    note      a note shown with the program
    backend   what compiles it, None for the default
    """

    title: str
    graph: Graph
    values: Sequence[np.ndarray] | None = None
    into: Mapping[int, int] = field(default_factory=dict)
    given: int = -1
    note: str = ""
    backend: Any = None


def programs_of(subject: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Program]:
    """Return the programs of a function, a jitted function, a Graph or a tensor with a history."""
    if isinstance(subject, Graph):
        return _of_graph(subject, args)
    if isinstance(subject, Traced):
        return _of_tensor(subject)
    if not callable(subject):
        facts = f"view: {type(subject).__name__} is not a function, a Graph or a tensor"
        raise ArgumentError(facts)
    return _of_function(subject, args, kwargs)


def _of_function(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Program]:
    jitted = f if isinstance(f, Jitted) else jit(f)
    check_arguments(f, args, kwargs)
    path = jitted.path_for(args, kwargs)
    tensors = jitted.operands(args, kwargs)
    values = [*[x.value for x in tensors], *_captured_values(path, len(tensors))]
    graph, given = numbered(path.graph), len(tensors)
    shown = Program(jitted.name, graph, values, path.into, given, backend=jitted.backend)
    if not path.is_pure or path.written:
        return [shown]  # it writes gradients or state: its derivatives are part of it
    required = {len(tensors) + i for i, yes in enumerate(path.required_grad) if yes}
    required |= {i for i, x in enumerate(tensors) if x.node is not None and x.node.flags & GRAD}
    return [shown, *_gradients(shown, required, path.n_outputs)]


def _captured_values(path: Any, n_args: int) -> list[np.ndarray]:
    """Return what a path reads besides the arguments, zeros for a gradient that is gone."""
    found = []
    for source, var in zip(path.sources, path.graph.inputs[n_args:]):
        x = source if isinstance(source, Traced) else source.grad
        known = x is not None and x.value is not None and x.value.shape == var.type.shape
        found.append(x.value if known else np.zeros(var.type.shape, var.type.dtype))
    return [*found, *path.constants]


def _of_graph(graph: Graph, args: tuple[Any, ...]) -> list[Program]:
    values = [np.asarray(x) for x in args] if args else None
    if values is not None and len(values) != len(graph.inputs):
        facts = f"view: {graph.name} has {len(graph.inputs)} inputs, and {len(values)} are given"
        raise ArgumentError(facts)
    shown = Program(graph.name, numbered(graph), values)
    return [shown, *_gradients(shown, set(), len(graph.outputs))]


def _of_tensor(x: Any) -> list[Program]:
    node = node_of(x)
    if node.op is None:
        facts = f"view: the tensor {x.type} has no history"
        remedy = "compute it from one that requires a gradient, or pass the function"
        raise ArgumentError(f"{facts}; {remedy}")
    section = cut_to_leaves([node])
    graph = inline_regions(section.graph("history", (), section.tensor_names()))
    starts = [*dict.fromkeys(section.inputs), *section.captured]
    values = [section.slots[slot].saved for slot in starts]
    known = all(
        isinstance(v, np.ndarray) and node_type(section.slots[s]).shape == v.shape
        for v, s in zip(values, starts)
    )
    shown = Program("history", numbered(graph), values if known else None, {}, 0)
    return [shown, *_gradients(shown, set(range(len(section.inputs))), 1)]


def numbered(graph: Graph, first: int = 0) -> Graph:
    """Return the Graph with an Origin for every equation, in nested Graphs too."""
    count = first

    def mark(graph: Graph) -> Graph:
        nonlocal count
        equations = []
        for eqn in graph.equations:
            origin = Origin(count, eqn.source)
            count += 1
            op = with_graphs(eqn.op, mark)
            equations.append(Equation(op, eqn.inputs, eqn.outputs, origin))  # type: ignore[arg-type]
        return Graph(graph.name, graph.inputs, tuple(equations), graph.outputs)

    return mark(graph)


def _gradients(forward: Program, required: set[int], n_outputs: int) -> list[Program]:
    """Return the program of the gradient of the sum of the first outputs, if there is one.

    required    the inputs that require a gradient; if there are none, all that can have one
    """
    graph = forward.graph
    outputs = tuple(
        y
        for y in graph.outputs[:n_outputs]
        if isinstance(y, Var) and is_differentiable(y.type.dtype)
    )
    able = [i for i, x in enumerate(graph.inputs) if is_differentiable(x.type.dtype)]
    wrt = [i for i in able if i in required] or able
    if not outputs or not wrt or not graph.equations:
        return []
    part = Graph(graph.name, graph.inputs, graph.equations, outputs)

    def gradient(xs: Any, seeds: Any) -> Any:
        def run(*chosen: Any) -> Any:
            given = dict(zip(wrt, chosen))
            return tuple(replay(part, [given.get(i, x) for i, x in enumerate(xs)]))

        return vjp(run, *[xs[i] for i in wrt])[1](tuple(seeds))

    try:
        found = trace(gradient)(graph.in_types, part.out_types)
    except LucidError as error:
        forward.note = f"no gradient is shown: {str(error).split('   [')[0]}"
        return []
    seeds = ["seed" if len(outputs) == 1 else f"seed[{i}]" for i in range(len(outputs))]
    for var, name in zip(found.inputs, [*[x.name for x in graph.inputs], *seeds]):
        var.name = name
    names = [graph.inputs[i].name or f"x{i}" for i in wrt]
    note = "gradient with respect to " + ", ".join(names[:4]) + ", ..." * (len(names) > 4)
    # equations not made by a rule (sums of cotangents, zeros) have no line of their own
    equations = [e if isinstance(e.source, Origin) else e._replace(source=None)
                 for e in found.equations]  # fmt: skip
    named = Graph("gradient", found.inputs, tuple(equations), found.outputs)
    ones = [np.ones(y.type.shape, y.type.dtype) for y in outputs]
    values = None if forward.values is None else [*forward.values, *ones]
    if len(found.inputs) != len(graph.inputs) + len(outputs):
        values = None  # a rule has introduced constants
    given, backend = forward.given, forward.backend
    return [Program("gradient", numbered(named), values, {}, given, note, backend)]
