"""Where a gradient becomes zero: equations with a cotangent that pass none on, at given values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.autograd.engine import grad
from lucid.debugging.recording import line, walk
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.types import is_differentiable
from lucid.ops.core.promote import as_tensor
from lucid.tape.recording.trace import replay


def zero_places(graph: Graph, inputs: Sequence[Any], x: Var) -> list[str]:
    """Return the equations that make the cotangent of `x` zero; none if it is not."""
    steps = list(walk(graph, inputs))
    depends = {x}
    for eqn, _, _ in steps:
        if depends.intersection(v for v in eqn.inputs if isinstance(v, Var)):
            depends |= set(eqn.outputs)
    cts: dict[Any, np.ndarray] = {
        y: np.ones(y.type.shape, y.type.dtype)
        for y in graph.outputs
        if isinstance(y, Var) and is_differentiable(y.type.dtype)
    }
    found = []
    for eqn, xs, _ in reversed(steps):
        chosen = [
            i
            for i, v in enumerate(eqn.inputs)
            if isinstance(v, Var) and v in depends and is_differentiable(v.type.dtype)
        ]
        given = [y for y in eqn.outputs if y in cts and cts[y].any()]
        if not chosen or not given:
            continue
        pulled = cotangents(eqn, xs, chosen, {y: cts[y] for y in given})
        if not any(ct.any() for ct in pulled):
            found.append(f"{eqn.op.name}: its derivative is zero at these values{line(eqn)}")
        for i, ct in zip(chosen, pulled):
            v = eqn.inputs[i]
            cts[v] = cts[v] + ct if v in cts else ct
    if x in cts and cts[x].any():
        return []
    return found[::-1] or ["the contributions along all ways cancel"]


def cotangents(
    eqn: Equation, xs: Sequence[Any], chosen: Sequence[int], cts: dict[Any, np.ndarray]
) -> list[np.ndarray]:
    """Return the cotangents of the chosen operands of one equation."""
    inputs = tuple(Var(v.type) for v in eqn.inputs)
    outputs = tuple(Var(y.type) for y in eqn.outputs)
    graph = Graph("rule", inputs, (Equation(eqn.op, inputs, outputs),), outputs)
    operands: list[Any] = [
        v if isinstance(v, Literal) else as_tensor(np.asarray(value))
        for v, value in zip(eqn.inputs, xs)
    ]
    for i in chosen:
        operands[i] = operands[i].detach().requires_grad_()
    results = replay(graph, operands)
    ends = [(y, cts[var]) for y, var in zip(results, eqn.outputs) if var in cts]
    ends = [(y, ct) for y, ct in ends if y.node is not None]
    if not ends:
        return [np.zeros_like(operands[i].value) for i in chosen]
    seeds = [as_tensor(ct) for _, ct in ends]
    found = grad([y for y, _ in ends], [operands[i] for i in chosen], seeds, allow_unused=True)
    return [
        np.zeros_like(operands[i].value) if g is None else np.asarray(g.value)
        for i, g in zip(chosen, found)
    ]
