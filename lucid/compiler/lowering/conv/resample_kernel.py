"""resample: weighted sums from a table, for a vector of adjacent columns or some rows at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lucid.compiler.lowering.conv.window_tiles import LANES, llvm_types
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer, Variable
from lucid.compiler.lowering.nest_builder import copy, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.graph import Equation
from lucid.ir.types import SHORT_NAMES
from lucid.ops.nn.resample import Resample
from lucid.ops.shape.movement import Reshape
from lucid.support.caches import memoize

WORDS = ("source", "target", "starts", "offsets", "weights", "rows", "inner", "outer_bytes")
ROWS = 4  # rows that are resampled together along the last axis
TERM_NS = 0.6  # estimated, for a vector or for one element of each of ROWS

Reader = Callable[[Int], list[str]]


class Terms:
    """The arguments of a kernel, and the sums over its table of terms."""

    def __init__(self, code: LLVMBuilder, dtype: str) -> None:
        self.code, self.element, self.item = code, *llvm_types(dtype)[:2]
        pointers = [code.pointer(i) for i in range(5)]
        self.source, self.target, self.starts, self.offsets, self.weights = pointers
        self.rows, self.inner, self.outer_bytes = (code.word(i) for i in range(5, 8))

    def sums(self, row: Int, kind: str, count: int, read: Reader) -> list[str]:
        """`count` sums over a row of the table, of the values that `read` loads at an offset."""
        code = self.code
        first = code.load_int(self.starts.at(row * 8))
        end = code.load_int(self.starts.at(row * 8 + 8))
        totals = [Variable(code, kind) for _ in range(count)]
        for total in totals:
            total.set("zeroinitializer" if kind.startswith("<") else "0.0")
        with code.if_(first.icmp("slt", end)):
            for total, term in zip(totals, self.products(first, kind, read)):
                total.set(term)
        with code.loop(first + 1, end) as e:
            for total, term in zip(totals, self.products(e, kind, read)):
                total.set(code.write(f"fadd {kind} {total.get()}, {term}"))
        return [total.get() for total in totals]

    def products(self, e: Int, kind: str, read: Reader) -> list[str]:
        code = self.code
        weight = code.load(self.element, self.weights.at(e * self.item), self.item)
        if kind.startswith("<"):
            one = code.write(f"insertelement {kind} poison, {self.element} {weight}, i64 0")
            mask = f"<{kind[1:].split(' ')[0]} x i32> zeroinitializer"
            weight = code.write(f"shufflevector {kind} {one}, {kind} poison, {mask}")
        values = read(code.load_int(self.offsets.at(e * 8)))
        return [code.write(f"fmul {kind} {x}, {weight}") for x in values]


@memoize(maxsize=16)
def columns_kernel(dtype: str, vectors: bool) -> TextKernel:
    """A unit is a row of the result; the last vector of a row may overlap the one before."""
    name = f"resample_columns_{dtype}_{'vectors' if vectors else 'elements'}"
    code = LLVMBuilder(name)
    terms = Terms(code, dtype)
    kind, lanes = (llvm_types(dtype)[2], LANES[dtype]) if vectors else (terms.element, 1)
    with code.loop(code.lo, code.hi) as unit:
        source = terms.source.at(unit // terms.rows * terms.outer_bytes)
        target = terms.target.at(unit * terms.inner * terms.item)
        with code.loop(0, terms.inner, lanes) as column:
            nbytes = column.min(terms.inner - lanes) * terms.item
            here = source.at(nbytes)

            def read(offset: Int, here: Pointer = here) -> list[str]:
                return [code.load(kind, here.at(offset), terms.item)]

            (total,) = terms.sums(unit % terms.rows, kind, 1, read)
            code.store(kind, total, target.at(nbytes), terms.item)
    return TextKernel(name, code.text())


@memoize(maxsize=16)
def last_axis_kernel(dtype: str) -> TextKernel:
    """A unit is one index of the axes before the last; ROWS of them are processed together."""
    name = f"resample_last_{dtype}"
    code = LLVMBuilder(name)
    terms = Terms(code, dtype)
    length = terms.rows * terms.item
    whole = code.hi - (code.hi - code.lo) % ROWS
    for start, end, count in ((code.lo, whole, ROWS), (whole, code.hi, 1)):
        with code.loop(start, end, count) as unit:
            sources = [terms.source.at((unit + i) * terms.outer_bytes) for i in range(count)]
            targets = [terms.target.at((unit + i) * length) for i in range(count)]

            def read(offset: Int, sources: list[Pointer] = sources) -> list[str]:
                return [code.load(terms.element, x.at(offset), terms.item) for x in sources]

            with code.loop(0, terms.rows) as row:
                totals = terms.sums(row, terms.element, count, read)
                for total, target in zip(totals, targets):
                    code.store(terms.element, total, target.at(row * terms.item), terms.item)
    return TextKernel(name, code.text())


@dataclass(eq=False)
class ResampleWork:
    """Resamples the middle of three axes of `source` to `target`."""

    op: Resample
    source: Array
    target: Array
    label: str

    @property
    def kernel(self) -> TextKernel:
        inner, dtype = self.source.shape[2], self.source.dtype
        return last_axis_kernel(dtype) if inner == 1 else columns_kernel(dtype, self.wide)

    @property
    def wide(self) -> bool:
        return self.source.shape[2] >= LANES[self.source.dtype]

    def kernels(self) -> Sequence[Any]:
        return (self.kernel,)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        outer, rows, inner = self.target.shape
        item, (starts, positions, weights) = self.source.type.dtype.itemsize, self.op.table
        offsets = positions * (self.source.strides[1] * item)
        tables = (starts.astype("int64"), offsets.astype("int64"))
        args = [
            self.source.address, self.target.address, *[builder.constant(t) for t in tables],
            builder.constant(weights.astype(self.source.type.dtype)), rows, inner,
            self.source.strides[0] * item,
        ]  # fmt: skip
        terms = TERM_NS * len(weights)
        if inner == 1:
            extent, step, cost = outer, ROWS, terms
        else:
            vectors = math.ceil(inner / (LANES[self.source.dtype] if self.wide else 1))
            extent, step, cost = outer * rows, 1, terms * vectors / rows
        kernel, nbytes = kernels[self.kernel.key], item * (outer * inner * rows)
        traffic = (nbytes + item * math.prod(self.source.shape), 2 * outer * inner * len(weights))
        builder.call(kernel, args, extent, cost, step=step, label=self.label, traffic=traffic)


class ResampleLowering:
    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return SHORT_NAMES[eqn.inputs[0].type.dtype] in LANES

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op, label = cast(Resample, eqn.op), label_of(eqn)
        x, y = layout.array(eqn.inputs[0]), layout.array(eqn.outputs[0])
        if y.type.size == 0:
            return []
        outer, inner = math.prod(x.shape[: op.axis]), math.prod(x.shape[op.axis + 1 :])
        target = y.view(Reshape((outer, op.sizes[1], inner)))
        parts = Reshape((outer, op.sizes[0], inner))
        source, work = x.view(parts), []
        if source is None or (inner > 1 and source.strides[2] != 1):
            whole = layout.scratch(x.type)
            work, source = copy(layout, x, whole, label), whole.view(parts)
        return [*work, ResampleWork(op, source, target, label)]
