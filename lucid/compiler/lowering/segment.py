"""A segment of a program: the memory of its values, and the work that becomes its plan.

A step other than a fused group is lowered by the `lowering` of its operation: `accepts(eqn)` is
true if there is native code for its types, and `lower(layout, eqn)` returns work, each with the
`kernels()` to compile for it and `add(builder, kernels)`, which adds its instructions. An
asynchronous operation has `start` and `wait` in place of `lower` if other steps run between them,
and `poll`, which lets it advance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lucid.compiler.fusion.groups import Group, Standalone, Step
from lucid.compiler.kernels.build import (
    DTYPE_NAMES,
    NestBuilder,
    cost_of,
    prune,
    reduces_in_one_pass,
    split_chunks,
    used_buffers,
)
from lucid.compiler.kernels.nest import Nest
from lucid.compiler.kernels.transposed import copied_buffers, copy_of
from lucid.compiler.lowering.matmul import ProductWork
from lucid.compiler.lowering.nest_builder import fill
from lucid.compiler.plan.arrays import Array, array_of
from lucid.compiler.plan.epilogue import Blocks, EpilogueWork, pair_products, row_blocks
from lucid.compiler.plan.executable import Check, Segment
from lucid.compiler.plan.inplace_reuse import donated_outputs, find_reuse
from lucid.compiler.plan.instructions import INLINE_NS, chunk_length
from lucid.compiler.plan.memory import Lifetime, allocate
from lucid.compiler.plan.plan import Builder
from lucid.compiler.plan.work import NestWork, StopWork, note_traffic
from lucid.compiler.resolve import resolve
from lucid.ir.graph import Equation, Var
from lucid.ir.types import Type

MANY_ROWS = 64  # from here on columns are summed row by row, in chunks of rows
SHORT_ROW = 1 << 14


class SegmentLayout:
    """Plans the memory and the instructions of a segment.

    For `compiler/inspect` it keeps what it has decided:
    buffers         (Var, offset, Lifetime) of every planned buffer of the arena
    steps_of        id of a work -> the steps that it computes
    instructions    the work of each instruction of the main block, once the plan is built
    """

    base = 0  # where its part of the arena begins
    wide_sums = False  # vectorized sums have many short partial sums
    is_top_level = True  # not the body of a loop or a branch, whose outputs lie where others read

    def __init__(self, lowering: Any, segment: Segment) -> None:
        self.lowering = lowering
        self.segment = segment
        self.builder = Builder()
        self.arrays: dict[Var, Array] = {}
        self.work: list[Any] = []
        self.status: Array | None = None
        self.workspaces: dict[str, tuple[int, int]] = {}
        self.checked: set[tuple[Var, int]] = set()  # index and size of the axis
        for var in segment.inputs:
            self.arrays[var] = Array.of(
                self.builder.input(var.type.dtype, var.type.shape), var.type
            )
        self.plan_memory()
        self.lower_steps()
        if self.status is not None:
            self.work = [*fill(0, self.status, "status"), *self.work]

    def lower_steps(self) -> None:
        self.steps_of: dict[int, list[Step]] = {}
        for number, step in enumerate(self.segment.steps):
            self.add_waits(number)
            self.step = step
            if number == self.first_change and self.checks_before(number):
                assert self.status is not None
                self.work.append(StopWork(self.status))
            if step in self.elided:
                continue
            begin = max(len(self.work) - 1, 0)  # a group may replace the product before it
            if isinstance(step, Group):
                self.lower_group(step)
            else:
                lowering = resolve(step.equation.op.lowering)
                lower = lowering.start if step in self.started else lowering.lower
                self.work += lower(self, step.equation)
            for work in self.work[begin:]:
                if id(work) not in self.steps_of:
                    both = isinstance(work, EpilogueWork)
                    self.steps_of[id(work)] = [*([self.product_before[step]] if both else []), step]
        self.add_waits(len(self.segment.steps))

    def add_waits(self, number: int) -> None:
        """Wait for the asynchronous results that the step of this number reads; poll others."""
        for step, (begin, end) in self.started.items():
            if begin < number <= end:
                lowering = resolve(step.equation.op.lowering)
                action = lowering.wait if number == end else lowering.poll
                added = action(self, step.equation)
                self.steps_of.update({id(work): [step] for work in added})
                self.work += added

    # Memory

    def plan_memory(self) -> None:
        """Assign memory to every value that one step leaves for another: an output or the arena."""
        self.segment.steps, self.product_before = pair_products(
            self.segment.steps, self.lowering.reads
        )
        self.started = self.find_started() if self.is_top_level else {}
        first, last = self.lifetimes()
        outputs = set(self.segment.outputs)
        temporaries = [var for var in first if var not in outputs]
        steps, readings = self.segment.steps, self.lowering.readings
        reserved = {
            x: y for y, x in self.lowering.into.items() if y in outputs and x in self.arrays
        }
        checking = [i for i, step in enumerate(steps) if step in self.lowering.checking]
        last_check = max(checking, default=-1) if self.is_top_level else -1
        early: set[Var] | None = None
        while early is None or early:
            reserved = {x: y for x, y in reserved.items() if x not in (early or ())}
            reuses = find_reuse(steps, readings, last, set(first), set(temporaries), reserved)
            into = donated_outputs(reserved, reuses, first, last)
            changed = {x: self.first_write(y, reuses, first) for y, x in into.items()}
            early = {x for x, number in changed.items() if number <= last_check}
        self.first_change = min(changed.values(), default=-1)
        self.allocate_outputs(into)
        self.elided = self.elide_copies(reuses, set(temporaries))
        end = {x: y for y, x in reuses.items()}  # becomes the last Var written in the same place
        spans: dict[Var, Lifetime] = {}
        for var in reversed(temporaries):
            after = end.get(var, var)
            end[var] = after = end.get(after, after)
            nbytes = var.type.size * var.type.dtype.itemsize
            spans[after] = Lifetime(nbytes, first[var], last.get(after, first[after]))
        in_arena = [var for var in spans if var not in outputs]
        offsets, top = allocate([spans[var] for var in in_arena])
        self.top = self.base + top
        self.builder.allocations += [
            (self.base + offset, spans[var].nbytes) for var, offset in zip(in_arena, offsets)
        ]
        self.buffers: list[tuple[Var, int, Lifetime]] = [
            (var, self.base + at, spans[var]) for var, at in zip(in_arena, offsets)
        ]
        places = {
            var: self.builder.arena(self.base + offset) for var, offset in zip(in_arena, offsets)
        }
        for var in temporaries:
            ref = places.get(end[var]) or self.arrays[end[var]].ref
            self.arrays[var] = Array.of(ref, var.type)

    def first_write(self, y: Var, reuses: Mapping[Var, Var], first: Mapping[Var, int]) -> int:
        """The step that first writes to the memory in which `y` is computed.

        A group may run together with the product before it, so that one counts as well.
        """
        number = first[y]
        while y in reuses:
            y = reuses[y]
            number = min(number, first.get(y, number))
        return number - (self.segment.steps[number] in self.product_before)

    def checks_before(self, number: int) -> bool:
        """True if a step before this one may have reported an error of values."""
        steps = self.segment.steps[:number]
        return self.is_top_level and not self.lowering.checking.isdisjoint(steps)

    def elide_copies(self, reuses: dict[Var, Var], temporaries: set[Var]) -> set[Step]:
        """Find copies of a reshaped value to an output, whose value can be computed there."""
        found: set[Step] = set()
        if not self.is_top_level:
            return found
        elsewhere = {*self.segment.into, *reuses}
        outputs = {var for var in self.segment.outputs if var not in elsewhere}
        taken = set(reuses.values())
        for step in self.segment.steps:
            eqn = single_equation(step)
            if eqn is None or not is_copy(eqn) or eqn.outputs[0] not in outputs:
                continue
            x: Any = eqn.inputs[0]
            while x in self.lowering.producer and keeps_order(self.lowering.producer[x]):
                x = self.lowering.producer[x].inputs[0]
            if x in temporaries and x not in taken:
                taken.add(x)
                reuses[eqn.outputs[0]] = x
                found.add(step)
        return found

    def allocate_outputs(self, into: Mapping[Var, Var]) -> None:
        """Allocate every output, or reuse the memory of the input that it replaces."""
        for var in self.segment.outputs:
            given = self.arrays[into[var]].ref if var in into else None
            made = self.builder.output(var.type.dtype, var.type.shape, given)
            self.arrays[var] = Array.of(given or made, var.type)
        self.segment.into = dict(into)

    def lifetimes(self) -> tuple[dict[Var, int], dict[Var, int]]:
        """Return the step that writes each Var in memory, and the step that reads it last.

        The operands of a product outlive the group that may run together with it.
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
        for started, (_, end) in self.started.items():  # its memory is in use until then
            for var in (*self.lowering.reads(started), *started.equation.outputs):
                last[var] = max(last.get(var, 0), end)
        return first, last

    def find_started(self) -> dict[Standalone, tuple[int, int]]:
        """Map asynchronous steps to their number and to that of the step that waits for them.

        Those that the next step reads are missing: they are lowered as if they were not.
        """
        steps = self.segment.steps
        found: dict[Standalone, tuple[int, int]] = {}
        pending: dict[Var, Standalone] = {}
        for number, step in enumerate(steps):
            # a product and its reader are one instruction
            place = number - 1 if step in self.product_before else number
            for x in self.lowering.reads(step) if pending else ():
                if x in pending:
                    begun = pending.pop(x)
                    found[begun] = found[begun][0], place
            if not isinstance(step, Group) and step.equation.op.asynchronous:
                pending.update(dict.fromkeys(step.equation.outputs, step))
                found[step] = number, len(steps)
        return {step: (begin, end) for step, (begin, end) in found.items() if end > begin + 1}

    def scratch(self, type: Type) -> Array:
        """Allocate memory above all planned buffers, for temporaries of one step."""
        offset, nbytes = self.top, max(type.size * type.dtype.itemsize, 1)
        self.top += -(-nbytes // 64) * 64
        self.builder.allocations.append((offset, nbytes))
        return Array.of(self.builder.arena(offset), type)

    def workspace(self, role: str, type: Type) -> Array:
        """Memory for temporaries of one step, which later steps reuse for the same role."""
        nbytes = type.size * type.dtype.itemsize
        offset, room = self.workspaces.get(role, (0, -1))
        if nbytes > room:
            offset = self.top
            self.scratch(type)
            self.workspaces[role] = offset, nbytes
        return Array.of(self.builder.arena(offset), type)

    def add_check(self, eqn: Equation, indices: Sequence[tuple[Any, int]] = ()) -> int:
        """Return the error code of an equation, which a kernel writes to the plan's last output.

        indices    the indices that are checked, with the sizes of their axes, if nothing else is
        """
        if self.status is None:
            type = Type(np.dtype("int64"), ())
            self.status = Array.of(self.builder.output(type.dtype, ()), type)
        if not indices or not all([self.is_in_range(x, size) for x, size in indices]):
            self.lowering.checking.add(self.step)
        self.checked.update((self.lowering.base(x), size) for x, size in indices)
        self.segment.checks.append(Check.of(eqn))
        return len(self.segment.checks)

    def is_in_range(self, index: Any, size: int) -> bool:
        """True if an index is valid as it is computed, or an earlier step has checked it."""
        base = self.lowering.base(index)
        eqn = self.lowering.producer.get(base)
        if (base, size) in self.checked:
            return True
        bound = None if eqn is None else eqn.op.index_bound(*[x.type for x in eqn.inputs])
        return bound is not None and bound <= size

    def array(self, x: Var) -> Array:
        """Return the array of a value, or of a view of one."""
        return array_of(x, self.arrays, self.lowering.producer)

    # Steps

    def lower_group(self, group: Group) -> None:
        nest, arrays = NestBuilder(self, group).run()
        nest, arrays, before, after = self.copy_transposed(nest, arrays)
        label = " ".join(dict.fromkeys(eqn.op.name for eqn in group.equations))
        lines = list(dict.fromkeys(str(eqn.source) for eqn in group.equations if eqn.source))
        sources = ", ".join(lines[:3]) + ", ..." * (len(lines) > 3)
        label = f"{label}  [{sources}]" if sources else label
        cost = cost_of(nest)
        splits = reduces_in_one_pass(nest) and worth_splitting(nest, cost)
        product = self.work.pop() if group in self.product_before else None
        blocks = None if before or after else self.epilogue_blocks(product, nest, arrays, splits)
        if splits:
            grain = chunk_length(nest.sizes[0], cost * nest.size / nest.sizes[0])
            work = self.split(nest, arrays, label, cost, blocks.units if blocks else grain)
        else:
            work = [NestWork(nest, arrays, label, cost, status=self.status)]
        if blocks and product:
            self.work += [EpilogueWork(product, work[0], blocks), *work[1:]]
        else:
            self.work += [*([product] if product else []), *before, *work, *after]

    def copy_transposed(
        self, nest: Nest, arrays: list[Array]
    ) -> tuple[Nest, list[Array], list[NestWork], list[NestWork]]:
        """Copy what rows of a reduction read or write across.

        Return what computes on the copies, and what copies operands before and results after.
        """
        before: list[NestWork] = []
        after: list[NestWork] = []
        found = list(arrays)
        stored = {store.buffer for store in nest.stores}
        for number, b in enumerate(copied_buffers(nest)):
            copy, shape, nest = copy_of(nest, b)
            space = self.workspace(f"copy {number}", Type(found[b].type.dtype, shape))
            both = [space, found[b]] if b in stored else [found[b], space]
            (after if b in stored else before).append(NestWork(copy, both, "copy", cost_of(copy)))
            found[b] = space
        return nest, found, before, after

    @staticmethod
    def epilogue_blocks(
        product: ProductWork | None, nest: Nest, arrays: Sequence[Array], splits: bool
    ) -> Blocks | None:
        """Blocks of rows in which a product and the kernel after it can alternate, or None."""
        if product is None or (all(nest.reduced) and not splits):
            return None
        return row_blocks(product, split_chunks(nest, 1)[0] if splits else nest, arrays)

    def split(
        self, nest: Nest, arrays: Sequence[Array], label: str, cost: float, grain: int
    ) -> list[NestWork]:
        """Split a reduction of all elements or of columns: partial results, then their sum."""
        chunks = math.ceil(nest.sizes[0] / grain)
        parts = [
            self.scratch(Type(np.dtype(DTYPE_NAMES[value.dtype]), (chunks, nest.kept_size)))
            for value in nest.values
            if value.op == "reduce"
        ]
        first, second = split_chunks(nest, chunks)
        both = [*arrays, *parts]
        at_first, at_last = ([both[i] for i in used_buffers(part)] for part in (first, second))
        return [
            NestWork(prune(first), at_first, label, cost, grain, self.status),
            NestWork(prune(second), at_last, label, 0.5, status=self.status),
        ]

    def build(self, kernels: dict[Any, Any]) -> None:
        self.instructions: list[Any] = []
        for work in self.work:
            begin = len(self.builder.current.instructions)
            work.add(self.builder, kernels)
            made = self.builder.current.instructions[begin:]
            note_traffic(work, made)
            self.instructions += [work] * len(made)
        self.segment.plan = self.builder.build(self.top)


def single_equation(step: Step) -> Equation | None:
    """The equation of a step that has only one, else None."""
    if isinstance(step, Group):
        return step.equations[0] if len(step.equations) == 1 else None
    return step.equation


def is_copy(eqn: Equation) -> bool:
    return bool(eqn.op.forwards) and len(eqn.inputs) == 1


def keeps_order(eqn: Equation) -> bool:
    """True for a view that leaves dense memory as it is, such as a reshape."""
    x, op = eqn.inputs[0], eqn.op
    if not op.aliases or op.orders or not isinstance(x, Var):
        return False
    found = Array.of(None, x.type).view(op)
    same = found is not None and found.is_dense and not found.offset
    return same and eqn.outputs[0].type.size == x.type.size and op.moves


def worth_splitting(nest: Nest, cost: float) -> bool:
    """True if a reduction is long enough to be split into chunks of whole rows."""
    if nest.size * cost <= INLINE_NS:
        return False
    return all(nest.reduced) or (nest.sizes[0] >= MANY_ROWS and nest.kept_size <= SHORT_ROW)
