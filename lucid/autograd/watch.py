"""Hooks and retained gradients: Python code that runs during a backward pass.

A watched value v gets an equation `v' = watch v` in the Graph, and its users read v' instead. The
cotangent of v' is complete when the pullback reaches it, and the hooks are called there.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.promote import as_tensor, cast
from lucid.tape.bind import bind
from lucid.tape.cut import Cut
from lucid.tape.modes import local
from lucid.tape.node import wrap
from lucid.transforms.prepare import Prepared
from lucid.transforms.vjp import vjp


class Identity(Primitive, abstract=True):
    """The identity on one operand."""

    saves = ""
    single_use = True

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return ts[0]

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (ct,)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


class Watch(Identity):
    """The identity on a watched value: its cotangent passes through the hooks.

    keep    whether `.grad` of a value with retain_grad() is written
    """

    node: Any
    keep: bool

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (bind(Watched(self.node, self.keep), ct),)


class Watched(Identity):
    """The cotangent of a watched value, after its hooks."""

    node: Any
    keep: bool

    def eval(self, ct: np.ndarray) -> np.ndarray:
        before = local.grad
        local.grad = False
        try:
            return self.inline(wrap(ct)).array()
        finally:
            local.grad = before

    def inline(self, ct: Any) -> Any:  # type: ignore[override]
        cell = self.node.cell
        ct = run_hooks(cell, ct, self.node)
        if cell.retain and self.keep:
            kept = wrap(ct.value.copy()) if ct.raw is not None and ct.node is None else ct
            cell.grad = kept if cell.grad is None else cell.grad + kept
        return ct


def run_hooks(cell: Any, g: Any, node: Any) -> Any:
    """Return the gradient after all hooks; a hook that returns None does not change it."""
    for hook in list(cell.hooks.values()):
        result = hook(g, node)
        if result is None:
            continue
        result = as_tensor(result)
        if result.dtype.kind == "c" and g.dtype.kind != "c":
            facts = f"returned a gradient of dtype {result.dtype} for a tensor of {g.dtype}"
            raise DTypeError(f"hook: {facts}; take its .real")
        result = cast(result, g.dtype)
        if result.shape != g.shape:
            raise ShapeError(
                f"hook: returned a gradient of shape {result.shape} for a tensor of shape {g.shape}"
            )
        g = result
    return g


def takes_tensor(hook: Any) -> bool:
    """True for `hook(tensor, grad)`, False for `hook(grad)`."""
    try:
        parameters = inspect.signature(hook).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len([p for p in positional if p.default is p.empty]) >= 2


def watched_slots(cut: Cut, keep: bool) -> dict[int, Any]:
    """Return slot -> Node of results with hooks or a retained gradient."""
    out = {}
    for row in cut.rows:
        node = cut.slots[row[2]]
        if node.cell is not None and (node.cell.hooks or (keep and node.cell.retain)):
            out[row[2]] = node
    return out


def has_watchers(cut: Cut, keep: bool) -> bool:
    slots = cut.slots
    for row in cut.rows:
        cell = slots[row[2]].cell
        if cell is not None and (cell.hooks or (keep and cell.retain)):
            return True
    return False


def prepare_watched(cut: Cut, seeded: Sequence[bool], keep: bool) -> Prepared:
    """Return the pullback of a Cut that calls hooks; `keep`: whether `.grad` is written."""
    graph, vars = cut.build()
    renamed: dict[Any, Var] = {}
    targets = {vars[slot]: node for slot, node in watched_slots(cut, keep).items()}
    equations = []
    for eqn in graph.equations:
        inputs = tuple(renamed.get(x, x) for x in eqn.inputs)
        equations.append(Equation(eqn.op, inputs, eqn.outputs, eqn.source))
        for var in eqn.outputs:
            if var in targets:
                renamed[var] = Var(var.type)
                equations.append(
                    Equation(Watch(targets[var], keep), (var,), (renamed[var],), eqn.source)
                )
    outputs = tuple(renamed.get(x, x) for x in graph.outputs)
    marked = Graph(graph.name, graph.inputs, tuple(equations), outputs)
    wrt = [vars[slot] for slot in cut.inputs]
    derivative = vjp(marked, wrt, seeded)
    original = {new: old for old, new in renamed.items()}
    residuals = tuple(original.get(var, var) for var in derivative.residuals)
    return Prepared(replace(derivative, residuals=residuals), marked, vars)
