"""Shared by the rules of branches and loops: derivatives, batching and pruning of a body.

A Derivative uses the Vars of the Graph it came from, so a body and its derivative become one body
by concatenating their equations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.types import SHORT_NAMES, Type, is_differentiable
from lucid.ops.elementwise.arithmetic import ADD
from lucid.ops.shape.full_and_iota import Full
from lucid.support.caches import memoize
from lucid.tape.bind import record_constant
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import Trace, leaf
from lucid.tape.tiering import ELEMENTS, LOOP, Tiering, compile_native, single_op_graph, table


@memoize(maxsize=256)
def estimated_work(graph: Graph) -> int:
    """Estimate the work of interpreting a Graph, in small equations."""
    sizes = [math.prod(y.type.shape) for eqn in graph.equations for y in eqn.outputs]
    return len(graph.equations) + sum(sizes) // ELEMENTS


def loop_program(op: Any) -> Any:
    """Return the native program of a loop if it is hot, None otherwise."""
    if not Tiering.enabled or local.interpret:
        return None
    return table.entry(LOOP, op).program


def count_loop_work(op: Any, work: int, operands: Sequence[np.ndarray]) -> None:
    """Count equations of a loop that were interpreted, and compile the loop once it is hot."""
    if Tiering.enabled:
        table.entry(LOOP, op).count(work, lambda: compile_native(single_op_graph(op, operands)))


class BodyDerivative(NamedTuple):
    """The derivative of a body, ready to be appended to it or to another body.

    equations    of the derivative alone
    residuals    Vars of the body that they read
    seeds        a Var for every seed that is present, None for the others
    constants    Vars and arrays that rules introduced
    results      the Var of every derivative, None where it is zero
    """

    equations: tuple[Equation, ...]
    residuals: tuple[Var, ...]
    seeds: list[Var | None]
    constants: list[tuple[Var, np.ndarray]]
    results: list[Any]

    def used_seeds(self) -> list[Var]:
        """Return the seeds that are not None."""
        return [seed for seed in self.seeds if seed is not None]


def body_derivative(
    mode: str, graph: Graph, wrt: Sequence[Var], seeded: Sequence[bool]
) -> BodyDerivative:
    """Return the jvp (from tangents of `wrt`) or vjp (to cotangents of `wrt`) of a body."""
    from lucid.transforms.jvp import jvp
    from lucid.transforms.vjp import vjp

    found = (jvp if mode == "jvp" else vjp)(graph, wrt, seeded)
    like = wrt if mode == "jvp" else graph.outputs
    seeds: list[Var | None] = [Var(x.type) if s else None for x, s in zip(like, seeded)]
    rest = found.graph.inputs[len(found.residuals) :]
    for position, var in zip(found.seeds, rest):
        seeds[position] = var
    constants = list(zip(rest[len(found.seeds) :], found.constants))
    results = found.with_zeros(found.graph.outputs)
    return BodyDerivative(found.graph.equations, found.residuals, seeds, constants, results)


def differentiable(x: Atom) -> bool:
    return is_differentiable(x.type.dtype)


class Writer:
    """Collects the equations of a new body."""

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
        """Add the values that are not None; zeros if there are none."""
        present = [x for x in xs if x is not None]
        if not present:
            return self.zeros(type)
        total = present[0]
        for x in present[1:]:
            total = self.add(total, x)
        return total

    def graph(self, name: str, inputs: Sequence[Var], outputs: Sequence[Atom]) -> Graph:
        """Return the body without dead equations."""
        from lucid.ir.rewrite import dce

        return dce(Graph(name, tuple(inputs), tuple(self.equations), tuple(outputs)))


class BatchedGraph(NamedTuple):
    """A batched Graph, and which of its outputs have the batch in axis 0."""

    graph: Graph
    batched: tuple[bool, ...]


def batched_graph(
    graph: Graph, n: int, batched: Sequence[bool], forced: Sequence[bool], postprocess: Any = None
) -> BatchedGraph:
    """Batch a Graph over `n` examples; outputs in `forced` are batched even if they do not differ.

    `postprocess(inputs, outputs)`, both as Batched, may change the outputs.
    """
    from lucid.transforms.vmap import Batched, vmap_inside

    trace = Trace("vmap")
    before, local.staging = local.staging, trace
    try:
        inputs = [
            leaf(Type(var.type.dtype, (n, *var.type.shape)) if b else var.type, trace)
            for var, b in zip(graph.inputs, batched, strict=True)
        ]
        given = [Batched(x, b) for x, b in zip(inputs, batched)]
        results = vmap_inside(graph, n, given)
        if postprocess is not None:
            results = postprocess(given, results)
        outs, marks = [], []
        for y, force in zip(results, forced, strict=True):
            x = record_literal(y.tensor)
            x = x.expand((n, *x.shape)) if force and not y.batched else x
            outs.append(x)
            marks.append(force or y.batched)
        traced_cut = cut(inputs, outs, effects=trace.effects)
    finally:
        local.staging, trace.active = before, False
    assert not traced_cut.captured, "the Graph of an operation captures nothing"
    return BatchedGraph(traced_cut.graph(graph.name), tuple(marks))


def record_literal(x: Any) -> Any:
    """Record a Literal as a constant, so that the Graph around it captures nothing."""
    if not isinstance(x, Literal):
        return x
    return record_constant(Full((), SHORT_NAMES[x.dtype]), [x])


def batched_outputs(graph: Graph, n: int, batched: Sequence[bool], xs: Sequence[Any]) -> list[Any]:
    """Return the outputs of a Graph for `n` examples, all with the batch in axis 0."""
    from lucid.transforms.vmap import Batched, vmap_inside

    outs = vmap_inside(graph, n, [Batched(x, b) for x, b in zip(xs, batched, strict=True)])
    return [expand_unbatched(n, y.batched, record_literal(y.tensor)) for y in outs]


def expand_unbatched(n: int, batched: bool, x: Any) -> Any:
    """Return `x` with the batch in axis 0, expanded if it is not batched."""
    return x if batched else x.expand((n, *x.shape))


def ancestors(graph: Graph, outputs: Iterable[Atom]) -> set[Any]:
    """Return every Var that these outputs, and ordered equations, are computed from."""
    wanted: set[Any] = {x for x in outputs if isinstance(x, Var)}
    for eqn in reversed(graph.equations):
        if eqn.op.ordered or not wanted.isdisjoint(eqn.outputs):
            wanted.update(x for x in eqn.inputs if isinstance(x, Var))
    return wanted


def copy_aliased(values: Sequence[np.ndarray], given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Copy arrays that share memory with those given or with one another."""
    out: list[np.ndarray] = []
    for value in values:
        if any(np.may_share_memory(value, x) for x in (*given, *out)):
            value = value.copy()
        out.append(value)
    return out
