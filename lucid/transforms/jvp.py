"""jvp: Graph -> Derivative, forwards: from tangents of chosen Vars to tangents of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.tape import infer
from lucid.ir.types import is_differentiable
from lucid.transforms.derivative import Derivative, Stage, source_of


def jvp(graph: Graph, wrt: Sequence[Var], seeded: Sequence[bool] | None = None) -> Derivative:
    """The pushforward of a Graph: seeds are tangents of the Vars `wrt`, results those of its outputs."""
    seeded = seeded if seeded is not None else [True] * len(wrt)
    with Stage(graph, "jvp") as stage:
        seeds = [
            stage.seed(var) if there and is_differentiable(var.type.dtype) else None
            for there, var in zip(seeded, wrt)
        ]
        tangents: dict[Any, Any] = {var: seed for var, seed in zip(wrt, seeds) if seed is not None}
        for eqn in graph.equations:
            ts = tuple([None if x.__class__ is Literal else tangents.get(x) for x in eqn.inputs])
            if eqn.op.differentiable and any([t is not None for t in ts]):
                with source_of(eqn):
                    push(stage, eqn, ts, tangents)
        results = [None if isinstance(out, Literal) else tangents.get(out) for out in graph.outputs]
        return stage.finish(seeds, results)


def push(stage: Stage, eqn: Equation, ts: tuple[Any, ...], tangents: dict[Any, Any]) -> None:
    """Note the tangents of an equation's outputs."""
    outs = tuple(stage.read(var) for var in eqn.outputs)
    several = isinstance(infer(eqn.op, tuple([x.type for x in eqn.inputs])), tuple)
    result = eqn.op.jvp(ts, outs if several else outs[0], *[stage.read(x) for x in eqn.inputs])
    for var, t in zip(eqn.outputs, result if several else (result,), strict=True):
        if t is not None and is_differentiable(var.type.dtype):
            assert t.type == var.type, f"{eqn.op!r}: jvp gave {t.type} for {var.type}"
            tangents[var] = t
