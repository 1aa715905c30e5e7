"""The tape: eager operations write Nodes, and `bind` is the one way to apply an operation.

A Node is one SSA value together with the operation that made it. Nodes point only backwards, so the
tape has no owner: it lives as long as somebody holds its end, and `cut` recovers a Graph from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from sys import _getframe
from typing import Any
from weakref import ref

import numpy as np

from lucid.errors import GraphError, LeakError, LucidError, MutationError, TracedValueError
from lucid.ir.graph import Literal
from lucid.ir.modes import local
from lucid.ir.primitive import Primitive
from lucid.ir.source import InternalFiles, Source, at_line, caller
from lucid.ir.types import Type, is_differentiable

GRAD = 1  # a derivative is wanted (requires_grad)
TRACE = 2  # belongs to a transform or a recording, which wants every equation

_serials = count(1)
recording = [0]  # how many Recorders are active, in any thread
_ndarray = np.ndarray
_new = object.__new__
_is_internal = InternalFiles().__getitem__


def next_serial() -> int:
    return next(_serials)


def is_recording() -> bool:
    """True while a Recorder watches this thread."""
    return bool(recording[0]) and local.recorder is not None


def noted(node: Node, x: Any) -> Node:
    """The Node of `x`, after a Recorder that is active has heard that it is read."""
    if recording[0] and local.recorder is not None:
        local.recorder.read(node, x)
    return node


class Trace:
    """A running transform without values; `active` ends with it."""

    __slots__ = ("active", "depth", "what")

    def __init__(self, what: str, depth: int = 0) -> None:
        self.what = what
        self.depth = depth
        self.active = True


class Freed:
    """Stands in `Node.op` for an equation that `backward` has freed."""

    name = "freed"


FREED: Any = Freed()


class Mutated:
    """Stands in `Node.saved` for a value that was overwritten in place."""

    __slots__ = ("dtype", "shape", "source")

    def __init__(self, value: np.ndarray, source: Any) -> None:
        self.dtype = value.dtype
        self.shape = value.shape
        self.source = source


class Storage:
    """The memory that a tensor and its views share, with the number of times it was written.

    members    the tensors that were made as views of it, held weakly
    source     where it was written last
    """

    __slots__ = ("limit", "members", "source", "version")

    def __init__(self, version: int = 0) -> None:
        self.version = version
        self.source: Any = None
        self.members: list[Any] = []
        self.limit = 64

    def add(self, x: Any) -> None:
        self.members.append(ref(x))
        if len(self.members) > self.limit:
            self.members = [r for r in self.members if r() is not None]
            self.limit = 64 + 2 * len(self.members)

    def live(self) -> list[Any]:
        return [x for r in self.members if (x := r()) is not None]


class _Rare:
    """What most Nodes do not have: found here until it is set."""

    __slots__ = ()

    index: int = 0
    stamp: Any = None
    type: Type | None = None
    outs: Any = None
    cell: Any = None
    trace: Trace | None = None


class Node(_Rare):
    """One value on the tape.

    op, inputs    the equation that made it; op is None for a leaf
    serial        when: orders the tape, and is shared by the outputs of one equation
    index         which output of the equation
    flags         GRAD, TRACE
    saved         the array, kept only where a derivative or a replay will read it
    stamp         (storage, version) of `saved` where its memory is shared with views
    type          the Type where there is no value; otherwise found when asked
    outs          value and storage of all outputs, where the equation has several
    cell          gradient and hooks, for leaves and watched values
    trace         the running transform, for values that are not known
    source        (code, offset) of the user's line, or a Source
    """

    __slots__ = ("__dict__", "__weakref__", "flags", "inputs", "op", "saved", "serial", "source")

    def __init__(
        self,
        op: Primitive | None,
        inputs: tuple[Any, ...] = (),
        flags: int = 0,
        saved: Any = None,
        type: Type | None = None,
        source: Any = None,
        serial: int = 0,
        index: int = 0,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.flags = flags
        self.saved = saved
        self.source = source
        self.serial = serial or next(_serials)
        if type is not None:
            self.type = type
        if index:
            self.index = index


class Traced:
    """What flows through `bind`: a value, known or not, and its place on the tape if it has one.

    value      the ndarray, or None inside vmap and abstract traces
    node       its Node, or None while nothing tracks it
    storage    shared-memory bookkeeping, or None while no views exist
    origin     (base, op, severed) where this is a view; severed where no gradient flows to the base
    writes     how often it was changed in place while it had no storage; absent means never
    """

    __slots__ = ("__weakref__", "node", "origin", "storage", "value", "writes")

    value: Any
    node: Any
    origin: Any
    storage: Any
    writes: int

    @property
    def type(self) -> Type:
        """Dtype and shape together, as the IR writes them: `f32[32,10]`."""
        value = self.value
        return self.node.type if value is None else Type(value.dtype, value.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements, NumPy's."""
        value = self.value
        return self.node.type.dtype if value is None else value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        value = self.value
        return self.node.type.shape if value is None else value.shape


_class: type[Traced] = Traced


def set_class(cls: type[Traced]) -> None:
    """Name the class of the tensors that `bind` returns."""
    global _class
    _class = cls


def wrap(value: Any, node: Node | None = None) -> Any:
    """A tensor around a value (None where unknown) and a Node."""
    if recording[0] and node is None and value is not None and local.recorder is not None:
        node = local.recorder.born(value)
    out = _new(_class)
    out.value = value
    out.node = node
    out.storage = None
    out.origin = None
    return out


def leaf(type: Type, trace: Trace, flags: int = TRACE) -> Any:
    """A tensor with a type and no value: an input of an abstract trace."""
    node = Node(None, (), flags, None, type)
    node.trace = trace
    return wrap(None, node)


def fresh(x: Traced, flags: int = GRAD | TRACE) -> Any:
    """A new input of a transform with the value of `x`, linked to `x` where that is tracked."""
    if is_recording() or (x.node is not None and x.node.flags):
        origin = noted(node_of(x), x)
        if x.value is not None:
            origin.saved = x.value  # an alias is left out of a Cut, and what it stands for is read
        node = Node(ALIAS, (origin,), origin.flags | flags, x.value, origin.type)
        node.trace = origin.trace
    else:
        node = Node(None, (), flags, x.value)
    out = wrap(x.value, node)
    if x.value is not None:
        out.storage = storage_of(x)
        node.stamp = (out.storage, out.storage.version)
    return out


class Alias(Primitive):
    """The identity that marks an input of an inner transform; left out when a Graph is cut."""

    saves = ""

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x

    def jvp(self, ts: Any, y: Any, x: Any) -> Any:
        return ts[0]

    def vjp(self, ct: Any, y: Any, x: Any) -> Any:
        return (ct,)

    def batch(self, n: int, batched: Any, x: Any) -> Any:
        return x


class StopGradient(Primitive):
    """The identity whose derivative is zero: `detach`, and everything computed under `no_grad`."""

    differentiable = False
    saves = ""

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x

    def batch(self, n: int, batched: Any, x: Any) -> Any:
        return bind(self, x)


class Overwritten(Primitive):
    """The value of `new` with the derivative of `x`: after a write that was not recorded."""

    saves = ""

    def infer(self, x: Type, new: Type) -> Type:
        return new

    def eval(self, x: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.array(new)

    def jvp(self, ts: Any, y: Any, x: Any, new: Any) -> Any:
        return ts[0]

    def vjp(self, ct: Any, y: Any, x: Any, new: Any) -> Any:
        return ct, None

    def batch(self, n: int, batched: Any, *xs: Any) -> Any:
        return bind(self, *[x if b else x.expand((n, *x.shape)) for b, x in zip(batched, xs)])


ALIAS = Alias()
STOP_GRADIENT = StopGradient()
OVERWRITTEN = Overwritten()


def bind(op: Primitive, *xs: Any) -> Any:
    """Apply `op` to tensors and Literals: compute where values are known, record where tracked."""
    flags = 0
    if not xs and local.staging is not None:
        return _bind_abstract(op, xs)
    for x in xs:
        if x.value is None:
            return _bind_abstract(op, xs)
        node = x.node
        if node is not None:
            flags |= node.flags
    if recording[0] and local.recorder is not None:
        flags |= TRACE
    try:
        value = op.eval(*[x.value for x in xs])
    except LucidError:
        raise
    except Exception as error:
        raise _explain(op, xs, error) from error
    if value.__class__ is tuple:
        return _several(op, xs, value, flags)
    if value.__class__ is not _ndarray:
        value = np.asarray(value)
    out = _new(_class)
    out.value = value
    out.storage = None
    out.origin = None
    out.node = record(op, xs, value, flags) if flags else None
    if op.is_view:
        _link_view(out, op, xs[0])
    return out


def bind_pair(op: Primitive, x: Any, y: Any) -> Any:
    """`bind` for the commonest case, two tensors with values: the same steps, unrolled."""
    try:
        value = op.eval(x.value, y.value)
    except Exception as error:
        raise _explain(op, (x, y), error) from error
    if value.__class__ is not _ndarray:
        value = np.asarray(value)
    out = _new(_class)
    out.value = value
    out.storage = out.origin = None
    a, b = x.node, y.node
    if a is None:
        flags = 0 if b is None else b.flags
    else:
        flags = a.flags if b is None else a.flags | b.flags
    if (
        flags != GRAD
        or not local.plain
        or not (x.storage is None or _is_current(x))
        or not (y.storage is None or _is_current(y))
    ):
        if recording[0] and local.recorder is not None:
            flags |= TRACE
        out.node = record(op, (x, y), value, flags) if flags else None
        return out
    if not (op.carries or (op.differentiable and value.dtype.kind in "fc")):
        out.node = None
        return out
    if a is None:
        a = x.node = Node(None, (), 0, x.value)
    if b is None:
        b = y.node = Node(None, (), 0, y.value)
    if op.saves_x:  # type: ignore[attr-defined]
        a.saved = x.value
        b.saved = y.value
    node = _new(Node)
    node.op = op
    node.inputs = (a, b)
    node.flags = GRAD
    node.saved = value if op.saves_y else None  # type: ignore[attr-defined]
    node.serial = next(_serials)
    frame = _getframe(2)
    while _is_internal(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    node.source = (frame.f_code, frame.f_lasti)
    out.node = node
    return out


def bind_one(op: Primitive, x: Any) -> Any:
    """`bind` for one tensor with a value and an operation that makes no view, unrolled."""
    try:
        value = op.eval(x.value)
    except Exception as error:
        raise _explain(op, (x,), error) from error
    if value.__class__ is not _ndarray:
        value = np.asarray(value)
    out = _new(_class)
    out.value = value
    out.storage = out.origin = None
    node = x.node
    flags = 0 if node is None else node.flags
    if flags == GRAD and local.plain and (x.storage is None or _is_current(x)):
        out.node = _record_one(op, x, (node,), value)
    else:
        if recording[0] and local.recorder is not None:
            flags |= TRACE
        out.node = record(op, (x,), value, flags) if flags else None
    return out


def bind_scalar(op: Primitive, x: Any, literal: Literal, array: np.ndarray, reflected: bool) -> Any:
    """`bind` for a tensor with a value and a literal, which NumPy takes as a 0-d array."""
    try:
        value = op.eval(array, x.value) if reflected else op.eval(x.value, array)
    except Exception as error:
        raise _explain(op, (literal, x) if reflected else (x, literal), error) from error
    if value.__class__ is not _ndarray:
        value = np.asarray(value)
    out = _new(_class)
    out.value = value
    out.storage = out.origin = None
    node = x.node
    flags = 0 if node is None else node.flags
    if flags == GRAD and local.plain and (x.storage is None or _is_current(x)):
        out.node = _record_one(op, x, (literal, node) if reflected else (node, literal), value)
    else:
        if recording[0] and local.recorder is not None:
            flags |= TRACE
        xs = (literal, x) if reflected else (x, literal)
        out.node = record(op, xs, value, flags) if flags else None
    return out


def _is_current(x: Any) -> bool:
    """True for a tensor that shares memory, but was not written since its Node was stamped."""
    node = x.node
    if node is None or node.stamp is None or x.origin is not None:
        return False
    return node.stamp[0] is x.storage and node.stamp[1] == x.storage.version


def _record_one(op: Primitive, x: Any, inputs: tuple[Any, ...], value: np.ndarray) -> Node | None:
    """`record` where `x` is the only tensor, shares no memory and no transform is watching."""
    if not (op.carries or (op.differentiable and value.dtype.kind in "fc")):
        return None
    if op.saves_x:  # type: ignore[attr-defined]
        x.node.saved = x.value
    node = _new(Node)
    node.op = op
    node.inputs = inputs
    node.flags = GRAD
    node.saved = value if op.saves_y else None  # type: ignore[attr-defined]
    node.serial = next(_serials)
    frame = _getframe(3)
    while _is_internal(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    node.source = (frame.f_code, frame.f_lasti)
    return node


def record(op: Primitive, xs: tuple[Any, ...], value: np.ndarray, flags: int) -> Node | None:
    """The Node of `op` applied to `xs`, or None where nobody wants one."""
    if not op.differentiable or value.dtype.kind not in "fc" or not local.grad:
        if not flags & TRACE:
            return None
        out_flags = flags & ~GRAD
    else:
        out_flags = flags
    save = op.saves_x or flags & TRACE  # type: ignore[attr-defined]
    inputs = []
    for x in xs:
        if x.__class__ is Literal:
            inputs.append(x)
            continue
        node = x.node
        if x.storage is not None:
            node = synchronise(x)
        if node is None:
            node = x.node = Node(None, (), 0, x.value)
        elif save:
            node.saved = x.value
        if recording[0]:
            noted(node, x)
        inputs.append(node)
    node = _new(Node)
    node.op = op
    node.inputs = tuple(inputs)
    node.flags = out_flags
    node.saved = value if op.saves_y else None  # type: ignore[attr-defined]
    node.serial = next(_serials)
    if recording[0] and local.recorder is not None:
        local.recorder.made(node, value)
    source = local.source
    if source is None:
        frame = _getframe(2)
        while _is_internal(frame.f_code.co_filename) and frame.f_back is not None:
            frame = frame.f_back
        source = (frame.f_code, frame.f_lasti)
    node.source = source
    if out_flags != flags and not local.grad and op.differentiable and value.dtype.kind in "fc":
        return Node(STOP_GRADIENT, (node,), out_flags, None, None, source)
    return node


def record_constant(op: Primitive, literals: Sequence[Literal]) -> Any:
    """An operation on literals alone, such as `full`, computed and put on the tape of a trace."""
    value = np.asarray(op.eval(*[x.array for x in literals]))
    return wrap(value, Node(op, tuple(literals), TRACE, value, None, caller()))


def is_traced(x: Any) -> bool:
    """True for a tensor that a transform or a recording is watching."""
    return isinstance(x, Traced) and x.node is not None and bool(x.node.flags & TRACE)


def node_of(x: Traced) -> Node:
    """The Node of a tensor, made now where it has none: a constant that is captured."""
    if x.storage is not None:
        return synchronise(x)
    if x.node is None:
        x.node = Node(None, (), 0, x.value)
    return x.node


def synchronise(x: Traced) -> Node:
    """The Node of a tensor that shares memory, renewed where another has written to it since."""
    storage = x.storage
    now = (storage, storage.version)
    node = x.node
    if node is None:
        node = x.node = Node(None, (), 0, x.value)
    elif node.stamp is not None and node.stamp != now:
        node = x.node = renewed(node, x.value, now)
    if x.value is not None:
        node.saved = x.value
    node.stamp = now
    return node


def renewed(node: Node, value: Any, stamp: Any = None) -> Node:
    """The Node of a tensor after a write that was not recorded: the same leaf or history."""
    if node.op is None:
        new = Node(None, (), node.flags, value, node.type)
        new.cell = node.cell
        if node.cell is not None:
            node.cell.remember(node)
    elif node.flags:
        constant = Node(None, (), 0, value)
        constant.stamp = stamp
        new = Node(OVERWRITTEN, (node, constant), node.flags, value, node.type, caller())
    else:
        new = Node(None, (), 0, value)
    new.trace = node.trace
    return new


def storage_of(x: Traced) -> Storage:
    """The Storage of a tensor, made now where it has none."""
    storage = x.storage
    if storage is None:
        storage = x.storage = Storage(getattr(x, "writes", 0))
        if x.node is not None:
            x.node.stamp = (storage, storage.version)
    return storage


def _link_view(out: Traced, op: Primitive, x: Traced) -> None:
    """Let `out` share the storage of `x` where their memory is the same."""
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
    """Note that `out` is the view `op` of `x`; severed if no gradient passes between them."""
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
    """Whether the reshape `op` of a tensor without a value would be a view if it had one."""
    array = layout(x)
    return np.may_share_memory(op.eval(array), array)


def layout(x: Traced) -> np.ndarray:
    """An array laid out as `x` would be: row-major, seen through its views."""
    if x.origin is None:
        return np.empty(x.shape, np.int8)
    return x.origin[1].eval(layout(x.origin[0]))


def _several(
    op: Primitive, xs: tuple[Any, ...], values: tuple[Any, ...], flags: int
) -> tuple[Any, ...]:
    outs = tuple(wrap(v if v.__class__ is _ndarray else np.asarray(v)) for v in values)
    if not flags or not (flags & TRACE or (local.grad and op.differentiable)):
        return outs
    serial = next(_serials)
    inputs = []
    for x in xs:
        if not isinstance(x, Literal):
            x = node_of(x)
        inputs.append(x)
    for x, node in zip(xs, inputs):
        if not isinstance(x, Literal):
            node.saved = x.value
            noted(node, x)
    source = caller()
    results = tuple((out.value, storage_of(out)) for out in outs)
    for i, out in enumerate(outs):
        differentiable = op.differentiable and is_differentiable(out.value.dtype)
        out_flags = flags if differentiable and local.grad else flags & ~GRAD
        if not out_flags:
            continue
        node = Node(op, tuple(inputs), out_flags, out.value, None, source, serial, i)
        node.outs = results
        node.stamp = (out.storage, 0)
        if differentiable and not local.grad and flags & GRAD:
            node = Node(STOP_GRADIENT, (node,), out_flags, out.value, None, source)
            node.stamp = (out.storage, 0)
        out.node = node
    return outs


def sibling(node: Node, index: int) -> Node:
    """Another output of the equation that made `node`."""
    other = Node(node.op, node.inputs, node.flags, None, None, node.source, node.serial, index)
    other.outs, other.trace = node.outs, node.trace
    if node.outs is not None:
        other.saved, storage = node.outs[index]
        other.stamp = (storage, 0)
    else:
        other.type = infer(node.op, tuple([x.type for x in node.inputs]))[index]
    return other


_inferred: dict[Any, Any] = {}


def infer(op: Primitive, types: tuple[Type, ...]) -> Any:
    """`op.infer(*types)`, remembered; errors name the user's line."""
    key = (op, types)
    try:
        return _inferred[key]
    except KeyError:
        pass
    try:
        result = op.infer(*types)
    except LucidError as error:
        raise located(error) from None
    if not op.once:
        if len(_inferred) > 50_000:
            _inferred.clear()
        _inferred[key] = result
    return result


def located(error: LucidError) -> LucidError:
    """The error with the user's line at its end."""
    text = str(error)
    if text.endswith("]") and "   [" in text:
        return error
    return type(error)(text + at_line())


def _bind_abstract(op: Primitive, xs: tuple[Any, ...]) -> Any:
    flags, trace = (0, None) if xs else (TRACE, local.staging)
    for x in xs:
        node = x.node
        if node is None:
            continue
        flags |= node.flags
        if x.value is None:
            if not node.trace.active:
                raise leaked(node.trace)
            if trace is None or node.trace.depth > trace.depth:
                trace = node.trace
    result = infer(op, tuple([x.type for x in xs]))
    inputs = []
    for x in xs:
        if not isinstance(x, Literal):
            node = noted(node_of(x), x)
            if x.value is not None:
                node.saved = x.value
            x = node
        inputs.append(x)
    types = result if isinstance(result, tuple) else (result,)
    serial, source = next(_serials), caller()
    outs = []
    for i, type in enumerate(types):
        differentiable = op.differentiable and is_differentiable(type.dtype)
        out_flags = flags if differentiable and local.grad else flags & ~GRAD
        node = Node(op, tuple(inputs), out_flags, None, type, source, serial, i)
        node.trace = trace
        if differentiable and not local.grad and flags & GRAD:
            node = Node(STOP_GRADIENT, (node,), out_flags, None, type, source)
            node.trace = trace
        outs.append(wrap(None, node))
    if op.is_view and len(outs) == 1:
        _link_view(outs[0], op, xs[0])
    return tuple(outs) if isinstance(result, tuple) else outs[0]


def leaked(trace: Trace) -> LeakError:
    return LeakError(
        f"a traced value is used after the {trace.what} that made it has ended; "
        f"return it from the function instead of storing it outside{at_line()}"
    )


def unknown_value(x: Traced, what: str) -> LucidError:
    """The error for Python code that asks a traced value for its number."""
    trace = x.node.trace
    if not trace.active:
        return leaked(trace)
    return TracedValueError(
        f"{what} needs the value of {x.type}, but inside {trace.what} there is none; "
        f"use where() or lucid.func.cond() instead of branching on it{at_line()}"
    )


def _explain(op: Primitive, xs: tuple[Any, ...], error: Exception) -> LucidError:
    """NumPy refused: the type rules usually know why in better words."""
    infer(op, tuple([x.type for x in xs]))
    types = ", ".join(str(x.type) for x in xs)
    return LucidError(f"{op!r} of {types}: {error}{at_line()}")


def node_type(node: Node) -> Type:
    """The Type of a Node's value, inferred from what it was computed from."""
    stack = [node]
    while stack:
        top = stack[-1]
        if top.type is not None:
            stack.pop()
        elif top.saved is not None:
            top.type = Type(top.saved.dtype, top.saved.shape)
        elif top.op is FREED:
            raise freed()
        else:
            assert top.op is not None
            missing = [i for i in top.inputs if isinstance(i, Node) and i.type is None]
            if missing:
                stack.extend(missing)
                continue
            result = infer(top.op, tuple(i.type for i in top.inputs))
            top.type = result[top.index] if isinstance(result, tuple) else result
    assert node.type is not None
    return node.type


def freed() -> GraphError:
    return GraphError(
        "this graph was already freed by an earlier backward(); "
        f"pass retain_graph=True to the first backward() to go through it again{at_line()}"
    )


def residual(node: Node) -> np.ndarray:
    """The saved value of a Node, refused where it was overwritten since."""
    value = node.saved
    if node.stamp is not None and node.stamp[0].version != node.stamp[1]:
        raise _mutated(node, node.stamp[0].source)
    if value.__class__ is Mutated:
        raise _mutated(node, value.source)
    return value


def _mutated(node: Node, source: Any) -> MutationError:
    maker = "a leaf" if node.op is None else f"the result of {node.op.name}"
    where = f" (changed at {as_source(source)})" if source else ""
    return MutationError(
        f"backward needs {maker}, {node_type(node)}, but it was changed in place{where}; "
        f"clone() it before changing it, or use the out-of-place operation{at_line()}"
    )


def as_source(source: Any) -> Source | None:
    return Source(*source) if isinstance(source, tuple) else source
