"""Passes inside branches and loops: what is done to a Graph is done to the Graphs it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid.ir.graph import Equation, Graph
from lucid.ir.rewrite import with_graphs
from lucid.ops.higher_order.control.scan import Scan
from lucid.ops.higher_order.control.switch import Switch
from lucid.ops.higher_order.control.while_loop import While

CONTROL = (Scan, Switch, While)
Pass = Callable[[Graph], Graph]


def everywhere(run: Pass) -> Pass:
    """A pass that goes over a Graph first and then over the bodies in it."""

    def both(graph: Graph) -> Graph:
        out = run(graph)
        if not any(isinstance(eqn.op, CONTROL) for eqn in out.equations):
            return out
        equations = tuple(
            [
                eqn._replace(op=with_graphs(eqn.op, both)) if isinstance(eqn.op, CONTROL) else eqn
                for eqn in out.equations
            ]
        )
        return Graph(out.name, out.inputs, equations, out.outputs)

    return both


def bodies(eqn: Equation) -> list[Graph]:
    """The Graphs among the parameters of an operation."""
    found: list[Graph] = []

    def look(value: Any) -> None:
        if isinstance(value, Graph):
            found.append(value)
        elif isinstance(value, tuple):
            for v in value:
                look(v)

    for value in eqn.op.params().values():
        look(value)
    return found
