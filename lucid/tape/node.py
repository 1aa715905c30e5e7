"""The tape: Nodes that eager operations write, and the tensors that hold them.

A Node is one SSA value and the operation that made it. Nodes point only backward, so the tape has
no owner: it lives as long as something references its end, and `cut` recovers a Graph from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from sys import getrefcount
from typing import Any
from weakref import ref

import numpy as np

from lucid.errors import GraphError, LeakError, LucidError, MutationError, TracedValueError
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.public.declare import public
from lucid.support.locks import after_recording
from lucid.support.source import Source, at_line
from lucid.tape.modes import current
from lucid.tape.recording.pending import Pending, array_of, is_foreign

GRAD = 1  # a derivative is wanted (requires_grad)
TRACE = 2  # belongs to a transform or a recording, which needs every equation
_serials = count(1)
active_recorders: list[Any] = []  # the active Recorders of all threads
followers: dict[int, Any] = {}  # thread -> what follows its eager code, see autograd.follow
ONE, PAIR, SCALAR, REFLECTED = 1, 2, 3, 4  # x; x and y; x and a number; a number and x
requires_grad_changes = [0]  # how often requires_grad of a leaf was changed
_new = object.__new__


next_serial = _serials.__next__


def _count_local() -> int:
    x = object()
    return getrefcount(x)


# What getrefcount says of an object that a local variable alone holds: 2, or another number in
# other versions of Python. Every reference from an object, a list or a slot adds one.
LOCAL_REFERENCES = _count_local()


def is_recording() -> bool:
    """True while a Recorder watches this thread."""
    return bool(active_recorders) and current().recorder is not None


def is_deferring() -> bool:
    """True while a Recorder watches this thread that leaves the results of operations pending."""
    return bool(active_recorders) and (r := current().recorder) is not None and r.defers


def note_read(node: Node, x: Any) -> Node:
    """Tell the active Recorder, if any, that `x` is read; return the Node of `x`."""
    if active_recorders and current().recorder is not None:
        current().recorder.on_read(node, x)
    return node


class Trace:
    """A running transform without values; `active` until it ends, `end_reason` may say why.

    is_cached    True if what is traced runs again in other calls, so it must have no effects
    effects      Nodes of ordered equations, in order
    """

    __slots__ = ("active", "depth", "effects", "end_reason", "is_cached", "what")

    def __init__(self, what: str, depth: int = 0) -> None:
        self.what = what
        self.depth = depth
        self.active = True
        self.end_reason = ""
        self.is_cached = False
        self.effects: list[Node] = []


class Freed:
    """The value of `Node.op` for an equation that `backward` has freed."""

    name = "freed"


FREED: Any = Freed()


class Mutated:
    """The value of `Node.saved` for an array that was overwritten in place."""

    __slots__ = ("dtype", "shape", "source")

    def __init__(self, value: np.ndarray, source: Any) -> None:
        self.dtype = value.dtype
        self.shape = value.shape
        self.source = source


class Packed:
    """The value of `Node.saved` for an array that `saved_tensors_hooks` have packed."""

    __slots__ = ("dtype", "hooks", "packed", "shape")

    def __init__(self, value: Any, hooks: Any, packed: Any) -> None:
        self.dtype = value.dtype
        self.shape = value.shape
        self.hooks = hooks
        self.packed = packed

    def unpack(self) -> np.ndarray:
        return self.hooks.unpack_array(self)


class Counters:
    """How often something has happened, for those who compare.

    A number that changes in a class makes Python forget how to find the attributes of its
    instances quickly.

    backward_passes    how many times `backward` has run
    cells, states      how many GradCells and NodeStates were made
    """

    __slots__ = ("backward_passes", "cells", "states")

    def __init__(self) -> None:
        self.backward_passes = self.cells = self.states = 0


counters = Counters()


class NodeState:
    """What users attach to an operation on the tape, shared by all of its results.

    metadata    a dictionary of theirs
    prehooks    functions of the cotangents of the results
    hooks       functions of the cotangents of the operands and those of the results
    """

    __slots__ = ("hooks", "metadata", "prehooks")
    any_hooks = False  # whether an operation has ever had hooks

    def __init__(self) -> None:
        counters.states += 1
        self.metadata: dict[Any, Any] = {}
        self.prehooks: dict[int, Any] = {}
        self.hooks: dict[int, Any] = {}


class Results(list[tuple[Any, Any]]):
    """(value, storage) of every result of one equation that has several, and their NodeState."""

    state: Any = None


class Storage:
    """The memory that a tensor and its views share, and its version: how often it was written.

    members    weak references to the tensors that are views of it
    source     where it was last written
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
            self.prune()

    def prune(self) -> None:
        """Forget the views that are gone."""
        self.members = [r for r in self.members if r() is not None]
        self.limit = 64 + 2 * len(self.members)

    def live(self) -> list[Any]:
        return [x for r in self.members if (x := r()) is not None]


class _NodeDefaults:
    """Class-level defaults of fields that most Nodes never set."""

    __slots__ = ()

    index: int = 0
    stamp: Any = None
    type: Type | None = None
    outs: Any = None
    cell: Any = None
    state: Any = None
    trace: Trace | None = None
    is_state: bool = False
    is_number: Any = False


@public("ir")
class Node(_NodeDefaults):
    """One value on the tape.

    op, inputs    the equation that made it; op is None for a leaf
    serial        orders the tape; shared by the outputs of one equation
    index         the output's index in its equation
    flags         GRAD, TRACE
    saved         the array, kept only if a derivative or a replay will read it
    stamp         (storage, version) of `saved` if its memory is shared with views
    type          the Type if there is no value; otherwise computed on demand
    outs          Results, the values and storages of all outputs, if the equation has several
    cell          gradient and hooks, for leaves and watched values
    state         NodeState of an equation with one output, if it has any
    trace         the running transform, for abstract values
    is_state      True if it stands for an outside tensor that a traced body writes
    is_number     True if it stands for a Python number, which is promoted as one; a tensor with
                  all digits of that number if it has fewer itself
    source        (code, offset, Scope) of the user's line, or a Source
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
        self.serial = serial or next_serial()
        if type is not None:
            self.type = type
        if index:
            self.index = index


class GradCell:
    """The gradient that `backward` accumulates for one value, and its hooks."""

    __slots__ = (
        "frozen", "grad", "hooks", "keep", "post_accumulate_hooks", "previous_nodes", "retain",
        "state",
    )  # fmt: skip
    any_keep = False  # whether there has been a cell with `keep`

    def __init__(self) -> None:
        counters.cells += 1
        self.grad: Any = None
        self.hooks: dict[int, Any] = {}
        self.post_accumulate_hooks: dict[int, Any] = {}
        self.frozen = False  # the leaf requires no gradient any more: older graphs give it none
        self.retain = False
        self.keep = False  # whatever is computed from this leaf retains its gradient
        self.previous_nodes: list[Any] = []
        self.state: NodeState | None = None  # of the accumulation into `grad`

    def add_previous_node(self, node: Node) -> None:
        """Add the Node this leaf had before it was modified in place: old graphs end there."""
        self.previous_nodes = [old for old in self.previous_nodes if old() is not None]
        self.previous_nodes.append(ref(node))

    def live_previous_nodes(self) -> list[Node]:
        """Return the previous Nodes of this leaf that a graph still holds."""
        return [node for old in self.previous_nodes if (node := old()) is not None]


class Traced:
    """What flows through `bind`: a value, or None if abstract, and its Node on the tape if tracked.

    raw        the ndarray, a Pending before it is computed, None inside vmap and abstract traces
    node       its Node, or None while nothing tracks it
    storage    shared-memory bookkeeping, or None while no views exist
    origin     (base, op, severed) if this is a view; severed if no gradient flows to the base
    writes     how often it was changed in place while it had no storage; absent if never
    """

    __slots__ = ("__weakref__", "node", "origin", "raw", "storage", "writes")

    raw: Any
    node: Any
    origin: Any
    storage: Any
    writes: int

    @property
    def value(self) -> Any:
        """The ndarray, computed now if it is pending; None inside vmap and abstract traces."""
        raw = self.raw
        if raw.__class__ is Pending:
            if is_foreign(raw):
                after_recording(int)
                if self.raw is not raw:  # it has the value from before the recording again
                    return self.value
            raw = self.raw = raw.compute()
        return raw

    @value.setter
    def value(self, array: Any) -> None:
        self.raw = array

    @property
    def type(self) -> Type:
        """Dtype and shape together, as the IR writes them: `f32[32,10]`."""
        value = self.raw
        return self.node.type if value is None else Type(value.dtype, value.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements, NumPy's."""
        value = self.raw
        return self.node.type.dtype if value is None else value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        value = self.raw
        return self.node.type.shape if value is None else value.shape


tensor_class: type[Traced] = Traced  # what `wrap` makes; `bind.set_class` sets it


def wrap(value: Any, node: Node | None = None) -> Any:
    """Return a tensor with a value (None if abstract) and a Node."""
    if active_recorders and node is None and value is not None and is_recording():
        node = current().recorder.on_create(value)
    out = _new(tensor_class)
    out.raw = value
    out.node = node
    out.storage = None
    out.origin = None
    if value.__class__ is Pending and value.run is not None:
        value.run.watch(out)
    return out


def untracked_tensors(arrays: Iterable[np.ndarray]) -> list[Any]:
    """`wrap` many arrays while nothing is recorded."""
    new, cls, out = _new, tensor_class, []
    for array in arrays:
        x = new(cls)
        x.raw = array
        x.node = x.storage = x.origin = None
        out.append(x)
    return out


def leaf(type: Type, trace: Trace, flags: int = TRACE) -> Any:
    """Return a tensor with a type and no value: an input of an abstract trace."""
    node = Node(None, (), flags, None, type)
    node.trace = trace
    return wrap(None, node)


def is_traced(x: Any) -> bool:
    """True for a tensor that a transform or a recording traces."""
    return isinstance(x, Traced) and x.node is not None and bool(x.node.flags & TRACE)


def leak_error(trace: Trace) -> LeakError:
    if trace.end_reason:
        return LeakError(f"{trace.end_reason}{at_line()}")
    return LeakError(
        f"a traced value is used after the {trace.what} that made it has ended; "
        f"return it from the function instead of storing it outside{at_line()}"
    )


def missing_value_error(x: Traced, what: str) -> LucidError:
    """Return the error for Python code that reads the value of an abstract tensor."""
    trace = x.node.trace
    if not trace.active:
        return leak_error(trace)
    split = ", or pass branching='split' to vmap" if trace.what.startswith("vmap") else ""
    return TracedValueError(
        f"{what} needs the value of {x.type}, but inside {trace.what} there is none; "
        f"branch with func.cond, loop with func.while_loop, or compute both sides and select "
        f"with where(){split}{at_line()}"
    )


def node_type(node: Node) -> Type:
    """Return the Type of a Node's value, inferred from its inputs if necessary."""
    stack = [node]
    while stack:
        top = stack[-1]
        if top.type is not None:
            stack.pop()
        elif top.saved is not None:
            top.type = Type(top.saved.dtype, top.saved.shape)
        elif top.op is FREED:
            raise freed_error()
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


def freed_error() -> GraphError:
    return GraphError(
        "this graph was already freed by an earlier backward(); "
        f"pass retain_graph=True to the first backward() to use it again{at_line()}"
    )


def residual(node: Node) -> np.ndarray:
    """Return the saved array of a Node; raise MutationError if it was overwritten since."""
    return array_of(saved_value(node))


def saved_value(node: Node) -> Any:
    """`residual`, which may still be pending."""
    value = node.saved
    if value is None and node.op is FREED:
        raise freed_error()
    if node.stamp is not None and node.stamp[0].version != node.stamp[1]:
        raise _mutated(node, node.stamp[0].source)
    if value.__class__ is Mutated:
        raise _mutated(node, value.source)
    return value.unpack() if value.__class__ is Packed else value


def _mutated(node: Node, source: Any) -> MutationError:
    maker = "a leaf" if node.op is None else f"the result of {node.op.name}"
    where = f" (changed at {as_source(source)})" if source else ""
    return MutationError(
        f"backward needs {maker}, {node_type(node)}, but it was changed in place{where}; "
        f"clone() it first, or use the out-of-place operation{at_line()}"
    )


def as_source(source: Any) -> Source | None:
    return Source(*source) if isinstance(source, tuple) else source
