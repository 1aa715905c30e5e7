"""accumulate: gradients of leaves are added to `.grad`, after their hooks, in their own memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.autograd.modes import Grad
from lucid.autograd.watch import has_hooks, run_accumulated_hooks, run_hooks, run_prehooks
from lucid.tape import node as tape
from lucid.tape.modes import local
from lucid.tape.node import (
    GRAD,
    GradCell,
    Node,
    active_recorders,
    counters,
    is_recording,
    node_type,
    wrap,
)

_new = object.__new__


def store_gradients(
    starts: Sequence[Node], grads: Sequence[Any], create_graph: bool, zeros: bool, given: set[int]
) -> None:
    """Add gradients to those of the leaves, and call the hooks that run afterward.

    zeros    whether None is a gradient of zeros
    given    ids of arrays that no leaf may store without a copy
    """
    fast = not create_graph and not is_recording()
    counters.backward_passes += 1
    watched = []
    for node, g in zip(starts, grads):
        if node.cell is not None and node.cell.frozen:
            continue
        if fast and g is not None and can_store(node.cell, g, given):
            node.cell.grad = g
            continue
        if g is None and zeros:  # reached only through floor, round and the like: zero
            g = wrap(np.zeros(node_type(node).shape, node_type(node).dtype))
        if g is not None:
            g = accumulate(node, g, create_graph, given)
            if node.cell.post_accumulate_hooks or node.cell.state is not None:
                watched.append((node.cell, g))
    for cell, g in watched:  # now that every leaf has its gradient
        with Grad(create_graph or is_tracked(cell.grad)):
            run_accumulated_hooks(cell, g)


def store_arrays(starts: Sequence[Node], arrays: Sequence[np.ndarray]) -> bool:
    """`store_gradients` for leaves without a gradient that nothing watches; False for others."""
    if active_recorders or (len(starts) > 1 and len(set(map(id, arrays))) != len(starts)):
        return False
    for node, array in zip(starts, arrays):
        cell = node.cell
        if cell is None or cell.grad is not None or cell.hooks or cell.post_accumulate_hooks:
            return False
        if cell.frozen or cell.state is not None:
            return False
        if array.base is not None or not array.flags.writeable:
            return False
    counters.backward_passes += 1
    cls = tape.tensor_class
    for node, array in zip(starts, arrays):
        g = _new(cls)
        g.raw = array
        g.node = g.storage = g.origin = None
        node.cell.grad = g
    return True


def accumulate(node: Node, g: Any, create_graph: bool, given: set[int]) -> Any:
    """Run the hooks of a leaf on a gradient, add it to its cell and return it."""
    g = apply_leaf_hooks(node, g, create_graph)
    cell = cell_of(node)
    if cell.state is not None:
        with Grad(create_graph or is_tracked(g)):
            (g,) = run_prehooks(cell.state, (g,))
    if is_recording():
        local.recorder.on_grad_access(cell)
    if cell.grad is None:
        if create_graph or g.raw is None or (g.node is not None and g.node.flags):
            cell.grad = g
        else:
            if has_hooks(cell):  # which may have kept it
                given.add(id(g.value))
            cell.grad = wrap(unshared_array(g.value, given))
    elif not create_graph and is_recording() and local.recorder.keeps_gradient(cell):
        with Grad(False):
            cell.grad.add_(g)
    elif create_graph or any(x.node is not None or x.raw is None for x in (cell.grad, g)):
        cell.grad = cell.grad + g
    else:
        cell.grad.array()[...] += g.value
    return g


def can_store(cell: Any, g: Any, given: set[int]) -> bool:
    """True if a leaf without a gradient or hooks can store this gradient without a copy."""
    if (
        cell is None
        or cell.grad is not None
        or cell.hooks
        or cell.post_accumulate_hooks
        or cell.state is not None
        or g.node is not None
    ):
        return False
    value = g.raw
    if (
        value.__class__ is not np.ndarray
        or value.base is not None
        or id(value) in given
        or not value.flags.writeable
    ):
        return False
    given.add(id(value))
    return True


def unshared(grads: Sequence[Any]) -> list[Any]:
    """Return the gradients, copying those that share memory with another or are views."""
    seen: set[int] = set()
    for g in grads:
        if g is not None and g.raw is not None and g.node is None:
            g.value = unshared_array(g.value, seen)
    return list(grads)


def unshared_array(value: np.ndarray, seen: set[int]) -> np.ndarray:
    if value.base is not None or id(value) in seen or not value.flags.writeable:
        value = value.copy()
    seen.add(id(value))
    return value


def apply_leaf_hooks(node: Node, g: Any, create_graph: bool) -> Any:
    """Return the gradient of a leaf after its hooks, recorded only if the gradient itself is."""
    if g is None or node.cell is None or not node.cell.hooks or node.op is not None:
        return g
    with Grad(create_graph or is_tracked(g)):
        return run_hooks(node.cell, g, node)


def cell_of(node: Node) -> Any:
    if node.cell is None:
        node.cell = GradCell()
    return node.cell


def is_tracked(x: Any) -> bool:
    """True for a tensor that requires a gradient."""
    return getattr(x, "node", None) is not None and bool(x.node.flags & GRAD)
