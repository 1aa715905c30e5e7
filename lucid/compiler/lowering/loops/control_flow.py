"""Lowers branches and loops to instructions that hold blocks of instructions, one per body.

The body of a loop reads and writes at addresses that move. A carry that a step cannot update in
place has two buffers, one read and one written, which swap after each step; stacked values are read
and written row by row in place. Temporaries of a body are in the arena, above those planned
outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy as shallow_copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.loops.growing_stacks import Stack
from lucid.compiler.lowering.loops.native_loop import as_native, is_small
from lucid.compiler.lowering.nest_builder import NestWriter, copy, fill, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.executable import Segment
from lucid.compiler.plan.instructions import Block, Cell, Loop, Ref
from lucid.compiler.plan.plan import Builder
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.types import Type
from lucid.ops.higher_order.control.while_chain import Loop as ChainLoop
from lucid.support.caches import memoize


@memoize(maxsize=256)
def lower_body(graph: Graph) -> Any:
    """The lowering of a body's Graph."""
    from lucid.compiler.lowering.lower import GraphLowering

    return GraphLowering(graph)


def is_native(graph: Graph) -> bool:
    """True if every step of a body can be lowered to instructions."""
    from lucid.compiler.lowering.lower import is_native

    return all(is_native(step) for step in lower_body(graph).steps)


def inner_layout(
    outer: Any,
    graph: Graph,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    into: Mapping[int, int] | None = None,
) -> Any:
    """The layout of a body whose inputs and outputs are these arrays.

    `into` maps outputs to inputs whose memory they may reuse; `in_place` has those that do.
    """
    from lucid.compiler.lowering.segment import SegmentLayout

    class InnerLayout(SegmentLayout):
        """A layout inside another: the same plan, with memory above the other's."""

        is_top_level = False

        def __init__(self) -> None:
            self.lowering = shallow_copy(lower_body(graph))
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

        def allocate_outputs(self, into: Mapping[Var, Var]) -> None:
            own = self.lowering.graph.outputs
            self.in_place = {i for i, y in enumerate(own) if y in into}
            self.arrays.update(self.given)  # type: ignore[arg-type]
            self.arrays.update((y, self.arrays[x]) for y, x in into.items())

        def add_check(self, eqn: Equation, indices: Any = ()) -> int:
            code = outer.add_check(eqn)
            self.status = outer.status
            return code

    return InnerLayout()


def as_integers(array: Array) -> Array:
    """The same memory as integers, whatever its dtype."""
    nbytes = array.type.size * array.type.dtype.itemsize
    wide = 8 if nbytes % 8 == 0 else 1
    dtype = np.dtype(f"int{8 * wide}")
    return Array(array.ref, Type(dtype, (nbytes // wide,)), (1,), 0) if array.is_dense else array


def copy_array(layout: Any, source: Array, target: Array, label: str) -> list[Any]:
    """Copy one array to another."""
    if target.type.size == 0:
        return []
    at = Array.of(source.address, source.type)
    return copy(layout, as_integers(at), as_integers(target), label)


def row(array: Array) -> Type:
    return Type(array.type.dtype, array.shape[1:])


def current_row(loop: Loop, stack: Array, backwards: bool) -> Array:
    """The row of a stack that belongs to the current step."""
    type = row(stack)
    nbytes = type.size * type.dtype.itemsize
    first: Any = stack.address
    if backwards:
        return Array.of(loop.slide(first.at((stack.shape[0] - 1) * nbytes), -nbytes), type)
    return Array.of(loop.slide(first, nbytes), type)


@dataclass(eq=False)
class LoopWork:
    """A loop: the work before it, its test and its body."""

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
        loop = self.loop
        loop.test_block, loop.body_block = Block(), Block()
        builder.loop(self.trips, self.predicate, self.counter, self.label, loop)
        with builder.block(loop.test_block):
            for work in self.test:
                work.add(builder, kernels)
        with builder.block(loop.body_block):
            for work in self.body:
                work.add(builder, kernels)


@dataclass(eq=False)
class BranchWork:
    """Branches of work, one of which an integer selects."""

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


class SwitchLowering:
    """Lowers `switch`."""

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
            inside = inner_layout(layout, branch, given, outs)
            branches.append(inside.work)
            top = max(top, inside.top)
        layout.top = top
        width = chosen.type.dtype.itemsize
        return [BranchWork(chosen.address, width, branches, label_of(eqn))]


class Carry:
    """The memory of a carry: one buffer if a step can update it in place, else two."""

    def __init__(self, loop: Loop, type: Type) -> None:
        self.loop = loop
        self.cells = Cell(loop), Cell(loop)
        self.current, self.next_ = (Array.of(Ref(cell), type) for cell in self.cells)

    def use_one_buffer(self, place: Array) -> None:
        self.first = place
        self.loop.enter.append((self.cells[0], place.address))  # type: ignore[arg-type]

    def use_two_buffers(self, first: Array, second: Array) -> None:
        """Start with the first buffer; the two swap after every step."""
        self.first = first
        for cell, place in zip(self.cells, (first, second)):
            self.loop.enter.append((cell, place.address))  # type: ignore[arg-type]
        nbytes = first.type.size * first.type.dtype.itemsize
        self.loop.step.append((*self.cells, nbytes))


class ScanLowering:
    """Lowers `scan`."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return is_native(eqn.op.body)  # type: ignore[attr-defined]

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        small, start = is_small(op.body), layout.top
        consts, inits, xs = op.parts([layout.array(x) for x in eqn.inputs])
        outs = [layout.array(v) for v in eqn.outputs]
        loop, label = Loop(layout.builder), label_of(eqn)
        carries = [Carry(loop, init.type) for init in inits]
        rows = [current_row(loop, x, op.reverse) for x in xs]
        ys = [current_row(loop, y, op.reverse) for y in outs[op.n_carry :]]
        given = [*consts, *[c.current for c in carries], *rows]
        into = {k: op.n_consts + k for k in range(op.n_carry)}
        body = inner_layout(layout, op.body, given, [*[c.next_ for c in carries], *ys], into)
        layout.top = body.top
        before: list[Any] = []
        after: list[Any] = []
        for k, (carry, init, out) in enumerate(zip(carries, inits, outs)):
            if small:  # in local memory, which a native loop keeps in registers
                after += copy_array(layout, carry.current, out, label)
                out = layout.scratch(out.type)
            if k in body.in_place:
                carry.use_one_buffer(out)
            else:
                other = layout.scratch(out.type)
                carry.use_two_buffers(*((other, out) if op.length % 2 else (out, other)))
            before += copy_array(layout, init, carry.first, label)
        works = [LoopWork(loop, op.length, before, body.work, label), *after]
        return as_native(layout, works, start, label) if small else works


class WhileLowering:
    """Lowers `while`: one loop for each of its loops, over growing stacks."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        op: Any = eqn.op
        graphs = [op.cond, *[loop[0] for loop in op.loops]]
        return all(is_native(graph) for graph in graphs)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        start, works = layout.top, WhileLayout(layout, eqn).run()
        small = all(is_small(graph) for graph in (op.cond, *[loop[0] for loop in op.loops]))
        return as_native(layout, works, start, label_of(eqn)) if small else works


class WhileLayout:
    """Lowers one While equation.

    values    the arrays of operands and of final carries
    stacks    the stacks that the loops so far have written
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
        loops = [ChainLoop(*loop) for loop in self.op.loops]
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
            self.work += copy_array(self.layout, self.values[v], place, self.label)
        if self.counts:
            self.work += [stack.close() for stack in (self.steps, *self.stacks)]
        return self.work

    def add(self, number: int, numbers: ChainLoop) -> None:
        layout, n = self.layout, numbers.n_carry
        loop = Loop(layout.builder)
        before: list[Any] = []
        carries = [Carry(loop, self.values[init[0]].type) for init in numbers.inits]
        current = [carry.current for carry in carries]
        new = [Stack(layout, y.type) for y in numbers.body.outputs[n:]]
        rows = [self.stacks[s].current_row(loop, numbers.reverse) for s in numbers.stacks]
        if number == 0:
            before += [stack.open(self.none) for stack in new]
            written = [stack.next_row(loop) for stack in new]
        else:
            before += [stack.open(self.steps.state) for stack in new]
            written = [stack.current_row(loop, numbers.reverse) for stack in new]
        consts = [self.values[v] for v in numbers.consts]
        predicate = layout.scratch(Type(np.dtype("bool"), ())).address
        counter, test = self.test(number, loop, current, predicate)
        into = {k: len(consts) + k for k in range(n)}
        next_ = [carry.next_ for carry in carries]
        body = inner_layout(
            layout, numbers.body, [*consts, *current, *rows], [*next_, *written], into
        )
        layout.top = body.top
        for k, (carry, init) in enumerate(zip(carries, numbers.inits)):
            first = layout.scratch(carry.current.type)
            if k in body.in_place:
                carry.use_one_buffer(first)
            else:
                carry.use_two_buffers(first, layout.scratch(carry.current.type))
            before += sum_into(layout, [self.values[v] for v in init], first, self.label)
        pushes = [s.push() for s in (self.steps, *new)] if number == 0 and self.counts else []
        work = [*body.work, *pushes]
        made = LoopWork(loop, None, before, work, self.label, test, predicate, counter=counter)
        self.work.append(made)
        self.values += current
        self.stacks += new

    def test(self, number: int, loop: Loop, current: list[Array], predicate: Any) -> Any:
        """Return the address of the step counter, and the work that computes the predicate."""
        if number == 0:
            tests = [self.values[v] for v in self.op.tests]
            answer = Array.of(predicate, Type(np.dtype("bool"), ()))
            test = inner_layout(self.layout, self.op.cond, [*tests, *current], [answer])
            self.layout.top = test.top
            return None, test.work
        counter = self.layout.scratch(Type(np.dtype("int64"), ())).address
        return counter, [self.steps.more(predicate, counter)]


def sum_into(layout: Any, sources: Sequence[Array], target: Array, label: str) -> list[Any]:
    """Write the sum of arrays to another."""
    if len(sources) == 1:
        return copy_array(layout, sources[0], target, label)
    parts: list[list[Any]] = [[*sources, target]]
    if target.type.dtype.kind == "c":
        parts = [list(arrays) for arrays in zip(*[array.parts() for array in parts[0]])]
    work = []
    for *given, out in parts:
        writer = NestWriter(out.shape)
        total = writer.load(given[0])
        for source in given[1:]:
            total = writer.value("add", out.dtype, total, writer.load(source))
        writer.store(total, out)
        work += writer.work(label)
    return work
