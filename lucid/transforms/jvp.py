"""jvp: Graph -> Derivative, forwards: from tangents of chosen Vars to tangents of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Graph, Literal, Var
from lucid.ir.types import is_differentiable
from lucid.transforms.derivative import Derivative, Stage, source_of


def jvp(graph: Graph, wrt: Sequence[Var], seeded: Sequence[bool] | None = None) -> Derivative:
    """The pushforward of a Graph: seeds are tangents of the Vars `wrt`, results those of its outputs."""
    stage = Stage(graph, "jvp")
    seeded = seeded if seeded is not None else [True] * len(wrt)
    seeds = [
        stage.seed(var) if there and is_differentiable(var.type.dtype) else None
        for there, var in zip(seeded, wrt)
    ]
    tangents: dict[Any, Any] = {var: seed for var, seed in zip(wrt, seeds) if seed is not None}
    for eqn in graph.equations:
        ts = tuple([None if x.__class__ is Literal else tangents.get(x) for x in eqn.inputs])
        if not eqn.op.differentiable or all(t is None for t in ts):
            continue
        with source_of(eqn):
            xs = [stage.read(x) for x in eqn.inputs]
            several = isinstance(eqn.op.infer(*[x.type for x in eqn.inputs]), tuple)
            outs = tuple(stage.read(var) for var in eqn.outputs)
            result = eqn.op.jvp(ts, outs if several else outs[0], *xs)
        for var, t in zip(eqn.outputs, result if several else (result,), strict=True):
            if t is not None and is_differentiable(var.type.dtype):
                assert t.shape == var.type.shape and t.dtype == var.type.dtype, (eqn.op, t.type, var.type)
                tangents[var] = t
    results = [None if isinstance(out, Literal) else tangents.get(out) for out in graph.outputs]
    return stage.finish(seeds, results)
