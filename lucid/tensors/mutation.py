"""In-place operations: the value in a tensor's memory is replaced, and the tape keeps its meaning.

A Node never changes its value. A tensor that is written to gets a new Node; the old one keeps the
equations that used it, and if one of them needs the overwritten value, `backward` says so. Writing
to a view writes to its base: the base gets the Node of "the old base with this region replaced",
and every other view of the same memory is derived anew from its own base.

A write that is not recorded (under `no_grad`, or through `detach()`) leaves a tensor its history
and changes its value alone, as in PyTorch: `overwritten` stands for that on the tape.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from lucid.errors import DTypeError, GraphError, LucidError, ShapeError
from lucid.ir.source import at_line, caller
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.writing import SliceSet
from lucid.ops.shape.movement import Slice
from lucid.tape.bind import bind
from lucid.tape.markers import ALIAS, OVERWRITTEN, STOP_GRADIENT
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Mutated, Node, is_recording, wrap
from lucid.tape.views import renewed, synchronise

RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
ALONE = 3  # references to a Node that only its tensor has, seen from a function that looks at it


def assign(x: Any, new: Any, what: str) -> Any:
    """Make the tensor `x` have the value and the history of `new`, which no other tensor shares."""
    check_writable(x, what)
    new = fitting(x, new, what)
    if not is_recorded(x, new):
        touch(x)
        x.value[...] = new.value
        return x
    if is_recording():
        note_write(x)
    steps = list(nodes_after(x, new, what))
    if x.value is not None and new.value is not None:
        leave_word(x)
        x.value[...] = new.value
    for tensor, node in steps:
        set_node(tensor, node, new.value is None)
    if x.storage is not None:
        refresh(x.storage, {id(tensor) for tensor, _ in steps})
    return x


def is_recorded(x: Any, *others: Any) -> bool:
    """True where a write to `x` that reads `others` belongs on the tape."""
    if is_recording():
        return True
    flags = 0
    for other in others:
        if other.value is None:
            return True
        flags |= flags_of(other)
    tensor = x
    while tensor is not None:
        if tensor.value is None:
            return True
        flags |= flags_of(tensor)
        tensor = None if tensor.origin is None else tensor.origin[0]
    return bool(flags & TRACE or (flags and local.grad))


def note_write(x: Any) -> None:
    """Tell the Recorder that `x`, and what it is a view of, is about to be written."""
    while x is not None:
        local.recorder.wrote(x)
        x = None if x.origin is None else x.origin[0]


def flags_of(x: Any) -> int:
    node = getattr(x, "node", None)
    return 0 if node is None else node.flags


# What is refused


def fitting(x: Any, new: Any, what: str) -> Any:
    """`new` at the dtype of `x`, refused where it does not fit."""
    if RANK[new.dtype.kind] > RANK[x.dtype.kind]:
        raise DTypeError(
            f"{what}: a result of dtype {new.dtype} cannot be stored in a tensor of dtype "
            f"{x.dtype}; use the out-of-place operation{at_line()}"
        )
    if new.shape != x.shape:
        try:
            new = new.expand(x.shape)
        except LucidError:
            raise ShapeError(
                f"{what}: a result of shape {new.shape} does not fit into a tensor of shape "
                f"{x.shape}{at_line()}"
            ) from None
    return cast(new, x.dtype)


def is_argument(x: Any) -> bool:
    """Is this tensor an input of a transform, whose memory is the caller's?"""
    node = x.node
    return node is not None and (node.op is ALIAS or (node.op is None and bool(node.flags & TRACE)))


def check_writable(x: Any, what: str) -> None:
    """Refuse inputs of transforms, leaves that want a gradient, and memory that must not change."""
    tensor, severed = x, not local.grad
    while True:
        node = tensor.node
        kind = "" if tensor is x else "a view of "
        if node is not None and is_argument(tensor):
            inside = "a transform" if node.trace is None else node.trace.what
            raise GraphError(
                f"{what}: {kind}an argument of {inside} cannot be changed in place: the memory is "
                f"the caller's; clone() it first{at_line()}"
            )
        if not severed and node is not None and node.op is None and node.flags & GRAD:
            raise GraphError(
                f"{what}: {kind}a leaf that requires a gradient cannot be changed in place; "
                f"do it under no_grad(), or on a clone(){at_line()}"
            )
        if tensor.origin is None:
            break
        base, op, cut_off = tensor.origin
        if op.name == "broadcast":
            raise read_only(what)
        if cut_off and local.grad and op is not STOP_GRADIENT:
            raise GraphError(
                f"{what}: a view that was made under no_grad() is changed where gradients are "
                f"recorded, and its base has one; make the view again, or detach() it{at_line()}"
            )
        severed = severed or cut_off
        tensor = base
    if x.value is not None and not x.value.flags.writeable:
        raise read_only(what)


def read_only(what: str) -> GraphError:
    return GraphError(
        f"{what}: this tensor's memory is read-only: an expanded tensor, or one made from a "
        f"read-only array; clone() it first{at_line()}"
    )


# A write that nobody records


def touch(x: Any) -> None:
    """Leave word that the memory of `x` was written; what the tape says of `x` stays."""
    node = x.node
    if x.storage is None and node is not None and node.op is None and node.cell is not None:
        if getrefcount(node) == ALONE:  # no graph has it, so none can need the old value
            x.writes = getattr(x, "writes", 0) + 1
            return
    saved = node is not None and node.saved is not None
    leave_word(x)
    if x.node is None:
        return
    if not (node.flags or node.cell):
        x.node = None
    elif x.storage is not None:
        synchronise(x)
    elif saved:
        x.node = renewed(node, x.value)


def leave_word(x: Any) -> None:
    """Count a write that is about to happen, for the graphs that still need the old value.

    Inside vmap, where equations are run later, a constant that they read is kept for them.
    """
    node = x.node
    if local.maps and node is not None and not node.flags and isinstance(node.saved, np.ndarray):
        node.saved, node.stamp = node.saved.copy(), None
        x.node = node = None
    if x.storage is not None:
        x.storage.version += 1
        x.storage.source = caller()
        return
    x.writes = getattr(x, "writes", 0) + 1
    if node is not None and node.saved is not None and node.saved.__class__ is not Mutated:
        node.saved = Mutated(node.saved, caller())


# A write on the tape


def nodes_after(x: Any, new: Any, what: str) -> Any:
    """`x` and every tensor it is a view of, each with its Node after `x` has become `new`."""
    tensor, after, severed = x, new, not local.grad
    before, local.grad = local.grad, True
    try:
        while True:
            yield tensor, node_after(tensor, after, severed, what)
            if tensor.origin is None:
                return
            base, op, cut_off = tensor.origin
            after = inserted(base, op, after)
            severed = severed or cut_off
            tensor = base
    finally:
        local.grad = before


def node_after(x: Any, after: Any, severed: bool, what: str) -> Node | None:
    """The Node of `x` once its value is that of `after`; severed: the history of `x` stays."""
    flags = flags_of(x)
    if x.value is None and after.value is not None:
        after = where(wrap(np.array(True)), after, x)
    if not severed:
        if flags & GRAD and not flags_of(after) & GRAD:
            after = where(wrap(np.array(True)), after, x)
        return after.node if flags_of(after) else None
    after = stopped(after)
    if not flags & GRAD:
        return after.node if flags_of(after) else None
    if x.node.op is not None or is_recording():
        return bind(OVERWRITTEN, x, after).node
    if after.value is None:
        facts = "a leaf cannot take a value that is only traced"
        raise GraphError(f"{what}: {facts}; return it instead{at_line()}")
    return renewed(x.node, x.value)


def stopped(x: Any) -> Any:
    """`x` as a constant for derivatives: itself where it is one."""
    return bind(STOP_GRADIENT, x) if flags_of(x) & GRAD else x


def inserted(base: Any, op: Any, part: Any) -> Any:
    """`base` with the region that the view `op` shows replaced by `part`."""
    if isinstance(op, Slice):
        part = part.reshape(op.sizes) if op.drop else part
        return bind(SliceSet(op.starts, op.limits, op.strides), base, part)
    return part if op is STOP_GRADIENT else op.adjoint(part, base)


def set_node(x: Any, node: Node | None, abstract: bool) -> None:
    """Give `x` its Node after a write, with the wish to keep its gradient."""
    old = x.node
    if abstract:
        if x.value is not None and local.maps and node is not None:
            for mapped in local.maps:
                if mapped.trace is node.trace:
                    mapped.wrote(x)
        x.value = None
    x.node = node
    if node is None:
        return
    if x.storage is not None:
        node.stamp = (x.storage, x.storage.version)
    if old is None or old.cell is None or node.cell is not None:
        return
    if node.op is OVERWRITTEN and is_recording():
        node.cell = old.cell  # the gradient of a parameter is still there after its update
    elif old.cell.retain:
        x.cell().retain = True


def refresh(storage: Any, done: set[int]) -> None:
    """Derive every other view of a written memory anew from its base."""
    before, local.grad = local.grad, True
    try:
        for x in storage.live():
            derive_again(x, storage, done)
    finally:
        local.grad = before


def derive_again(x: Any, storage: Any, done: set[int]) -> None:
    if id(x) in done or x.origin is None or x.storage is not storage:
        return
    done.add(id(x))
    base, op, severed = x.origin
    derive_again(base, storage, done)
    part = bind(op, base)
    if severed:
        part = stopped(part)
        part = bind(OVERWRITTEN, x, part) if flags_of(x) & GRAD else part
    set_node(x, part.node if flags_of(part) else None, part.value is None)
