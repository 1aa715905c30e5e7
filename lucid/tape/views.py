"""views: tensors that share memory.

Whether an operation is a view is a fact of its class (`is_view`), and a tensor's layout follows
from its base by its views: a tensor that is not a view is row-major, or is the user's own array.
"""

from __future__ import annotations

from functools import partial
from sys import getrefcount
from typing import Any
from weakref import ref

import numpy as np

from lucid.ir.primitive import Primitive
from lucid.support.source import caller
from lucid.tape.markers import OVERWRITTEN, STOP_GRADIENT
from lucid.tape.modes import local
from lucid.tape.node import (
    FREED,
    GRAD,
    LOCAL_REFERENCES,
    Node,
    Storage,
    Traced,
    active_recorders,
    saved_value,
    wrap,
)
from lucid.tape.recording.pending import Pending

exported: dict[int, Any] = {}  # id of an array whose memory NumPy sees -> a weak reference to it


def node_of(x: Traced) -> Node:
    """Return the Node of a tensor, making one if it has none: a captured constant."""
    if x.storage is not None and x.raw is not None:
        return synchronize_node(x)
    if x.node is None:
        x.node = Node(None, (), 0, x.raw)
    return x.node


def note_result(node: Node, value: Any) -> None:
    """Tell the active Recorder, if any, that `value` is the array of a Node."""
    if active_recorders and local.recorder is not None:
        local.recorder.on_result(node, value)


def tensor_of(node: Node) -> Any:
    """Return a tensor with the saved value of a Node, if any, sharing its storage."""
    freed = node.op is FREED
    out = wrap(None if node.saved is None and not freed else saved_value(node), node)
    if node.stamp is not None and out.raw is not None:
        out.storage = node.stamp[0]
    return out


def synchronize_node(x: Traced) -> Node:
    """Return the Node of a tensor that shares memory, a new one if it was written since."""
    storage = x.storage
    node = x.node
    if node is None:
        node = x.node = Node(None, (), 0, x.raw)
    elif (stamp := node.stamp) is not None:
        if stamp[0] is storage and stamp[1] == storage.version:
            if x.raw is not None:
                node.saved = x.raw
            return node
        node = x.node = node_after_write(node, x.raw, (storage, storage.version))
    if x.raw is not None:
        node.saved = x.raw
    node.stamp = (storage, storage.version)
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
        make_row_major(x)
        storage = x.storage = Storage(getattr(x, "writes", 0))
        if x.node is not None:
            x.node.stamp = (storage, storage.version)
    return storage


def make_row_major(x: Traced) -> None:
    """Copy a tensor that shares no memory to row-major order, the layout it is assumed to have.

    NumPy returns results in the order of its operands. What a program means does not depend on
    that: the result of an operation that is not a view is row-major before a view of it exists.
    """
    value, node = x.raw, x.node
    if value.__class__ is not np.ndarray or value.flags.c_contiguous:
        return
    x.raw = np.ascontiguousarray(value)
    if node is not None:
        if node.saved is value:
            node.saved = x.raw
        note_result(node, x.raw)


def mark_exported(array: np.ndarray) -> None:
    """Note that NumPy sees the memory of an array, and may write to it at any time."""
    owner = owner_of(array)
    if id(owner) not in exported and isinstance(owner, np.ndarray):
        key = id(owner)
        exported[key] = ref(owner, partial(exported.pop, key))  # C, which no interrupt parts


def is_exported(array: np.ndarray) -> bool:
    """True if something besides tensors may see the memory of an array."""
    owner = owner_of(array)
    return id(owner) in exported or not isinstance(owner, np.ndarray)


def is_visible(x: Traced) -> bool:
    """True if something besides tensors sees the memory of `x` now; its array must have no name.

    An array that was handed out, and that only tensors hold any more, is not exported.
    """
    if not is_exported(x.raw):
        return False
    if x.raw.base is not None or id(x.raw) not in exported:
        return True
    if getrefcount(x.raw) >= LOCAL_REFERENCES + count_holders(x):  # one of them in place of a local
        return True
    exported.pop(id(x.raw), None)
    return False


def count_holders(x: Traced) -> int:
    """Return how many tensors that share the memory of `x`, and Nodes of them, hold its array."""
    tensors = {id(x): x}
    if x.storage is not None:
        tensors.update([(id(y), y) for y in x.storage.live()])
    base = x
    while base.origin is not None:  # a Parameter is a view of the tensor that it was made of
        base = base.origin[0]
        tensors[id(base)] = base
    nodes = {id(y.node): y.node for y in tensors.values() if y.node is not None}
    holding = [y.raw is x.raw for y in tensors.values()]
    return sum(holding) + sum([node.saved is x.raw for node in nodes.values()])


def base_of(x: Traced) -> Traced:
    """Return the tensor that `x` is a view of, `x` itself if it is none.

    Tensors whose bases differ may share memory after `x.data = y`, or if NumPy's arrays do.
    """
    while x.origin is not None:
        x = x.origin[0]
    return x


def owner_of(array: np.ndarray) -> Any:
    """Return the object that owns the memory of an array."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner


def share_array(array: np.ndarray) -> Any:
    """Return a tensor in the memory of an array of the user, which decides its layout."""
    mark_exported(array)
    out = wrap(array)
    if not array.flags.c_contiguous:
        out.storage = Storage()
        if out.node is not None:
            out.node.stamp = (out.storage, 0)
    return out


def link_view(out: Traced, op: Primitive, x: Traced) -> None:
    """Let `out`, the result of the view operation `op`, share the storage of `x`.

    A reshape that the layout of `x` does not allow is a copy.
    """
    if op.name == "reshape" and x.storage is not None:
        if not can_view(layout(x), op.shape):  # type: ignore[attr-defined]
            return
    link(out, op, x)


def link(out: Traced, op: Primitive, x: Traced) -> None:
    """Make `out` the view `op` of `x`; severed if no gradient flows between them."""
    before = x.raw
    storage = storage_of(x)
    node = out.node
    if x.raw is not before:  # it has moved to row-major memory
        value, out.raw = out.raw, op.eval(x.raw)
        if node is not None:
            if node.saved is value:
                node.saved = out.raw
            note_result(node, out.raw)
    severed = op is STOP_GRADIENT
    if not severed and x.node is not None and x.node.flags & GRAD:
        severed = node is None or not node.flags & GRAD
    out.storage = storage
    out.origin = (x, op, severed)
    storage.add(out)
    if node is not None and node.saved is not None:
        node.stamp = (storage, storage.version)


def layout(x: Traced) -> np.ndarray:
    """Return an array with the memory layout of `x`, which follows from its base by its views."""
    if x.raw is not None and x.raw.__class__ is not Pending:
        if x.storage is None:
            make_row_major(x)
        return x.raw
    if x.origin is None:
        return np.empty(x.shape, x.dtype)
    return x.origin[1].eval(layout(x.origin[0]))


def can_view(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    """True if an array with this layout can be reshaped without a copy."""
    if array.flags.c_contiguous or not array.size:
        return True
    runs: list[int] = []  # numbers of elements of neighboring axes that act as one axis
    step = 0
    for n, stride in zip(array.shape, array.strides):
        if n == 1:
            continue
        if runs and step == n * stride:
            runs[-1] *= n
        else:
            runs.append(n)
        step = stride
    left = 1
    for n in shape:
        left *= n
        if runs and left == runs[0]:
            del runs[0]
            left = 1
        elif runs and left > runs[0]:
            return False
    return not runs


def overlaps_itself(x: Traced) -> bool:
    """True if two elements of `x` are in the same memory."""
    array = layout(x)
    steps = sorted((abs(s), n) for s, n in zip(array.strides, array.shape) if n > 1)
    if not array.size:
        return False
    reach = array.itemsize
    for stride, n in steps:
        if stride < reach:
            break
        reach += stride * (n - 1)
    else:
        return False
    places: Any = np.zeros((), "int64")
    for stride, n in steps:
        places = places[..., None] + np.arange(n) * stride
    return bool(np.diff(np.sort(places, None)).min() < array.itemsize)


def root_of(x: Any) -> Any:
    """Return the tensor that `x` is, through all views between them, a view of."""
    while x.origin is not None:
        x = x.origin[0]
    return x
