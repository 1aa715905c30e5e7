"""bind: apply an operation. It computes where values are known and records what is tracked.

`fast_bind` has the same steps unrolled for the most common operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import _getframe
from threading import get_ident
from typing import Any

import numpy as np

from lucid.errors import LucidError, OutOfMemoryError
from lucid.ir.graph import Literal
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive
from lucid.ir.types import is_differentiable
from lucid.public.declare import public
from lucid.support.source import at_line, caller, internal_files
from lucid.tape.markers import ALIAS, STOP_GRADIENT
from lucid.tape.modes import current
from lucid.tape.node import (
    GRAD,
    TRACE,
    Node,
    Results,
    Storage,
    Traced,
    active_recorders,
    followers,
    is_recording,
    leak_error,
    next_serial,
    node_type,
    note_read,
    wrap,
)
from lucid.tape.recording.pending import Pending, can_wait, is_foreign, pending_result
from lucid.tape.tiering import run, run_counted
from lucid.tape.views import link_view, node_of, storage_of, synchronize_node

_ndarray = np.ndarray
_new = object.__new__
_class: type[Traced] = Traced  # `set_class` sets it


def fresh(x: Traced, flags: int = GRAD | TRACE) -> Any:
    """Return a new input of a transform with the value of `x`, linked to `x` if that is tracked."""
    storage = None if x.raw is None else storage_of(x)
    if is_recording() or (x.node is not None and x.node.flags):
        origin = note_read(node_of(x), x)
        if x.raw is not None:
            origin.saved = x.raw  # a Cut skips aliases and reads their operand instead
        node = Node(ALIAS, (origin,), origin.flags | flags, x.raw, origin.type)
        node.trace = origin.trace
    else:
        node = Node(None, (), flags, x.raw)
    out = wrap(x.raw, node)
    if x.raw is not None:
        out.storage = storage
        node.stamp = (storage, storage.version)  # type: ignore[union-attr]
    return out


@public("ir", "extend")
def bind(op: Primitive, *xs: Any) -> Any:
    """Apply `op` to tensors and Literals: compute where values are known, record where tracked."""
    if not xs and current().staging is not None:
        return _bind_abstract(op, xs)
    if followers and not active_recorders:
        follower = followers.get(get_ident())
        if follower is not None and op is follower.steps[follower.at].op:
            if (found := follower.follow(op, xs)) is not None:
                return found
    flags = size = 0
    waits = False
    values: Any = []
    for x in xs:
        if x.__class__ is Literal:
            values.append(x.operand)
            continue
        value = x.raw
        if value.__class__ is _ndarray:
            size += value.size
            values.append(value)
        elif value is None:
            return _bind_abstract(op, xs)
        elif is_foreign(value):
            x.value  # noqa: B018  # waits until the other thread has recorded
            return bind(op, *xs)
        else:
            waits = True
        node = x.node
        if node is not None:
            flags |= node.flags
    if active_recorders and (recorder := current().recorder) is not None:
        flags |= TRACE
        if recorder.defers:
            return _bind_deferred(op, xs, flags, recorder)
    elif followers and (flags or waits):
        value = values = None  # it may look whether anything else holds an array
        follower = followers.get(get_ident())
        if follower is not None and (found := follower.follow(op, xs)) is not None:
            return found
        waits = True
    if waits:
        values = [x.operand if x.__class__ is Literal else x.value for x in xs]
        size = sum([x.size for x in values])
    try:
        if size < op.native_from:
            value = op.eval(*values)
        elif op.literals_are_static:
            value = run_counted(op, [x if x.__class__ is Literal else x.raw for x in xs])
        else:
            value = run(op, *values)
    except Exception as error:
        if active_recorders and (recorder := current().recorder) is not None:
            recorder.pending.failed = True
        raise explain(op, xs, error) from error
    if value.__class__ is tuple:
        return _bind_several(op, xs, value, flags)
    if value.__class__ is not _ndarray:
        value = np.asarray(value)
    out = _new(_class)
    out.raw = value
    out.storage = None
    out.origin = None
    out.node = record(op, xs, value, flags) if flags else None
    if op.is_view:
        link_view(out, op, xs[0])
    return out


def _bind_deferred(op: Primitive, xs: tuple[Any, ...], flags: int, recorder: Any) -> Any:
    """`bind` in a recording: the result is pending, unless these values may make `op` fail."""
    try:
        waits = can_wait(op, xs)
    except Exception:
        recorder.pending.failed = True
        raise
    if waits:
        value = pending_result(infer(op, tuple([x.type for x in xs])), recorder.pending)
        out = _bind_result(op, xs, value, flags)
        if recorder.defers:
            return out  # else an operand is in memory that was written, and all is computed now
    try:
        value = op.eval(*[x.array if x.__class__ is Literal else x.value for x in xs])
    except Exception as error:
        recorder.pending.failed = True
        raise explain(op, xs, error) from error
    return _bind_result(op, xs, value, flags)


def _bind_result(op: Primitive, xs: tuple[Any, ...], value: Any, flags: int) -> Any:
    """Return the results of `op` as tensors, recorded where they are tracked."""
    if value.__class__ is tuple:
        return _bind_several(op, xs, value, flags)
    if value.__class__ is not _ndarray and value.__class__ is not Pending:
        value = np.asarray(value)
    out = _new(_class)
    out.raw = value
    out.storage = None
    out.origin = None
    out.node = record(op, xs, value, flags) if flags else None
    if value.__class__ is Pending:
        value.run.watch(out)  # type: ignore[union-attr]
    if op.is_view:
        link_view(out, op, xs[0])
    return out


def record(op: Primitive, xs: tuple[Any, ...], value: np.ndarray, flags: int) -> Node | None:
    """Return the Node of `op` applied to `xs`, or None if nothing tracks it."""
    modes = current()
    out_flags = flags
    if not modes.grad or not (
        op.always_differentiable or (op.differentiable and value.dtype.kind in "fc")
    ):
        if not flags & TRACE:
            return None
        out_flags = flags & ~GRAD
    elif flags == GRAD and modes.saved_hooks is not None:
        return modes.saved_hooks.record(op, xs, (value,))[0]
    save = op.saves_x or flags & TRACE  # type: ignore[attr-defined]
    inputs = []
    for x in xs:
        if x.__class__ is Literal:
            inputs.append(x)
            continue
        node = x.node
        if x.storage is not None:
            node = synchronize_node(x)
        if node is None:
            node = x.node = Node(None, (), 0, x.raw)
        elif save:
            node.saved = x.raw
        if active_recorders:
            note_read(node, x)
        inputs.append(node)
    node = _new(Node)
    node.op = op
    node.inputs = tuple(inputs)
    node.flags = out_flags
    node.saved = value if op.saves_y else None  # type: ignore[attr-defined]
    node.serial = next_serial()
    if modes.recorder is not None:
        modes.recorder.on_result(node, value)
        if op.ordered:
            modes.recorder.effects.append(node)
    source = modes.source
    if source is None:
        frame = _getframe(2)
        while internal_files[frame.f_code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
        source = (frame.f_code, frame.f_lasti, modes.scope)
    node.source = source
    if out_flags != flags and not modes.grad and op.differentiable and value.dtype.kind in "fc":
        return Node(STOP_GRADIENT, (node,), out_flags, None, None, source)
    return node


def record_constant(op: Primitive, literals: Sequence[Literal]) -> Any:
    """Compute an operation on literals alone, such as `full`, and record it on the tape."""
    value = np.asarray(op.eval(*[x.array for x in literals]))
    return wrap(value, Node(op, tuple(literals), TRACE, value, None, caller()))


def _bind_several(
    op: Primitive,
    xs: tuple[Any, ...],
    values: tuple[Any, ...],
    flags: int,
    count: int | None = None,
) -> tuple[Any, ...]:
    """Return the results of `op` as tensors, recorded where they are tracked.

    count    how many are wanted; the others are kept on the tape alone, for the derivative
    """
    outs = tuple([_result(v) for v in values[:count]])
    modes = current()
    grad = modes.grad
    if not flags or not (flags & TRACE or (grad and op.differentiable)):
        return outs
    if flags == GRAD and modes.saved_hooks is not None:
        raws = [*[out.raw for out in outs], *values[len(outs) :]]
        for out, node in zip(outs, modes.saved_hooks.record(op, xs, raws)):
            out.node = node
        return outs
    serial = next_serial()
    inputs: Any = []
    for x in xs:
        if x.__class__ is not Literal:
            node = x.node
            if node is None or x.storage is not None:
                node = node_of(x)
            node.saved = x.raw
            if active_recorders:
                note_read(node, x)
            x = node
        inputs.append(x)
    inputs = tuple(inputs)
    source = caller()
    results = Results([(out.raw, storage_of(out)) for out in outs])
    if len(outs) < len(values):
        unwritten = Storage()  # no tensor has the memory of these
        results += [(value, unwritten) for value in values[len(outs) :]]
    for i, out in enumerate(outs):
        differentiable = op.differentiable and is_differentiable(out.raw.dtype)
        out_flags = flags if differentiable and grad else flags & ~GRAD
        if not out_flags:
            continue
        node = Node(op, inputs, out_flags, out.raw, None, source, serial, i)
        node.outs = results
        node.stamp = (out.storage, 0)
        if modes.recorder is not None:
            modes.recorder.on_result(node, out.raw)
        if differentiable and not grad and flags & GRAD:
            node = Node(STOP_GRADIENT, (node,), out_flags, out.raw, None, source)
            node.stamp = (out.storage, 0)
        out.node = node
    if op.ordered and is_recording():
        current().recorder.effects.append(outs[0].node)
    return outs


def bind_first(op: Primitive, xs: tuple[Any, ...], count: int) -> tuple[Any, Any]:
    """`bind` outside recordings: return the first results as tensors, and all of them as arrays."""
    try:
        values = op.eval(*[x.value for x in xs])
    except Exception as error:
        raise explain(op, xs, error) from error
    flags = 0
    for x in xs:
        flags |= 0 if x.node is None else x.node.flags
    return _bind_several(op, xs, values, flags, count), values


def _result(value: Any) -> Any:
    """Return one of several results as a tensor."""
    if value.__class__ is Pending:
        out = _new(_class)
        out.raw = value
        out.node = out.storage = out.origin = None
        value.run.watch(out)  # type: ignore[union-attr]
        return out
    return wrap(value if value.__class__ is _ndarray else np.asarray(value))


def bind_precomputed(
    op: Primitive, xs: tuple[Any, ...], values: tuple[Any, ...]
) -> tuple[Any, ...]:
    """`bind` for an operation with several results that are already computed."""
    flags = 0
    for x in xs:
        flags |= 0 if x.node is None else x.node.flags
    return _bind_several(op, xs, values, flags)


def without_gradient(x: Any) -> Any:
    """Return a tensor, sharing its memory, as a constant for every derivative."""
    if x.node is None or not x.node.flags & GRAD:
        return x
    out = bind(STOP_GRADIENT, x)
    if out.raw is not None and out.storage is None:
        out.storage = storage_of(x)
        if out.node is not None:
            out.node.stamp = (out.storage, out.storage.version)
    return out


def sibling(node: Node, index: int) -> Node:
    """Return the Node of another output of the equation that made `node`."""
    other = Node(node.op, node.inputs, node.flags, None, None, node.source, node.serial, index)
    other.outs, other.trace = node.outs, node.trace
    if node.outs is not None:
        other.saved, storage = node.outs[index]
        other.stamp = (storage, 0)
    else:
        other.type = node_type(other)
    return other


def _bind_abstract(op: Primitive, xs: tuple[Any, ...]) -> Any:
    modes = current()
    flags, trace = (0, None) if xs else (TRACE, modes.staging)
    for x in xs:
        node = x.node
        if node is None:
            continue
        flags |= node.flags
        if x.raw is None:
            if not node.trace.active:
                raise leak_error(node.trace)
            if trace is None or node.trace.depth > trace.depth:
                trace = node.trace
    result = infer(op, tuple([x.type for x in xs]))
    inputs = []
    for x in xs:
        if not isinstance(x, Literal):
            node = note_read(node_of(x), x)
            if x.raw is not None:
                node.saved = x.raw
            x = node
        inputs.append(x)
    types = result if isinstance(result, tuple) else (result,)
    serial, source = next_serial(), caller()
    outs = []
    for i, type in enumerate(types):
        differentiable = op.differentiable and is_differentiable(type.dtype)
        out_flags = flags if differentiable and modes.grad else flags & ~GRAD
        node = Node(op, tuple(inputs), out_flags, None, type, source, serial, i)
        node.trace = trace
        if differentiable and not modes.grad and flags & GRAD:
            node = Node(STOP_GRADIENT, (node,), out_flags, None, type, source)
            node.trace = trace
        outs.append(wrap(None, node))
    if op.ordered and trace is not None:
        trace.effects.append(outs[0].node)
    if op.is_view and len(outs) == 1:
        link_view(outs[0], op, xs[0])
    return tuple(outs) if isinstance(result, tuple) else outs[0]


def bind_failed(op: Primitive, xs: tuple[Any, ...], error: Exception) -> Any:
    """Return `bind` for operands that are pending or abstract; raise the error for others."""
    if any([x.raw.__class__ is not _ndarray for x in xs if x.__class__ is not Literal]):
        return bind(op, *xs)
    raise explain(op, xs, error) from error


def explain(op: Primitive, xs: tuple[Any, ...], error: Exception) -> LucidError:
    """Return an error for a failed `eval`; the type rules usually explain it better."""
    if isinstance(error, LucidError):
        raise error
    infer(op, tuple([x.type for x in xs]))
    types = ", ".join(str(x.type) for x in xs)
    kind = OutOfMemoryError if isinstance(error, MemoryError) else LucidError
    return kind(f"{op!r} of {types}: {error}{at_line()}")
