"""views: tensors that share memory, and how the tape sees a write to one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ir.primitive import Primitive
from lucid.ir.source import caller
from lucid.tape.markers import OVERWRITTEN, STOP_GRADIENT
from lucid.tape.node import FREED, GRAD, Node, Storage, Traced, residual, wrap


def node_of(x: Traced) -> Node:
    """Return the Node of a tensor, making one if it has none: a captured constant."""
    if x.storage is not None and x.value is not None:
        return synchronize_node(x)
    if x.node is None:
        x.node = Node(None, (), 0, x.value)
    return x.node


def tensor_of(node: Node) -> Any:
    """Return a tensor with the saved value of a Node, if any, sharing its storage."""
    freed = node.op is FREED
    out = wrap(None if node.saved is None and not freed else residual(node), node)
    if node.stamp is not None and out.value is not None:
        out.storage = node.stamp[0]
    return out


def synchronize_node(x: Traced) -> Node:
    """Return the Node of a tensor that shares memory, a new one if it was written since."""
    storage = x.storage
    now = (storage, storage.version)
    node = x.node
    if node is None:
        node = x.node = Node(None, (), 0, x.value)
    elif node.stamp is not None and node.stamp != now:
        node = x.node = node_after_write(node, x.value, now)
    if x.value is not None:
        node.saved = x.value
    node.stamp = now
    return node


def node_after_write(node: Node, value: Any, stamp: Any = None) -> Node:
    """Return the Node of a tensor after an unrecorded write: the same leaf or history."""
    if node.op is None:
        new = Node(None, (), node.flags, value, node.type)
        new.cell = node.cell
        if node.cell is not None:
            node.cell.add_previous_node(node)
    elif node.flags:
        constant = Node(None, (), 0, value)
        constant.stamp = stamp
        new = Node(OVERWRITTEN, (node, constant), node.flags, value, node.type, caller())
    else:
        new = Node(None, (), 0, value)
    new.trace = node.trace
    return new


def storage_of(x: Traced) -> Storage:
    """Return the Storage of a tensor, making one if it has none."""
    storage = x.storage
    if storage is None:
        storage = x.storage = Storage(getattr(x, "writes", 0))
        if x.node is not None:
            x.node.stamp = (storage, storage.version)
    return storage


def link_view(out: Traced, op: Primitive, x: Traced) -> None:
    """Let `out` share the storage of `x` if they share memory."""
    if out.value is None:
        if op.name == "reshape" and not _would_share(x, op):
            return
    elif out.value.base is None:
        return
    elif op.name == "reshape" and not x.value.flags.c_contiguous:
        if not np.may_share_memory(out.value, x.value):
            return
    link(out, op, x)


def link(out: Traced, op: Primitive, x: Traced) -> None:
    """Make `out` the view `op` of `x`; severed if no gradient flows between them."""
    storage = storage_of(x)
    node = out.node
    severed = op is STOP_GRADIENT
    if not severed and x.node is not None and x.node.flags & GRAD:
        severed = node is None or not node.flags & GRAD
    out.storage = storage
    out.origin = (x, op, severed)
    storage.add(out)
    if node is not None and node.saved is not None:
        node.stamp = (storage, storage.version)


def _would_share(x: Traced, op: Primitive) -> bool:
    """True if the reshape `op` of an abstract tensor would be a view if it had a value."""
    array = layout(x)
    return np.may_share_memory(op.eval(array), array)


def layout(x: Traced) -> np.ndarray:
    """Return an array with the layout `x` would have: row-major, through its views."""
    if x.origin is None:
        return np.empty(x.shape, x.dtype)
    return x.origin[1].eval(layout(x.origin[0]))
