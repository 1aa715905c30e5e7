"""Branches and loops as instructions that hold other instructions: a body is a plan inside a plan.

The body of a loop reads and writes at addresses that move. A carry that a step cannot write where
it lies has two places, of which one is read and the other written, in turns; stacked values are
read and written row by row where they lie. What a body needs for itself lies in the arena, above
what is planned outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy as shallow_copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lucid.compiler.lowering.loops.growing_stacks import Stack
from lucid.compiler.lowering.nest_builder import NestWriter, copy, fill, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.executable import Segment
from lucid.compiler.plan.instructions import Block, Cell, Loop, Ref
from lucid.compiler.plan.plan import Builder
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.types import Type
from lucid.ops.elementwise.complexes import Imag, Real
from lucid.ops.higher_order.control.while_chain import Loop as LoopOf

PARTS = (Real(), Imag())


@lru_cache(maxsize=256)
def lowered(graph: Graph) -> Any:
    """A body on its way to instructions."""
    from lucid.compiler.lowering.lower import Lowering

    return Lowering(graph)


def is_native(graph: Graph) -> bool:
    """Has every step of a body instructions of its own?"""
    from lucid.compiler.lowering.lower import is_native

    return all(is_native(step) for step in lowered(graph).steps)


def inner(
    outer: Any,
    graph: Graph,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    into: Mapping[int, int] | None = None,
) -> Any:
    """The layout of a body whose inputs and outputs lie at these places.

    `into` names outputs that may be computed in the place of an input; `in_place` says which are.
    """
    from lucid.compiler.lowering.segment import SegmentLayout

    class InnerLayout(SegmentLayout):
        """A layout inside that of another: the same plan, with memory above the other's."""

        is_whole = False

        def __init__(self) -> None:
            self.lowering = shallow_copy(lowered(graph))
            own: Graph = self.lowering.graph
            pairs = [(own.outputs[y], own.inputs[x]) for y, x in (into or {}).items()]
            self.lowering.into = dict(pairs)
            self.segment = Segment(list(self.lowering.steps))
            self.segment.outputs = list(own.outputs)  # type: ignore[arg-type]
            self.builder = outer.builder
            self.base = outer.top
            plain = [Array.of(x.address, x.type) for x in inputs]
            self.arrays = dict(zip(own.inputs, plain, strict=True))
            self.given = dict(zip(own.outputs, outputs, strict=True))
            self.work: list[Any] = []
            self.status = outer.status
            self.workspaces = {}
            self.plan_memory()
            self.lower_steps()

        def place_outputs(self, into: Mapping[Var, Var]) -> None:
            own = self.lowering.graph.outputs
            self.in_place = {i for i, y in enumerate(own) if y in into}
            self.arrays.update(self.given)  # type: ignore[arg-type]
            self.arrays.update((y, self.arrays[x]) for y, x in into.items())

        def check(self, eqn: Equation) -> int:
            code = outer.check(eqn)
            self.status = outer.status
            return code

    return InnerLayout()


def raw(array: Array) -> Array:
    """The same memory as integers, whatever lies there."""
    nbytes = array.type.size * array.type.dtype.itemsize
    wide = 8 if nbytes % 8 == 0 else 1
    dtype = np.dtype(f"int{8 * wide}")
    return Array(array.ref, Type(dtype, (nbytes // wide,)), (1,), 0) if array.is_dense else array


def moved(layout: Any, source: Array, target: Array, label: str) -> list[Any]:
    """Work that copies one array to another."""
    if target.type.size == 0:
        return []
    at = Array.of(source.address, source.type)
    return copy(layout, raw(at), raw(target), label)


def row(array: Array) -> Type:
    return Type(array.type.dtype, array.shape[1:])


def sliding(loop: Loop, stack: Array, backwards: bool) -> Array:
    """The row of a stack that belongs to the current step."""
    type = row(stack)
    nbytes = type.size * type.dtype.itemsize
    first: Any = stack.address
    if backwards:
        return Array.of(loop.slide(first.at((stack.shape[0] - 1) * nbytes), -nbytes), type)
    return Array.of(loop.slide(first, nbytes), type)


@dataclass(eq=False)
class LoopWork:
    """A loop: what comes before it, its test and its body."""

    loop: Loop
    trips: int | None
    before: Sequence[Any]
    body: Sequence[Any]
    label: str
    test: Sequence[Any] = ()
    predicate: Any = None
    counter: Any = None

    def blocks(self) -> list[tuple[str, Sequence[Any]]]:
        """The parts that repeat, by name."""
        test = [("while", self.test)] if self.test else []
        return [*test, ("do" if self.test else f"{self.trips} times", self.body)]

    def kernels(self) -> list[Any]:
        every = (*self.before, *self.test, *self.body)
        return [kernel for work in every for kernel in work.kernels()]

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        for work in self.before:
            work.add(builder, kernels)
        builder.loop(self.trips, self.predicate, self.counter, self.label, self.loop)
        with self.loop.test:
            for work in self.test:
                work.add(builder, kernels)
        with self.loop.body:
            for work in self.body:
                work.add(builder, kernels)


@dataclass(eq=False)
class BranchWork:
    """Blocks of work, of which a number chooses one."""

    chosen: Any
    width: int
    branches: Sequence[Sequence[Any]]
    label: str
    before: Sequence[Any] = ()

    def blocks(self) -> list[tuple[str, Sequence[Any]]]:
        """The branches, by name."""
        return [(f"branch {i}", works) for i, works in enumerate(self.branches)]

    def kernels(self) -> list[Any]:
        return [kernel for works in self.branches for work in works for kernel in work.kernels()]

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        blocks: list[Block] = []
        for works in self.branches:
            with builder.block() as block:
                for work in works:
                    work.add(builder, kernels)
            blocks.append(block)
        builder.branch(self.chosen, blocks, self.width, self.label)


class SwitchStep:
    """How `switch` becomes instructions."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        op: Any = eqn.op
        chosen = eqn.inputs[0].type.dtype
        known = chosen.kind == "b" or chosen.str[1:] in ("i4", "i8")
        return known and all(is_native(branch) for branch in op.branches)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[BranchWork]:
        op: Any = eqn.op
        chosen, *given = [layout.array(x) for x in eqn.inputs]
        outs = [layout.array(v) for v in eqn.outputs]
        branches, top = [], layout.top
        for branch in op.branches:
            inside = inner(layout, branch, given, outs)
            branches.append(inside.work)
            top = max(top, inside.top)
        layout.top = top
        width = chosen.type.dtype.itemsize
        return [BranchWork(chosen.address, width, branches, label_of(eqn))]


class Carry:
    """Where a carry lies: in one place if a step can write it where it is read, else in two."""

    def __init__(self, loop: Loop, type: Type) -> None:
        self.loop = loop
        self.cells = Cell(loop), Cell(loop)
        self.now, self.then = (Array.of(Ref(cell), type) for cell in self.cells)

    def stays(self, place: Array) -> None:
        self.first = place
        self.loop.enter.append((self.cells[0], place.address))  # type: ignore[arg-type]

    def swaps(self, first: Array, second: Array) -> None:
        """Begin with the first; the two are exchanged after every step."""
        self.first = first
        for cell, place in zip(self.cells, (first, second)):
            self.loop.enter.append((cell, place.address))  # type: ignore[arg-type]
        self.loop.step.append((*self.cells, 0))


class LoopStep:
    """How `scan` becomes instructions."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return is_native(eqn.op.body)  # type: ignore[attr-defined]

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[LoopWork]:
        op: Any = eqn.op
        consts, inits, xs = op.parts([layout.array(x) for x in eqn.inputs])
        outs = [layout.array(v) for v in eqn.outputs]
        loop, label = Loop(layout.builder), label_of(eqn)
        carries = [Carry(loop, init.type) for init in inits]
        rows = [sliding(loop, x, op.reverse) for x in xs]
        ys = [sliding(loop, y, op.reverse) for y in outs[op.n_carry :]]
        given = [*consts, *[c.now for c in carries], *rows]
        into = {k: op.n_consts + k for k in range(op.n_carry)}
        body = inner(layout, op.body, given, [*[c.then for c in carries], *ys], into)
        layout.top = body.top
        before: list[Any] = []
        for k, (carry, init, out) in enumerate(zip(carries, inits, outs)):
            if k in body.in_place:
                carry.stays(out)
            else:
                other = layout.scratch(out.type)
                carry.swaps(*((other, out) if op.length % 2 else (out, other)))
            before += moved(layout, init, carry.first, label)
        return [LoopWork(loop, op.length, before, body.work, label)]


class WhileStep:
    """How `while` becomes instructions: a loop for each of its loops, over stacks that grow."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        op: Any = eqn.op
        graphs = [op.cond, *[loop[0] for loop in op.loops]]
        return all(is_native(graph) for graph in graphs)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        return WhileLayout(layout, eqn).run()


class WhileLayout:
    """One While on its way to instructions.

    values    where operands and last carries lie
    stacks    what the loops so far have left
    steps     a stack of empty rows, which counts the steps of the first loop
    """

    def __init__(self, layout: Any, eqn: Equation) -> None:
        self.layout = layout
        self.eqn = eqn
        self.op: Any = eqn.op
        self.label = label_of(eqn)
        self.values = [layout.array(x) for x in eqn.inputs]
        self.stacks: list[Stack] = []
        self.work: list[Any] = []

    def run(self) -> list[Any]:
        loops = [LoopOf(*loop) for loop in self.op.loops]
        self.counts = len(loops) > 1
        if self.counts:
            empty = self.layout.scratch(Type(np.dtype("int64"), (5,)))
            self.work += fill(0, empty, self.label)
            self.none: Any = empty.address
            self.steps = Stack(self.layout, Type(np.dtype("bool"), (0,)))
            self.work.append(self.steps.open(self.none))
        for number, loop in enumerate(loops):
            self.add(number, loop)
        for v, out in zip(self.op.results, self.eqn.outputs):
            place = self.layout.array(out)
            self.work += moved(self.layout, self.values[v], place, self.label)
        if self.counts:
            self.work += [stack.close() for stack in (self.steps, *self.stacks)]
        return self.work

    def add(self, number: int, numbers: LoopOf) -> None:
        layout, n = self.layout, numbers.n_carry
        loop = Loop(layout.builder)
        before: list[Any] = []
        carries = [Carry(loop, self.values[init[0]].type) for init in numbers.inits]
        now = [carry.now for carry in carries]
        new = [Stack(layout, y.type) for y in numbers.body.outputs[n:]]
        rows = [self.stacks[s].sliding(loop, numbers.reverse) for s in numbers.stacks]
        if number == 0:
            before += [stack.open(self.none) for stack in new]
            written = [stack.growing(loop) for stack in new]
        else:
            before += [stack.open(self.steps.state) for stack in new]
            written = [stack.sliding(loop, numbers.reverse) for stack in new]
        consts = [self.values[v] for v in numbers.consts]
        goes_on = layout.scratch(Type(np.dtype("bool"), ())).address
        counter, test = self.test(number, loop, now, goes_on)
        into = {k: len(consts) + k for k in range(n)}
        then = [carry.then for carry in carries]
        body = inner(layout, numbers.body, [*consts, *now, *rows], [*then, *written], into)
        layout.top = body.top
        for k, (carry, init) in enumerate(zip(carries, numbers.inits)):
            first = layout.scratch(carry.now.type)
            if k in body.in_place:
                carry.stays(first)
            else:
                carry.swaps(first, layout.scratch(carry.now.type))
            before += summed(layout, [self.values[v] for v in init], first, self.label)
        pushes = [s.push() for s in (self.steps, *new)] if number == 0 and self.counts else []
        work = [*body.work, *pushes]
        made = LoopWork(loop, None, before, work, self.label, test, goes_on, counter=counter)
        self.work.append(made)
        self.values += now
        self.stacks += new

    def test(self, number: int, loop: Loop, now: list[Array], goes_on: Any) -> Any:
        """(where the number of the step is written, the work that says whether to go on)."""
        if number == 0:
            tests = [self.values[v] for v in self.op.tests]
            answer = Array.of(goes_on, Type(np.dtype("bool"), ()))
            test = inner(self.layout, self.op.cond, [*tests, *now], [answer])
            self.layout.top = test.top
            return None, test.work
        counter = self.layout.scratch(Type(np.dtype("int64"), ())).address
        return counter, [self.steps.more(goes_on, counter)]


def summed(layout: Any, sources: Sequence[Array], target: Array, label: str) -> list[Any]:
    """Work that leaves the sum of arrays in another."""
    if len(sources) == 1:
        return moved(layout, sources[0], target, label)
    parts: list[list[Any]] = [[*sources, target]]
    if target.type.dtype.kind == "c":
        parts = [[array.view(part) for array in parts[0]] for part in PARTS]
    work = []
    for *given, out in parts:
        writer = NestWriter(out.shape)
        total = writer.load(given[0])
        for source in given[1:]:
            total = writer.value("add", out.dtype, total, writer.load(source))
        writer.store(total, out)
        work += writer.work(label)
    return work
