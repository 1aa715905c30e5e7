"""jvp: Graph -> Derivative, forward mode: from tangents of Vars to tangents of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.types import is_differentiable
from lucid.transforms.derivative import Builder, Derivative
from lucid.transforms.rule import rule_for


def jvp(graph: Graph, wrt: Sequence[Var], seeded: Sequence[bool] | None = None) -> Derivative:
    """Return the pushforward of a Graph: from tangents of the Vars `wrt` to those of its outputs.

    `seeded` says which Vars have a tangent; all by default.
    """
    seeded = seeded if seeded is not None else [True] * len(wrt)
    seeds = [
        Var(var.type) if there and is_differentiable(var.type.dtype) else None
        for there, var in zip(seeded, wrt)
    ]
    builder = Builder(graph)
    tangents: dict[Any, Var] = {var: seed for var, seed in zip(wrt, seeds) if seed is not None}
    for eqn in graph.equations:
        if eqn.op.differentiable and not tangents.keys().isdisjoint(eqn.inputs):
            push(builder, eqn, tangents)
    return builder.finish(seeds, [tangents.get(out) for out in graph.outputs])


def push(builder: Builder, eqn: Equation, tangents: dict[Any, Var]) -> None:
    """Compute the tangents of an equation's outputs."""
    ts = [tangents.get(x) for x in eqn.inputs]
    wanted = tuple([is_differentiable(var.type.dtype) for var in eqn.outputs])
    rule = rule_for("jvp", eqn, tuple([t is not None for t in ts]), wanted, builder.default)
    results = builder.apply(rule, [*eqn.inputs, *eqn.outputs, *ts], eqn.source)
    for var, t in zip(eqn.outputs, results):
        if t is not None and var not in tangents:
            tangents[var] = t
