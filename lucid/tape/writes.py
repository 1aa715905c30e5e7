"""writes: in-place writes, which replace the value in a tensor's memory and keep the tape correct.

A Node never changes its value. A tensor that is written to gets a new Node; the old one keeps the
equations that used it, and `backward` raises an error if one of them needs the overwritten value.
Writing to a view writes to its base: the base gets the Node of "the old base with this region
replaced", and every other view of the same memory is derived again from its own base.

A write that is not recorded (under `no_grad`, or through `detach()`) changes a tensor's value and
keeps its history, as in PyTorch: the op `overwritten` represents it on the tape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from sys import getrefcount
from threading import get_ident
from typing import Any

import numpy as np

from lucid.errors import GraphError
from lucid.support.source import at_line, caller
from lucid.tape.bind import bind
from lucid.tape.markers import ALIAS, OVERWRITTEN, REPLACED, STOP_GRADIENT
from lucid.tape.modes import current, local
from lucid.tape.node import (
    GRAD,
    LOCAL_REFERENCES,
    TRACE,
    Mutated,
    followers,
    is_deferring,
    is_recording,
    wrap,
)
from lucid.tape.recording.pending import Pending, is_foreign
from lucid.tape.views import is_visible, node_after_write, overlaps_itself, synchronize_node

UNSHARED_REFCOUNT = LOCAL_REFERENCES + 1  # of a Node that its tensor alone holds


def write(x: Any, new: Any, what: str) -> Any:
    """Give `x` the value and the history of `new`, of the same type and in memory of its own."""
    check_writable(x, what)
    if not is_recorded(x, new):
        mark_written(x)
        x.value[...] = new.value
        return x
    if is_recording():
        notify_recorder(x)
    steps = list(updated_tensors(x, new, what))
    if x.raw is not None and new.raw is not None:
        bump_version(x)
        if not is_deferring():
            x.value[...] = new.value
    for tensor, after in steps:
        set_state(tensor, after)
    if x.storage is not None:
        rederive_views(x.storage, {id(tensor) for tensor, _ in steps})
    return x


def is_recorded(x: Any, *others: Any) -> bool:
    """True if a write to `x` that reads `others` must be recorded on the tape."""
    modes = current()
    if modes.recorder is not None:
        return True
    flags = 0
    for other in others:
        if other.raw is None:
            return True
        flags |= flags_of(other)
    tensor = x
    while tensor is not None:
        if tensor.raw is None:
            return True
        flags |= flags_of(tensor)
        tensor = None if tensor.origin is None else tensor.origin[0]
    return bool(flags & TRACE or (flags and modes.grad))


def notify_recorder(x: Any) -> None:
    """Tell the Recorder that `x` and the tensors it is a view of are about to be written."""
    while x is not None:
        local.recorder.on_write(x)
        x = None if x.origin is None else x.origin[0]


def flags_of(x: Any) -> int:
    node = getattr(x, "node", None)
    return 0 if node is None else node.flags


# Errors


def has_pending() -> bool:
    """True if eager code of this thread has left something pending."""
    follower = followers.get(get_ident())
    return follower is not None and bool(follower.at)


def flush_pending() -> None:
    """Compute what this thread has left pending: memory is about to be written, or seen."""
    if has_pending():
        followers[get_ident()].stop()


def flush_before_write(x: Any) -> None:
    """Compute what this thread has left pending, if a write to `x` would change it.

    What other threads have left pending keeps the values from before.
    """
    if has_pending() and followers[get_ident()].touches(x):
        followers[get_ident()].stop()
    if others_have_pending():
        keep_for_others([x.raw])


def others_have_pending() -> bool:
    """True if eager code of another thread has left something pending."""
    own = get_ident()
    if not followers or (len(followers) == 1 and own in followers):
        return False
    return any([x.at and thread != own for thread, x in list(followers.items())])


def keep_for_others(raws: Sequence[Any]) -> None:
    """Let other threads keep the values that they wait to read from these arrays.

    The memory of the arrays is about to be written, or seen by NumPy.
    """
    own = get_ident()
    for thread, follower in list(followers.items()):
        if thread != own and follower.at:
            follower.keep_before_write(raws)


def can_defer_write(x: Any) -> bool:
    """True if nobody would see that the memory of `x` is not written yet."""
    if not has_pending() or x.node is not None or x.origin is not None or x.raw is None:
        return False
    if x.storage is not None and x.storage.live():
        return False
    if x.raw.__class__ is Pending:
        return x.raw.array is None and current().no_observers
    return current().no_observers and x.raw.flags.writeable and not is_visible(x)


def is_argument(x: Any) -> bool:
    """True if this tensor is an input of a transform, so its memory belongs to the caller."""
    node = x.node
    if node is None or node.is_state:
        return False
    return node.op is ALIAS or (node.op is None and bool(node.flags & TRACE))


def await_own_value(x: Any) -> None:
    """Wait until no other thread records writes to `x`, which has its own value again then."""
    if x.raw.__class__ is Pending and is_foreign(x.raw):
        x.value  # noqa: B018


def check_writable(x: Any, what: str) -> None:
    """Raise an error for inputs of transforms, leaves that require grad, and read-only memory."""
    if followers:
        flush_before_write(x)
    await_own_value(x)
    grad = current().grad
    tensor, detached = x, not grad
    while True:
        node = tensor.node
        kind = "" if tensor is x else "a view of "
        if node is not None and is_argument(tensor):
            inside = "a transform" if node.trace is None else node.trace.what
            raise GraphError(
                f"{what}: {kind}an argument of {inside} cannot be modified in place: the memory "
                f"belongs to the caller; clone() it first{at_line()}"
            )
        is_leaf = node is not None and node.op is None and not node.is_state
        if is_leaf and not detached and node.flags & GRAD:
            raise GraphError(
                f"{what}: {kind}a leaf that requires a gradient cannot be modified in place; "
                f"use no_grad(), or clone() it{at_line()}"
            )
        if tensor.origin is None:
            break
        base, op, is_detached = tensor.origin
        if op.name == "broadcast":
            raise read_only_error(what)
        if op.may_overlap and overlaps_itself(x):
            raise shared_elements_error(what)
        if is_detached and grad and op is not STOP_GRADIENT:
            raise GraphError(
                f"{what}: a view that was made under no_grad() is modified while gradients are "
                f"recorded, and its base requires one; recreate or detach() the view{at_line()}"
            )
        detached = detached or is_detached
        tensor = base
    array = x.raw
    if array.__class__ is np.ndarray and not array.flags.writeable:
        raise read_only_error(what)


def has_shared_elements(x: Any) -> bool:
    """True if several elements of a view are in the same memory."""
    view = x
    while view.origin is not None:
        view, op, _ = view.origin
        if op.may_overlap:
            return overlaps_itself(x)
    return False


def shared_elements_error(what: str) -> GraphError:
    return GraphError(
        f"{what}: several elements of this view are in the same memory; write to a part of it "
        f"where they are not, or clone() it first{at_line()}"
    )


def read_only_error(what: str) -> GraphError:
    return GraphError(
        f"{what}: this tensor's memory is read-only: an expanded tensor, or one made from a "
        f"read-only array; clone() it first{at_line()}"
    )


# Unrecorded writes


def count_unshared_write(x: Any, source: Any = None) -> bool:
    """Count a write to a tensor whose value no graph holds; False if more is to be noted."""
    node, storage = x.node, x.storage
    if node is None and storage is None:
        x.writes = getattr(x, "writes", 0) + 1
        return True
    if node is None or node.op is not None or node.cell is None:
        return False
    if getrefcount(node) != UNSHARED_REFCOUNT:
        return False
    if storage is None:
        x.writes = getattr(x, "writes", 0) + 1
    else:  # its views have Nodes of their own, which notice the new version
        storage.version += 1
        storage.source = source or caller()
        node.saved, node.stamp = x.raw, (storage, storage.version)
    return True


def mark_written(x: Any, source: Any = None) -> None:
    """Note that the memory of `x` was written, by the caller's line if no other source is given.

    The history of `x` on the tape stays.
    """
    if count_unshared_write(x, source):
        return
    node = x.node
    saved = node is not None and node.saved is not None
    bump_version(x, source)
    if x.node is None:
        return
    if not (node.flags or node.cell):
        x.node = None
    elif x.storage is not None:
        synchronize_node(x)
    elif saved:
        x.node = node_after_write(node, x.raw)


def bump_version(x: Any, source: Any = None) -> None:
    """Count a write that is about to happen, so graphs that need the old value can detect it."""
    node = x.node
    if x.storage is not None:
        x.storage.version += 1
        x.storage.source = source or caller()
        return
    x.writes = getattr(x, "writes", 0) + 1
    if node is not None and node.saved is not None and node.saved.__class__ is not Mutated:
        node.saved = Mutated(node.saved, source or caller())


# Recorded writes


def updated_tensors(x: Any, new: Any, what: str) -> Any:
    """Yield `x` and tensors it is a view of, with what they are after `x` has become `new`.

    If one of them has several elements in the same memory, replacing those of `x` in it would
    leave the others: the next base is written directly, and those between are derived again.
    """
    tensor, after, detached = x, new, not local.grad
    before, local.grad = local.grad, True
    try:
        while True:
            yield tensor, updated_tensor(tensor, after, detached, what)
            if tensor.origin is None:
                return
            views = [tensor, *views_up_to_overlap(tensor)]
            base, op, _ = views[-1].origin
            detached = detached or any(view.origin[2] for view in views)
            if len(views) == 1:
                after = op.insert(base, after)
            else:
                after = op.insert_at(base, after, positions(views, base))
            tensor = base
    finally:
        local.grad = before


def views_up_to_overlap(x: Any) -> list[Any]:
    """Return the views between `x` and the base above the last one that overlaps itself."""
    found: list[Any] = []
    above: list[Any] = []
    while x.origin[0].origin is not None:
        x = x.origin[0]
        above.append(x)
        if x.origin[1].may_overlap and overlaps_itself(x):
            found = list(above)
    return found


def positions(views: list[Any], base: Any) -> np.ndarray:
    """Return the row-major position in `base` of every element of the first of these views."""
    places = np.arange(math.prod(base.shape)).reshape(base.shape)
    for view in reversed(views):
        places = view.origin[1].eval(places)
    return places


def updated_tensor(x: Any, after: Any, detached: bool, what: str) -> Any:
    """Return `x` with the value of `after`; `detached`: it keeps its own history."""
    flags = flags_of(x)
    if x.raw is None and after.raw is not None:
        after = bind(REPLACED, x, after)
    if not detached:
        if flags & GRAD and not flags_of(after) & GRAD:
            after = bind(REPLACED, x, after)
        return after
    after = stop_gradient(after)
    if not flags & GRAD:
        return after
    if x.node.op is not None or is_recording():
        return bind(OVERWRITTEN, x, after)
    if after.raw is None:
        facts = "a leaf cannot be assigned a traced value"
        raise GraphError(f"{what}: {facts}; return it instead{at_line()}")
    return wrap(x.raw, node_after_write(x.node, x.raw))


def stop_gradient(x: Any) -> Any:
    """Return `x` as a constant for derivatives."""
    return bind(STOP_GRADIENT, x) if flags_of(x) & GRAD else x


def set_state(x: Any, after: Any) -> None:
    """Give `x` its state after a write and keep its `retain_grad` setting.

    Its value is in its memory, unless it is abstract or the write is pending.
    """
    old = x.node
    if after.raw is None or is_deferring():
        x.raw = after.raw
        if x.raw.__class__ is Pending:
            x.raw.run.watch(x)  # type: ignore[union-attr]
    node = x.node = after.node if flags_of(after) else None
    if node is None:
        return
    if x.storage is not None:
        node.stamp = (x.storage, x.storage.version)
    if old is None or old.cell is None or node.cell is not None:
        return
    if node.op is OVERWRITTEN and is_recording():
        node.cell = old.cell  # a parameter keeps its gradient after its update
    elif old.cell.retain:
        x.cell().retain = True


def rederive_views(storage: Any, done: set[int]) -> None:
    """Derive every other view of a written memory again from its base."""
    before, local.grad = local.grad, True
    try:
        for x in storage.live():
            rederive_view(x, storage, done)
    finally:
        local.grad = before


def rederive_view(x: Any, storage: Any, done: set[int]) -> None:
    if id(x) in done or x.origin is None or x.storage is not storage:
        return
    done.add(id(x))
    base, op, detached = x.origin
    rederive_view(base, storage, done)
    part = bind(op, base)
    if detached:
        part = stop_gradient(part)
        part = bind(OVERWRITTEN, x, part) if flags_of(x) & GRAD else part
    set_state(x, part)
