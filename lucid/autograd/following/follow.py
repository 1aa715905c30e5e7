"""follow: a step that repeats is followed instead of executed, and runs as one program.

The tape of a hot `backward()` is a sequence of equations. After it the next tracked operations are
expected to be the same sequence: as long as each is the expected one on the expected operands, its
result is pending, and `backward()` runs forward and reverse pass together as one native program.
An operation on values of the step that is not in the sequence (a statistic, a metric) is pending
too, and runs with the rest if its result is alive; one on other values runs at once. Whatever else
happens first (a look at a value, a write to what the step reads, a jitted call, NumPy getting an
array) computes what is pending one by one, and goes on eagerly.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import _getframe
from threading import get_ident
from typing import Any

import numpy as np

from lucid.autograd.following.side_operations import SideOperations
from lucid.autograd.following.step_run import StepRun
from lucid.autograd.following.step_sequence import Step, StepSequence, find_source
from lucid.autograd.following.step_tape import StepTape
from lucid.autograd.watch import has_watchers
from lucid.ir.graph import Literal
from lucid.support.caches import new_cache
from lucid.support.source import caller
from lucid.tape.cut import Cut, literal_node
from lucid.tape.modes import current
from lucid.tape.node import GRAD, ONE, PAIR, SCALAR, Node, followers, next_serial, wrap
from lucid.tape.recording.pending import Pending, array_of, evaluate, is_pending
from lucid.tape.views import exported, link_view, owner_of, synchronize_node

MAX_MISSES = 4  # steps in a row that were not followed to their end, before a sequence is given up
RETRY = 64  # steps after which a sequence that was given up is tried once more
MAX_WAITED = 256  # operations that are not the next step, before it is no longer expected


class Follower(SideOperations):
    """Follows a sequence in one thread, from the end of a backward pass to the next one.

    It is used again for the next step of the sequence, with all tensors that nothing else holds.

    known     Node -> array or Pending, of side operations; see `all_known`
    before    the sequence of the step before this one, until its update is known
    waiting   the run of the step, once it waits for an update
    at        the number of the step that is expected next
    waited    how many operations were not the next step
    steps     the expected operations, and one that nothing is
    tape      what the steps return
    bound     the slots that operands of the operation at hand were the first to fill
    is_overwritten    whether another thread has written to what the step reads
    """

    def __init__(self, sequence: StepSequence) -> None:
        super().__init__()
        self.sequence = sequence
        self.steps, self.expected_leaves = sequence.steps_and_end, sequence.leaves
        self.tape = StepTape(sequence, self)
        self.slots, self.outs = self.tape.slots, self.tape.outs
        self.bound: list[int] = []
        self.waiting: StepRun | None = None
        self.is_freed = self.is_overwritten = False

    def start(self, thread: int, before: StepSequence | None) -> None:
        """Follow the next operations of a thread, from the first step on.

        What a step that was left half-way has pending is computed first: later writes would not
        find it.
        """
        if (abandoned := followers.get(thread)) is not None:
            abandoned.stop()
        self.thread, self.before = thread, before
        self.at = self.waited = 0
        self.is_freed = self.is_overwritten = False
        followers[thread] = self

    def quick(self, op: Any, form: int, x: Any, y: Any = None) -> Any:
        """Return the pending result of the expected operation, None if `follow` must find out.

        Operators and functions call this before they look at anything else. `form` says which of
        the forms in `tape.node` the operation has, y is the other tensor or a Python number.
        """
        step = self.steps[self.at]
        if step.op is not op or step.form != form:
            return None
        if form != PAIR and y != step.number:
            return None
        modes = current()
        if not modes.fast_record:
            return None
        a, b = x.node, None
        if a is None or a is not self.slots[step.first] or x.storage is not None:
            a = self.operand(step.first, x)
        if form == PAIR and a is not None:
            b = y.node
            if b is None or b is not self.slots[step.second] or y.storage is not None:
                b = self.operand(step.second, y)
        if a is None or (b is None and form == PAIR):
            self.unbind()
            return None
        if self.bound:
            self.bound.clear()
        out = self.outs[self.at]
        node = out.node
        if step.reads_outside:
            literal = step.literal
            node.inputs = (
                (a, b) if form == PAIR else (a,) if form == ONE
                else (a, literal) if form == SCALAR else (literal, a)
            )  # fmt: skip
        node.serial = next_serial()
        try:
            frame = _getframe(step.depth)
            code, offset, scope = node.source
            if frame.f_lasti != offset or frame.f_code is not code or modes.scope is not scope:
                node.source = find_source(step, modes.scope)
        except ValueError:  # the stack is not that deep
            node.source = find_source(step, modes.scope)
        self.at += 1
        return out

    def hand_out(self, step: Step, inputs: tuple[Any, ...], scope: Any) -> Any:
        """Return the tensor of a step, its value pending."""
        out = self.outs[self.at]
        node = out.node
        if step.reads_outside:
            node.inputs = inputs
        node.serial = next_serial()
        node.source = self.source_of(step, node.source, scope)
        self.at += 1
        return out

    def source_of(self, step: Step, known: tuple[Any, int, Any], scope: Any) -> Any:
        """Return the user's line that calls a step; `known` if it is that of the step before."""
        try:  # as in `quick`, which has no time to call this
            frame = _getframe(step.depth)
            code, offset, inside = known
            if frame.f_lasti == offset and frame.f_code is code and scope is inside:
                return known
        except ValueError:
            pass
        return find_source(step, scope)

    def follow(
        self, op: Any, xs: tuple[Any, ...], guess: bool = False, checked: bool = False
    ) -> Any:
        """Return the pending result of an operation; None if it must be computed.

        guess      whether it is this operation only if it is the expected one
        checked    whether indices are known to be in range
        """
        step = self.steps[self.at]
        modes = current()
        if op is not step.op or not modes.fast_record or len(xs) != len(step.expects):
            return None if guess else self.other(op, xs, modes)
        slots = self.slots
        inputs: list[Any] = []
        for x, expected in zip(xs, step.expects):
            if x is not expected:  # else it is the same literal
                if expected.__class__ is not int or x.__class__ is Literal:
                    x = self.number(step, x, len(inputs))
                else:
                    node = x.node
                    if node is None or node is not slots[expected]:
                        node = self.operand(expected, x)
                    elif (storage := x.storage) is not None:
                        stamp = node.stamp
                        if stamp is None or stamp[0] is not storage or stamp[1] != storage.version:
                            node = self.operand(expected, x)
                    x = node
                if x is None:
                    self.unbind()
                    return None if guess else self.other(op, xs, modes)
            inputs.append(x)
        if self.bound:
            self.bound.clear()
        if step.checks and not checked:
            self.check(step, xs)
        if step.is_reused:
            return self.hand_out(step, tuple(inputs), modes.scope)
        return self.results(step, tuple(inputs)) if step.several else self.view(step, xs[0], inputs)

    def view(self, step: Step, x: Any, inputs: Sequence[Any]) -> Any:
        """Return the result of a step that is a view of `x`."""
        value = Pending(step.types[0], self)
        value.place = step.place
        node = Node(step.op, tuple(inputs), GRAD, value if step.saved else None, None, caller())
        value.node = self.slots[step.slot] = node
        self.made.append(value)
        self.at += 1
        out = wrap(value, node)
        link_view(out, step.op, x)
        return out

    def check(self, step: Step, xs: tuple[Any, ...]) -> None:
        """Raise an error for indices out of range; those that are pending are not checked."""
        if step.check is not None:
            step.check(xs)
        else:
            step.op.check_values(*[x.array if x.__class__ is Literal else x.raw for x in xs])

    def other(self, op: Any, xs: tuple[Any, ...], modes: Any) -> Any:
        """Return the pending result of an operation that is not the next step, or None.

        One that reads nothing pending runs at once, and the next step is waited for.
        """
        if any([is_pending(x.raw) for x in xs if x.__class__ is not Literal]):
            return self.side(op, xs, modes)
        self.waited += 1
        if self.waited > MAX_WAITED:
            self.stop()
        return None

    def number(self, step: Step, x: Any, position: int) -> Any:
        """Return an operand that is a literal, or should be one; None if it is not expected."""
        literal, key = step.literals[position], step.refs[position]
        if x.__class__ is not Literal or literal is None:
            return None
        if key.__class__ is not int:
            return x if x.key == key else None
        if x.dtype != literal.dtype:
            return None
        node = literal_node(x)  # its value is an operand
        self.slots[key], self.arrays[key] = node, node.saved
        return x

    def operand(self, slot: int, x: Any) -> Any:
        """Return the Node of an operand, None if it is not the expected one.

        The first that fills a slot is a leaf, or a captured value: perhaps one of this step itself.
        """
        node, raw = x.node, x.raw
        waits = raw.__class__ is Pending and raw.array is None
        if x.storage is not None and (node is not None or not waits):
            node = synchronize_node(x)
        bound = self.slots[slot]
        if bound is not None:
            return node if bound is node else None
        expected = self.expected_leaves.get(slot)
        if expected is None or raw is None or (waits and not self.can_fill(raw)):
            return None
        flags, dtype, shape, saved = expected
        if (raw.dtype is not dtype and raw.dtype != dtype) or raw.shape != shape:
            return None
        if node is None:
            node = x.node = Node(None, (), 0, raw if waits else x.value)
        if node.flags != flags or (flags and node.op is not None):
            return None
        if (cell := node.cell) is not None and cell.keep:
            return None  # every result retains its gradient
        if node in self.leaves:
            return None  # one value in two slots: its gradient would be split
        if waits:
            self.fills[slot] = raw
        else:
            owner = raw if raw.__class__ is Pending or raw.base is None else raw.base
            if exported or owner.__class__ is not np.ndarray or owner.base is not None:
                raw = owner = None  # they must have no names
                raw = self.captured(x)
                if raw is None:
                    return None
            else:  # nothing was ever handed out
                self.owners.add(id(owner))
        if saved:
            node.saved = x.raw
        self.slots[slot] = node
        self.arrays[slot] = raw
        self.leaves[node] = slot
        self.bound.append(slot)
        return node

    def unbind(self) -> None:
        """Forget the operands of an operation that is not the next step after all."""
        for slot in self.bound:
            node = self.slots[slot]
            self.slots[slot] = None
            del self.arrays[slot], self.leaves[node]
            self.fills.pop(slot, None)
        self.bound.clear()

    def results(self, step: Step, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the results of a step that has several; see `bind._bind_several`."""
        outs = self.several(step.op, inputs, step.types, step.slot)
        self.slots[step.slot] = outs[step.index].node
        self.at += 1
        return outs

    def touches(self, x: Any) -> bool:
        """True if a write to `x` changes what is pending."""
        array = x.raw
        return array.__class__ is not np.ndarray or id(owner_of(array)) in self.owners

    def compute(self, pending: Pending) -> None:
        """Something looks at a value: compute all that is pending, and follow no further."""
        if self.waiting is not None:
            self.waiting.stop()
            return
        if get_ident() != self.thread:
            known = dict(self.all_known())  # makes its Node, if it has none yet
            evaluate([pending.node], known, [pending])
            return
        self.stop()
        if pending.array is None:
            known = self.all_known()
            evaluate([pending.node], known, [pending])

    def all_known(self) -> dict[Any, Any]:
        """Return what every Node has as its value; those of the steps are only added here."""
        self.make_nodes()
        self.known.update([(value.node, value) for value in [*self.tape.values, *self.made]])
        self.known.update([(node, self.arrays[slot]) for node, slot in self.leaves.items()])
        for value in self.fills.values():  # nothing leads to a leaf
            evaluate([value.node], self.known, [value])
        return self.known

    def live_tensors(self) -> list[Any]:
        """Return the tensors whose values are still pending."""
        found = [x for x in self.tape.live() if is_pending(x.raw)]
        return [*found, *super().live_tensors()] if self.tensors else found

    def stop(self) -> None:
        """Compute what is pending one by one, and go on eagerly."""
        is_next = followers.get(self.thread) is self
        if is_next:
            del followers[self.thread]
        if not self.at:
            if is_next:
                self.sequence.idle.append(self)
            return
        self.sequence.misses += 1
        live = self.live_tensors()
        known, nodes = self.all_known(), self.nodes()
        wanted = {id(x.raw): x.raw for x in live}
        wanted.update({id(node.saved): node.saved for node in nodes if is_pending(node.saved)})
        evaluate([p.node for p in wanted.values()], known, list(wanted.values()))
        for node in nodes:
            if node.saved.__class__ is Pending:
                node.saved = node.saved.array
            if node.outs is not None:
                node.outs[:] = [(array_of(value), storage) for value, storage in node.outs]
        self.made += self.tape.values
        self.release(live)
        del self.tape, self.slots, self.outs  # it is not used again

    def keep_before_write(self, raws: Sequence[Any]) -> None:
        """Keep what is in these arrays: another thread writes to them, or NumPy sees them now.

        `backward()` runs eagerly then, which knows what was written.
        """
        if any([is_pending(x) and x.run is self for x in raws]):
            self.stop()
            return
        owners = {id(owner_of(x)) for x in raws if x.__class__ is np.ndarray}
        if owners.isdisjoint(self.owners):
            return
        self.is_overwritten = True
        for slot, x in list(self.arrays.items()):
            if x.__class__ is np.ndarray and id(owner_of(x)) in owners:
                self.arrays[slot] = x.copy()
        self.given[:] = [x.copy() if id(owner_of(x)) in owners else x for x in self.given]

    def nodes(self) -> list[Node]:
        """Return the Nodes of the steps that were followed."""
        steps = self.sequence.steps[: self.at]
        return [*[self.slots[step.slot] for step in steps], *self.others]

    def release(self, live: Sequence[Any]) -> None:
        """Give tensors their arrays, views those in the memory of their bases."""
        for x, memory in self.written.values():
            waiting = x.raw
            memory[...] = x.value
            x.raw = memory
            if waiting.__class__ is Pending:
                waiting.array = memory  # tensors that share the memory of `x` have it too
        for x in live:
            if x.origin is None:
                x.raw = x.value
            else:
                value = x.origin[1].eval(x.origin[0].value)
                if x.raw.__class__ is Pending:
                    x.raw.array = value
                x.raw = value
                if x.node is not None and x.node.saved is not None:
                    x.node.saved = x.raw
        for node in self.others:
            if not node.flags:
                node.op, node.inputs, node.outs = None, (), None
        if self.fills:
            for node, slot in self.leaves.items():
                if slot in self.fills:
                    node.saved = self.fills[slot].array
            self.fills = {}
        for value in self.made:
            value.node = value.run = None
        self.at = 0
        self.others, self.made, self.sides, self.given = [], [], [], []
        self.arrays, self.owners, self.leaves, self.written = {}, set(), {}, {}
        self.end()

    def free(self) -> None:
        """Drop the equations of the step, once: what something holds has no way back from there."""
        if self.is_freed:
            return
        self.is_freed = True
        nodes = [self.slots[slot] for slot in self.sequence.cut.inputs]
        leaves = tuple([node if node.cell is None else node.cell for node in nodes])
        self.made += self.tape.free(leaves, self.sequence.prepared.types)

    def prepare(self, root: Any, seed: np.ndarray) -> tuple[Cut, StepRun] | None:
        """Return the Cut that leads to a root, and forward and reverse pass as one program.

        None if the root is not the end of the sequence, or a hook is to be called on the way.
        """
        if self.at != len(self.sequence.steps) or self.is_overwritten:
            return None
        cut = self.sequence.cut.with_nodes(self.slots)
        if cut.slots[cut.outputs[0]] is not root.node or self.has_watchers(cut):  # type: ignore[index]
            return None
        live = self.live_tensors()
        kept = tuple([x.raw.place for x in live if x.origin is None])
        run = StepRun(self, live, kept, seed)
        return None if run.program is None else (cut, run)

    def has_watchers(self, cut: Cut) -> bool:
        """True if a result has hooks or retains its gradient."""
        return self.tape.is_attached() and has_watchers(cut, True)

    def expect_next(self, thread: int) -> None:
        """Follow what came after this step last time."""
        self.sequence.idle.append(self)
        expect_next(self.sequence, thread)


def prepare_followed(root: Any, seed: np.ndarray) -> tuple[Cut, StepRun] | None:
    """Return the Cut and the program of a step that was followed to this root, or None."""
    follower = followers.get(get_ident())
    if follower.__class__ is not Follower:
        return None
    found = follower.prepare(root, seed)
    if found is None:
        follower.stop()
    return found


# thread -> the sequence of its last backward pass
_last: dict[int, StepSequence] = new_cache(f"{__name__}._last", {})


def expect_next(sequence: StepSequence, thread: int) -> None:
    """Follow the sequence that came after this one last time."""
    before = _last.get(thread)
    if before is not None:
        if before.after is before and sequence is not before:
            before.misses = 0  # until now it was expected in the wrong place
        before.after = sequence
    _last[thread] = sequence
    following = sequence.after or sequence
    if following.misses >= MAX_MISSES:
        following.skipped += 1
        if following.skipped % RETRY:
            return
        following.misses = MAX_MISSES - 1
    try:
        follower = following.idle.pop()
    except IndexError:
        follower = Follower(following)
    follower.start(thread, sequence)
