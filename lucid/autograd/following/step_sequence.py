"""step_sequence: the operations of a step that repeats, and the programs that run all of them.

The equations that lead to a hot `backward()` become a StepSequence, if every one of them may wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from operator import itemgetter
from sys import _getframe
from typing import Any, NamedTuple

import numpy as np

from lucid.autograd.following.rolled_step import append_graph, rolled_graph, rolls
from lucid.compiler.passes.loops import MIN_EQUATIONS
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.types import Type
from lucid.ops.higher_order.call import Call
from lucid.support.source import internal_files
from lucid.tape.cut import Cut
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.node import GRAD, ONE, PAIR, REFLECTED, SCALAR
from lucid.tape.recording.pending import may_fail
from lucid.tape.template import can_be_template
from lucid.tape.tiering import DERIVATIVE, Tiering, table
from lucid.transforms.prepare import Prepared

MAX_VARIANTS = 4  # programs of one sequence, by the values that are kept
HEAVY_SHARE = 4  # one of so many equations must be a matrix product, a convolution, a Region, ...
HEAVY_SIZE = 2048  # or have so many elements
MANY, TOO_MANY = 16, 64  # or there are so many equations, which compile in about a second
FEW = 8  # so many equations must have such elements

Place = tuple[int, int]  # a value: its slot, or ~number of a side operation; which result, or -1
Fills = tuple[tuple[int, Place], ...]  # slots of leaves, and the values of the step that fill them


class Step:
    """One expected equation.

    refs        the slots of its operands; of those that are literals, their keys
    expects     the slots of its operands, or the literals
    literals    the operands that are literals, None for others
    slot        the slot of its result, or of that one of several that the others are made of
    index       the number of that result
    types       the types of all results
    several     whether the operation returns a tuple
    saves_x     whether its operands are saved for its derivative
    saved       whether its result is saved for a derivative
    checks      whether there are indices to check
    check       what checks the indices of a Region, or None
    place       its place as a value
    depth       how far up the stack the user's line was, as `Follower.hand_out` sees it
    is_reused   whether the next step can return the same tensor, see `step_tape`
    reads_outside    whether it reads leaves, or results that are made anew for every step
    inputs_in   the function of the Nodes by slot that returns those of its operands
    form        how its operands are given, if nothing is checked and it is one of the common forms
    first, second    the slots of the tensors among them
    literal, number    the Python number among them, as a literal and as it is
    call        the call of a function that it was, see `ops.higher_order.expected_call`
    """

    __slots__ = (
        "call", "check", "checks", "depth", "dtype", "expects", "first", "form", "index",
        "inputs_in", "is_reused", "is_view", "literal", "literals", "number", "op", "place",
        "reads_outside", "refs", "saved", "saves_x", "second", "several", "shape", "slot", "types",
    )  # fmt: skip

    def __init__(self, row: tuple[Any, ...], inputs: Sequence[Any], types: Sequence[Any]) -> None:
        self.op, self.refs, self.slot, _, self.index = row
        self.literals = [x if x.__class__ is Literal else None for x in inputs]
        operands = [types[r] if r.__class__ is int else x.type for x, r in zip(inputs, self.refs)]
        found = infer(self.op, tuple(operands))
        self.several = isinstance(found, tuple)
        self.types = found if isinstance(found, tuple) else (found,)
        self.dtype, self.shape = self.types[self.index].dtype, self.types[self.index].shape
        self.expects = [r if r.__class__ is int else x for x, r in zip(self.literals, self.refs)]
        self.inputs_in = inputs_of(self.expects)
        self.saves_x = bool(self.op.saves_x or self.several)
        checks = self.op.is_region and graph_checks(self.op)
        self.check = IndexCheck(self.op.graph) if checks else None
        self.checks = bool(checks or self.op.checks_values)
        self.saved = bool(self.op.saves_y)
        self.is_view = bool(self.op.is_view)
        self.place: Place = (self.slot, -1)
        self.depth = 1  # not 0: a frame that holds itself is garbage, with all of its operands
        self.is_reused = not (self.several or self.is_view)
        self.reads_outside = False  # `StepSequence` sets it
        self.form, self.first, self.second = 0, -1, -1
        self.literal: Any = None
        self.number: Any = None
        self.call: Any = None
        if self.is_reused and not self.checks:
            self.set_form()

    def set_form(self) -> None:
        """Find out which of the common forms the operation has."""
        tensors = [x is None for x in self.literals]
        slots = [ref for ref, is_tensor in zip(self.refs, tensors) if is_tensor]
        if tensors == [True]:
            self.form, self.first = ONE, slots[0]
        elif tensors == [True, True]:
            self.form, (self.first, self.second) = PAIR, slots
        elif tensors in ([True, False], [False, True]):
            literal: Any = self.expects[tensors.index(False)]
            if literal.__class__ is not int and is_plain(literal):  # an int is the slot of a value
                self.form, self.first = SCALAR if tensors[0] else REFLECTED, slots[0]
                self.literal, self.number = literal, literal.value


def inputs_of(expects: Sequence[Any]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return the function that takes operands from the Nodes by slot; literals stay as they are."""
    if len(expects) > 1 and all([x.__class__ is int for x in expects]):
        return itemgetter(*expects)  # a third of the time of the other
    return lambda slots: tuple([slots[x] if x.__class__ is int else x for x in expects])


def is_plain(literal: Any) -> bool:
    """True for a number that is the same literal for every Python number that is equal to it."""
    return literal.dtype.kind == "f" and 0 < abs(literal.value) < 60000


def find_source(step: Step, scope: Any) -> tuple[Any, int, Any]:
    """Return the user's line that calls a step; its place on the stack is tried first next time."""
    depth = 2
    frame = _getframe(depth)
    while internal_files[frame.f_code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
        depth += 1
    step.depth = depth - 1  # as the caller counts
    return (frame.f_code, frame.f_lasti, scope)


class End:
    """What comes after the last step: no operation."""

    op = call = None
    is_reused = False


class StepSequence:
    """The equations that lead to a hot `backward()`, and the programs that run both.

    cut         its structure, without values
    steps       its equations in the order of execution
    leaves      slot -> (flags, dtype, shape, saved) of inputs and captured values
    programs    (places of values that are kept, side operations) -> the program of all
    misses      how many steps in a row were not followed to their end
    skipped     how many steps were not followed because of that
    updates     programs that run the update of an optimizer too, see `step_run`
    has_update  whether an optimizer's compiled update came after the step
    updates_missed    how many steps in a row waited for one in vain
    after       the sequence that came after this one last time
    is_rolled   whether its programs are those of its loops, see `rolled_step`
    remade      the numbers of the steps whose results are made anew every time
    outside_readers    the slots of the results of other steps that read leaves, or such results
    idle        Followers that the next step can use
    """

    def __init__(self, cut: Cut, prepared: Prepared) -> None:
        self.cut = cut.with_nodes([None] * len(cut.slots))
        self.prepared = prepared
        self.graph, self.vars = cut.build()
        types = prepared.types
        self.steps = [Step(row, cut.slots[row[2]].inputs, types) for row in cut.rows]
        self.step_of = {step.slot: number for number, step in enumerate(self.steps)}
        self.steps_and_end: list[Any] = [*self.steps, End]
        saved = {slot for step in self.steps if step.saves_x for slot in step.refs}
        for step in self.steps:
            step.saved = step.saved or step.slot in saved
        self.leaves: dict[int, tuple[int, Any, Any, bool]] = {}
        for slot, node in enumerate(cut.slots):
            if slot not in self.step_of:
                type = types[slot]
                self.leaves[slot] = (node.flags & GRAD, type.dtype, type.shape, slot in saved)
        self.inputs = list(self.leaves)
        kept = {step.slot for step in self.steps if step.is_reused}
        for step in self.steps:
            step.reads_outside = any([r.__class__ is int and r not in kept for r in step.refs])
        self.remade = [i for i, step in enumerate(self.steps) if not step.is_reused]
        self.outside_readers = [
            step.slot for step in self.steps if step.is_reused and step.reads_outside
        ]
        self.idle: list[Any] = []
        self.programs: dict[Any, StepProgram | None] = {}
        self.misses = self.skipped = 0
        self.updates: dict[Any, tuple[Any, Any]] = {}
        self.has_update = False
        self.updates_missed = 0
        self.after: StepSequence | None = None
        self.is_rolled = self.can_roll()

    def program(
        self,
        kept: tuple[Place, ...],
        sides: Sequence[Side],
        given: Sequence[np.ndarray],
        fills: Fills,
    ) -> StepProgram | None:
        """Return the program that gives these values and the derivatives, or None.

        given    arrays from outside that side operations read
        fills    the leaves that it computes itself, see `SideOperations.fills`
        """
        key: Any = kept
        if sides:
            outside = tuple([(x.dtype, x.shape) for x in given])
            key = (kept, outside, *[side.key for side in sides])
        if fills:
            key = (key, fills)
        found = self.programs.get(key, self)
        if found is not self:
            return found  # type: ignore[return-value]
        if len(self.programs) >= MAX_VARIANTS or Tiering.compile is None:
            return None
        types = [Type(x.dtype, x.shape) for x in given]
        made = self.joined_graph(kept, sides, types, fills)
        program = None
        if made is not None:
            program = StepProgram(Tiering.compile(made[0]), *made, list(sides))
        self.programs[key] = program
        return program

    def var(self, slot: int, index: int) -> Var:
        """Return the Var of a value of the step."""
        if index < 0:
            return self.vars[slot]
        return self.graph.equations[self.step_of[slot]].outputs[index]

    def joined_graph(
        self,
        kept: Iterable[Place],
        sides: Sequence[Side],
        types: Sequence[Type],
        fills: Fills,
    ) -> tuple[Graph, list[np.ndarray]] | None:
        """Return the Graph of the forward pass, side operations and the derivative, or None.

        It takes the leaves that it does not compute itself, what side operations read (of these
        types), the seeds, and the constants that are returned.
        """
        equations: list[Equation] = []
        made: list[Sequence[Var]] = []
        given = [Var(type) for type in types]

        def var(slot: int, index: int) -> Var:
            return made[~slot][index] if slot < 0 else self.var(slot, index)

        def add(eqn: Equation, slot: int) -> None:
            equations.append(eqn)
            for i, y in enumerate(eqn.outputs):
                for leaf in [x for x, place in fills if place in ((slot, i), (slot, -1))]:
                    detached = Equation(STOP_GRADIENT, (y,), (self.vars[leaf],), None)
                    equations.append(detached)

        waiting = list(enumerate(sides))
        for number in range(len(self.steps) + 1):
            while waiting and waiting[0][1].at <= number:
                k, side = waiting.pop(0)
                inputs = [
                    given[ref] if ref.__class__ is int else ref if ref.__class__ is Literal
                    else var(*ref) for ref in side.refs
                ]  # fmt: skip
                made.append([Var(type) for type in side.types])
                add(Equation(side.op, tuple(inputs), tuple(made[-1]), None), ~k)
            if number < len(self.steps):
                add(self.graph.equations[number], self.steps[number].slot)
        filled = {slot for slot, _ in fills}
        starts = [*[self.vars[slot] for slot in self.inputs if slot not in filled], *given]
        values = [var(*place) for place in kept]
        derivative = self.prepared.derivative
        if self.is_rolled:
            outputs = (self.root, *values)
            forward = Graph("step", tuple(starts), tuple(equations), outputs)
            return rolled_graph(forward, self.wrt, derivative)
        n = len(self.prepared.residuals)
        extra = [Var(var.type) for var in derivative.graph.inputs[n:]]
        residuals = [var(*place) for place in self.prepared.residuals]
        ends = append_graph(equations, derivative.graph, [*residuals, *extra])
        graph = Graph("step", (*starts, *extra), tuple(equations), (*values, *ends))
        return graph, list(derivative.constants)

    @property
    def root(self) -> Var:
        """What is differentiated."""
        return self.vars[self.cut.outputs[0]]  # type: ignore[index]

    @property
    def wrt(self) -> list[Var]:
        """The inputs that are differentiated with respect to."""
        return [self.vars[slot] for slot in self.cut.inputs]

    def can_roll(self) -> bool:
        """True if most of the sequence is loops."""
        starts = tuple([self.vars[slot] for slot in self.inputs])
        return rolls(Graph("step", starts, self.graph.equations, (self.root,)), self.wrt)


class StepProgram(NamedTuple):
    """The program of a step, its Graph, and the constants that are its last operands."""

    program: Any
    graph: Graph
    constants: Sequence[np.ndarray]
    sides: list[Side]  # what the key of the program has the ids of


class Side(NamedTuple):
    """An operation on values of the step that does not lead to its loss: statistics, metrics.

    refs     its operands: a Literal, the number of an array from outside, or a Place
    types    the types of its results
    at       the number of steps before it
    """

    op: Any
    refs: tuple[Any, ...]
    types: tuple[Any, ...]
    at: int

    @property
    def key(self) -> Any:
        refs = [ref.key if ref.__class__ is Literal else ref for ref in self.refs]
        return (id(self.op), self.at, *refs)


def can_follow(cut: Cut, prepared: Prepared) -> bool:
    """True if the tape of a backward pass can be followed: every equation may wait."""
    if not can_be_template(cut) or len(cut.outputs) != 1:
        return False
    if len(set(cut.inputs)) != len(cut.inputs):
        return False
    serials = [cut.slots[row[2]].serial for row in cut.rows]
    if serials != sorted(serials):
        return False
    return all([can_follow_op(row[0]) for row in cut.rows])


def is_long(cut: Cut) -> bool:
    """True for a tape that may be a loop, with the equations of its Regions."""
    inside = [len(row[0].graph.equations) for row in cut.rows if row[0].is_region]
    return len(cut.rows) - len(inside) + sum(inside) >= MIN_EQUATIONS


def is_worthwhile(cut: Cut, types: Sequence[Any]) -> bool:
    """True if following a tape is faster than running it: it is long, or its operations are heavy.

    Python follows an operation in a third of the time in which it records one, and its program
    takes 20 µs to prepare: more than a few operations on small tensors take.
    """
    if len(cut.rows) < FEW and all([prod(type.shape) < HEAVY_SIZE for type in types]):
        return False
    if MANY <= len(cut.rows) <= TOO_MANY:
        return True
    heavy = [
        op for op, _, slot, _, _ in cut.rows
        if op.is_region or op.is_heavy or prod(types[slot].shape) >= HEAVY_SIZE
    ]  # fmt: skip
    return len(heavy) * HEAVY_SHARE >= len(cut.rows)


def can_follow_op(op: Any) -> bool:
    """True if an operation need not run at once: what could fail is checked when it is followed."""
    if may_fail(op) or op.ordered or op.__class__ is Call:  # a jitted function has its own program
        return False
    return not op.holds_graphs or op.is_region or not graph_checks(op)


def can_be_side(op: Any) -> bool:
    """True if an operation that was not expected need not run at once, whatever its operands."""
    found = op.__dict__.get("_can_be_side")
    if found is None:
        checks = op.checks_values or (op.holds_graphs and graph_checks(op))
        found = op.__dict__["_can_be_side"] = not (checks or op.ordered or may_fail(op))
    return found


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


def learn(cut: Cut) -> StepSequence | None:
    """Return the sequence of a backward pass that is hot, before its tape is freed.

    That of a long tape is hot before its derivative would be compiled, which takes seconds.
    """
    found: StepSequence | bool | None = cut.prepared.get("sequence")
    if found is None:
        prepared = cut.prepared.get(("vjp", True))
        if prepared is None:
            return None
        entry = table.entries.get((DERIVATIVE, prepared.derivative.graph))
        if entry is None:
            return None
        long = is_long(cut)
        if getattr(entry.program, "plan", None) is None and not (
            long and entry.work + 2 >= entry.limit
        ):
            return None
        found = False
        heavy = len(cut.rows) < MIN_EQUATIONS and is_worthwhile(cut, prepared.types)
        if (long or heavy) and can_follow(cut, prepared):
            found = StepSequence(cut, prepared)
            if not (heavy or found.is_rolled):
                found = False
        cut.prepared["sequence"] = found
    return found if isinstance(found, StepSequence) else None
