"""step_run: a followed step that waits for the optimizer, and runs with its update as one program.

After `backward()` of a followed step, the loss and the gradients are pending. The optimizer's
compiled update then runs in one program with the forward and the reverse pass. Whatever else
happens first runs the forward and the reverse pass alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import is_
from threading import RLock, get_ident
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from lucid.autograd.following.rolled_step import append_graph
from lucid.autograd.following.step_sequence import End, Fills, Place, Side, StepSequence
from lucid.autograd.watch import has_hooks
from lucid.compiler.jit.fast_call import FastCall
from lucid.compiler.jit.hot_programs import compile_hot
from lucid.ir.graph import Graph, Var
from lucid.ir.types import Type
from lucid.ops.core.errstate import quiet
from lucid.ops.core.promote import Default
from lucid.tape.modes import current
from lucid.tape.node import GradCell, Traced, followers, wrap
from lucid.tape.recording.pending import Pending, PendingRun, has_array, is_pending
from lucid.tape.views import owner_of
from lucid.tape.writes import (
    can_defer_write,
    keep_for_others,
    mark_written,
    others_have_pending,
)

MAX_ALONE = 4  # steps in a row that ran without an update, before they no longer wait for one
RETRY = 64  # steps after which one waits again
MAX_UPDATES = 4  # programs of one sequence with an update

_add_into = quiet(np.add, into=True)
Array = ref[np.ndarray]


class Joint(NamedTuple):
    """How a step and an update run as one program; kept by the update for the next step.

    Arrays are weak references: one that NumPy has seen is not visible once nothing else holds it.

    kept, sides, given, fills    what the program gives, and computes besides the sequence
    others                arrays that the update reads, and the step does not
    tensors, arrays       tensors that the update reads, and the arrays that they had
    inputs, shared        numbers of the inputs of the step that it reads, and these arrays
    grads                 cells whose gradients it reads, each with its number or its array
    owners                ids of the memory that the program overwrites
    rest                  numbers of the inputs of the step that the update does not read
    """

    program: Any
    sequence: StepSequence
    kept: tuple[Place, ...]
    sides: list[Side]
    given: list[Type]
    fills: Fills
    others: list[Array]
    tensors: list[Any]
    arrays: list[Array]
    inputs: list[int]
    shared: list[Array]
    grads: list[tuple[Any, Any]]
    owners: set[int]
    rest: list[int]


class StepRun(PendingRun):
    """The forward and the reverse pass of one step, prepared to run.

    follower    what has followed the step
    live        the tensors whose values the step gives
    values      the Pendings of those that are not views
    program     the program of both passes, None if there is none
    inputs      the arrays that it takes
    kept, fills    what the program gives, and which leaves it computes
    grads       the gradients, in the order of the leaves, if they are pending
    sums        number of a gradient -> the tensor that it is added to, and its memory
    """

    at = 1  # something is pending
    steps = (End, End)  # and nothing is expected

    def __init__(
        self, follower: Any, live: Sequence[Any], kept: tuple[Place, ...], seed: np.ndarray
    ) -> None:
        super().__init__(defers=False)
        self.follower, self.live, self.kept = follower, live, kept
        self.sequence = follower.sequence
        self.thread = get_ident()
        self.values = [x.raw for x in live if x.origin is None]
        self.fills = tuple([(slot, x.place) for slot, x in follower.fills.items()])
        self.program = self.sequence.program(kept, follower.sides, follower.given, self.fills)
        self.inputs = [follower.arrays[slot] for slot in self.sequence.inputs]
        if self.fills:
            self.inputs = [x for x in self.inputs if x.__class__ is not Pending]
        self.inputs += follower.given
        self.inputs += [seed] * len(self.sequence.prepared.derivative.seeds)
        if self.program is not None:
            self.inputs += self.program.constants
        self.grads: list[Pending] = []
        self.sums: dict[int, tuple[Any, np.ndarray]] = {}

    def run(self) -> Sequence[np.ndarray]:
        """Run both passes: give the values to their tensors, and return the gradients."""
        return self.finish(self.program.program(self.inputs))  # type: ignore[union-attr]

    def finish(self, outputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Give values to tensors, and return the gradients."""
        self.sequence.misses = 0
        self.follower.free()
        for pending, array in zip(self.values, outputs):
            pending.array = array
        self.follower.release(self.live)
        return outputs[len(self.values) :]

    # Waiting for an update

    def wait(self, cells: Sequence[GradCell]) -> None:
        """Give leaves their gradients as values that are pending until an update, or a look."""
        types = [y.type for y in self.sequence.prepared.derivative.graph.outputs]
        self.grads = [Pending(type, self) for type in types]
        self.lock = RLock()
        self.follower.free()
        self.follower.waiting = self
        followers[self.thread] = self
        for i, (cell, pending) in enumerate(zip(cells, self.grads)):
            if cell.grad is None:
                cell.grad = wrap(pending)
            else:
                self.sums[i] = (cell.grad, cell.grad.raw)
                cell.grad.raw = pending

    def follow(self, op: Any, xs: tuple[Any, ...]) -> Any:
        """Run the step if the next one begins, and follow that."""
        tracked = [x for x in xs if getattr(x, "node", None) is not None and x.node.flags]
        if not (tracked and current().fast_record):
            return None
        self.stop()
        following = followers.get(get_ident())
        return None if following is None else following.follow(op, xs)

    def quick(self, op: Any, form: int, x: Any, y: Any = None) -> None:
        """Nothing is expected: see `follow`."""

    def touches(self, x: Any) -> bool:
        """True if a write to `x` changes what is pending."""
        return self.follower.touches(x)

    def keep_before_write(self, raws: Sequence[Any]) -> None:
        """Another thread writes to these arrays, or NumPy sees them: run both passes before."""
        with self.lock:
            if self.grads and any([is_read(self.follower, self, x) for x in raws]):
                self.stop()

    def defer_write(self, x: Any, new: Any) -> bool:
        """A gradient is not written before it is there."""
        return False

    def compute(self, pending: Pending) -> None:
        """Something looks at a value."""
        self.stop()

    def stop(self) -> None:
        """Run both passes without an update."""
        with self.lock:
            if self.grads:
                outputs = self.run()
                self.sequence.updates_missed += 1
                self.store(outputs)

    def store(self, outputs: Sequence[np.ndarray]) -> None:
        """Give the gradients their arrays, each in memory of its own, and follow the next step."""
        seen: set[int] = set()
        for i, (pending, array) in enumerate(zip(self.grads, outputs)):
            if i in self.sums:
                x, memory = self.sums[i]
                _add_into(memory, array)
                x.raw = array = memory
                mark_written(x)
            elif array.base is not None or id(array) in seen or not array.flags.writeable:
                array = array.copy()
            seen.add(id(array))
            pending.array = array
            pending.run = None
        follower = self.end_wait()
        follower.expect_next(self.thread)

    def end_wait(self) -> Any:
        """Let go of all arrays and of the follower, which is returned."""
        if followers.get(self.thread) is self:
            del followers[self.thread]
        follower = self.follower
        follower.waiting = self.follower = None
        self.grads, self.values, self.live, self.inputs, self.sums = [], [], [], [], {}
        return follower

    def join(self, path: Any) -> bool:
        """Run both passes and the update that `path` has recorded, as one program, if possible."""
        if not is_simple(path):
            return False
        with self.lock:
            if not self.grads:  # another thread has looked at a value
                return False
            if not self.repeats(path, path.joint):
                path.joint = self.new_joint(path)
            joint = path.joint
        if joint is None:
            return False
        if others_have_pending():
            keep_for_others([*self.inputs, *[array() for array in joint.others]])
        with self.lock:
            if not self.grads:
                return False
            try:
                outputs = joint.program([*self.inputs, *[array() for array in joint.others]])
            except BaseException:
                self.abandon()  # parameters may be half written
                raise
            n = len(self.values) + len(self.grads)
            self.store(self.finish(outputs[:n]))
            self.sequence.updates_missed = 0
        path.write(path.written, outputs[n:])
        return True

    def abandon(self) -> None:
        """Leave what is pending without a value; statistics keep the one before this step."""
        for x, memory in self.follower.written.values():
            if x.raw.__class__ is Pending:
                x.raw.array = memory  # tensors that share the memory of `x` have it too
            x.raw = memory
        for pending in (*self.values, *self.grads):
            pending.run = pending.node = None
        self.end_wait()

    def repeats(self, path: Any, joint: Joint | None) -> bool:
        """True if this step and an update join as they did last time."""
        inputs, grads, given = self.inputs, self.grads, self.follower.given
        if joint is None or joint.sequence is not self.sequence or joint.kept != self.kept:
            return False
        if joint.sides != self.follower.sides or len(joint.given) != len(given):
            return False
        if joint.fills != self.fills:
            return False
        for type, x in zip(joint.given, given):
            if type.dtype != x.dtype or type.shape != x.shape:
                return False
        if not all(map(is_, [x.raw for x in joint.tensors], [array() for array in joint.arrays])):
            return False
        if not all(map(is_, [inputs[i] for i in joint.inputs], [x() for x in joint.shared])):
            return False
        for source, expected in joint.grads:
            x = source if isinstance(source, Traced) else source.grad
            if expected.__class__ is int:
                if expected in self.sums:
                    return False
                expected = grads[expected]
            else:
                expected = expected()
            if x is None or x.raw is not expected:
                return False
        return not any([id(owner_of(inputs[i])) in joint.owners for i in joint.rest])

    def new_joint(self, path: Any) -> Joint | None:
        """Return how this step and an update run as one program, or None."""
        wiring = self.wiring(path)
        if wiring is None:
            return None
        places, others = wiring
        program = self.program_with(path, places, others)
        values = [*self.inputs, *others]
        overwritten = getattr(program, "overwritten", ())
        if program is None or not are_apart(values, overwritten):
            return None
        n = len(self.inputs)
        read: list[tuple[Any, Any]] = [
            (x, ~i if i < 0 else ref(values[i])) for x, i in zip(path.sources, places)
        ]
        plain = [isinstance(x, Traced) and y.__class__ is not int for x, y in read]
        inputs = [i for i in places if 0 <= i < n]
        return Joint(
            program, self.sequence, self.kept, list(self.follower.sides),
            [Type(x.dtype, x.shape) for x in self.follower.given], self.fills,
            [ref(x) for x in others],
            [x for (x, _), is_plain in zip(read, plain) if is_plain],
            [array for (_, array), is_plain in zip(read, plain) if is_plain],
            inputs, [ref(values[i]) for i in inputs],
            [pair for pair, is_plain in zip(read, plain) if not is_plain],
            {id(owner_of(values[i])) for i in overwritten},
            [i for i in range(n) if i not in set(places)],
        )  # fmt: skip

    def wiring(self, path: Any) -> tuple[tuple[int, ...], list[np.ndarray]] | None:
        """Return where the update finds its operands, and arrays that the step does not have.

        A number n is an input of the step, ~n a gradient, and those after the inputs of the step
        are the other arrays.
        """
        inputs = {id(x): i for i, x in enumerate(self.inputs)}
        grads = {id(x): i for i, x in enumerate(self.grads) if i not in self.sums}
        places: list[int] = []
        others: list[np.ndarray] = []
        raws = [x.raw if x is not None else None for x in path.captured_tensors()]
        for var, raw in zip(path.graph.inputs, [*raws, *path.constants], strict=True):
            if raw is None or raw.dtype != var.type.dtype or raw.shape != var.type.shape:
                return None
            if id(raw) in grads:
                places.append(~grads[id(raw)])
            elif raw.__class__ is Pending:
                return None
            elif id(raw) in inputs:
                places.append(inputs[id(raw)])
            else:
                places.append(len(self.inputs) + len(others))
                others.append(raw)
        if len({*places}) < len(places):
            return None  # two tensors have one array, which both may write
        return tuple(places), others

    def program_with(self, path: Any, places: tuple[int, ...], others: Sequence[np.ndarray]) -> Any:
        """Return the program of both passes and an update."""
        updates, sides = self.sequence.updates, self.follower.sides
        aliases = tuple(path.into.items())
        outside = tuple([(x.dtype, x.shape) for x in self.follower.given])
        keys = [side.key for side in sides]
        key = (self.kept, self.fills, outside, *keys, path.graph, places, aliases)
        found = updates.get(key)
        if found is not None:
            return found[0]
        while len(updates) >= MAX_UPDATES:
            del updates[next(iter(updates))]
        step = self.program.graph  # type: ignore[union-attr]
        starts = [*step.inputs, *[Var(Type(x.dtype, x.shape)) for x in others]]
        grads = step.outputs[len(self.kept) :]
        operands = [grads[~i] if i < 0 else starts[i] for i in places]
        equations = list(step.equations)
        ends = append_graph(equations, path.graph, operands)[: len(path.written)]
        n = len(step.outputs)
        into = {n + y: places[x] for y, x in path.into.items() if places[x] >= 0 and y < len(ends)}
        graph = Graph("step", tuple(starts), tuple(equations), (*step.outputs, *ends))
        program = compile_hot(graph, into)
        updates[key] = (program, list(sides))  # what the key has the ids of
        return program


def are_apart(values: Sequence[np.ndarray], overwritten: Sequence[int]) -> bool:
    """True if the arrays with these numbers share no memory with any other."""
    owners = [id(owner_of(x)) for x in values]
    counts = Counter(owners)
    return all([counts[owners[i]] == 1 for i in overwritten])


def is_read(follower: Any, run: StepRun, raw: Any) -> bool:
    """True if an array is one that a waiting step reads, or has not computed yet."""
    if raw.__class__ is np.ndarray:
        return id(owner_of(raw)) in follower.owners
    return is_pending(raw) and raw.run in (follower, run)


def expects_update(sequence: StepSequence) -> bool:
    """True if the update of an optimizer is likely to come next, and can run with the step."""
    if sequence.has_update and sequence.updates_missed >= MAX_ALONE:
        sequence.updates_missed += 1
        return sequence.updates_missed % RETRY == 0
    return sequence.has_update


def can_wait(run: StepRun, cells: Sequence[GradCell | None]) -> bool:
    """True if an update comes next, and the leaves can take gradients that are pending."""
    if not run.sequence.prepared.complete or not expects_update(run.sequence):
        return False
    seen: set[int] = set()
    for cell, grad in zip(cells, run.sequence.prepared.derivative.graph.outputs):
        if cell is None or cell.frozen or has_hooks(cell):
            return False
        x = cell.grad
        if x is None:
            continue
        if has_array(x.raw):
            x.raw = x.value
        if x.raw.__class__ is not np.ndarray or id(x) in seen or not can_defer_write(x):
            return False
        if x.raw.dtype != grad.type.dtype or x.raw.shape != grad.type.shape:
            return False
        seen.add(id(x))
    return True


def is_simple(path: Any) -> bool:
    """True if a recorded update only writes tensors, and its state is as recorded."""
    modes, call = current(), path.fast_call
    return (
        type(call) is FastCall
        and modes.grad is path.grad
        and modes.no_observers
        and Default.floating is path.default
        and not (call.n_args or call.checks or path.guards or path.n_outputs)
        and not (path.written_arguments or path.cleared)
        and path.leaves_gradients
        and not path.needs_grad()
        and path.state_holds()
    )


def run_update(jitted: Any) -> bool:
    """Run an optimizer's jitted update with the step that waits for it; False if none does."""
    waiting = followers.get(get_ident())
    if waiting is None:
        return False
    if waiting.__class__ is StepRun:
        if jitted.last is not None and waiting.join(jitted.last):
            return True
        waiting.stop()
    elif waiting.at == 0 and waiting.before is not None:
        waiting.before.has_update = jitted.last is not None
        waiting.before = None
    return False
