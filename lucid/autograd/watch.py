"""Hooks and retained gradients: Python code that runs during a backward pass.

A watched value v gets an equation `v' = watch v` in the Graph, and its users read v' instead. The
cotangent of v' is complete when the pullback reaches it, and the hooks are called there. An
equation whose Node has hooks becomes a WatchNode, whose rule calls them around its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, GraphError, ShapeError
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.promote import as_tensor, cast
from lucid.tape.bind import bind
from lucid.tape.cut import Cut
from lucid.tape.modes import local
from lucid.tape.node import GRAD, NodeState, wrap
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
        g = replaced(g, hook(g, node))
    return g


def replaced(g: Any, result: Any) -> Any:
    """Return what a hook has returned for the gradient `g`, which stays if that is None."""
    if result is None:
        return g
    if g is None:
        raise GraphError("hook: returned a gradient where there is none; return None for it")
    result = as_tensor(result)
    if result.dtype.kind == "c" and g.dtype.kind != "c":
        facts = f"returned a gradient of dtype {result.dtype} for a tensor of {g.dtype}"
        raise DTypeError(f"hook: {facts}; take its .real")
    result = cast(result, g.dtype)
    if result.shape != g.shape:
        raise ShapeError(
            f"hook: returned a gradient of shape {result.shape} for a tensor of shape {g.shape}"
        )
    return result


def replaced_all(grads: tuple[Any, ...], results: Any) -> tuple[Any, ...]:
    """Return what a hook of an operation has returned, a tuple or one gradient, for `grads`."""
    if results is None:
        return grads
    if not isinstance(results, (tuple, list)):
        results = (results,)
    if len(results) != len(grads):
        facts = f"returned {len(results)} gradients, {len(grads)} expected"
        raise ArgumentError(f"hook: {facts}; return a tuple, with None for those that stay")
    return tuple([replaced(g, result) for g, result in zip(grads, results)])


# Hooks of operations


class WatchNode(Primitive):
    """An equation whose Node has hooks: they are called before and after its rule.

    tracked    which operands have a gradient
    """

    op: Any
    state: Any
    tracked: tuple[bool, ...]
    single_use = True

    def infer(self, *types: Type) -> Any:
        return infer(self.op, types)

    def eval(self, *xs: np.ndarray) -> Any:
        return self.op.eval(*xs)

    def jvp(self, ts: tuple[Any, ...], y: Any, *xs: Any) -> Any:
        return self.op.jvp(ts, y, *xs)

    def vjp(self, ct: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        several = isinstance(ct, tuple)
        cts = bind_present(Prehooks, self.state, ct if several else (ct,))
        found = self.op.vjp(cts if several else cts[0], y, *xs)
        grads = tuple([g if wanted else None for g, wanted in zip(found, self.tracked)])
        return bind_present(Posthooks, self.state, grads, cts)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        return self.op.batch(n, batched, *xs)


def bind_present(
    hooks: Any, state: Any, grads: tuple[Any, ...], outer: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    """Bind Prehooks or Posthooks to the gradients that are not None; return all of them."""
    mask, outer_mask = ([g is not None for g in gs] for gs in (grads, outer))
    if True not in mask:
        return grads
    op = hooks(state, tuple(mask), tuple(outer_mask))
    found = bind(op, *[g for g in (*grads, *outer) if g is not None])
    return spread(mask, found)


def spread(mask: Sequence[bool], present: Sequence[Any]) -> tuple[Any, ...]:
    """Return `present` with None where `mask` is False."""
    left = iter(present)
    return tuple([next(left) if there else None for there in mask])


class Prehooks(Primitive):
    """The cotangents of an operation's results, after its prehooks.

    mask     which of the gradients that the hooks may replace are present
    outer    which of the others
    """

    state: Any
    mask: tuple[bool, ...]
    outer: tuple[bool, ...]
    saves = ""
    single_use = True

    def infer(self, *types: Type) -> Any:
        return types[: sum(self.mask)]

    def eval(self, *grads: np.ndarray) -> Any:
        before = local.grad
        local.grad = False
        try:
            return tuple([g.array() for g in self.inline(*[wrap(g) for g in grads])])
        finally:
            local.grad = before

    def inline(self, *grads: Any) -> tuple[Any, ...]:  # type: ignore[override]
        n = sum(self.mask)
        found = self.run(spread(self.mask, grads[:n]), spread(self.outer, grads[n:]))
        return tuple([g for g in found if g is not None])

    def run(self, grads: tuple[Any, ...], outer: tuple[Any, ...]) -> tuple[Any, ...]:
        return run_prehooks(self.state, grads)

    def jvp(self, ts: tuple[Any, ...], y: Any, *grads: Any) -> Any:
        return ts[: sum(self.mask)]

    def vjp(self, ct: Any, y: Any, *grads: Any) -> tuple[Any, ...]:
        return (*ct, *[None] * sum(self.outer))

    def batch(self, n: int, batched: tuple[bool, ...], *grads: Any) -> Any:
        wide = [g if b else g.expand((n, *g.shape)) for g, b in zip(grads, batched)]
        return bind(self, *wide)


class Posthooks(Prehooks):
    """The cotangents of an operation's operands, after its hooks."""

    def run(self, grads: tuple[Any, ...], outer: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self.state.hooks.values()):
            grads = replaced_all(grads, hook(grads, outer))
        return grads


def run_prehooks(state: NodeState, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the cotangents of an operation's results after its prehooks."""
    for hook in list(state.prehooks.values()):
        grads = replaced_all(grads, hook(grads))
    return grads


def run_accumulated_hooks(cell: Any, g: Any) -> None:
    """Call the hooks of a leaf that run once `g` was added to its gradient."""
    for hook in list(cell.post_accumulate_hooks.values()):
        hook(cell.grad)
    for hook in [] if cell.state is None else list(cell.state.hooks.values()):
        hook((), (g,))


def has_hooks(cell: Any) -> bool:
    """True if Python code runs when a leaf gets a gradient."""
    return bool(cell.hooks or cell.post_accumulate_hooks or cell.state)


def state_owner(node: Any) -> Any:
    """Return the object that all results of an operation share, which holds its NodeState."""
    if node.op is None:
        return node.cell
    if node.outs is not None:
        return node.outs
    return getattr(node.op, "call", node)  # of a Function


def hooked_state(node: Any) -> NodeState | None:
    """Return the NodeState of an operation that has hooks, or None."""
    state = getattr(state_owner(node), "state", None)
    return state if state is not None and (state.prehooks or state.hooks) else None


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
    return NodeState.any_hooks and bool(hooked_rows(cut))


def hooked_rows(cut: Cut) -> dict[int, Any]:
    """Return slot -> NodeState of results whose operation has hooks."""
    rows = [(row[2], hooked_state(cut.slots[row[2]])) for row in cut.rows]
    return {slot: state for slot, state in rows if state is not None}


def prepare_watched(cut: Cut, seeded: Sequence[bool], keep: bool) -> Prepared:
    """Return the pullback of a Cut that calls hooks; `keep`: whether `.grad` is written."""
    graph, vars = cut.build()
    renamed: dict[Any, Var] = {}
    targets = {vars[slot]: node for slot, node in watched_slots(cut, keep).items()}
    hooked: dict[Any, Any] = {}
    if NodeState.any_hooks:
        for slot, state in hooked_rows(cut).items():
            inputs = cut.slots[slot].inputs
            tracked = tuple([bool(getattr(x, "flags", 0) & GRAD) for x in inputs])
            hooked[vars[slot]] = (state, tracked)
    equations = []
    for eqn in graph.equations:
        inputs = tuple([renamed.get(x, x) for x in eqn.inputs])
        found = next((hooked[y] for y in eqn.outputs if y in hooked), None)
        op = eqn.op if found is None else WatchNode(eqn.op, *found)
        equations.append(Equation(op, inputs, eqn.outputs, eqn.source))
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
    return Prepared(derivative._replace(residuals=residuals), marked, vars)
