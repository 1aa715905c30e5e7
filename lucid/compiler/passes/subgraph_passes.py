"""Apply passes recursively to the subgraphs of branches and loops."""

from __future__ import annotations

from collections.abc import Callable

from lucid.ir.graph import Equation, Graph
from lucid.ir.primitive import graphs_of
from lucid.ir.rewrite import with_graphs

Pass = Callable[[Graph], Graph]


def recursive(run: Pass) -> Pass:
    """A pass that runs over a Graph first and then over its subgraphs."""

    def run_recursively(graph: Graph) -> Graph:
        out = run(graph)
        if not any(eqn.op.control_flow for eqn in out.equations):
            return out
        equations = []
        for eqn in out.equations:
            if eqn.op.control_flow:
                eqn = eqn._replace(op=with_graphs(eqn.op, run_recursively))
            equations.append(eqn)
        return Graph(out.name, out.inputs, tuple(equations), out.outputs)

    return run_recursively


def subgraphs(eqn: Equation) -> list[Graph]:
    """The Graphs among the parameters of an operation."""
    return graphs_of(eqn.op)
