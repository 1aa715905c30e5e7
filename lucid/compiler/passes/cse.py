"""share: Graph -> Graph in which equal equations are one (common subexpressions)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.rewrite import remove_dead


def share(graph: Graph) -> Graph:
    """An equation with the op and inputs of an earlier one is left out: its results are those."""
    known: dict[Any, tuple[Var, ...]] = {}
    renamed: dict[Any, Var] = {}
    equations = []

    def first(atoms: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([x if x.__class__ is Literal else renamed.get(x, x) for x in atoms])

    for eqn in graph.equations:
        inputs = first(eqn.inputs)
        key = (eqn.op, tuple([x.key if isinstance(x, Literal) else x for x in inputs]))
        if key in known and not eqn.op.once:
            renamed.update(zip(eqn.outputs, known[key]))
            continue
        known[key] = eqn.outputs
        equations.append(Equation(eqn.op, inputs, eqn.outputs, eqn.source))
    outputs = first(graph.outputs)
    return remove_dead(Graph(graph.name, graph.inputs, tuple(equations), outputs))
