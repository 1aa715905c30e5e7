"""What the rules of branches and loops share: the derivative of a body, its batching, its pruning.

A Derivative uses the Vars of the Graph it came from, so a body and its derivative become one body
by putting their equations one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.interpret import Program
from lucid.ir.types import SHORT_NAMES, Type, is_differentiable
from lucid.ops.elementwise.arithmetic import ADD
from lucid.ops.shape.creation import Full
from lucid.tape.bind import record_constant
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import Trace, leaf
from lucid.tape.tiering import ELEMENTS, Heat


@lru_cache(maxsize=256)
def program(graph: Graph) -> Program:
    return Program(graph)


@lru_cache(maxsize=256)
def work_of(graph: Graph) -> int:
    """About how long a Graph is interpreted, in small equations."""
    sizes = [math.prod(y.type.shape) for eqn in graph.equations for y in eqn.outputs]
    return len(graph.equations) + sum(sizes) // ELEMENTS


LOOP_LIMIT = 100_000  # a loop is interpreted for about as long as it takes to compile it


@lru_cache(maxsize=256)
def hot_loop(op: Any) -> Heat:
    return Heat(LOOP_LIMIT)


class Differential(NamedTuple):
    """The derivative of a body, ready to be written behind it or into another.

    equations    of the derivative alone
    residuals    Vars of the body that they read
    seeds        a Var for every seed that was asked for, None for the others
    constants    Vars and arrays that rules brought in
    results      the Var of every derivative, None where it is zero
    """

    equations: tuple[Equation, ...]
    residuals: tuple[Var, ...]
    seeds: list[Var | None]
    constants: list[tuple[Var, np.ndarray]]
    results: list[Any]

    def given(self) -> list[Var]:
        """The seeds that are there."""
        return [seed for seed in self.seeds if seed is not None]


def differential(
    mode: str, graph: Graph, wrt: Sequence[Var], seeded: Sequence[bool]
) -> Differential:
    """The jvp (from tangents of `wrt`) or vjp (to cotangents of `wrt`) of a body."""
    from lucid.transforms.jvp import jvp
    from lucid.transforms.vjp import vjp

    found = (jvp if mode == "jvp" else vjp)(graph, wrt, seeded)
    like = wrt if mode == "jvp" else graph.outputs
    seeds: list[Var | None] = [Var(x.type) if s else None for x, s in zip(like, seeded)]
    rest = found.graph.inputs[len(found.residuals) :]
    for position, var in zip(found.seeds, rest):
        seeds[position] = var
    constants = list(zip(rest[len(found.seeds) :], found.constants))
    results = found.spread(found.graph.outputs)
    return Differential(found.graph.equations, found.residuals, seeds, constants, results)


def differentiable(x: Atom) -> bool:
    return is_differentiable(x.type.dtype)


class Writer:
    """The equations of a new body while it is written."""

    def __init__(self, equations: Iterable[Equation] = ()) -> None:
        self.equations = list(equations)

    def zeros(self, type: Type) -> Var:
        out = Var(type)
        zero = Literal(type.dtype.type(0).item(), type.dtype)
        op = Full(type.shape, SHORT_NAMES[type.dtype])
        self.equations.append(Equation(op, (zero,), (out,)))
        return out

    def add(self, x: Any, y: Any) -> Var:
        out = Var(x.type)
        self.equations.append(Equation(ADD, (x, y), (out,)))
        return out

    def sum(self, xs: Sequence[Any], type: Type) -> Any:
        """The sum of what is not None; zeros where nothing is left."""
        there = [x for x in xs if x is not None]
        if not there:
            return self.zeros(type)
        total = there[0]
        for x in there[1:]:
            total = self.add(total, x)
        return total

    def graph(self, name: str, inputs: Sequence[Var], outputs: Sequence[Atom]) -> Graph:
        """The body, without what its outputs do not need."""
        from lucid.ir.rewrite import remove_dead

        return remove_dead(Graph(name, tuple(inputs), tuple(self.equations), tuple(outputs)))


class BatchedGraph(NamedTuple):
    """A Graph for many examples, and which of its outputs have them in axis 0."""

    graph: Graph
    batched: tuple[bool, ...]


def batched_graph(
    graph: Graph, n: int, batched: Sequence[bool], forced: Sequence[bool], wrapped: Any = None
) -> BatchedGraph:
    """A Graph over `n` examples; outputs in `forced` have them even where they do not differ.

    `wrapped(inputs, outputs)`, both as Batched, may change the outputs.
    """
    from lucid.transforms.vmap import Batched, vmap

    trace = Trace("vmap")
    before, local.staging = local.staging, trace
    try:
        inputs = [
            leaf(Type(var.type.dtype, (n, *var.type.shape)) if b else var.type, trace)
            for var, b in zip(graph.inputs, batched, strict=True)
        ]
        given = [Batched(x, b) for x, b in zip(inputs, batched)]
        results = vmap(graph, n, given)
        if wrapped is not None:
            results = wrapped(given, results)
        outs, marks = [], []
        for y, force in zip(results, forced, strict=True):
            x = as_tensor_inside(y.tensor)
            x = x.expand((n, *x.shape)) if force and not y.batched else x
            outs.append(x)
            marks.append(force or y.batched)
        section = cut(inputs, outs)
    finally:
        local.staging, trace.active = before, False
    assert not section.captured, "the Graph of an operation captures nothing"
    return BatchedGraph(section.graph(graph.name), tuple(marks))


def as_tensor_inside(x: Any) -> Any:
    """A Literal as a recorded constant, so that the Graph around it captures nothing."""
    if not isinstance(x, Literal):
        return x
    return record_constant(Full((), SHORT_NAMES[x.dtype]), [x])


def batched_outputs(graph: Graph, n: int, batched: Sequence[bool], xs: Sequence[Any]) -> list[Any]:
    """The outputs of a Graph for `n` examples, all with the examples in axis 0."""
    from lucid.transforms.vmap import Batched, vmap

    outs = vmap(graph, n, [Batched(x, b) for x, b in zip(xs, batched, strict=True)])
    return [over_examples(n, y.batched, as_tensor_inside(y.tensor)) for y in outs]


def over_examples(n: int, batched: bool, x: Any) -> Any:
    """A result with its examples in axis 0, where it has them or not."""
    return x if batched else x.expand((n, *x.shape))


def reached(graph: Graph, outputs: Iterable[Atom]) -> set[Any]:
    """Every Var that these outputs are computed from."""
    wanted: set[Any] = {x for x in outputs if isinstance(x, Var)}
    for eqn in reversed(graph.equations):
        if not wanted.isdisjoint(eqn.outputs):
            wanted.update(x for x in eqn.inputs if isinstance(x, Var))
    return wanted


def owned(values: Sequence[np.ndarray], given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Arrays that share no memory with those given, nor with one another."""
    out: list[np.ndarray] = []
    for value in values:
        if any(np.may_share_memory(value, x) for x in (*given, *out)):
            value = value.copy()
        out.append(value)
    return out
