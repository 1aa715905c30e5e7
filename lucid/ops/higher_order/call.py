"""Call: a Graph as one primitive. Its rules are the transforms of the Graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.caches import memoize
from lucid.ir.graph import Graph, Var
from lucid.ir.interpret import Program
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.kinds import Elementwise
from lucid.ops.elementwise.arithmetic import Cast
from lucid.ops.higher_order.custom_derivative import apply_derivative
from lucid.tape.bind import bind
from lucid.tape.tiering import CALL, Tiering, table


def program_of_call(graph: Graph, eager: bool = True) -> Any:
    """Return the compiled Graph, or its interpreter where compilation is off.

    eager    whether the Graph belongs to eager code, not to a jitted function
    """

    def build() -> Any:
        off = Tiering.compile is None or (eager and not Tiering.enabled)
        return Program(graph) if off else Tiering.compile(graph)  # type: ignore[misc]

    entry = table.entry(CALL, (graph, eager), len(graph.equations))
    return entry.program or entry.count(1, build) or build()


@memoize(maxsize=256)
def with_residuals(graph: Graph) -> Graph:
    """Return the Graph with the residuals that are expensive to recompute as further outputs.

    Elementwise ops and views are recomputed: their operands are kept instead.
    """
    from lucid.transforms.vjp import vjp

    seeded = [isinstance(y, Var) and is_differentiable(y.type.dtype) for y in graph.outputs]
    producer = {y: eqn for eqn in graph.equations for y in eqn.outputs}
    seen: set[Any] = {*graph.inputs, *graph.outputs}
    kept: list[Any] = []
    waiting: list[Any] = list(vjp(graph, graph.inputs, seeded).residuals)
    while waiting:
        x = waiting.pop()
        if x in seen or x not in producer:
            continue
        seen.add(x)
        eqn = producer[x]
        if eqn.op.is_view or isinstance(eqn.op, (Elementwise, Cast)) or not eqn.inputs:
            waiting += eqn.inputs
        else:
            kept.append(x)
    return Graph(graph.name, graph.inputs, graph.equations, (*graph.outputs, *kept))


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
