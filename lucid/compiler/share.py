"""share: Graph -> Graph in which equal equations are one (common subexpressions)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.rewrite import remove_dead
from lucid.ops.checkpointing import Again


def share(graph: Graph) -> Graph:
    """An equation with the op and inputs of an earlier one is left out: its results are those.

    again x is x, but what is computed from it is not what is computed from x: it is computed twice.
    """
    known: dict[Any, tuple[Var, ...]] = {}
    renamed: dict[Any, Var] = {}
    behind: dict[Any, Any] = {}
    equations = []

    def first(atoms: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([x if x.__class__ is Literal else renamed.get(x, x) for x in atoms])

    def meant(atoms: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([x if x.__class__ is Literal else behind.get(x, x) for x in atoms])

    for eqn in graph.equations:
        inputs = first(eqn.inputs)
        key = (eqn.op, tuple([x.key if isinstance(x, Literal) else x for x in inputs]))
        if key in known and not eqn.op.once:
            renamed.update(zip(eqn.outputs, known[key]))
            continue
        known[key] = eqn.outputs
        if isinstance(eqn.op, Again):
            behind[eqn.outputs[0]] = meant(inputs)[0]
        else:
            equations.append(Equation(eqn.op, meant(inputs), eqn.outputs, eqn.source))
    outputs = meant(first(graph.outputs))
    return remove_dead(Graph(graph.name, graph.inputs, tuple(equations), outputs))
