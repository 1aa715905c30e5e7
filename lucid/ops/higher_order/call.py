"""Call: a Graph as one primitive. Its rules are the transforms of the Graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.interpret import Program
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.kinds import Elementwise
from lucid.ops.elementwise.arithmetic import Cast
from lucid.ops.higher_order.custom_derivative import apply_derivative
from lucid.ops.higher_order.exactness import decided_by, decides, inexact
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.tiering import CALL, Tiering, table


def program_of_call(graph: Graph, eager: bool = True) -> Any:
    """Return the compiled Graph, or its interpreter where compilation is off.

    eager    whether the Graph belongs to eager code, not to a jitted function
    """

    if local.interpret:
        return Program(graph)

    def build() -> Any:
        off = Tiering.compile is None or (eager and not Tiering.enabled)
        return Program(graph) if off else Tiering.compile(graph)  # type: ignore[misc]

    entry = table.entry(CALL, (graph, eager), len(graph.equations))
    return entry.program or entry.count(1, build) or build()


@memoize(maxsize=256)
def with_residuals(graph: Graph) -> Graph:
    """Return the Graph with the residuals that must not be recomputed as further outputs.

    Elementwise ops and views are recomputed: their operands are kept instead. But a value that is
    compared, or the result of a comparison, is kept itself unless recomputing it gives the same
    bits: otherwise the derivative could be that of a branch which was not taken.
    """
    from lucid.transforms.vjp import vjp

    seeded = [isinstance(y, Var) and is_differentiable(y.type.dtype) for y in graph.outputs]
    producer = {y: eqn for eqn in graph.equations for y in eqn.outputs}
    derivative = vjp(graph, graph.inputs, seeded)
    expensive = {y for y, eqn in producer.items() if not is_cheap(eqn)}
    differing, compared = inexact(graph, expensive), decided_by(derivative.graph)
    seen: set[Any] = {*graph.inputs, *graph.outputs}
    kept: list[Any] = []
    waiting: list[Any] = list(derivative.residuals)
    while waiting:
        x = waiting.pop()
        if x in seen or x not in producer:
            continue
        seen.add(x)
        decisive = x in differing and (x in compared or decides(producer[x]))
        if x in expensive or decisive:
            kept.append(x)
        else:
            waiting += producer[x].inputs
    return Graph(graph.name, graph.inputs, graph.equations, (*graph.outputs, *kept))


def is_cheap(eqn: Equation) -> bool:
    """True for views, elementwise ops and constants."""
    return eqn.op.is_view or isinstance(eqn.op, (Elementwise, Cast)) or not eqn.inputs


class Call(Primitive):
    """The outputs of `graph`, run as one native program where possible."""

    graph: Graph
    value_graph = "graph"

    def infer(self, *xs: Type) -> tuple[Type, ...]:
        return self.graph.out_types

    def eval(self, *xs: np.ndarray) -> tuple[Any, ...]:
        return tuple(program_of_call(self.graph, eager=False)([np.asarray(x) for x in xs]))

    def jvp(self, ts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.jvp import jvp

        derivative = jvp(self.graph, self.graph.inputs, [t is not None for t in ts])
        return tuple(apply_derivative(derivative, self.graph, xs, ys, ts))

    def vjp(self, cts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vjp import vjp

        derivative = vjp(self.graph, self.graph.inputs, [ct is not None for ct in cts])
        return tuple(apply_derivative(derivative, self.graph, xs, ys, cts))

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vmap import batch_graph

        return bind(Call(batch_graph(self.graph, n, batched)), *xs)
