"""cse: Graph -> Graph without common subexpressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.rewrite import dce


def cse(graph: Graph) -> Graph:
    """Drop each equation with the op and inputs of an earlier one, and use the earlier results."""
    available: dict[Any, tuple[Var, ...]] = {}
    renamed: dict[Any, Var] = {}
    equations = []

    def resolve(atoms: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([x if x.__class__ is Literal else renamed.get(x, x) for x in atoms])

    for eqn in graph.equations:
        inputs = resolve(eqn.inputs)
        key = (eqn.op, tuple([x.key if isinstance(x, Literal) else x for x in inputs]))
        if key in available and not (eqn.op.single_use or eqn.op.ordered):
            renamed.update(zip(eqn.outputs, available[key]))
            continue
        available[key] = eqn.outputs
        equations.append(Equation(eqn.op, inputs, eqn.outputs, eqn.source))
    outputs = resolve(graph.outputs)
    return dce(Graph(graph.name, graph.inputs, tuple(equations), outputs))
