"""Packs operands as convolution kernels read them: a block of results side by side for every term.

Packing is a transpose: the terms of a result (channels and taps, or positions) become rows, and
results become columns. Where the terms are contiguous, squares of vectors are transposed in
registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lucid.compiler.lowering.conv.window_tiles import LANES, llvm_types, load_words
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.support.caches import memoize

PACK_WORDS = (
    "source", "target", "blocks", "results", "n0", "n1", "n2", "n3",
    "sg", "sm", "s0", "s1", "s2", "s3",
)  # fmt: skip
PACK_NS = 0.2  # estimated, for an element
COLUMNS = 64  # the most elements of a dense row to pack at a time


@memoize(maxsize=32)
def pack_kernel(dtype: str, rows: int) -> TextKernel:
    """Packs (G, M, four axes) as (G, blocks, four axes, rows); units are (g, block, first axis).

    The last block is padded with zeros.
    """
    name = f"pack_{dtype}_{rows}"
    code = LLVMBuilder(name)
    a = load_words(code, PACK_WORDS)
    element, item, _ = llvm_types(dtype)
    with code.loop(code.lo, code.hi) as unit:
        first, place = unit % a["n0"], unit // a["n0"]
        m, g = place % a["blocks"] * rows, place // a["blocks"]
        begin = code.pointer(0).at(g * a["sg"] + m * a["sm"] + first * a["s0"])
        target = code.pointer(1).at(unit * a["n1"] * a["n2"] * a["n3"] * (rows * item))
        count = (a["results"] - m).min(rows)
        with code.loop(0, a["n1"]) as i, code.loop(0, a["n2"]) as j:
            source = begin.at(i * a["s1"] + j * a["s2"])
            to = target.at((i * a["n2"] + j) * a["n3"] * (rows * item))
            strides = (a["sm"], a["s3"])
            transpose(code, dtype, source, strides, to, code.number(rows * item), count, a["n3"])
            with code.loop(count, rows) as r, code.loop(0, a["n3"]) as k:
                code.store(element, "0.0", to.at((k * rows + r) * item), item)
    return TextKernel(name, code.text())


def transpose(
    code: LLVMBuilder,
    dtype: str,
    source: Pointer,
    strides: tuple[Int, Int],
    target: Pointer,
    target_stride: Int,
    rows: Int,
    columns: Int,
) -> None:
    """target[k, r] = source[r, k]; `strides` are the source's row and column strides in bytes."""
    if not any(function.name == "transpose" for function in code.functions):
        names = ("row_stride", "column_stride", "target_stride", "rows", "columns")
        parameters = ["ptr %source", "ptr %target", *[f"i64 %{n}" for n in names]]
        write_transpose(code.inner("transpose", ", ".join(parameters)), dtype)
    integers = (*strides, target_stride, rows, columns)
    passed = [f"ptr {source.name}", f"ptr {target.name}", *[f"i64 {n.name}" for n in integers]]
    code.line(f"call void @transpose({', '.join(passed)})")


def write_transpose(code: LLVMBuilder, dtype: str) -> None:
    """The last squares end where rows and columns end, and overlap the ones before."""
    element, item, vector = llvm_types(dtype)
    lanes = LANES[dtype]
    source, target = Pointer(code, "%source"), Pointer(code, "%target")
    names = ("row_stride", "column_stride", "target_stride", "rows", "columns")
    row_stride, column_stride, target_stride, rows, columns = (Int(code, f"%{n}") for n in names)
    large = code.write(f"and i1 {rows.icmp('sge', lanes)}, {columns.icmp('sge', lanes)}")
    by_squares = code.write(f"and i1 {large}, {column_stride.icmp('eq', item)}")
    with (
        code.loop(0, code.select(by_squares, rows, 0), lanes) as i,
        code.loop(0, columns, lanes) as j,
    ):
        r, k = i.min(rows - lanes), j.min(columns - lanes)
        begin, to = source.at(r * row_stride + k * item), target.at(k * target_stride + r * item)
        square = [code.load(vector, begin.at(row_stride * n), item) for n in range(lanes)]
        for n, x in enumerate(transpose_square(code, vector, square)):
            code.store(vector, x, to.at(target_stride * n), item)
    with code.loop(code.select(by_squares, rows, 0), rows) as r, code.loop(0, columns) as k:
        one = code.load(element, source.at(r * row_stride + k * column_stride), item)
        code.store(element, one, target.at(k * target_stride + r * item), item)


def transpose_square(code: LLVMBuilder, vector: str, rows: list[str]) -> list[str]:
    """The columns of a square, by swapping off-diagonal subsquares of doubling size."""
    n, size = len(rows), 1
    while size < n:
        upper = [i if not i & size else n + i - size for i in range(n)]
        lower = [i + size if not i & size else n + i for i in range(n)]
        out = list(rows)
        for i in range(n):
            if not i & size:
                pair = f"{vector} {rows[i]}, {vector} {rows[i + size]}"
                out[i] = code.write(f"shufflevector {pair}, {mask_of(upper)}")
                out[i + size] = code.write(f"shufflevector {pair}, {mask_of(lower)}")
        rows, size = out, 2 * size
    return rows


def mask_of(lanes: list[int]) -> str:
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {i}' for i in lanes)}>"


def four_axes(shape: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int]]:
    """The same elements in the same order along four axes, the last as long as strides allow.

    A fully contiguous row is split, so that there are units for threads.
    """
    kept: list[tuple[int, int]] = []
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n == 1:
            continue
        if kept and stride == kept[-1][0] * kept[-1][1]:
            kept[-1] = (kept[-1][0] * n, kept[-1][1])
        else:
            kept.append((n, stride))
    if len(kept) == 1:
        n, stride = kept[0]
        piece = max(d for d in range(1, min(n, COLUMNS) + 1) if n % d == 0)
        if 32 * piece >= COLUMNS:
            kept = [(piece, stride), (n // piece, piece * stride)]
    first = kept.pop() if len(kept) > 1 else (1, 0)
    middle = kept[:0:-1]
    axes = [first, *[(1, 0)] * (2 - len(middle)), *middle, kept[0] if kept else (1, 1)]
    return [n for n, _ in axes], [stride for _, stride in axes]


@dataclass(eq=False)
class PackWork:
    """Packs (G, M, four axes) of these strides, in elements, as (G, blocks, terms, rows)."""

    source: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    target: Array
    label: str

    @property
    def rows(self) -> int:
        return self.target.shape[-1]

    def kernels(self) -> Sequence[Any]:
        return (pack_kernel(self.source.dtype, self.rows),)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        (g, m), item = self.shape[:2], self.source.type.dtype.itemsize
        sizes, strides = four_axes(self.shape[2:], self.strides[2:])
        blocks = math.ceil(m / self.rows)
        args = [self.source.address, self.target.address, blocks, m, *sizes]
        args += [stride * item for stride in (*self.strides[:2], *strides)]
        cost = PACK_NS * self.rows * math.prod(sizes[1:])
        (kernel,) = self.kernels()
        builder.call(kernels[kernel.key], args, g * blocks * sizes[0], cost, label=self.label)
