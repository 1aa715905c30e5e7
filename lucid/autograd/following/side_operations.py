"""side_operations: what is computed from values of a followed step, and is not in its sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.autograd.following.step_sequence import Side, can_be_side
from lucid.ir.graph import Literal
from lucid.ir.infer import infer
from lucid.ir.types import is_differentiable
from lucid.support.source import caller
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.node import (
    GRAD,
    TRACE,
    Node,
    Results,
    next_serial,
    node_type,
    wrap,
)
from lucid.tape.recording.pending import Pending, PendingRun, is_pending
from lucid.tape.views import is_visible, link_view, owner_of, storage_of, synchronize_node
from lucid.tape.writes import mark_written

MAX_COPIED = 1 << 18  # elements of an operand whose memory NumPy sees
MAX_SIDES = 256  # operations on values of the step that are not in the sequence


class SideOperations(PendingRun):
    """Pending values of a step, and of operations on them that are not in its sequence.

    arrays    arrays of inputs and captured values by slot
    fills     those of `arrays` that are values of the step itself, detached
    owners    ids of the memory of these arrays, and of those that side operations read
    leaves    Node of an input or captured value -> its slot
    others    Nodes that have no slot; those without flags are constants for the tape
    sides     operations on values of the step that are not in the sequence
    given     arrays from outside that they read
    made      values of views among the steps, and of side operations that are not on the tape
    slots     Nodes by slot, as far as they are known
    written   id of a tensor that waits for the value of a side operation -> (it, its memory)
    """

    def __init__(self) -> None:
        super().__init__(defers=False)
        self.arrays: dict[int, Any] = {}
        self.fills: dict[int, Pending] = {}
        self.owners: set[int] = set()
        self.leaves: dict[Any, int] = {}
        self.others: list[Node] = []
        self.sides: list[Side] = []
        self.given: list[np.ndarray] = []
        self.at = 0
        self.made: list[Pending] = []
        self.slots: list[Any] = []
        self.written: dict[int, tuple[Any, np.ndarray]] = {}

    def several(
        self, op: Any, inputs: tuple[Any, ...], types: Sequence[Any], slot: int
    ) -> tuple[Any, ...]:
        """Return the pending results of a tracked operation that has several."""
        serial, source = next_serial(), caller()
        values = [Pending(type, self) for type in types]
        outs = [wrap(value) for value in values]
        made = Results([(value, storage_of(out)) for value, out in zip(values, outs)])
        for i, (out, value) in enumerate(zip(outs, values)):
            on_tape = is_differentiable(value.dtype)
            node = Node(op, inputs, GRAD * on_tape, value, types[i], source, serial, i)
            value.node = node
            self.known[node] = value
            value.place = (slot, i)
            self.others.append(node)
            if on_tape:
                node.outs, node.stamp = made, (out.storage, 0)
                out.node = node
        return tuple(outs)

    def side(self, op: Any, xs: tuple[Any, ...], modes: Any) -> Any:
        """Return the pending result of an operation on values of the step, None if it cannot wait.

        The program computes it if its tensor is alive at the end of the step, or if the step reads
        it.
        """
        if not can_be_side(op) or not modes.no_observers or not self.has_room(1):
            return None
        flags = 0
        for x in xs:
            if x.__class__ is not Literal:
                if x.raw is None or (is_pending(x.raw) and x.raw.run is not self):
                    return None
                flags |= 0 if x.node is None else x.node.flags
        if not xs or flags & TRACE:
            return None
        types, several = result_types(op, xs)
        refs = self.refs(xs)
        if refs is None:
            return None
        place = ~len(self.sides)
        tracked = bool(flags and modes.grad and op.differentiable)
        inputs = tuple([self.node(x, ref) for x, ref in zip(xs, refs)]) if tracked else ()
        side = Side(op, refs, types, self.at)
        if not tracked or not (several or is_differentiable(types[0].dtype)):
            outs = tuple([wrap(value) for value in self.add_side(side)])
            if op.is_view:
                link_view(outs[0], op, xs[0])
            return outs if several else outs[0]
        self.sides.append(side)
        if op.saves_x or several:
            for x, node in zip(xs, inputs):
                if x.__class__ is not Literal:
                    node.saved = x.raw
        if several:
            return self.several(op, inputs, types, place)
        value = Pending(types[0], self)
        value.place = (place, 0)
        node = value.node = Node(
            op, inputs, GRAD, value if op.saves_y else None, types[0], caller()
        )  # fmt: skip
        self.known[node] = value
        self.others.append(node)
        out = wrap(value, node)
        if op.is_view:
            link_view(out, op, xs[0])
        return out

    def has_room(self, count: int) -> bool:
        """True if so many more side operations can wait."""
        return len(self.sides) + count <= MAX_SIDES

    def add_side(self, side: Side) -> list[Pending]:
        """Return the results of a side operation that is not on the tape.

        They have Nodes only if those are needed.
        """
        values = [Pending(type, self) for type in side.types]
        place = ~len(self.sides)
        for i, value in enumerate(values):
            value.place = (place, i)
        self.sides.append(side)
        self.made += values
        return values

    def defer_write(self, x: Any, new: Any) -> bool:
        """Let `x` have the value of a side operation once that is computed, if nobody sees it."""
        value = new.raw
        if not is_pending(value) or value.run is not self or value.dtype != x.dtype:
            return False
        if new.shape != x.shape or new.node is not None or new.origin is not None:
            return False
        self.let_wait(x, value)
        return True

    def let_wait(self, x: Any, value: Pending) -> None:
        """Let `x`, whose memory nobody sees, have the value of a side operation."""
        if x.raw.__class__ is np.ndarray:  # a result that is pending itself has no memory yet
            self.written.setdefault(id(x), (x, x.raw))
        x.raw = value
        self.watch(x)
        mark_written(x)

    def make_nodes(self) -> None:
        """Give the results of side operations Nodes, by which they can be computed one by one."""
        values = {value.place: value for value in self.made if value.place[0] < 0}
        nodes: dict[Any, Any] = {
            value.place: node for node, value in self.known.items() if value.__class__ is Pending
        }  # fmt: skip
        nodes.update([(i, Node(None, (), 0, array)) for i, array in enumerate(self.given)])
        for number, side in enumerate(self.sides):
            serial, place = next_serial(), ~number
            for i, type in enumerate(side.types):
                value = values.get((place, i))
                if value is None:
                    continue  # it is on the tape
                if value.node is None:
                    inputs = [
                        x if x.__class__ is Literal else nodes.get(x) or self.slots[x[0]]
                        for x in side.refs
                    ]
                    value.node = Node(side.op, tuple(inputs), 0, None, type, None, serial, i)
                    self.others.append(value.node)
                nodes[place, i] = value.node

    def can_fill(self, value: Pending) -> bool:
        """True for a value of the step that is detached, and that it may read as a leaf."""
        return value.run is self and value.dtype.kind == "f"

    def refs(self, xs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return what a side operation reads, None if a value cannot be kept; then none is."""
        before, found = len(self.given), []
        for x in xs:
            found.append(self.ref(x))
            if found[-1] is None:
                del self.given[before:]
                return None
        return tuple(found)

    def ref(self, x: Any) -> Any:
        """Return how the program finds an operand, None if it cannot keep its value."""
        if x.__class__ is Literal:
            return x
        if is_pending(x.raw):
            return x.raw.place
        slot = self.leaves.get(x.node)
        if slot is not None:
            return (slot, -1)
        array = self.captured(x)
        if array is None:
            return None
        for number, other in enumerate(self.given):
            if other is array:
                return number
        self.given.append(array)
        return len(self.given) - 1

    def current_node(self, x: Any) -> Any:
        """Return the Node of an operand; None if it has none, or none of its own yet."""
        if x.storage is None or (x.node is None and is_pending(x.raw)):
            return x.node
        return synchronize_node(x)

    def node(self, x: Any, ref: Any) -> Any:
        """Return the Node of an operand of a side operation, one of its own if `x` has none."""
        if x.__class__ is Literal:
            return x
        node = None if x.node is None else self.current_node(x)
        if is_pending(x.raw):
            if node is not None and node.op is not None:
                return node
            if x.raw.node is None:
                self.make_nodes()
            node = x.raw.node
            if node.flags:  # `x` is detached from it
                node = Node(STOP_GRADIENT, (node,), 0, None, node_type(node))
                self.others.append(node)
            return node
        if node is None:
            node = Node(None, (), 0, None, x.type)
        if node not in self.known:
            self.known[node] = self.given[ref] if ref.__class__ is int else self.arrays[ref[0]]
        return node

    def captured(self, x: Any) -> np.ndarray | None:
        """Return the value of `x`, which it keeps until the step has run, None if that is costly.

        Memory that NumPy sees may be written at any time, so it is copied.
        """
        if x.raw.__class__ is Pending:
            x.raw = x.value
        if is_visible(x):
            return None if x.value.size > MAX_COPIED else x.value.copy()
        self.owners.add(id(owner_of(x.raw)))
        return x.raw


def result_types(op: Any, xs: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    """Return the types of all results of a side operation, and whether it returns a tuple.

    An operation keeps those of its last operands.
    """
    key = [x if x.__class__ is Literal else (x.raw.dtype, x.raw.shape) for x in xs]
    last = op.__dict__.get("_side_types")
    if last is not None and last[0] == key:
        return last[1]  # type: ignore[no-any-return]
    found = infer(op, tuple([x.type for x in xs]))
    several = isinstance(found, tuple)
    made = (found if isinstance(found, tuple) else (found,), several)
    op.__dict__["_side_types"] = (key, made)
    return made
