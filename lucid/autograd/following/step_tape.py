"""step_tape: the tensors, Nodes and pending values that a followed step hands out, used again.

A step that repeats makes the same tape every time. What nothing else holds once it has run is
handed out again by the next one: to follow an operation is then to compare, and nothing is
allocated that the garbage collector would look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from operator import ne
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount

from lucid.autograd.following.step_sequence import Step, StepSequence
from lucid.tape import node as tape
from lucid.tape.node import FREED, GRAD, LOCAL_REFERENCES, Node, counters
from lucid.tape.recording.pending import Pending, PendingRun

NO_SOURCE: tuple[Any, int, Any] = (None, -1, None)

_new = object.__new__
_is_used = (LOCAL_REFERENCES + 1).__ne__  # `tensors` and `outs` hold it, no local variable


class StepTape:
    """What the steps of a sequence return, for one Follower.

    outs       the tensor that each step returns; None for views and several results, made anew
    slots      Nodes by slot; those of leaves and of results that are made anew only during a step
    numbers    the numbers of the steps that have a tensor here; the four lists below are of these
    tensors, values, nodes    what they return
    counts     how many references its values and its Nodes have between steps
    held       the numbers, in these lists, of tensors that something else holds; see `live`
    readers    slot -> the steps that read it, if the operands of these never change
    attached   how many hooks, gradients and the like there were before the step
    """

    def __init__(self, sequence: StepSequence, run: PendingRun) -> None:
        self.sequence, self.run = sequence, run
        steps = sequence.steps
        self.slots: list[Any] = [None] * len(sequence.cut.slots)
        self.outs: list[Any] = [None] * len(steps)
        self.numbers = [i for i, step in enumerate(steps) if step.is_reused]
        self.tensors: list[Any] = [None] * len(self.numbers)
        self.values: list[Any] = [None] * len(self.numbers)
        self.nodes: list[Any] = [None] * len(self.numbers)
        self.readers: dict[int, list[Step]] = {}
        for k in range(len(self.numbers)):
            self.renew(k)
        for step in steps:
            if step.is_reused and not step.reads_outside:
                self.slots[step.slot].inputs = step.inputs_in(self.slots)
                for ref in step.refs:
                    if ref.__class__ is int:
                        self.readers.setdefault(ref, []).append(step)
        self.held: list[int] = []
        self.attached = count_attached()
        self.counts = [list(map(getrefcount, xs)) for xs in (self.values, self.nodes)]

    def renew(self, k: int) -> None:
        """Make a tensor, a Node and a pending value for a step."""
        number = self.numbers[k]
        step = self.sequence.steps[number]
        value = _new(Pending)
        value.dtype, value.shape, value.place = step.dtype, step.shape, step.place
        value.array, value.run = None, self.run
        node = value.node = self.slots[step.slot] = _new(Node)
        node.op, node.inputs, node.flags = step.op, (), GRAD
        node.saved = value if step.saved else None
        before = self.nodes[k]
        node.serial, node.source = 0, NO_SOURCE if before is None else before.source
        out = self.outs[number] = _new(tape.tensor_class)
        out.raw, out.node = value, node
        out.storage = out.origin = None
        self.tensors[k], self.values[k], self.nodes[k] = out, value, node

    def is_attached(self) -> bool:
        """True if something may be attached to a Node of the step: hooks, metadata, a gradient."""
        return self.attached != count_attached()

    def live(self) -> list[Any]:
        """Return the tensors that something else holds, oldest first."""
        tensors = self.tensors
        used: Iterable[Any] = map(_is_used, map(getrefcount, tensors))
        if any(map(getweakrefcount, tensors)):
            used = [n or getweakrefcount(x) > 0 for n, x in zip(list(used), tensors)]
        self.held = list(compress(range(len(tensors)), used))
        return [tensors[k] for k in self.held]

    def free(self, leaves: tuple[Any, ...], types: Sequence[Any]) -> list[Pending]:
        """Drop the equations of a step; what nothing else holds is kept for the next one.

        The leaves are let go, and a Node that something holds is freed, as by every `backward()`:
        another one takes its place. Return the values that are not kept.
        """
        slots, steps = self.slots, self.sequence.steps
        for number in self.sequence.remade:
            slot = steps[number].slot
            node, slots[slot] = slots[slot], None
            free_node(node, leaves, types[slot])
        for slot in self.sequence.outside_readers:
            slots[slot].inputs = ()
        for slot in self.sequence.inputs:
            slots[slot] = None
        renewed = self.taken()
        values = [self.values[k] for k in renewed]
        for k in renewed:
            free_node(self.nodes[k], leaves, types[steps[self.numbers[k]].slot])
            self.renew(k)
        for k in renewed:
            step = steps[self.numbers[k]]
            if not step.reads_outside:
                self.nodes[k].inputs = step.inputs_in(slots)
            for reader in self.readers.get(step.slot, ()):
                slots[reader.slot].inputs = reader.inputs_in(slots)
        return values

    def taken(self) -> list[int]:
        """Return the numbers of what something else holds or has changed."""
        found = set(self.held)
        for xs, counts in zip((self.values, self.nodes), self.counts):
            now = list(map(getrefcount, xs))
            for k in self.held:
                now[k] = counts[k]
            if now != counts:
                found.update(compress(range(len(xs)), map(ne, now, counts)))
        found.update([
            k for k, (x, value, node) in enumerate(zip(self.tensors, self.values, self.nodes))
            if x.node is not node or x.raw is not value or x.storage is not None
        ])  # fmt: skip
        if self.is_attached():
            self.attached = count_attached()
            nodes = enumerate(self.nodes)
            found.update([k for k, x in nodes if x.cell is not None or x.state is not None])
        return sorted(found)


def count_attached() -> tuple[int, int]:
    """Return a pair of numbers that changes if anything is attached to a Node."""
    return (counters.cells, counters.states)


def free_node(node: Node, leaves: tuple[Any, ...], type: Any) -> None:
    """Drop the equation of a Node: a later backward through it is an error."""
    node.type = type
    node.op = FREED
    node.inputs = leaves
    node.saved = None
    if node.outs is not None or node.stamp is not None:
        node.outs = node.stamp = None
