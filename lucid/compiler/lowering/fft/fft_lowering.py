"""Lowers fft, rfft and irfft: one kernel for each length, which transforms rows along one axis.

A row that is not contiguous is gathered first and scattered at the end; several adjacent columns
are transformed together. An even number n of real numbers is read as n / 2 complex ones, whose
transform z gives, with w = e**(-2 pi i k / n),

    y[k] = (z[k] + z*[n/2 - k]) / 2 - i w (z[k] - z*[n/2 - k]) / 2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.fft.complex_vectors import (
    ITEM,
    LANES,
    ConstantTable,
    InterleavedColumns,
    InterleavedComplex,
    RealNumbers,
    SplitComplex,
    VectorOps,
)
from lucid.compiler.lowering.fft.stockham import (
    Transform,
    convolution_length,
    radices,
    roots_of_unity,
)
from lucid.compiler.lowering.index.concatenate_pad import subarray
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer
from lucid.compiler.lowering.nest_builder import label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.instructions import INLINE_NS
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.graph import Equation, Var
from lucid.ir.types import Type
from lucid.support.caches import memoize

NS = {"f32": 0.4, "f64": 0.8}  # estimated, per number and log2 of the length
CHUNKS = 16
REAL = {np.dtype(c): d for c, d in (("f4", "f32"), ("c8", "f32"), ("f8", "f64"), ("c16", "f64"))}
WORDS = 6  # argument words before those of the axes


@dataclass(frozen=True)
class Kind:
    """The properties that determine a kernel.

    name        "complex", "to_half" or "from_half"
    n           the length of the transform
    dense       whether a row is contiguous, in the operand and in the result
    axes        the number of other axes, over which there are rows
    columns     the number of transforms side by side
    """

    name: str
    n: int
    inverse: bool
    dtype: str
    dense: tuple[bool, bool]
    axes: int
    columns: int = 1

    @property
    def counts(self) -> tuple[int, int]:
        """The real elements in a row of the operand, and of the result."""
        half = 2 * (self.n // 2 + 1)
        whole = {"complex": (2, 2), "to_half": (1, 0), "from_half": (0, 1)}[self.name]
        return whole[0] * self.n or half, whole[1] * self.n or half

    @property
    def inner(self) -> int:
        """The length of the complex transform."""
        return self.n // 2 if self.name != "complex" and self.n % 2 == 0 else self.n

    @property
    def room(self) -> int:
        """The elements of each of the four arrays of the workspace."""
        longest = self.inner if radices(self.inner) is not None else convolution_length(self.inner)
        return -(-max(longest, self.n) * self.columns // 16) * 16

    @property
    def workspace(self) -> int:
        """The bytes of workspace for the transform of one row."""
        apart = [c for c, dense in zip(self.counts, self.dense) if not dense]
        elements = 4 * self.room + sum(-(-c // 16) * 16 for c in apart)
        return elements * ITEM[self.dtype]


class RowKernelWriter:
    """Writes the kernel of one Kind, and the table of its constants."""

    def __init__(self, kind: Kind, scale: float) -> None:
        self.kind, self.table = kind, ConstantTable(scale)
        self.name = "fft_" + "_".join(
            [kind.name, str(kind.n), kind.dtype, *map(str, map(int, (kind.inverse, *kind.dense)))]
        )
        self.name += f"_{kind.axes}_{kind.columns}"
        self.code = LLVMBuilder(self.name)

    def run(self) -> str:
        code, kind = self.code, self.kind
        self.vec = VectorOps(code, kind.dtype, code.pointer(3))
        chunk = code.lo // code.word(4)
        space = code.pointer(2).at(chunk * kind.workspace)
        step = kind.room * self.vec.item
        parts = [space.at(step * i) for i in range(4)]
        self.first, self.second = (SplitComplex(self.vec, *parts[i : i + 2]) for i in (0, 2))
        rest = 4 * step
        workspaces: list[Pointer | None] = []
        for count, dense in zip(kind.counts, kind.dense):
            workspaces.append(None if dense else space.at(rest))
            rest += 0 if dense else -(-count // 16) * 16 * self.vec.item
        with code.loop(code.lo, code.hi) as row:
            source, target = self.row(row)
            given, result = workspaces[0] or source, workspaces[1] or target
            if workspaces[0] is not None:
                self.move(0, source, workspaces[0], gather=True)
            self.transform(given, result)
            if workspaces[1] is not None:
                self.move(1, workspaces[1], target, gather=False)
        return code.text()

    def row(self, row: Int) -> tuple[Pointer, Pointer]:
        """The addresses of a row in the operand and in the result."""
        code, rest = self.code, row
        at = [code.number(0), code.number(0)]
        for axis in range(self.kind.axes):
            word = WORDS + 2 + 3 * axis
            size = code.word(word)
            place, rest = rest % size, rest // size
            at = [a + place * code.word(word + 1 + i) for i, a in enumerate(at)]
        return code.pointer(0).at(at[0]), code.pointer(1).at(at[1])

    def move(self, which: int, source: Pointer, target: Pointer, gather: bool) -> None:
        """Gather the numbers of a row to contiguous memory, or scatter them back."""
        code, vec = self.code, self.vec
        is_real = self.kind.name == ("to_half", "from_half")[which]
        width = 1 if is_real else 2
        count, apart = self.kind.counts[which] // width, code.word(WORDS + which)
        with code.loop(0, count) as i:
            near, far = i * (width * vec.item), i * apart
            a, b = (far, near) if gather else (near, far)
            value = code.load(vec.type(width), source.at(a), vec.item)
            code.store(vec.type(width), value, target.at(b), vec.item)

    def transform(self, source: Pointer, target: Pointer) -> None:
        kind, vec = self.kind, self.vec
        inner = Transform(vec, self.table, kind.inner, (self.first, self.second), kind.columns)
        if kind.columns > 1:
            apart = [self.code.word(WORDS + which) for which in (0, 1)]
            ends = zip((source, target), apart)
            inner.run(
                *[
                    InterleavedColumns(vec, at, step, kind.columns, kind.inverse)
                    for at, step in ends
                ]
            )
        elif kind.name == "complex":
            inner.run(
                InterleavedComplex(vec, source, kind.inverse),
                InterleavedComplex(vec, target, kind.inverse),
            )
        elif kind.name == "to_half" and kind.n % 2:
            found, out = inner.run(RealNumbers(vec, source)), InterleavedComplex(vec, target)
            inner.move(found, out, kind.n // 2 + 1)
        elif kind.name == "to_half":
            self.unpack_half_spectrum(
                inner.run(InterleavedComplex(vec, source)), InterleavedComplex(vec, target)
            )
        elif kind.n % 2:
            self.expand_hermitian(InterleavedComplex(vec, source))
            inner.run(self.second.swapped(), ImaginaryPart(vec, target))
        else:
            self.pack_half_spectrum(InterleavedComplex(vec, source))
            inner.run(self.second.swapped(), InterleavedComplex(vec, target, True))

    def unpack_half_spectrum(self, z: Any, y: InterleavedComplex) -> None:
        """The transform of n real numbers from that of n / 2 complex ones."""
        vec, half = self.vec, self.kind.n // 2
        twiddles = self.table.add(roots_of_unity(np.arange(half), 2 * half))
        re, im = z.load(0, 1)
        zero = vec.number(0.0, 1)
        y.store((vec.do("fadd", 1, re, im), zero), 0, 1)
        y.store((vec.do("fsub", 1, re, im), zero), half, 1)

        def body(k: Int, w: int) -> None:
            plus, minus = self.add_and_subtract_mirror(z, k, w)
            side = vec.multiply(w, vec.times_minus_i(w, minus), vec.constants(twiddles, half, k, w))
            y.store(vec.scale_by(w, vec.add(w, plus, side), 0.5), k, w)

        vec.vector_loop(1, half, body)

    def pack_half_spectrum(self, y: InterleavedComplex) -> None:
        """Write n / 2 complex numbers whose inverse transform is n real ones to the workspace."""
        vec, half = self.vec, self.kind.n // 2
        twiddles = self.table.add(roots_of_unity(np.arange(half), 2 * half).conj())
        first, last = y.load(0, 1)[0], y.load(half, 1)[0]
        self.second.store((vec.do("fadd", 1, first, last), vec.do("fsub", 1, first, last)), 0, 1)

        def body(k: Int, w: int) -> None:
            plus, minus = self.add_and_subtract_mirror(y, k, w)
            re, im = vec.multiply(w, minus, vec.constants(twiddles, half, k, w))
            self.second.store(vec.add(w, plus, (vec.negate(w, im), re)), k, w)

        vec.vector_loop(1, half, body)

    def add_and_subtract_mirror(self, z: Any, k: Int, w: int) -> tuple[Any, Any]:
        """z[k] ± z*[n/2 - k]."""
        vec, here = self.vec, z.load(k, w)
        there = z.load(self.code.number(self.kind.n // 2 - w + 1) - k, w)
        if w > 1:
            there = tuple(vec.shuffle(w, part, part, range(w - 1, -1, -1)) for part in there)
        mirror = there[0], vec.negate(w, there[1])
        return vec.add(w, here, mirror), vec.sub(w, here, mirror)

    def expand_hermitian(self, y: InterleavedComplex) -> None:
        """Write all n numbers, of which the first half is given, to the workspace; n is odd."""
        vec, n = self.vec, self.kind.n
        self.second.store((y.load(0, 1)[0], vec.number(0.0, 1)), 0, 1)
        with self.code.loop(1, n // 2 + 1) as k:
            re, im = y.load(k, 1)
            self.second.store((re, im), k, 1)
            self.second.store((re, vec.negate(1, im)), self.code.number(n) - k, 1)


class ImaginaryPart(RealNumbers):
    """Real numbers that are the imaginary parts of what is stored."""

    def store(self, x: tuple[str, str], index: Int | int, width: int) -> None:
        super().store((x[1], x[0]), index, width)


@memoize(maxsize=256)
def row_kernel(kind: Kind) -> tuple[TextKernel, ConstantTable]:
    writer = RowKernelWriter(kind, 1.0)
    text = writer.run()
    return TextKernel(writer.name, text), writer.table


@memoize(maxsize=64)
def constants(kind: Kind, scale: float) -> np.ndarray:
    """The constant table of a kernel whose results are multiplied by `scale`."""
    _, table = row_kernel(kind)
    array = table.array(kind.dtype)
    array[0] = scale
    return array


@dataclass(eq=False)
class FftWork:
    """The transforms of all rows along one axis of an array."""

    kind: Kind
    scale: float
    x: Array
    out: Array
    axis: int
    space: Array
    label: str

    @property
    def rows(self) -> list[tuple[int, int, int]]:
        """The size and strides in bytes of each other axis, from the last."""
        return rows_of(self.x, self.out, self.axis, self.kind.columns)

    def kernels(self) -> Sequence[Any]:
        return (row_kernel(self.kind)[0],)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        extent = math.prod(n for n, *_ in self.rows)
        grain = math.ceil(extent / self.space.shape[0])
        table = builder.constant(constants(self.kind, self.scale))
        steps = [a.strides[self.axis] * a.type.dtype.itemsize for a in (self.x, self.out)]
        args: list[Any] = [self.x.address, self.out.address, self.space.address, table, grain, 0]
        args += [*steps, *[word for entry in self.rows for word in entry]]
        (text,) = self.kernels()
        cost = row_cost(self.kind)
        builder.call(kernels[text.key], args, extent, cost, grain, label=self.label)


def rows_of(x: Array, out: Array, axis: int, columns: int) -> list[tuple[int, int, int]]:
    """The size and strides in bytes of each axis but one, from the last; the last in blocks."""
    sizes = [a.type.dtype.itemsize for a in (x, out)]
    found = []
    for i, (n, *apart) in enumerate(zip(x.shape, x.strides, out.strides)):
        width = columns if i == len(x.shape) - 1 else 1
        if i != axis and n != width:
            found.append((n // width, apart[0] * sizes[0] * width, apart[1] * sizes[1] * width))
    return found[::-1]


def row_cost(kind: Kind) -> float:
    """Estimated ns for a row."""
    length = kind.inner if radices(kind.inner) is not None else 2 * convolution_length(kind.inner)
    return 20 + NS[kind.dtype] * length * kind.columns * math.log2(length + 1)


def lower_axis(
    layout: Any, kind: str, op: Any, x: Array, out: Array, axis: int, label: str
) -> list[FftWork]:
    """Return the work for one axis: adjacent columns in blocks, the rest one by one."""
    n = op.n if kind == "from_half" else x.shape[axis]
    inverse = kind == "from_half" or getattr(op, "inverse", False)
    whole = {"backward": 1 / n if inverse else 1.0, "forward": 1.0 if inverse else 1 / n}
    scale = whole.get(op.norm, 1 / math.sqrt(n))
    dense = is_contiguous(x, axis), is_contiguous(out, axis)
    dtype = REAL[x.type.dtype]
    blocks = [(x, out, 1)]
    if kind == "complex" and n > 1 and radices(n) is not None and axis != len(x.shape) - 1:
        blocks = by_columns(x, out, LANES[dtype])
    work = []
    for source, target, columns in blocks:
        rows = rows_of(source, target, axis, columns)
        near = dense if columns == 1 else (True, True)
        key = Kind(kind, n, inverse, dtype, near, len(rows), columns)
        total = math.prod(size for size, *_ in rows)
        chunks = 1 if total * row_cost(key) < INLINE_NS else min(total, CHUNKS)
        chunks = math.ceil(total / math.ceil(total / chunks))
        space = layout.workspace("fourier", Type(np.dtype("uint8"), (chunks, key.workspace)))
        work.append(FftWork(key, scale, source, target, axis, space, label))
    return work


def is_contiguous(array: Array, axis: int) -> bool:
    return array.shape[axis] == 1 or array.strides[axis] == 1


def by_columns(x: Array, out: Array, width: int) -> list[tuple[Array, Array, int]]:
    """Split the last axis into blocks of `width` adjacent columns, and the remaining columns."""
    count = x.shape[-1]
    if count < width or x.strides[-1] != 1 or out.strides[-1] != 1:
        return [(x, out, 1)]
    whole = count - count % width
    starts, strides = [0] * len(x.shape), [1] * len(x.shape)
    parts = []
    for low, high, columns in ((0, whole, width), (whole, count, 1)):
        if low < high:
            box = [*starts[:-1], low], [*x.shape[:-1], high], strides
            parts.append((subarray(x, *box), subarray(out, *box), columns))
    return parts


class FftLowering:
    """Lowers fft; its axes are transformed one after another."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        x = eqn.inputs[0]
        return isinstance(x, Var) and x.type.dtype in REAL

    @classmethod
    def lower(cls, layout: Any, eqn: Equation) -> list[FftWork]:
        op: Any = eqn.op
        x, out, label = layout.array(eqn.inputs[0]), layout.array(eqn.outputs[0]), label_of(eqn)
        if 0 in (*x.shape, *out.shape):
            return []
        return cls.transform(layout, op, x, out, label)

    @staticmethod
    def transform(layout: Any, op: Any, x: Array, out: Array, label: str) -> list[FftWork]:
        axes = op.axes[::-1]
        sources = [x, *[out] * (len(axes) - 1)]
        return [
            work
            for source, axis in zip(sources, axes)
            for work in lower_axis(layout, "complex", op, source, out, axis, label)
        ]


class RfftLowering(FftLowering):
    """Lowers rfft: real numbers to half of a spectrum."""

    @staticmethod
    def transform(layout: Any, op: Any, x: Array, out: Array, label: str) -> list[FftWork]:
        return lower_axis(layout, "to_half", op, x, out, op.axis, label)


class IrfftLowering(FftLowering):
    """Lowers irfft: half of a spectrum to real numbers."""

    @staticmethod
    def transform(layout: Any, op: Any, x: Array, out: Array, label: str) -> list[FftWork]:
        return lower_axis(layout, "from_half", op, x, out, op.axis, label)
