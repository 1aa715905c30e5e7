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
from lucid.tape.node import GRAD, TRACE, Node, Results, next_serial, node_type, wrap
from lucid.tape.recording.pending import Pending, PendingRun, is_pending
from lucid.tape.views import exported, is_visible, link_view, owner_of, storage_of, synchronize_node

MAX_COPIED = 1 << 18  # elements of an operand whose memory NumPy sees
MAX_SIDES = 256  # operations on values of the step that are not in the sequence


class SideOperations(PendingRun):
    """Pending values of a step, and of operations on them that are not in its sequence.

    arrays    arrays of inputs and captured values by slot
    owners    ids of the memory of these arrays, and of those that side operations read
    leaves    Node of an input or captured value -> its slot
    others    Nodes that have no slot; those without flags are constants for the tape
    sides     operations on values of the step that are not in the sequence
    given     arrays from outside that they read
    """

    def __init__(self) -> None:
        super().__init__(defers=False)
        self.arrays: dict[int, Any] = {}
        self.owners: set[int] = set()
        self.leaves: dict[Any, int] = {}
        self.others: list[Node] = []
        self.sides: list[Side] = []
        self.given: list[np.ndarray] = []

    def several(
        self, op: Any, inputs: tuple[Any, ...], types: Sequence[Any], slot: int, tracked: bool
    ) -> tuple[Any, ...]:
        """Return the pending results of an operation that has several."""
        serial, source = next_serial(), caller()
        values = [Pending(type, self) for type in types]
        outs = [wrap(value) for value in values]
        made = Results([(value, storage_of(out)) for value, out in zip(values, outs)])
        for i, (out, value) in enumerate(zip(outs, values)):
            on_tape = tracked and is_differentiable(value.dtype)
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

        The program computes it if its tensor is alive at the end of the step.
        """
        if not can_be_side(op) or not modes.no_observers or len(self.sides) >= MAX_SIDES:
            return None
        flags = 0
        for x in xs:
            if x.__class__ is not Literal:
                if x.raw is None or (is_pending(x.raw) and x.raw.run is not self):
                    return None
                flags |= 0 if x.node is None else x.node.flags
        refs = [] if flags & TRACE else [self.ref(x) for x in xs]
        if not refs or None in refs:
            return None
        inputs: tuple[Any, ...] = tuple([
            x if x.__class__ is Literal else self.node(x, ref) for x, ref in zip(xs, refs)
        ])  # fmt: skip
        found = infer(op, tuple([x.type for x in xs]))
        several = isinstance(found, tuple)
        types: tuple[Any, ...] = found if isinstance(found, tuple) else (found,)
        tracked = bool(flags and modes.grad and op.differentiable)
        if tracked and (op.saves_x or several):
            for x, node in zip(xs, inputs):
                if x.__class__ is not Literal:
                    node.saved = x.raw
        place = ~len(self.sides)
        self.sides.append(Side(op, tuple(refs), types))
        if several:
            return self.several(op, inputs, types, place, tracked)
        value = Pending(types[0], self)
        tracked = tracked and is_differentiable(value.dtype)
        saved = value if tracked and op.saves_y else None
        node = Node(op, inputs, GRAD * tracked, saved, types[0], caller())
        value.node = node
        self.known[node] = value
        value.place = (place, 0)
        out = wrap(value, node if tracked else None)
        self.others.append(node)
        if op.is_view:
            link_view(out, op, xs[0])
        return out

    def ref(self, x: Any) -> Any:
        """Return what a side operation reads, None if it cannot keep its value."""
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
        node = None if x.node is None else self.current_node(x)
        if is_pending(x.raw):
            if node is not None and node.op is not None:
                return node
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
        if x.raw.base is None and not exported:  # nothing was ever handed out
            self.owners.add(id(x.raw))
            return x.raw
        if is_visible(x):
            return None if x.value.size > MAX_COPIED else x.value.copy()
        self.owners.add(id(owner_of(x.raw)))
        return x.raw
