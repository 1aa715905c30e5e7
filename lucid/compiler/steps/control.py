"""Branches and loops as instructions that hold other instructions: a body is a plan inside a plan.

The body of a loop reads and writes at addresses that move: a carry lies in two places, of which one
is read and the other written, in turns; stacked values are read and written row by row where they
lie. What a body needs for itself lies in the arena, above what is planned outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lucid.compiler.arrays import Array
from lucid.compiler.executable import Segment
from lucid.compiler.instructions import Block, Loop
from lucid.compiler.plan import Builder
from lucid.compiler.steps.building import copy, label_of
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.types import Type
from lucid.ops.control.chain import Loop as LoopOf


@lru_cache(maxsize=256)
def lowered(graph: Graph) -> Any:
    """A body on its way to instructions."""
    from lucid.compiler.lower import Lowering

    return Lowering(graph)


def is_native(graph: Graph) -> bool:
    """Has every step of a body instructions of its own?"""
    from lucid.compiler.lower import is_native

    return all(is_native(step) for step in lowered(graph).steps)


def inner(outer: Any, graph: Graph, inputs: Sequence[Array], outputs: Sequence[Array]) -> Any:
    """The layout of a body whose inputs and outputs lie at these places."""
    from lucid.compiler.segment import SegmentLayout

    class InnerLayout(SegmentLayout):
        """A layout inside that of another: the same plan, with memory above the other's."""

        def __init__(self) -> None:
            self.lowering = lowered(graph)
            own: Graph = self.lowering.graph
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
            self.arrays.update(self.given)  # type: ignore[arg-type]

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
    """A loop: what comes before it, its test and its body, and what comes after it."""

    loop: Loop
    trips: int | None
    before: Sequence[Any]
    body: Sequence[Any]
    label: str
    test: Sequence[Any] = ()
    predicate: Any = None
    after: Sequence[Any] = ()

    def kernels(self) -> list[Any]:
        every = (*self.before, *self.test, *self.body, *self.after)
        return [kernel for work in every for kernel in work.kernels()]

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        for work in self.before:
            work.add(builder, kernels)
        builder.loop(self.trips, self.predicate, label=self.label, loop=self.loop)
        with self.loop.test:
            for work in self.test:
                work.add(builder, kernels)
        with self.loop.body:
            for work in self.body:
                work.add(builder, kernels)
        for work in self.after:
            work.add(builder, kernels)


@dataclass(eq=False)
class BranchWork:
    """Blocks of work, of which a number chooses one."""

    chosen: Any
    width: int
    branches: Sequence[Sequence[Any]]
    label: str

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
        now, then, before = [], [], []
        for init, out in zip(inits, outs):
            other = layout.scratch(out.type)
            first, second = (other, out) if op.length % 2 else (out, other)
            before += moved(layout, init, first, label)
            a, b = loop.carry(first.address, second.address)
            now.append(Array.of(a, out.type))
            then.append(Array.of(b, out.type))
        rows = [sliding(loop, x, op.reverse) for x in xs]
        ys = [sliding(loop, y, op.reverse) for y in outs[op.n_carry :]]
        body = inner(layout, op.body, [*consts, *now, *rows], [*then, *ys])
        layout.top = body.top
        return [LoopWork(loop, op.length, before, body.work, label)]


class WhileStep:
    """How `while` becomes instructions, where it is one loop that leaves no stacks."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        op: Any = eqn.op
        loop = LoopOf(*op.loops[0])
        plain = len(op.loops) == 1 and len(loop.body.outputs) == loop.n_carry
        single = all(len(init) == 1 for init in loop.inits)
        return plain and single and is_native(loop.body) and is_native(op.cond)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[LoopWork]:
        op: Any = eqn.op
        numbers = LoopOf(*op.loops[0])
        given = [layout.array(x) for x in eqn.inputs]
        loop, label = Loop(layout.builder), label_of(eqn)
        now, then, before = [], [], []
        for (init,) in numbers.inits:
            type = given[init].type
            first, second = layout.scratch(type), layout.scratch(type)
            before += moved(layout, given[init], first, label)
            a, b = loop.carry(first.address, second.address)
            now.append(Array.of(a, type))
            then.append(Array.of(b, type))
        goes_on = layout.scratch(Type(np.dtype("bool"), ()))
        test = inner(layout, op.cond, [*[given[v] for v in op.tests], *now], [goes_on])
        layout.top = test.top
        body = inner(layout, numbers.body, [*[given[v] for v in numbers.consts], *now], then)
        layout.top = body.top
        values = [*given, *now]
        after = [
            work
            for v, out in zip(op.results, eqn.outputs)
            for work in moved(layout, values[v], layout.array(out), label)
        ]
        return [LoopWork(loop, None, before, body.work, label, test.work, goes_on.address, after)]
