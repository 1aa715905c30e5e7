"""A segment of a program: where its values lie in memory, and the work that becomes its plan.

A step other than a group of elementwise equations finds its instructions by `step_of`: an object
with `accepts(eqn)` (is there code for these types?) and `lower(layout, eqn)`, which gives work with
`kernels()`, what must be compiled for it, and `add(builder, kernels)`, which adds instructions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lucid.compiler.fusion.groups import Group, Step
from lucid.compiler.kernels.build import (
    LONG,
    NestBuilder,
    by_chunks,
    cost_of,
    prune,
    reduces_once,
    used_buffers,
)
from lucid.compiler.kernels.nest import Nest
from lucid.compiler.lowering.matmul import ProductWork
from lucid.compiler.lowering.nest_builder import fill
from lucid.compiler.lowering.standalone import step_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.epilogue import Blocks, ByRowsWork, blocks_of, paired
from lucid.compiler.plan.executable import Segment
from lucid.compiler.plan.inplace_reuse import overwritten, written_into
from lucid.compiler.plan.instructions import INLINE_NS, chunk_length
from lucid.compiler.plan.memory import Life, allocate
from lucid.compiler.plan.plan import Builder
from lucid.compiler.plan.work import NestWork, note_traffic
from lucid.ir.graph import Equation, Var
from lucid.ir.types import Type
from lucid.ops.shape.copying import Copy
from lucid.ops.shape.movement import Reshape

MANY_ROWS = 64  # from here on columns are summed row by row, in chunks of rows
SHORT_ROW = 1 << 14


class SegmentLayout:
    """A segment's memory and instructions."""

    base = 0  # where its part of the arena begins
    is_whole = True  # not the body of a loop or a branch, whose outputs lie where others read

    def __init__(self, lowering: Any, segment: Segment) -> None:
        self.lowering = lowering
        self.segment = segment
        self.builder = Builder()
        self.arrays: dict[Var, Array] = {}
        self.work: list[Any] = []
        self.status: Array | None = None
        self.workspaces: dict[str, tuple[int, int]] = {}
        for var in segment.inputs:
            self.arrays[var] = Array.of(
                self.builder.input(var.type.dtype, var.type.shape), var.type
            )
        self.plan_memory()
        self.lower_steps()
        if self.status is not None:
            self.work = [*fill(0, self.status, "status"), *self.work]

    def lower_steps(self) -> None:
        for step in self.segment.steps:
            if step in self.renaming:
                continue
            if isinstance(step, Group):
                self.lower_group(step)
            else:
                self.work += step_of(step.equation.op).lower(self, step.equation)

    # Memory

    def plan_memory(self) -> None:
        """A place for every value that one step leaves for another: an output, or in the arena."""
        self.segment.steps, self.product_before = paired(self.segment.steps, self.lowering.reads)
        first, last = self.lifetimes()
        outputs = set(self.segment.outputs)
        temporaries = [var for var in first if var not in outputs]
        steps, readings = self.segment.steps, self.lowering.readings
        reserved = {
            x: y for y, x in self.lowering.into.items() if y in outputs and x in self.arrays
        }
        over = overwritten(steps, readings, last, set(first), set(temporaries), reserved)
        self.place_outputs(written_into(reserved, over, first, last))
        self.renaming = self.find_renaming(over, set(temporaries))
        end = {x: y for y, x in over.items()}  # becomes the last Var written in the same place
        lives: dict[Var, Life] = {}
        for var in reversed(temporaries):
            after = end.get(var, var)
            end[var] = after = end.get(after, after)
            nbytes = var.type.size * var.type.dtype.itemsize
            lives[after] = Life(nbytes, first[var], last.get(after, first[after]))
        in_arena = [var for var in lives if var not in outputs]
        offsets, top = allocate([lives[var] for var in in_arena])
        self.top = self.base + top
        places = {
            var: self.builder.arena(self.base + offset) for var, offset in zip(in_arena, offsets)
        }
        for var in temporaries:
            ref = places.get(end[var]) or self.arrays[end[var]].ref
            self.arrays[var] = Array.of(ref, var.type)

    def find_renaming(self, over: dict[Var, Var], temporaries: set[Var]) -> set[Step]:
        """Copies of a value in another shape to an output: the value is computed there at once."""
        found: set[Step] = set()
        if not self.is_whole:
            return found
        elsewhere = {*self.segment.into, *over}
        outputs = {var for var in self.segment.outputs if var not in elsewhere}
        taken = set(over.values())
        for step in self.segment.steps:
            eqn = sole_equation(step)
            if eqn is None or not isinstance(eqn.op, Copy) or eqn.outputs[0] not in outputs:
                continue
            x: Any = eqn.inputs[0]
            while x in self.lowering.producer and isinstance(self.lowering.producer[x].op, Reshape):
                x = self.lowering.producer[x].inputs[0]
            if x in temporaries and x not in taken:
                taken.add(x)
                over[eqn.outputs[0]] = x
                found.add(step)
        return found

    def place_outputs(self, into: Mapping[Var, Var]) -> None:
        """New memory for every output, or that of the input which it replaces."""
        for var in self.segment.outputs:
            given = self.arrays[into[var]].ref if var in into else None
            made = self.builder.output(var.type.dtype, var.type.shape, given)
            self.arrays[var] = Array.of(given or made, var.type)
        self.segment.into = dict(into)

    def lifetimes(self) -> tuple[dict[Var, int], dict[Var, int]]:
        """The steps that write each Var in memory, and that read it last.

        The operands of a product live beyond the group that may run together with it.
        """
        last: dict[Var, int] = {}
        first: dict[Var, int] = {}
        products = set(self.product_before.values())
        for number, step in enumerate(self.segment.steps):
            for x in self.lowering.reads(step):
                last[x] = max(last.get(x, 0), number + 2 if step in products else number)
        outputs = set(self.segment.outputs)
        for number, step in enumerate(self.segment.steps):
            for eqn in step.equations if isinstance(step, Group) else [step.equation]:
                for var in eqn.outputs:
                    if var in outputs or var in last or not isinstance(step, Group):
                        first[var] = number
        return first, last

    def scratch(self, type: Type) -> Array:
        """Memory above all planned buffers, for the inside of one step."""
        offset = self.top
        self.top += -(-max(type.size * type.dtype.itemsize, 1) // 64) * 64
        return Array.of(self.builder.arena(offset), type)

    def workspace(self, role: str, type: Type) -> Array:
        """Memory for the inside of one step, which other steps use for the same after it."""
        nbytes = type.size * type.dtype.itemsize
        offset, room = self.workspaces.get(role, (0, -1))
        if nbytes > room:
            offset = self.top
            self.scratch(type)
            self.workspaces[role] = offset, nbytes
        return Array.of(self.builder.arena(offset), type)

    def check(self, eqn: Equation) -> int:
        """The code of an error in an equation: what a kernel leaves in the plan's last output."""
        if self.status is None:
            type = Type(np.dtype("int64"), ())
            self.status = Array.of(self.builder.output(type.dtype, ()), type)
        self.segment.checks.append(eqn)
        return len(self.segment.checks)

    def array(self, x: Var) -> Array:
        """Where a value, or a view of one, lies."""
        if x in self.arrays:
            return self.arrays[x]
        eqn = self.lowering.producer[x]
        found = self.array(eqn.inputs[0]).view(eqn.op)  # type: ignore[arg-type]
        assert found is not None, "settle leaves only views that can be taken"
        return found

    # Steps

    def lower_group(self, group: Group) -> None:
        nest, arrays = NestBuilder(self, group).run()
        label = " ".join(dict.fromkeys(eqn.op.name for eqn in group.equations))
        lines = list(dict.fromkeys(str(eqn.source) for eqn in group.equations if eqn.source))
        sources = ", ".join(lines[:3]) + ", ..." * (len(lines) > 3)
        label = f"{label}  [{sources}]" if sources else label
        cost = cost_of(nest)
        splits = reduces_once(nest) and worth_splitting(nest, cost)
        product = self.work.pop() if group in self.product_before else None
        cut = self.cut_into_blocks(product, nest, arrays, splits)
        if splits:
            grain = chunk_length(nest.sizes[0], cost * nest.size / nest.sizes[0])
            work = self.split(nest, arrays, label, cost, cut.units if cut else grain)
        else:
            work = [NestWork(nest, arrays, label, cost, status=self.status)]
        if cut and product:
            self.work += [ByRowsWork(product, work[0], cut), *work[1:]]
        else:
            self.work += [*([product] if product else []), *work]

    @staticmethod
    def cut_into_blocks(
        product: ProductWork | None, nest: Nest, arrays: Sequence[Array], splits: bool
    ) -> Blocks | None:
        """Blocks of rows in which a product and the kernel after it can take turns, if they can."""
        if product is None or (all(nest.reduced) and not splits):
            return None
        return blocks_of(product, by_chunks(nest, 1)[0] if splits else nest, arrays)

    def split(
        self, nest: Nest, arrays: Sequence[Array], label: str, cost: float, grain: int
    ) -> list[NestWork]:
        """A reduction of everything or of columns: partial results, then those together."""
        chunks = math.ceil(nest.sizes[0] / grain)
        parts = [
            self.scratch(Type(np.dtype(LONG[value.dtype]), (chunks, nest.kept_size)))
            for value in nest.values
            if value.op == "reduce"
        ]
        first, second = by_chunks(nest, chunks)
        both = [*arrays, *parts]
        at_first, at_last = ([both[i] for i in used_buffers(part)] for part in (first, second))
        return [
            NestWork(prune(first), at_first, label, cost, grain, self.status),
            NestWork(prune(second), at_last, label, 0.5, status=self.status),
        ]

    def build(self, kernels: dict[Any, Any]) -> None:
        for work in self.work:
            begin = len(self.builder.current.instructions)
            work.add(self.builder, kernels)
            note_traffic(work, self.builder.current.instructions[begin:])
        self.segment.plan = self.builder.build(self.top)


def sole_equation(step: Step) -> Equation | None:
    """The equation of a step that has no other."""
    if isinstance(step, Group):
        return step.equations[0] if len(step.equations) == 1 else None
    return step.equation


def worth_splitting(nest: Nest, cost: float) -> bool:
    """Is a reduction long enough for chunks of it to be run apart, in whole rows?"""
    if nest.size * cost <= INLINE_NS:
        return False
    return all(nest.reduced) or (nest.sizes[0] >= MANY_ROWS and nest.kept_size <= SHORT_ROW)
