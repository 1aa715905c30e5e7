"""Anomaly mode: find the equation that produced the first nan of a gradient, and its line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.errors import GraphError
from lucid.ir.graph import Equation, Graph
from lucid.tape.cut import Cut
from lucid.tape.node import residual
from lucid.tape.recording.trace import replay
from lucid.transforms.prepare import prepare


def explain_nan(cut: Cut, seeds: Sequence[Any], grads: Sequence[Any]) -> None:
    """Raise an error that names the line where a nan in `grads` first appeared."""
    if not any(g is not None and g.raw is not None and has_nan(g.value) for g in grads):
        return
    graph, vars = cut.build()
    slot_of = {var: slot for slot, var in enumerate(vars)}
    inputs = [residual(cut.slots[slot_of[var]]) for var in graph.inputs]
    first = first_nan(graph, inputs)
    if first is not None:
        raise GraphError(
            f"backward: the forward pass produced a nan in {first.op!r} at {first.source}"
        )
    prepared = prepare("vjp", cut, [seed is not None for seed in seeds])
    arrays = [residual(node) for node in prepared.nodes(cut)]
    chosen = [seeds[i].value for i in prepared.derivative.seeds]
    first = first_nan(prepared.derivative.graph, [*arrays, *chosen, *prepared.derivative.constants])
    if first is not None:
        raise GraphError(
            "backward: the backward pass of the operation at "
            f"{first.source} produced a nan in {first.op!r}"
        )
    raise GraphError(
        "backward: a gradient contains a nan that was already in the inputs or in grad_outputs"
    )


def first_nan(graph: Graph, inputs: Sequence[np.ndarray]) -> Equation | None:
    """Return the first equation with a nan in its result and none in its operands."""
    found: list[Equation] = []

    def apply(eqn: Equation, xs: Sequence[Any]) -> Sequence[Any]:
        xs = [x if isinstance(x, np.ndarray) else x.array for x in xs]
        with np.errstate(all="ignore"):
            out = eqn.op.eval(*xs)
        outs = [np.asarray(y) for y in (out if isinstance(out, tuple) else (out,))]
        if not found and any(map(has_nan, outs)) and not any(map(has_nan, xs)):
            inner = getattr(eqn.op, "graph", None)  # a jitted function: name the line inside
            is_call = isinstance(inner, Graph) and len(inner.inputs) == len(xs)
            found.append((first_nan(inner, xs) if is_call else None) or eqn)  # type: ignore[arg-type]
        return outs

    replay(graph, inputs, apply)
    return found[0] if found else None


def has_nan(value: np.ndarray) -> bool:
    return value.dtype.kind in "fc" and bool(np.isnan(value).any())
