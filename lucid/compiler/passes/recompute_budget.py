"""recompute with a budget: values that wait long for their next reader are computed again for it.

The arena of a plan is as large as what is alive at its fullest step. A value that is alive there
and is read only later can be dropped and computed again right before that reader, from what is in
memory then. Values are chosen by the bytes that they free for each unit of work, one after the
other at the step that is the fullest by then. A recomputation reads its operands behind an
`optimization_barrier`, which keeps it from running early. The layout of the rewritten Graph decides
whether the budget is met; if it is not, more is recomputed.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lucid.compiler.fusion.groups import Group, Step, weight_of
from lucid.compiler.lowering.lower import GraphLowering
from lucid.errors import OutOfMemoryError
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.rewrite import dce
from lucid.ir.verify import verify
from lucid.ops.higher_order.checkpoint_op import OptimizationBarrier

MAX_EQUATIONS = 64  # recomputed for one value
SMALL = 8  # an operand is kept rather than recomputed if it is this many times smaller
RECENT = 3  # steps
GOALS = tuple(0.87**k for k in range(1, 20))  # of the model, as parts of its peak


def fit_budget(graph: Graph, into: Mapping[int, int] | None, budget: int | None) -> GraphLowering:
    """Return the layout of a Graph, rewritten so that its arena has at most `budget` bytes.

    The goals of the model do not depend on the budget, only their order does: so the least arena
    that the error names is one that can be had.
    """
    lowering = GraphLowering(graph, into)
    lowering.lay_out()
    full = least = arena_of(lowering)
    if budget is None or full <= budget:
        return lowering
    first = next((k for k, goal in enumerate(GOALS) if goal <= budget / full), len(GOALS) - 1)
    for goal in (*GOALS[first:], *reversed(GOALS[:first])):
        timelines = [Timeline(lowering, layout) for layout in lowering.layouts]
        for timeline in timelines:
            timeline.shrink(goal * timeline.peak()[0])
        found = GraphLowering(verify(Recomputation(lowering, timelines).run()), into)
        found.lay_out()
        if arena_of(found) <= budget:
            return found
        least = min(least, arena_of(found))
    raise OutOfMemoryError(
        f"memory_budget: {graph.name} needs at least {least:,} bytes for its temporaries however "
        f"much is recomputed, and the budget is {budget:,}; without recomputation it needs {full:,}"
    )


def arena_of(lowering: GraphLowering) -> int:
    """The bytes of a program's arena: its plans run one after the other and share it."""
    return max([layout.top for layout in lowering.layouts], default=0)


@dataclass(eq=False)
class Value:
    """A value in memory, from the time at which it is computed to its last reader."""

    var: Var
    first: float
    uses: list[float] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return self.var.type.size * self.var.type.dtype.itemsize

    @property
    def last(self) -> float:
        return self.uses[-1] if self.uses else self.first

    def gap(self, time: float) -> tuple[float, float] | None:
        """The readers before and after a time, if the value only waits there."""
        k = bisect_left(self.uses, time)
        if k == len(self.uses) or self.uses[k] == time or self.first >= time:
            return None
        return (self.uses[k - 1] if k else self.first), self.uses[k]


@dataclass(eq=False)
class Choice:
    """A value to compute again.

    time         when, between two steps
    after        what is computed just before
    equations    what computes it, in order
    computed     their results
    kept         values in memory that they read
    made         the new Value, once the choice is made
    """

    time: float
    value: Value
    after: Var | None
    equations: list[Equation] = field(default_factory=list)
    computed: set[Var] = field(default_factory=set)
    kept: list[Value] = field(default_factory=list)
    made: Any = None

    def score(self, freed: float) -> float:
        return freed / (1 + sum(map(work_of, self.equations)))


def work_of(eqn: Equation) -> float:
    """Estimated operations of an equation."""
    out = sum(y.type.size for y in eqn.outputs)
    sizes = [x.type.size for x in eqn.inputs if isinstance(x, Var)]
    if eqn.op.scalar:
        return out * weight_of(eqn)
    if eqn.op.monoid or eqn.op.moves:
        return max([out, *sizes])
    if len(sizes) >= 2:  # a product: each element of one operand meets a row of the other
        return math.sqrt(float(sizes[0]) * sizes[1] * max(out, 1))
    return 20.0 * max([out, *sizes])


class Timeline:
    """The values of one plan over its steps, as a model of its arena."""

    def __init__(self, lowering: GraphLowering, layout: Any) -> None:
        self.lowering = lowering
        self.steps: list[Step] = layout.segment.steps
        first, _ = layout.lifetimes()
        self.outputs = {lowering.base(y) for y in layout.segment.outputs}
        self.values: dict[Var, list[Value]] = {}
        self.inputs = set(lowering.graph.inputs)
        self.made = dict(first)
        self.made_at = {number: var for var, number in first.items()}
        self.times = [-1.0, *map(float, range(len(self.steps)))]
        for var, number in first.items():
            if var not in self.outputs:
                self.values[var] = [Value(var, float(number))]
        for number, step in enumerate(self.steps):
            for x in lowering.reads(step):
                if x in self.values:
                    insort(self.values[x][0].uses, float(number))
        self.choices: list[Choice] = []

    def all_values(self) -> Iterator[Value]:
        for values in self.values.values():
            yield from values

    def usage(self) -> dict[float, float]:
        """Bytes alive after each time at which that changes."""
        changes: dict[float, float] = {}
        ends: dict[float, float] = {}
        for value in self.all_values():
            changes[value.first] = changes.get(value.first, 0) + value.nbytes
            ends[value.last] = ends.get(value.last, 0) + value.nbytes
        now, out = 0.0, {}
        for time in sorted({*changes, *ends}):
            now += changes.get(time, 0)
            out[time] = now
            now -= ends.get(time, 0)
        return out

    def peak(self) -> tuple[float, float]:
        """The bytes at the fullest time, and that time."""
        usage = self.usage()
        time = max(usage, key=usage.__getitem__, default=0.0)
        return usage.get(time, 0.0), time

    def shrink(self, goal: float) -> None:
        """Choose recomputations until no time has more than `goal` bytes, or nothing helps."""
        tried: set[tuple[int, float]] = set()
        while True:
            bytes_before, time = self.peak()
            if bytes_before <= goal or len(self.choices) > 2 * len(self.values):
                break
            best: tuple[float, Choice] | None = None
            for value in list(self.all_values()):
                gap = value.gap(time)
                if gap is None or (id(value), gap[1]) in tried:
                    continue
                choice = self.recomputation(value, gap[1])
                if choice is None:
                    tried.add((id(value), gap[1]))
                    continue
                freed = value.nbytes - sum(x.nbytes for x in choice.kept if x.last < time)
                if freed > 0 and (best is None or choice.score(freed) > best[0]):
                    best = choice.score(freed), choice
            if best is None:
                break
            self.apply(best[1])

    def recomputation(self, value: Value, reader: float) -> Choice | None:
        """The equations that compute a value again before a reader; None if there is no way."""
        before = self.times[bisect_left(self.times, reader) - 1]
        time = (before + reader) / 2
        if not before < time < reader:
            return None
        found = Choice(time, value, self.after(math.ceil(reader)))
        return found if found.after is not None and self.add_equations(found, value.var) else None

    def after(self, number: int) -> Var | None:
        """What a recomputation for a step waits for: the latest of its operands, if recent."""
        reads = [x for x in self.lowering.reads(self.steps[number]) if x in self.made]
        latest = max(reads, key=self.made.__getitem__, default=None)
        if latest is not None and number - RECENT <= self.made[latest] < number:
            return latest
        earlier = [self.made_at[n] for n in range(number - 1, -1, -1) if n in self.made_at]
        return next(iter(earlier), None)

    def add_equations(self, choice: Choice, var: Any) -> bool:
        """Add the equations that compute `var` for a choice; False if there is no way."""
        eqn = self.lowering.producer.get(var)
        if eqn is None or eqn.op.ordered or len(choice.equations) >= MAX_EQUATIONS:
            return False
        operands = [x for x in eqn.inputs if isinstance(x, Var)]
        if not operands or not all([self.is_available(choice, x) for x in operands]):
            return False
        choice.equations.append(eqn)
        choice.computed.update(eqn.outputs)
        return True

    def is_available(self, choice: Choice, x: Var) -> bool:
        """True if an operand is in memory at the time of a choice, or can be computed for it."""
        base = self.lowering.base(x)
        if base in choice.computed or base in self.inputs or base not in self.lowering.step_of:
            return True
        if base in self.made and base in self.outputs:
            return self.made[base] < choice.time
        if base not in self.values and base not in self.lowering.producer:
            return False
        copies = [
            v for v in self.values.get(base, ())
            if v.first < choice.time and v is not choice.value
        ]  # fmt: skip
        limit = choice.value.nbytes / SMALL
        found = [v for v in copies if v.last >= choice.time] or [
            v for v in copies if v.nbytes <= limit
        ]
        if found:
            choice.kept.append(found[-1])
            return True
        return self.add_equations(choice, base)

    def apply(self, choice: Choice) -> None:
        """Note that a value is computed again: its later readers read the new one."""
        value, time = choice.value, choice.time
        choice.made = Value(value.var, time, [use for use in value.uses if use > time])
        value.uses = [use for use in value.uses if use < time]
        self.values[value.var].append(choice.made)
        for x in choice.kept:
            if time not in x.uses:
                insort(x.uses, time)
        insort(self.times, time)
        self.choices.append(choice)


class Recomputation:
    """Writes a Graph in which chosen values are computed again for their later readers."""

    def __init__(self, lowering: GraphLowering, timelines: Sequence[Timeline]) -> None:
        self.lowering, self.timelines = lowering, timelines
        self.equations: list[Equation] = []
        self.written: set[Equation] = set()
        self.var_of: dict[Value, Var] = {}  # of Values that are computed again
        self.views: dict[tuple[Var, Var], Var] = {}
        self.barriers: dict[tuple[Var, Choice], Var] = {}
        self.values = {v: found for t in timelines for v, found in t.values.items()}
        self.original = {v: eqn for eqn in lowering.graph.equations for v in eqn.outputs}

    def run(self) -> Graph:
        graph = self.lowering.graph
        planned = {id(t.steps): t for t in self.timelines}
        for part in self.lowering.parts:
            if isinstance(part, Equation):
                self.copy(part, math.inf)
                continue
            self.write_segment(planned[id(part.steps)])
        for y in graph.outputs:
            self.at(y, math.inf)
        return dce(Graph(graph.name, graph.inputs, tuple(self.equations), graph.outputs))

    def write_segment(self, timeline: Timeline) -> None:
        position = {eqn: n for n, eqn in enumerate(self.lowering.graph.equations)}
        waiting = sorted(timeline.choices, key=lambda choice: choice.time)
        for number, step in enumerate(timeline.steps):
            while waiting and waiting[0].time < number:
                self.write_choice(waiting.pop(0))
            equations = step.equations if isinstance(step, Group) else [step.equation]
            for eqn in sorted(equations, key=position.__getitem__):
                self.copy(eqn, float(number))

    def copy(self, eqn: Equation, time: float) -> None:
        """Write an equation of the Graph, reading what is in memory at its time."""
        if eqn not in self.written:
            self.written.add(eqn)
            inputs = tuple([self.at(x, time) for x in eqn.inputs])
            self.equations.append(Equation(eqn.op, inputs, eqn.outputs, eqn.source))

    def write_choice(self, choice: Choice) -> None:
        computed: dict[Any, Var] = {}
        for eqn in choice.equations:
            inputs = tuple([self.operand(x, choice, computed) for x in eqn.inputs])
            outputs = tuple([Var(y.type) for y in eqn.outputs])
            self.equations.append(Equation(eqn.op, inputs, outputs, eqn.source))
            computed.update(zip(eqn.outputs, outputs))
        self.var_of[choice.made] = computed[choice.value.var]

    def operand(self, x: Atom, choice: Choice, computed: Mapping[Any, Var]) -> Atom:
        """An operand of a recomputation: computed for it, or read behind a barrier."""
        if isinstance(x, Literal):
            return x
        base = self.lowering.base(x)
        if base in computed:
            return self.view(x, computed[base])
        if base not in self.lowering.step_of and base not in self.lowering.graph.inputs:
            return self.at(x, choice.time)
        found = self.instance(base, choice.time)
        if (found, choice) not in self.barriers:
            out = self.barriers[found, choice] = Var(found.type)
            op, inputs = OptimizationBarrier(), (found, choice.after)
            self.equations.append(Equation(op, inputs, (out,), None))  # type: ignore[arg-type]
        return self.view(x, self.barriers[found, choice])

    def instance(self, base: Var, time: float) -> Var:
        """The Var that holds a value for a reader at a time."""
        for value in self.values.get(base, ()):
            if value in self.var_of and time in value.uses:
                return self.var_of[value]
        return base

    def at(self, x: Atom, time: float) -> Atom:
        """A value, or a view of one, for a reader at a time."""
        if isinstance(x, Literal):
            return x
        base = self.lowering.base(x)
        if base not in self.lowering.step_of and base in self.original:
            self.copy(self.original[base], time)
        return self.view(x, self.instance(base, time))

    def view(self, x: Var, base: Var) -> Var:
        """The view `x` of its base, taken of another Var that holds the same value."""
        if x is base or x is self.lowering.base(x):
            return base
        if (x, base) not in self.views:
            eqn = self.original[x]
            inner = self.view(eqn.inputs[0], base)  # type: ignore[arg-type]
            own = base is self.lowering.base(x)
            out = x if own else Var(x.type)
            self.equations.append(Equation(eqn.op, (inner, *eqn.inputs[1:]), (out,), eqn.source))
            self.views[x, base] = out
        return self.views[x, base]
