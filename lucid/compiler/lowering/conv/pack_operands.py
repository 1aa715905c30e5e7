"""Operands as the kernels of convolutions read them: some results side by side for every term.

Packing is a transpose: what lies along a result's memory (channels and taps, or places) goes down,
results go across. It is done by squares of vectors, in registers, where that memory is dense.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lucid.compiler.lowering.conv.window_tiles import LANES, kinds, shared_words
from lucid.compiler.lowering.loop_language import Int, Loops, Pointer
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel

PACK_WORDS = (
    "source", "target", "blocks", "results", "n0", "n1", "n2", "n3",
    "sg", "sm", "s0", "s1", "s2", "s3",
)  # fmt: skip
PACK_NS = 0.2  # estimated, for an element
COLUMNS = 64  # of a dense row that are packed at a time, at most


@lru_cache(maxsize=32)
def pack_kernel(dtype: str, rows: int) -> TextKernel:
    """Elements (G, M, four axes) as (G, blocks, four axes, rows); units are (g, block, first axis).

    The last block ends with zeros.
    """
    name = f"pack_{dtype}_{rows}"
    code = Loops(name)
    a = shared_words(code, PACK_WORDS)
    element, item, _ = kinds(dtype)
    with code.loop(code.lo, code.hi) as unit:
        first, place = unit % a["n0"], unit // a["n0"]
        m, g = place % a["blocks"] * rows, place // a["blocks"]
        begin = code.pointer(0).at(g * a["sg"] + m * a["sm"] + first * a["s0"])
        target = code.pointer(1).at(unit * a["n1"] * a["n2"] * a["n3"] * (rows * item))
        count = (a["results"] - m).min(rows)
        with code.loop(0, a["n1"]) as i, code.loop(0, a["n2"]) as j:
            source = begin.at(i * a["s1"] + j * a["s2"])
            to = target.at((i * a["n2"] + j) * a["n3"] * (rows * item))
            apart = (a["sm"], a["s3"])
            turn(code, dtype, source, apart, to, code.number(rows * item), count, a["n3"])
            with code.loop(count, rows) as r, code.loop(0, a["n3"]) as k:
                code.store(element, "0.0", to.at((k * rows + r) * item), item)
    return TextKernel(name, code.text())


def turn(
    code: Loops,
    dtype: str,
    source: Pointer,
    apart: tuple[Int, Int],
    target: Pointer,
    target_apart: Int,
    rows: Int,
    columns: Int,
) -> None:
    """target[k, r] = source[r, k]; `apart` are the bytes between rows and columns of the source."""
    if not any(function.name == "turn" for function in code.functions):
        numbers = ("down", "across", "apart", "rows", "columns")
        parameters = ["ptr %source", "ptr %target", *[f"i64 %{n}" for n in numbers]]
        write_turn(code.inner("turn", ", ".join(parameters)), dtype)
    numbers_given = (*apart, target_apart, rows, columns)
    passed = [f"ptr {source.name}", f"ptr {target.name}", *[f"i64 {n.name}" for n in numbers_given]]
    code.line(f"call void @turn({', '.join(passed)})")


def write_turn(code: Loops, dtype: str) -> None:
    """The last squares end where rows and columns end, over what is written already."""
    element, item, vector = kinds(dtype)
    lanes = LANES[dtype]
    source, target = Pointer(code, "%source"), Pointer(code, "%target")
    names = ("down", "across", "apart", "rows", "columns")
    down, across, apart, rows, columns = (Int(code, f"%{n}") for n in names)
    large = code.write(f"and i1 {rows.is_('sge', lanes)}, {columns.is_('sge', lanes)}")
    by_squares = code.write(f"and i1 {large}, {across.is_('eq', item)}")
    with (
        code.loop(0, code.chosen(by_squares, rows, 0), lanes) as i,
        code.loop(0, columns, lanes) as j,
    ):
        r, k = i.min(rows - lanes), j.min(columns - lanes)
        begin, to = source.at(r * down + k * item), target.at(k * apart + r * item)
        square = [code.load(vector, begin.at(down * n), item) for n in range(lanes)]
        for n, x in enumerate(turned(code, vector, square)):
            code.store(vector, x, to.at(apart * n), item)
    with code.loop(code.chosen(by_squares, rows, 0), rows) as r, code.loop(0, columns) as k:
        one = code.load(element, source.at(r * down + k * across), item)
        code.store(element, one, target.at(k * apart + r * item), item)


def turned(code: Loops, vector: str, rows: list[str]) -> list[str]:
    """The columns of a square: squares of squares change places, twice as large at each step."""
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
    """The same elements in the same order along four axes, the last as long as memory allows.

    A row that is dense from end to end is cut, so that there are units for threads.
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
    """Elements (G, M, four axes) of these strides, in elements, as (G, blocks, terms, rows)."""

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
        sizes, apart = four_axes(self.shape[2:], self.strides[2:])
        blocks = math.ceil(m / self.rows)
        args = [self.source.address, self.target.address, blocks, m, *sizes]
        args += [stride * item for stride in (*self.strides[:2], *apart)]
        cost = PACK_NS * self.rows * math.prod(sizes[1:])
        (kernel,) = self.kernels()
        builder.call(kernels[kernel.key], args, g * blocks * sizes[0], cost, label=self.label)
