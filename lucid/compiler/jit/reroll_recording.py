"""Loops on the tape of a recording become Scans before they are differentiated.

A recorded Python loop of many steps is on the tape step by step, and so would be its derivative.
While a recording leaves everything pending, its tape can still be rewritten: the equations that
lead to the given tensors are cut, rerolled (`passes/reroll.py`) and recorded again, and the tensors
get the new Nodes. Where something else needs a value inside the loop (a guard, a write, a tensor
that shares memory), the tape stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lucid.compiler.passes import loops
from lucid.ir.graph import Graph, Literal
from lucid.public.lazy import LazyModule
from lucid.support.garbage import gc_paused
from lucid.tape.cut import Cut, ancestors, cut_since
from lucid.tape.modes import local
from lucid.tape.node import Node, is_deferring
from lucid.tape.recording.pending import is_pending
from lucid.tape.recording.trace import replay
from lucid.tape.views import node_of, tensor_of

rerolling: Any = LazyModule("lucid.compiler.passes.loops.reroll")  # few programs have long loops


def reroll_recording(tensors: Sequence[Any], starts: Sequence[Node] = (), since: int = 0) -> None:
    """Record the loops that computed `tensors` as Scans, if there are long ones.

    starts    Nodes where the computation begins; everything older than `since` is outside too
    """
    if not is_deferring():
        return
    recorder = local.recorder
    since = since or recorder.start
    roots = [x for x in tensors if is_pending(x.raw) and x.node is not None]
    newest = max([x.node.serial for x in roots], default=0)
    if newest - since < loops.MIN_EQUATIONS:
        return
    with gc_paused():
        found = rewritten(recorder, roots, list(starts), since)
        if found is None:
            return
        section, graph, changed = found
        slots = [*dict.fromkeys(section.inputs), *section.captured]
        operands = [tensor_of(section.slots[slot]) for slot in slots]
        before = local.grad
        local.grad = True  # what was computed without gradients is marked on the tape
        try:
            results = replay(graph, operands)
        finally:
            local.grad = before
    for x, y in zip(changed, results):
        x.raw, x.node, x.storage = y.raw, y.node, y.storage


def reroll_graph(graph: Graph) -> Graph:
    """Replace long loops by Scans; the pass is imported for a Graph that may have some."""
    return graph if len(graph.equations) < loops.MIN_EQUATIONS else rerolling.reroll(graph)


def rewritten(
    recorder: Any, roots: list[Any], starts: list[Node], since: int
) -> tuple[Cut, Any, list[Any]] | None:
    """Return the Cut of the tape, its rerolled Graph, and the tensors that are its outputs."""
    others = [x for x in recorder.pending.live_tensors() if not any(x is root for root in roots)]
    made = set(ancestors([node_of(x) for x in roots], since)) - set(starts)
    inside = [x for x in others if x.node in made]
    changed = [*roots, *inside]
    if any([shares_memory(x) for x in changed]):
        return None
    outside = [x.node for x in others if x.node not in made]
    outside += [guard.node for guard in recorder.guards]
    written = [*[x for x, _ in recorder.written.values()], *recorder.overwritten.values()]
    grads = [cell.grad for cell, _ in recorder.cells.values() if cell.grad is not None]
    outside += [node_of(x) for x in (*written, *grads)]
    if any([node.cell is not None for node in made]):
        return None  # it is watched
    if any([op.ordered or op.single_use for op in {node.op for node in made} if op is not None]):
        return None  # it must happen once
    if reads(outside, made, since):
        return None
    section = cut_since(starts, [node_of(x) for x in changed], since)
    graph = section.build()[0]
    rerolled = reroll_graph(graph)
    if rerolled is graph or any([y.__class__ is Literal for y in rerolled.outputs]):
        return None
    return section, rerolled, changed


def shares_memory(x: Any) -> bool:
    """True for a view, and for a tensor of which views are alive."""
    if x.origin is not None:
        return True
    return x.storage is not None and any([view is not x for view in x.storage.live()])


def reads(ends: Iterable[Any], made: set[Node], since: int) -> bool:
    """True if these Nodes were computed from some of `made`."""
    stack = [node for node in ends if node is not None]
    seen = set()
    while stack:
        node = stack.pop()
        if node in made:
            return True
        if node in seen or node.__class__ is not Node or node.op is None or node.serial < since:
            continue
        seen.add(node)
        stack += [x for x in node.inputs if x.__class__ is Node]
    return False
