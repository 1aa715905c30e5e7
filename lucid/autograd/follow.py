"""follow: a step that repeats is followed instead of executed, and runs as one program.

The tape of a hot `backward()` is a sequence of equations. After it the next tracked operations are
expected to be the same sequence: as long as each is the expected one on the expected operands, its
result is pending, and `backward()` runs forward and reverse pass together as one native program.
Whatever else happens first (an operation that differs, a look at a value, a write to any memory, a
jitted call, NumPy getting an array) computes what is pending one by one, and goes on eagerly.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import _getframe
from threading import get_ident
from typing import Any

import numpy as np

from lucid.autograd.watch import has_watchers
from lucid.caches import new_cache
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.primitive import HEAVY
from lucid.source import is_internal
from lucid.tape import node as tape
from lucid.tape.cut import Cut, can_be_template, literal_node
from lucid.tape.modes import current
from lucid.tape.node import GRAD, Node, followers, next_serial, wrap
from lucid.tape.pending import Pending, PendingRun, evaluate, is_pending, may_fail
from lucid.tape.tiering import DERIVATIVE, Tiering, table
from lucid.tape.views import is_exported, link_view, synchronize_node
from lucid.transforms.prepare import Prepared

MAX_MISSES = 4  # steps in a row that were not followed to their end, before a sequence is given up
MAX_VARIANTS = 4  # programs of one sequence, by the values that are kept
MAX_COPIED = 1 << 18  # elements of an operand whose memory NumPy sees
MAX_WAITED = 256  # operations that are not the first step, before it is no longer expected
HEAVY_SHARE = 4  # one of so many equations must be a matrix product, a convolution, a Region, ...
MAX_EQUATIONS = 2000

_new = object.__new__


class Step:
    """One expected equation.

    refs        the slots of its operands; of those that are literals, their keys
    literals    the operands that are literals, None for others
    slot        the slot of its result
    check       what checks the indices of a Region, or None
    """

    __slots__ = ("check", "literals", "op", "refs", "slot", "type")

    def __init__(self, row: tuple[Any, ...], inputs: Sequence[Any], type: Any) -> None:
        self.op, self.refs, self.slot = row[0], row[1], row[2]
        self.literals = [x if x.__class__ is Literal else None for x in inputs]
        self.type = type
        checks = self.op.is_region and graph_checks(self.op)
        self.check = IndexCheck(self.op.graph) if checks else None


class StepSequence:
    """The equations that lead to a hot `backward()`, and the programs that run both.

    cut         its structure, without values
    steps       its equations in the order of execution
    leaves      slot -> (flags, dtype, shape) of inputs and captured values
    programs    slots of values that are kept -> (program, those slots)
    misses      how many steps in a row were not followed to their end
    following   the sequence that came after this one last time
    """

    def __init__(self, cut: Cut, prepared: Prepared) -> None:
        self.cut = cut.with_nodes([None] * len(cut.slots))
        self.prepared = prepared
        self.graph, self.vars = cut.build()
        types = prepared.types
        self.steps = [Step(row, cut.slots[row[2]].inputs, types[row[2]]) for row in cut.rows]
        self.step_of = {step.slot: number for number, step in enumerate(self.steps)}
        self.leaves: dict[int, tuple[int, Any, Any]] = {}
        for slot, node in enumerate(cut.slots):
            if slot not in self.step_of:
                self.leaves[slot] = (node.flags & GRAD, types[slot].dtype, types[slot].shape)
        self.inputs = list(self.leaves)
        self.programs: dict[tuple[int, ...], Any] = {}
        self.misses = 0
        self.after: StepSequence | None = None

    def program(self, kept: tuple[int, ...]) -> Any:
        """Return the program that gives the values of these slots and the derivatives, or None."""
        found = self.programs.get(kept)
        if found is None and len(self.programs) < MAX_VARIANTS and Tiering.compile is not None:
            found = self.programs[kept] = Tiering.compile(self.joined_graph(kept))
        return found

    def joined_graph(self, kept: tuple[int, ...]) -> Graph:
        """Return the Graph of the forward pass followed by its derivative."""
        derivative = self.prepared.derivative
        inner = derivative.graph
        n = len(self.prepared.residuals)
        env: dict[Any, Any] = dict(
            zip(inner.inputs, [self.vars[slot] for slot, _ in self.prepared.residuals])
        )
        extra = [Var(var.type) for var in inner.inputs[n:]]
        env.update(zip(inner.inputs[n:], extra))
        equations = list(self.graph.equations)
        for eqn in inner.equations:
            outputs = tuple([Var(y.type) for y in eqn.outputs])
            env.update(zip(eqn.outputs, outputs))
            inputs = tuple([x if isinstance(x, Literal) else env[x] for x in eqn.inputs])
            equations.append(Equation(eqn.op, inputs, outputs, eqn.source))
        ends = [x if isinstance(x, Literal) else env[x] for x in inner.outputs]
        starts = [self.vars[slot] for slot in self.inputs] + extra
        values = [self.vars[slot] for slot in kept]
        return Graph("step", tuple(starts), tuple(equations), (*values, *ends))


def can_follow(cut: Cut, prepared: Prepared) -> bool:
    """True if the tape of a backward pass can be followed: every equation may wait."""
    if not can_be_template(cut) or len(cut.rows) > MAX_EQUATIONS or len(cut.outputs) != 1:
        return False
    if len(set(cut.inputs)) != len(cut.inputs) or any([i >= 0 for _, i in prepared.residuals]):
        return False
    serials = [cut.slots[row[2]].serial for row in cut.rows]
    if serials != sorted(serials):
        return False
    for op, refs, slot, _, _ in cut.rows:
        inputs = cut.slots[slot].inputs
        types = [prepared.types[r] if r.__class__ is int else x.type for x, r in zip(inputs, refs)]
        if not can_follow_op(op) or isinstance(infer(op, tuple(types)), tuple):
            return False
    return True


def is_worthwhile(cut: Cut) -> bool:
    """True if following a tape is faster than running it: it has enough of heavy operations.

    A small elementwise operation takes NumPy less time than it takes Python to follow it.
    """
    ops = [row[0] for row in cut.rows]
    heavy = [op for op in ops if op.is_region or op.native_from <= HEAVY]
    return len(heavy) * HEAVY_SHARE >= len(ops)


def can_follow_op(op: Any) -> bool:
    """True if an operation need not run at once: what could fail is checked when it is followed."""
    if may_fail(op) or op.ordered:
        return False
    return not op.holds_graphs or op.is_region or not graph_checks(op)


def graph_checks(op: Any) -> list[Equation]:
    """Return the equations in the Graphs of `op` that fail for indices out of range."""
    fields = [x if isinstance(x, tuple) else (x,) for x in op.params().values()]
    inside = [eqn for field in fields for x in field if isinstance(x, Graph) for eqn in x.equations]
    return [
        eqn
        for eqn in inside
        if eqn.op.checks_values or (eqn.op.holds_graphs and graph_checks(eqn.op))
    ]


class IndexCheck:
    """Checks the indices that the equations of a Region read, without computing anything else.

    checks    the equations that read indices
    needed    the equations that lead to these indices
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.checks = [eqn for eqn in graph.equations if eqn.op.checks_values]
        wanted = {x for eqn in self.checks for x in eqn.inputs if x.type.dtype.kind in "iu"}
        self.needed: list[Equation] = []
        for eqn in reversed(graph.equations):
            if not wanted.isdisjoint(eqn.outputs):
                self.needed.insert(0, eqn)
                wanted.update([x for x in eqn.inputs if isinstance(x, Var)])
        self.inputs = [(i, x) for i, x in enumerate(graph.inputs) if x in wanted]

    def __call__(self, xs: Sequence[Any]) -> None:
        """Raise an error if an index is out of range; those that are pending are not checked."""
        env: dict[Any, Any] = {x: xs[i].raw for i, x in self.inputs}
        if any([value.__class__ is not np.ndarray for value in env.values()]):
            return
        for eqn in self.needed:
            out = eqn.op.eval(*[x.array if isinstance(x, Literal) else env[x] for x in eqn.inputs])
            env.update(zip(eqn.outputs, out if isinstance(out, tuple) else (out,)))
        for eqn in self.checks:
            eqn.op.check_values(*[env.get(x, x.type) for x in eqn.inputs])


class Follower(PendingRun):
    """Follows a sequence in one thread, from the end of a backward pass to the next one.

    known     Node -> array or Pending
    slots     Nodes by slot, as far as they are known
    arrays    arrays of inputs and captured values by slot
    at        the number of the step that is expected next
    waited    how many operations were not the first step
    """

    def __init__(self, sequence: StepSequence) -> None:
        super().__init__(defers=False)
        self.sequence = sequence
        self.thread = get_ident()
        self.slots: list[Any] = [None] * len(sequence.cut.slots)
        self.arrays: dict[int, Any] = {}
        self.at = 0
        self.waited = 0

    def follow(self, op: Any, xs: tuple[Any, ...]) -> Any:
        """Return the pending result of the expected operation; None if it must be computed."""
        modes = current()
        if not modes.fast_record or not any([x.node is not None and x.node.flags for x in xs]):
            return None
        steps = self.sequence.steps
        if self.at == len(steps) or op is not steps[self.at].op:
            return self.mismatch()
        step = steps[self.at]
        inputs = self.operands(step, xs)
        if inputs is None:
            return self.mismatch()
        if op.checks_values:
            op.check_values(*[x.array if x.__class__ is Literal else x.raw for x in xs])
        elif step.check is not None:
            step.check(xs)
        return self.result(step, xs, inputs, modes.scope)

    def mismatch(self) -> None:
        """Stop following; before the first step, go on waiting for it."""
        if self.at:
            self.stop()
            return
        self.slots = [None] * len(self.slots)
        self.arrays.clear()
        self.known.clear()
        self.waited += 1
        if self.waited > MAX_WAITED:
            self.stop()

    def operands(self, step: Step, xs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the Nodes and Literals of the operands, None if they are not the expected ones."""
        if len(xs) != len(step.refs):
            return None
        slots, found = self.slots, []
        for x, ref, literal in zip(xs, step.refs, step.literals):
            if x.__class__ is Literal:
                if literal is None:
                    return None
                if ref.__class__ is int:  # its value is an operand
                    if x.dtype != literal.dtype:
                        return None
                    node = literal_node(x)
                    slots[ref], self.arrays[ref] = node, node.saved
                elif x is not literal and x.key != ref:
                    return None
                found.append(x)
                continue
            if literal is not None:
                return None
            node = x.node if x.storage is None else synchronize_node(x)
            bound = slots[ref]
            if bound is None:
                node = self.leaf(ref, x, node)
                if node is None:
                    return None
            elif bound is not node:
                return None
            if step.op.saves_x:
                node.saved = x.raw
            found.append(node)
        return tuple(found)

    def leaf(self, slot: int, x: Any, node: Any) -> Any:
        """Return the Node of an operand from outside the sequence, None if another is expected."""
        expected = self.sequence.leaves.get(slot)
        array = x.raw
        if expected is None or array.__class__ is not np.ndarray:
            return None
        flags, dtype, shape = expected
        if array.dtype != dtype or array.shape != shape:
            return None
        if node is None:
            node = x.node = Node(None, (), 0, array)
        if node.flags != flags or (flags and node.op is not None):
            return None
        if node.cell is not None and node.cell.keep:
            return None  # every result retains its gradient
        if node in self.known:
            return None  # one value in two slots: its gradient would be split
        if is_exported(array):
            if array.size > MAX_COPIED:
                return None
            array = array.copy()  # NumPy may write to this memory
        self.slots[slot] = node
        self.arrays[slot] = self.known[node] = array
        return node

    def result(self, step: Step, xs: tuple[Any, ...], inputs: tuple[Any, ...], scope: Any) -> Any:
        """Return the result of a step as a tensor on the tape whose value is pending."""
        op = step.op
        value = Pending(step.type, self)
        node = _new(Node)
        node.op = op
        node.inputs = inputs
        node.flags = GRAD
        node.saved = value if op.saves_y else None
        node.serial = next_serial()
        frame = _getframe(3)
        while is_internal(frame.f_code.co_filename) and frame.f_back is not None:
            frame = frame.f_back
        node.source = (frame.f_code, frame.f_lasti, scope)
        value.node = node
        self.known[node] = value
        self.slots[step.slot] = node
        self.at += 1
        out = _new(tape.tensor_class)
        out.raw, out.node = value, node
        out.storage = out.origin = None
        self.watch(out)
        if op.is_view:
            link_view(out, op, xs[0])
        return out

    def compute(self, pending: Pending) -> None:
        """Something looks at a value: compute all that is pending, and follow no further."""
        if get_ident() != self.thread:
            evaluate([pending.node], dict(self.known), [pending])
            return
        self.stop()
        if pending.array is None:
            evaluate([pending.node], self.known, [pending])

    def stop(self) -> None:
        """Compute what is pending one by one, and go on eagerly."""
        if followers.get(get_ident()) is self:
            del followers[get_ident()]
        if not self.at:
            return
        self.sequence.misses += 1
        live = self.live_tensors()
        nodes = self.nodes()
        wanted = {id(x.raw): x.raw for x in live}
        wanted.update({id(node.saved): node.saved for node in nodes if is_pending(node.saved)})
        evaluate([p.node for p in wanted.values()], self.known, list(wanted.values()))
        for node in nodes:
            if node.saved.__class__ is Pending:
                node.saved = node.saved.array
        self.release(live)

    def nodes(self) -> list[Node]:
        """Return the Nodes of the steps that were followed."""
        return [self.slots[step.slot] for step in self.sequence.steps[: self.at]]

    def release(self, live: Sequence[Any]) -> None:
        """Give tensors their arrays, views those in the memory of their bases."""
        for x in live:
            if x.origin is None:
                x.raw = x.value
            else:
                x.raw = x.origin[1].eval(x.origin[0].value)
                if x.node is not None and x.node.saved is not None:
                    x.node.saved = x.raw
        self.at = 0
        self.end()

    def run(self, root: Any, seed: np.ndarray) -> tuple[Cut, list[Any]] | None:
        """Run forward and reverse pass from a root as one program: return the Cut and gradients.

        None if the root is not the end of the sequence, or a hook is to be called on the way.
        """
        sequence = self.sequence
        prepared, steps = sequence.prepared, sequence.steps
        cut = sequence.cut.with_nodes(self.slots)
        if self.at != len(steps) or cut.slots[cut.outputs[0]] is not root.node:  # type: ignore[index]
            return None
        if has_watchers(cut, True):
            return None
        live = self.live_tensors()
        slot_of = {id(self.known[self.slots[step.slot]]): step.slot for step in steps}
        kept = tuple([slot_of[id(x.raw)] for x in live if x.origin is None])
        program = sequence.program(kept)
        if program is None:
            return None
        derivative = prepared.derivative
        given = [self.arrays[slot] for slot in sequence.inputs]
        outputs = program([*given, *[seed for _ in derivative.seeds], *derivative.constants])
        followers.pop(get_ident(), None)
        sequence.misses = 0
        for slot, value in zip(kept, outputs):
            self.known[self.slots[slot]].array = value
        self.release(live)
        return cut, derivative.with_zeros([wrap(y) for y in outputs[len(kept) :]])


def run_followed(root: Any, seed: np.ndarray) -> tuple[Cut, StepSequence, list[Any]] | None:
    """Return the Cut, its sequence and the gradients of a step that was followed, or None."""
    follower = followers.get(get_ident())
    if follower is None:
        return None
    found = follower.run(root, seed)
    if found is None:
        follower.stop()
        return None
    return found[0], follower.sequence, found[1]


# thread -> the sequence of its last backward pass
_last: dict[int, StepSequence] = new_cache(f"{__name__}._last", {})


def learn(cut: Cut) -> StepSequence | None:
    """Return the sequence of a backward pass that is hot, before its tape is freed."""
    found: StepSequence | bool | None = cut.prepared.get("sequence")
    if found is None:
        prepared = cut.prepared.get(("vjp", True))
        if prepared is None:
            return None
        entry = table.entries.get((DERIVATIVE, prepared.derivative.graph))
        if entry is None or getattr(entry.program, "plan", None) is None:
            return None
        wanted = is_worthwhile(cut) and can_follow(cut, prepared)
        found = StepSequence(cut, prepared) if wanted else False
        cut.prepared["sequence"] = found
    return found if isinstance(found, StepSequence) else None


def expect_next(sequence: StepSequence) -> None:
    """Follow the sequence that came after this one last time."""
    thread = get_ident()
    before = _last.get(thread)
    if before is not None:
        before.after = sequence
    _last[thread] = sequence
    following = sequence.after or sequence
    if following.misses < MAX_MISSES:
        followers[thread] = Follower(following)
