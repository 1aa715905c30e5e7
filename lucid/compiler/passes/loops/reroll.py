"""reroll: Graph -> Graph in which a long sequence of equal steps is one Scan.

A Python loop leaves its body on the tape once a step. The passes take time for every equation, so
a loop of a thousand steps takes seconds to compile, and its derivative as long again. Here the
sequence becomes the loop that it was:

    c1 = f(c0, w, x[0]); c2 = f(c1, w, x[1]); ...    =    scan (c, x -> f(c, w, x)) over x from c0

Equations repeat with a period if their operations and types do. A sequence of them is a loop if
every operand is one of these at every step, and the same kind at all of them: a number, which may
differ from step to step (then it is read from an array of all); a value of the same step; the value
of an earlier step (a carry); a value from outside; or the next slice of an array from outside (a
stepped value). Anything else is left alone, and so are short Graphs, whose
straight code fuses across steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from lucid.compiler.passes import loops
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive
from lucid.ir.rewrite import Rewriter, dce, rewrite
from lucid.ir.types import SHORT_NAMES, Type
from lucid.ops.higher_order.control.scan import Scan
from lucid.ops.higher_order.control.subgraphs import Writer
from lucid.ops.shape.concatenate import Concatenate
from lucid.ops.shape.full_and_iota import Full
from lucid.ops.shape.movement import Flip, Reshape, Slice, Transpose
from lucid.tape.recording.pending import may_fail

MIN_STEPS = 16
MAX_LOOPS = 32  # in one Graph, with those that turn out to be none
CANDIDATES = 8  # periods that are tried
UNIQUE = -(1 << 40)  # and below: tokens of equations that are already in a loop, or cannot be


class Run(NamedTuple):
    """`steps` times `period` equations from `start` on, whose operations and types repeat."""

    start: int
    period: int
    steps: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.steps

    @property
    def is_long(self) -> bool:
        return self.steps >= MIN_STEPS and self.steps * self.period >= loops.MIN_EQUATIONS

    def steps_in(self, steps: range) -> Run:
        """Return some of the steps."""
        return Run(self.start + steps.start * self.period, self.period, len(steps))


class Mismatch(Exception):
    """Raised if the operands of a Run do not repeat; those of the steps in `steps` may."""

    def __init__(self, steps: range = range(0)) -> None:
        self.steps = steps


def reroll(graph: Graph) -> Graph:
    """Replace sequences of equal steps by Scans."""
    if len(graph.equations) < loops.MIN_EQUATIONS:
        return graph
    tokens = tokens_of(graph.equations)
    before = graph
    for _ in range(MAX_LOOPS):
        run = longest_run(tokens)
        if run is None:
            break
        loop = Loop.of(graph, run)
        if loop is None:
            half = run.start + run.period * ((run.steps + 1) // 2)
            tokens[run.start : half] = UNIQUE - np.arange(half - run.start)
            continue
        run, new = loop.run, loop.equations()
        unique = UNIQUE - np.arange(len(new))
        tokens = np.concatenate((tokens[: run.start], unique, tokens[run.end :]))
        graph = loop.replaced(new)
    return graph if graph is before else dce(join_slices(dce(graph)))


# Finding what repeats


def tokens_of(equations: Sequence[Equation]) -> np.ndarray:
    """Return a number for every equation, equal for those that may be steps of one loop.

    Slices may differ in where they begin. What must not be in a loop has a number of its own.
    """
    numbers: dict[Any, int] = {}
    out = np.empty(len(equations), np.int64)
    for i, (op, inputs, outputs, _) in enumerate(equations):
        if op.ordered or op.single_use or may_fail(op):
            out[i] = -1 - i
            continue
        key: Any = op
        if is_slice(op):
            key = (op.strides, op.drop, inputs[0].type)
        out[i] = numbers.setdefault((key, outputs[0].type, len(inputs)), len(numbers))
    return out


def longest_run(tokens: np.ndarray) -> Run | None:
    """Return the longest sequence of equal steps, None if it is short."""
    best: Run | None = None
    for period in candidate_periods(tokens):
        same = np.flatnonzero(tokens[:-period] != tokens[period:])
        ends = np.concatenate(([-1], same, [len(tokens) - period]))
        gaps = np.diff(ends) - 1
        widest = int(np.argmax(gaps))
        run = Run(int(ends[widest]) + 1, period, 1 + int(gaps[widest]) // period)
        if run.is_long and (best is None or run.end - run.start > 1.1 * (best.end - best.start)):
            best = run
    return best


def candidate_periods(tokens: np.ndarray) -> list[int]:
    """Return the likely distances between equal equations of two steps, shortest first.

    An equation is known by the three after it. One that a step has once repeats at the period;
    distances inside a step are shorter, so the equations that a distance spans in all tell.
    """
    words = tokens[:-3] * 7 + tokens[1:-2] * 7919 + tokens[2:-1] * 104729 + tokens[3:] * 15485863
    order = np.argsort(words, kind="stable")
    ranked = words[order]
    distances, counts = np.unique(np.diff(order)[ranked[1:] == ranked[:-1]], return_counts=True)
    frequent = counts >= MIN_STEPS - 1
    distances, counts = distances[frequent], counts[frequent]
    best = np.argsort(distances * counts)[-CANDIDATES:]
    return sorted(distances[best].tolist())


# Making the loop


class Loop:
    """A Run whose operands repeat as well, as the parts of a Scan.

    local     values of one step -> what stands for them in the body
    consts    values from outside -> Vars of the body
    chains    (position, index, initial values) -> Vars of the value 1, 2, ... steps before
    stacks    (base, slices) or numbers -> Var of the body, and the array of all slices
    """

    def __init__(self, graph: Graph, run: Run, producer: Mapping[Var, tuple[int, int]]) -> None:
        self.graph, self.run, self.producer = graph, run, producer
        self.before = Writer()  # what is computed before the loop
        self.body = Writer()
        self.local: dict[Any, Any] = {}
        self.consts: dict[Var, Var] = {}
        self.chains: dict[Any, list[Var]] = {}
        self.stacks: dict[Any, tuple[Var, Var]] = {}
        for j in range(run.period):
            self.add_equation(j)
        if all([eqn.op.is_view for eqn in self.body.equations]):
            raise Mismatch  # nothing is computed

    @staticmethod
    def of(graph: Graph, run: Run) -> Loop | None:
        """Return the loop of a Run, or of those steps around its middle that are one.

        A few equations before and after a loop often look like those of one more step, and two
        loops with equal bodies like one.
        """
        producer = {
            var: (i, k)
            for i, eqn in enumerate(graph.equations)
            for k, var in enumerate(eqn.outputs)
        }
        while run.is_long:
            part = run
            while part.is_long:
                try:
                    return Loop(graph, part, producer)
                except Mismatch as mismatch:
                    part = part.steps_in(mismatch.steps)
            run = run.steps_in(range(run.steps // 2))  # the first of several loops comes first
        return None

    def equation(self, step: int, position: int) -> Equation:
        return self.graph.equations[self.run.start + step * self.run.period + position]

    def check(self, is_same: Callable[[int], bool], first: int = 0) -> None:
        """Raise an error if a step from `first` on is not like the one in the middle."""
        steps, middle = self.run.steps, self.run.steps // 2
        if all(map(is_same, range(first, steps))):
            return
        if not is_same(middle):
            raise Mismatch
        low = next((t + 1 for t in range(middle, -1, -1) if t >= first and not is_same(t)), 0)
        high = next((t for t in range(middle, steps) if not is_same(t)), steps)
        raise Mismatch(range(low, high))

    def add_equation(self, position: int) -> None:
        """Add the equation at a position of the step to the body."""
        steps = [self.equation(t, position) for t in range(self.run.steps)]
        middle = len(steps) // 2
        op, inputs, outputs, source = steps[middle]
        if steps[middle - 1].op != op:
            self.local[position, 0] = self.stepped(steps)
            return
        self.check(lambda t: steps[t].op is op or steps[t].op == op)
        columns = [[x.inputs[i] for x in steps] for i in range(len(inputs))]
        operands = tuple([self.operand(op, column) for column in columns])
        made = tuple([Var(y.type) for y in outputs])
        self.body.equations.append(Equation(op, operands, made, source))
        for k, y in enumerate(made):
            self.local[position, k] = y

    def place(self, x: Atom) -> tuple[int, int, int] | None:
        """Return (step, position, index) of a value that the loop computes, None for others."""
        at = self.producer.get(x)  # type: ignore[arg-type]
        if at is None:
            return None
        offset = at[0] - self.run.start
        if not 0 <= offset < self.run.period * self.run.steps:
            return None
        return (*divmod(offset, self.run.period), at[1])

    def operand(self, op: Primitive, column: Sequence[Any]) -> Atom:
        """Return the operand of the body that stands for these, one of every step."""
        middle = len(column) // 2
        x = column[middle]
        if isinstance(x, Literal):
            if op.scalar and not op.literals_are_static and x.dtype.kind == "f":
                self.check(lambda t: column[t].__class__ is Literal and column[t].dtype == x.dtype)
                if any([y.key != x.key for y in column]):
                    return self.numbers(column, x.dtype)
            self.check(lambda t: column[t].__class__ is Literal and column[t].key == x.key)
            return x
        place = self.place(x)
        if place is None:
            return self.outside(column)
        step, at, index = place
        lag = middle - step
        self.check(lambda t: self.equation(t - lag, at).outputs[index] is column[t], first=lag)
        if lag == 0:
            return self.local[at, index]  # type: ignore[no-any-return]
        for t, start in enumerate(column[:lag]):
            if isinstance(start, Literal) or start.type != x.type or self.place(start) is not None:
                raise Mismatch(range(t + 1, len(column)))
        chain = self.chains.setdefault(
            (at, index, *column[:lag]), [Var(x.type) for _ in range(lag)]
        )
        return chain[-1]

    def numbers(self, column: Sequence[Literal], dtype: np.dtype) -> Var:
        """Return the Var of numbers that differ from step to step; an array holds all of them."""
        key = ("numbers", *[x.key for x in column])
        if key not in self.stacks:
            one = Full((1,), SHORT_NAMES[dtype])
            made = {x.key: self.make(self.before, one, x) for x in column}
            table = self.make(self.before, Concatenate(0), *[made[x.key] for x in column])
            self.stacks[key] = (Var(Type(dtype, ())), table)
        return self.stacks[key][0]

    def outside(self, column: Sequence[Any]) -> Var:
        """Return the Var of values that are computed before the loop."""
        middle = len(column) // 2
        x = column[middle]
        if column[middle - 1] is x:
            self.check(lambda t: column[t] is x)
            return self.consts.setdefault(x, Var(x.type, x.name))
        makers = [self.producer.get(x) for x in column]
        self.check(lambda t: makers[t] is not None and self.place(column[t]) is None)
        equations = self.graph.equations
        return self.stepped([equations[maker[0]] for maker in makers])  # type: ignore[index]

    def stepped(self, slices: Sequence[Equation]) -> Var:
        """Return the Var of the slices of one array along an axis, one at every step."""
        middle = len(slices) // 2
        op, (base, *_), outputs, _ = slices[middle]
        if not is_slice(op) or not isinstance(base, Var) or self.place(base):
            raise Mismatch
        ops: list[Any] = [eqn.op for eqn in slices]
        self.check(lambda t: slices[t].inputs[0] is base and is_slice(ops[t]))
        key = (base, *ops)
        if key not in self.stacks:
            self.stacks[key] = self.stack(base, ops)
        x, shape = self.stacks[key][0], outputs[0].type.shape
        return x if x.type.shape == shape else self.make(self.body, Reshape(shape), x)

    def stack(self, base: Var, slices: Sequence[Any]) -> tuple[Var, Var]:
        """Return the Var of one slice in the body, and the array of all before the loop."""
        middle = len(slices) // 2
        op = slices[middle]
        apart = [a - b for a, b in zip(op.starts, slices[middle - 1].starts)]
        axes = [axis for axis, distance in enumerate(apart) if distance]
        if len(axes) != 1 or op.sizes[axes[0]] != 1:
            raise Mismatch
        (axis,) = axes

        def continues(t: int) -> bool:
            other, k = slices[t], t - middle
            starts = tuple([a + k * distance for a, distance in zip(op.starts, apart)])
            same = (other.sizes, other.strides, other.drop) == (op.sizes, op.strides, op.drop)
            return same and other.starts == starts

        self.check(continues)
        first = slices[0] if apart[axis] > 0 else slices[-1]
        by = abs(apart[axis])
        end = first.starts[axis] + by * (len(slices) - 1) + 1
        drop = tuple([a for a in op.drop if a != axis])
        limits = (*first.limits[:axis], end, *first.limits[axis + 1 :])
        strides = (*op.strides[:axis], by, *op.strides[axis + 1 :])
        out = base
        if limits != base.type.shape or any(first.starts) or drop or set(strides) != {1}:
            out = self.make(self.before, Slice(first.starts, limits, strides, drop), base)
        front = axis - sum([a < axis for a in drop])
        if front:
            rest = [a for a in range(out.type.ndim) if a != front]
            out = self.make(self.before, Transpose((front, *rest)), out)
        if apart[axis] < 0:
            out = self.make(self.before, Flip((0,)), out)
        return Var(Type(out.type.dtype, out.type.shape[1:])), out

    def make(self, writer: Writer, op: Primitive, *xs: Atom) -> Var:
        out = Var(infer(op, tuple([x.type for x in xs])))
        source = self.equation(0, 0).source
        writer.equations.append(Equation(op, xs, (out,), source))
        return out

    # What takes the place of the equations

    def used_outside(self) -> dict[tuple[int, int], list[tuple[int, Var]]]:
        """Return (position, index) -> (step, value) of the values that are read after the loop."""
        equations, run = self.graph.equations, self.run
        readers = [x for eqn in equations[run.end :] for x in eqn.inputs]
        out: dict[tuple[int, int], list[tuple[int, Var]]] = {}
        for x in dict.fromkeys([*readers, *self.graph.outputs]):
            place = self.place(x)
            if place is not None:
                out.setdefault(place[1:], []).append((place[0], x))  # type: ignore[arg-type]
        return out

    def equations(self) -> list[Equation]:
        """Return the Scan, what it reads, and the values of its steps that others read."""
        carries: list[Var] = []
        initial: list[Atom] = []
        updates: list[Atom] = []
        final: dict[tuple[int, int], int] = {}  # (position, index) -> carry with the latest value
        for (at, index, *given), chain in self.chains.items():
            final.setdefault((at, index), len(carries))
            carries += chain
            initial += reversed(given)
            updates += [self.local[at, index], *chain[:-1]]
        used = self.used_outside()
        last = self.run.steps - 1
        stacked: dict[tuple[int, int], int] = {}
        for key, reads in used.items():
            if any([step != last for step, _ in reads]):
                stacked[key] = len(stacked)
            elif key not in final:
                value = self.local[key]
                final[key] = len(carries)
                carries.append(Var(value.type))
                initial.append(self.before.zeros(value.type))
                updates.append(value)
        xs = list(self.stacks.values())
        inputs = [*self.consts.values(), *carries, *[x for x, _ in xs]]
        outputs = [*updates, *[self.local[key] for key in stacked]]
        body = self.body.graph("step", inputs, outputs)
        op = Scan(body, len(self.consts), len(carries), self.run.steps, False)
        operands = (*self.consts, *initial, *[stack for _, stack in xs])
        types = infer(op, tuple([x.type for x in operands]))
        results = tuple([Var(type) for type in types])
        source = self.equation(0, 0).source
        after = [Equation(op, operands, results, source)]
        self.renamed: dict[Any, Var] = {}
        for key, reads in used.items():
            for step, var in reads:
                if key not in stacked:
                    self.renamed[var] = results[final[key]]
                    continue
                stack = results[len(carries) + stacked[key]]
                shape = stack.type.shape
                starts = (step, *[0] * (len(shape) - 1))
                each = Slice(starts, (step + 1, *shape[1:]), (1,) * len(shape), (0,))
                after.append(Equation(each, (stack,), (var,), source))
        return [*self.before.equations, *after]

    def replaced(self, new: Sequence[Equation]) -> Graph:
        """Return the Graph with these equations for the steps of the loop."""
        g, renamed = self.graph, self.renamed
        rest = [
            Equation(op, tuple([renamed.get(x, x) for x in inputs]), outputs, source)
            for op, inputs, outputs, source in g.equations[self.run.end :]
        ]
        outputs = tuple([renamed.get(x, x) for x in g.outputs])
        equations = (*g.equations[: self.run.start], *new, *rest)
        return Graph(g.name, g.inputs, equations, outputs)


# The values of all steps, joined again


def join_slices(graph: Graph) -> Graph:
    """concatenate (x[0], x[1], ...) = x: what a program collects in a list and stacks."""
    producers = {var: eqn for eqn in graph.equations for var in eqn.outputs}

    def rule(writer: Rewriter, eqn: Equation) -> Atom | None:
        if eqn.op.__class__ is not Concatenate or len(eqn.inputs) < MIN_STEPS:
            return None
        return joined(writer, eqn, [consecutive(x, producers) for x in eqn.inputs])

    return rewrite(graph, rule)


def is_slice(op: Primitive) -> TypeGuard[Slice]:
    """True for a slice, which reads the same place of the next step at every step."""
    return op.__class__ is Slice


def consecutive(x: Atom, producers: dict[Var, Equation]) -> tuple[Any, int] | None:
    """Return (array, number) if `x` is `array[number]`, perhaps reshaped."""
    eqn = producers.get(x)  # type: ignore[arg-type]
    if eqn is not None and eqn.op.__class__ is Reshape:
        eqn = producers.get(eqn.inputs[0])  # type: ignore[arg-type]
    if eqn is None or not is_slice(eqn.op):
        return None
    op = eqn.op
    base = eqn.inputs[0]
    whole = op.starts[1:] == (0,) * (len(op.starts) - 1) and op.limits[1:] == base.type.shape[1:]
    single = op.drop == (0,) and set(op.strides) == {1}
    return (base, op.starts[0]) if whole and single else None


def joined(writer: Rewriter, eqn: Equation, parts: Sequence[Any]) -> Atom | None:
    """Return the concatenation of consecutive parts of one array, None if they are not that."""
    axis = eqn.op.axis  # type: ignore[attr-defined]
    if parts[0] is None:
        return None
    base, first = parts[0]
    if any([part != (base, first + i) for i, part in enumerate(parts)]):
        return None
    n, each, part = len(parts), base.type.shape[1:], eqn.inputs[0].type.shape
    if part not in (each, (*each[:axis], 1, *each[axis:])):
        return None
    ndim = base.type.ndim
    zeros, ones = (0,) * (ndim - 1), (1,) * ndim
    out = writer.make(Slice((first, *zeros), (first + n, *each), ones), base)
    if axis:
        out = writer.make(Transpose((*range(1, axis + 1), 0, *range(axis + 1, ndim))), out)
    shape = eqn.outputs[0].type.shape
    return out if out.type.shape == shape else writer.make(Reshape(shape), out)
