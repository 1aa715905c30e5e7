"""bind_pair, bind_one, bind_scalar, bind_view: `bind` unrolled for the most common operands.

Recording an addition of ten elements must not cost more than computing it. A test runs every
operation through every form and compares it with `bind`.

The walk to the user's line costs 0.1 µs for every frame that it looks at. `depth` is the number of
the first frame above a form that may be the user's: 2 where the caller of the form is an operator
or a public function, more where that is called by code of ours alone.

A Node whose stamp has the storage and its version is that of the tensor still: `synchronize_node`
is called only for others.
"""

from __future__ import annotations

from sys import _getframe
from threading import get_ident
from typing import Any
from weakref import ref

import numpy as np

from lucid.ir.graph import Literal
from lucid.ir.primitive import Primitive
from lucid.support.source import internal_files
from lucid.tape import bind as binding
from lucid.tape import node as tape
from lucid.tape.bind import bind, bind_failed, explain, record
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.modes import current
from lucid.tape.node import GRAD, Node, Traced, active_recorders, followers, next_serial
from lucid.tape.tiering import run, run_counted
from lucid.tape.views import node_of, storage_of, synchronize_node

_ndarray = np.ndarray
_new = object.__new__
_class: type[Traced] = Traced


def set_class(cls: type[Traced]) -> None:
    """Set the class of the tensors that `bind`, its unrolled forms and `wrap` return."""
    global _class
    _class = binding._class = tape.tensor_class = cls


def bind_pair(op: Primitive, x: Any, y: Any, depth: int = 2) -> Any:
    """`bind` for the most common case, two tensors with values: the same steps, unrolled."""
    if active_recorders and current().recorder is not None:
        return bind(op, x, y)
    if followers and (x.node is not None or y.node is not None):
        follower = followers.get(get_ident())
        if follower is not None and (found := follower.follow(op, (x, y))) is not None:
            return found
    try:
        u, v = x.raw, y.raw
        value = op.eval(u, v) if u.size + v.size < op.native_from else run(op, u, v)
    except Exception as error:
        u = v = None
        return bind_failed(op, (x, y), error)
    if value.__class__ is not _ndarray:
        value = np.asarray(value)
    out = _new(_class)
    out.raw = value
    out.storage = out.origin = None
    a, b = x.node, y.node
    if a is None:
        flags = 0 if b is None else b.flags
    else:
        flags = a.flags if b is None else a.flags | b.flags
    if flags != GRAD or not (modes := current()).fast_record:
        out.node = record(op, (x, y), value, flags) if flags else None
        return out
    if not (op.always_differentiable or (op.differentiable and value.dtype.kind in "fc")):
        out.node = None
        return out
    if a is None:
        a = node_of(x)
    elif (storage := x.storage) is not None and (
        (stamp := a.stamp) is None or stamp[0] is not storage or stamp[1] != storage.version
    ):
        a = synchronize_node(x)
    if b is None:
        b = node_of(y)
    elif (storage := y.storage) is not None and (
        (stamp := b.stamp) is None or stamp[0] is not storage or stamp[1] != storage.version
    ):
        b = synchronize_node(y)
    if op.saves_x:  # type: ignore[attr-defined]
        a.saved = x.raw
        b.saved = y.raw
    node = _new(Node)
    node.op = op
    node.inputs = (a, b)
    node.flags = GRAD
    node.saved = value if op.saves_y else None  # type: ignore[attr-defined]
    node.serial = next_serial()
    frame = _getframe(depth)
    code = frame.f_code
    while internal_files[code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    node.source = (code, frame.f_lasti, modes.scope)
    out.node = node
    return out


def bind_one(op: Primitive, x: Any, depth: int = 2) -> Any:
    """`bind` for one tensor with a value and an operation that is not a view, unrolled."""
    if active_recorders and current().recorder is not None:
        return bind(op, x)
    if followers and x.node is not None:
        follower = followers.get(get_ident())
        if follower is not None and (found := follower.follow(op, (x,))) is not None:
            return found
    try:
        v = x.raw
        value = op.eval(v) if v.size < op.native_from else run(op, v)
    except Exception as error:
        v = None
        return bind_failed(op, (x,), error)
    if value.__class__ is not _ndarray:
        value = np.asarray(value)
    out = _new(_class)
    out.raw = value
    out.storage = out.origin = None
    node = x.node
    flags = 0 if node is None else node.flags
    if flags != GRAD or not (modes := current()).fast_record:
        out.node = record(op, (x,), value, flags) if flags else None
        return out
    if not (op.always_differentiable or (op.differentiable and value.dtype.kind in "fc")):
        out.node = None
        return out
    if (storage := x.storage) is not None and (
        (stamp := node.stamp) is None or stamp[0] is not storage or stamp[1] != storage.version
    ):
        node = synchronize_node(x)
    if op.saves_x:  # type: ignore[attr-defined]
        node.saved = v
    made = _new(Node)
    made.op = op
    made.inputs = (node,)
    made.flags = GRAD
    made.saved = value if op.saves_y else None  # type: ignore[attr-defined]
    made.serial = next_serial()
    frame = _getframe(depth)
    code = frame.f_code
    while internal_files[code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    made.source = (code, frame.f_lasti, modes.scope)
    out.node = made
    return out


def bind_scalar(op: Primitive, x: Any, literal: Literal, array: np.ndarray, reflected: bool) -> Any:
    """`bind` for a tensor with a value and a literal, which NumPy takes as a 0-d array."""
    if active_recorders and current().recorder is not None:
        return bind(op, literal, x) if reflected else bind(op, x, literal)
    if followers and x.node is not None:
        follower = followers.get(get_ident())
        if follower is not None:
            found = follower.follow(op, (literal, x) if reflected else (x, literal))
            if found is not None:
                return found
    try:
        v = x.raw
        if v.size < op.native_from:
            value = op.eval(array, v) if reflected else op.eval(v, array)
        elif op.literals_are_static:
            value = run_counted(op, (literal, v) if reflected else (v, literal))
        else:
            value = run(op, array, v) if reflected else run(op, v, array)
    except Exception as error:
        v = None
        return bind_failed(op, (literal, x) if reflected else (x, literal), error)
    if value.__class__ is not _ndarray:
        value = np.asarray(value)
    out = _new(_class)
    out.raw = value
    out.storage = out.origin = None
    node = x.node
    flags = 0 if node is None else node.flags
    if flags == GRAD and (modes := current()).fast_record:
        out.node = made = _record_one(op, x, value, modes.scope)
        if made is not None:
            made.inputs = (literal, x.node) if reflected else (x.node, literal)
    else:
        xs = (literal, x) if reflected else (x, literal)
        out.node = record(op, xs, value, flags) if flags else None
    return out


def bind_view(op: Primitive, x: Any, depth: int = 2) -> Any:
    """`bind` for a view of one tensor with a value, unrolled."""
    v, node, storage = x.raw, x.node, x.storage
    if active_recorders or v.__class__ is not _ndarray or (followers and node is not None):
        v = None  # what follows may look whether anything else holds this array
        return bind(op, x)
    if (storage is None or op.name == "reshape") and not v.flags.c_contiguous:
        return bind(op, x)  # `x` moves to row-major memory, or the reshape may be a copy
    try:
        value = op.eval(v)
    except Exception as error:
        raise explain(op, (x,), error) from error
    if value.__class__ is not _ndarray:
        value = np.asarray(value)
    out = _new(_class)
    out.raw = value
    if storage is None:
        storage = storage_of(x)
    out.storage = storage
    members = storage.members
    members.append(ref(out))
    if len(members) > storage.limit:
        storage.prune()
    if node is None or not (flags := node.flags):
        out.node = None
        out.origin = (x, op, op is STOP_GRADIENT)
        return out
    if flags != GRAD or not (modes := current()).fast_record:
        made = record(op, (x,), value, flags)
    elif not op.differentiable:
        made = None
    else:  # a view has the kind of dtype of its base, which requires a gradient
        stamp = node.stamp
        if stamp is None or stamp[0] is not storage or stamp[1] != storage.version:
            node = synchronize_node(x)
        made = _new(Node)
        made.op = op
        made.inputs = (node,)
        made.flags = GRAD
        made.saved = value if op.saves_y else None  # type: ignore[attr-defined]
        made.serial = next_serial()
        frame = _getframe(depth)
        code = frame.f_code
        while internal_files[code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
            code = frame.f_code
        made.source = (code, frame.f_lasti, modes.scope)
    out.node = made
    severed = op is STOP_GRADIENT or (flags & GRAD and (made is None or not made.flags & GRAD)) != 0
    out.origin = (x, op, severed)
    if made is not None and made.saved is not None:
        made.stamp = (storage, storage.version)
    return out


def _record_one(op: Primitive, x: Any, value: np.ndarray, scope: Any) -> Node | None:
    """`record` for a single operand that is tracked, outside transforms."""
    if not (op.always_differentiable or (op.differentiable and value.dtype.kind in "fc")):
        return None
    operand = x.node
    if (storage := x.storage) is not None and (
        (stamp := operand.stamp) is None or stamp[0] is not storage or stamp[1] != storage.version
    ):
        operand = synchronize_node(x)
    if op.saves_x:  # type: ignore[attr-defined]
        operand.saved = x.raw
    node = _new(Node)
    node.op = op
    node.inputs = (operand,)
    node.flags = GRAD
    node.saved = value if op.saves_y else None  # type: ignore[attr-defined]
    node.serial = next_serial()
    frame = _getframe(3)
    code = frame.f_code
    while internal_files[code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    node.source = (code, frame.f_lasti, scope)
    return node
