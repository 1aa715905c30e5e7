"""vjp: Graph -> Derivative, backwards: from cotangents of the outputs to cotangents of chosen Vars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.tape import infer
from lucid.ir.types import is_differentiable
from lucid.transforms.derivative import Derivative, Stage, source_of


def vjp(graph: Graph, wrt: Sequence[Var], seeded: Sequence[bool] | None = None) -> Derivative:
    """The pullback of a Graph: seeds are cotangents of its outputs, results those of the Vars `wrt`.

    `seeded` says which outputs have a cotangent at all.
    """
    seeded = seeded if seeded is not None else [True] * len(graph.outputs)
    with Stage(graph, "vjp") as stage:
        seeds = [
            stage.seed(out) if there and is_differentiable(out.type.dtype) else None
            for there, out in zip(seeded, graph.outputs)
        ]
        cotangents: dict[Any, Any] = {}
        for out, seed in zip(graph.outputs, seeds):
            if not isinstance(out, Literal):
                accumulate(cotangents, out, seed)
        for eqn in reversed(graph.equations):
            if eqn.op.differentiable and any([var in cotangents for var in eqn.outputs]):
                with source_of(eqn):
                    pull(stage, eqn, cotangents)
        return stage.finish(seeds, [cotangents.get(var) for var in wrt])


def pull(stage: Stage, eqn: Equation, cotangents: dict[Any, Any]) -> None:
    """Add the cotangents of an equation's inputs to those already there."""
    outs = tuple(stage.read(var) for var in eqn.outputs)
    cts = tuple(cotangents.get(var) for var in eqn.outputs)
    several = isinstance(infer(eqn.op, tuple([x.type for x in eqn.inputs])), tuple)
    y, ct = (outs, cts) if several else (outs[0], cts[0])
    results = eqn.op.vjp(ct, y, *[stage.read(x) for x in eqn.inputs])
    for x, result in zip(eqn.inputs, results, strict=True):
        if isinstance(x, Var) and is_differentiable(x.type.dtype):
            accumulate(cotangents, x, result)


def accumulate(cotangents: dict[Any, Any], var: Any, ct: Any) -> None:
    if ct is None:
        return
    assert ct.shape == var.type.shape and ct.dtype == var.type.dtype, f"vjp gave {ct.type} for {var.type}"
    known = cotangents.get(var)
    cotangents[var] = ct if known is None else known + ct
