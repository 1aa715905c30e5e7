"""vjp: Graph -> Derivative, reverse mode: from cotangents of the outputs to those of Vars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.types import is_differentiable
from lucid.ops.elementwise.arithmetic import ADD
from lucid.transforms.derivative import Builder, Derivative
from lucid.transforms.rule import rule_for


def vjp(graph: Graph, wrt: Sequence[Var], seeded: Sequence[bool] | None = None) -> Derivative:
    """Return the pullback of a Graph: from cotangents of its outputs to those of the Vars `wrt`.

    `seeded` says which outputs have a cotangent; all by default.
    """
    seeded = seeded if seeded is not None else [True] * len(graph.outputs)
    seeds = [
        Var(out.type) if there and is_differentiable(out.type.dtype) else None
        for there, out in zip(seeded, graph.outputs)
    ]
    active = depends_on(graph, wrt)
    builder = Builder(graph)
    cotangents: dict[Any, Var] = {}
    for out, seed in zip(graph.outputs, seeds):
        if seed is not None and out in active:
            accumulate(builder, cotangents, out, seed, None)
    for eqn in reversed(graph.equations):
        if eqn.op.differentiable:
            pull(builder, eqn, active, cotangents)
    return builder.finish(seeds, [cotangents.get(var) for var in wrt])


def depends_on(graph: Graph, wrt: Sequence[Var]) -> set[Any]:
    """Return the Vars through which a derivative with respect to `wrt` can flow."""
    active: set[Any] = {var for var in wrt if is_differentiable(var.type.dtype)}
    for op, inputs, outputs, _ in graph.equations:
        if op.differentiable and not active.isdisjoint(inputs):
            for var in outputs:
                if var.type.dtype.kind in "fc":
                    active.add(var)
    return active


def pull(builder: Builder, eqn: Equation, active: set[Any], cotangents: dict[Any, Var]) -> None:
    """Accumulate the cotangents of an equation's inputs."""
    _, inputs, outputs, source = eqn
    cts = [cotangents.get(var) for var in outputs]
    seeded = tuple([ct is not None for ct in cts])
    if True not in seeded:
        return
    wanted = tuple([x in active for x in inputs])
    if True not in wanted:
        return
    rule = rule_for("vjp", eqn, seeded, wanted, builder.default)
    results = builder.apply(rule, [*inputs, *outputs, *cts], source)
    for x, ct in zip(inputs, results):
        if ct is not None:
            accumulate(builder, cotangents, x, ct, source)


def accumulate(
    builder: Builder, cotangents: dict[Any, Var], var: Any, ct: Var, source: Any
) -> None:
    previous = cotangents.get(var)
    if previous is not None:
        total = Var(var.type)
        builder.equations.append(Equation(ADD, (previous, ct), (total,), source))
        ct = total
    cotangents[var] = ct
