"""Transposed arrays: what reads x.T as it lies takes many times as long, one element at a time.

A map, such as `x.T * y`, is computed in tiles of eight rows, in pieces of 64 columns. What a tile
reads of x is transposed in registers, eight by eight, into a small array of the kernel's own:

    for tile in rows, eight at a time:
        for piece in columns, 64 at a time:
            t[0:8, 0:64] = x[piece, tile].T
            for i in 8:    for j in 64:    z[tile + i, piece + j] = t[i, j] * y[piece + j]

The axis of a reduction along which most elements are adjacent becomes the last: x.T.sum(-1) adds
the rows of x. What it still reads across its rows, as one of two operands in (x.T * y).sum(-1), is
copied first, by such a map, and what it writes across them afterward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lucid.compiler.kernels.nest import (
    GENERAL,
    Buffer,
    Nest,
    Store,
    Structure,
    Value,
    reordered,
    simplify_axes,
    values_of,
)
from lucid.compiler.kernels.scalar_code import BYTES, STORED
from lucid.compiler.plan.arrays import Array, dense

ROWS, COLUMNS = 8, 64  # of a tile
MIN_COLUMNS = 16  # of a map that is computed in tiles
MAX_TILES = 4  # arrays, of up to 4 kB each
MIN_COPIED = 1 << 10  # points of a reduction that reads across its rows and is given a copy


def in_tiles(nest: Nest) -> Nest:
    """Let a map that reads transposed arrays be computed in tiles, with their rows' axis next.

    The axis along which its results are adjacent becomes the last.
    """
    last = len(nest.sizes) - 1
    if nest.structure.mode != "map" or last < 1:
        return nest
    results = [nest.buffers[store.buffer].strides for store in nest.stores]
    along = [axis for axis in range(last + 1) if all([strides[axis] == 1 for strides in results])]
    if not along or nest.sizes[along[-1]] < MIN_COLUMNS:
        return nest
    rows = reordered(nest, [*[a for a in range(last + 1) if a != along[-1]], along[-1]])
    loads = [rows.buffers[v.param] for v in rows.values if v.op == "load"]
    for axis in range(last):
        order = [*[a for a in range(last) if a != axis], axis, last]
        found = replace(reordered(rows, order), tiled=True)
        read = any([b.strides[axis] == 1 and abs(b.strides[last]) > 1 for b in loads])
        if read and rows.sizes[axis] >= ROWS and transposed(found.structure):
            return found
    reads = [nest.buffers[b] for b in set(map(Structure.buffer_of, nest.values)) - {-1}]
    return nest if any([b.strides[last] == 1 for b in reads]) else rows


def transposed(structure: Structure) -> list[int]:
    """The buffers whose adjacent elements are along the last axis but one, and that are only read.

    A result is written over an operand only where each element is read when it is written.
    """
    stored = {store.buffer for store in structure.stores}
    reads: dict[int, set[str]] = {}
    for value in structure.values:
        reads.setdefault(structure.buffer_of(value), set()).add(value.op)
    return [
        b
        for b, (_, classes) in enumerate(structure.buffers)
        if classes[-2:] == (1, GENERAL) and reads.get(b) == {"load"} and b not in stored
    ][:MAX_TILES]


def adjacent_axis_last(nest: Nest, arrays: Sequence[Array]) -> Nest:
    """Make the axis of a reduction along which most elements are adjacent the last.

    The sum of a row may be written over an operand of that row, which is read by then. Sums of
    columns grow while other rows are read, and need memory of their own.
    """
    last = len(nest.sizes) - 1
    if not any(nest.reduced) or max(nest.structure.stage) > 1 or any(s.at for s in nest.stores):
        return nest
    if any(value.op == "scan" for value in nest.values):
        return nest
    adjacent = [elements_along(nest, axis) for axis in range(last + 1)]
    axis = max(range(last + 1), key=lambda a: (adjacent[a], a))
    if adjacent[axis] <= adjacent[last] or nest.sizes[axis] < MIN_COLUMNS:
        return nest
    if not nest.reduced[axis]:
        grown = {s.buffer for s in nest.stores if nest.values[s.value].op == "reduce"}
        others = [arrays[b].ref for b in range(len(arrays)) if b not in grown]
        if any(arrays[b].ref in others for b in grown):
            return nest
    return reordered(nest, [*[a for a in range(last + 1) if a != axis], axis])


def elements_along(nest: Nest, axis: int) -> int:
    """The number of elements in buffers whose elements are nearest to each other along an axis."""
    return sum([elements(nest, b) for b in nest.buffers if b.strides[axis] in nearest(b)])


def nearest(buffer: Buffer) -> tuple[int, ...]:
    """The strides of the least distance, but 0."""
    distance = min([abs(stride) for stride in buffer.strides if stride], default=1)
    return distance, -distance


def elements(nest: Nest, buffer: Buffer) -> int:
    return math.prod([n for n, stride in zip(nest.sizes, buffer.strides) if stride])


def copied_buffers(nest: Nest) -> list[int]:
    """The buffers that rows of a reduction read or write across, and that are better copied."""
    last = len(nest.sizes) - 1
    if not any(nest.reduced) or nest.sizes[last] < MIN_COLUMNS:
        return []
    stored = [store.buffer for store in nest.stores]
    loads = {v.param for v in nest.values if v.op == "load"}
    others = {nest.structure.buffer_of(v) for v in nest.values if v.op != "load"}
    others |= {store.buffer for store in nest.stores if store.at}
    others |= {b for b in stored if stored.count(b) > 1}
    return [
        b
        for b, buffer in enumerate(nest.buffers)
        if (b in loads) != (b in stored) and b not in others and is_across(nest, buffer)
    ]


def is_across(nest: Nest, buffer: Buffer) -> bool:
    """True if many elements are adjacent along another axis than the last, and none is read twice.

    A copy of windows that overlap would be larger than what they are windows of.
    """
    *outer, step = buffer.strides
    count = elements(nest, buffer)
    if step < 2 or min(buffer.strides) < 0 or buffer.box or nest.size < MIN_COPIED:
        return False
    reach = sum([stride * (n - 1) for n, stride in zip(nest.sizes, buffer.strides)]) + 1
    return reach >= count and any(s == 1 and n >= ROWS for s, n in zip(outer, nest.sizes))


def copy_of(nest: Nest, b: int) -> tuple[Nest, tuple[int, ...], Nest]:
    """Return the nest that copies a buffer, the copy's shape, and `nest` with the copy instead.

    The buffer is the first of the copying nest, and its copy the second; the other way round if it
    is one that `nest` writes.
    """
    buffer = nest.buffers[b]
    axes = [axis for axis, stride in enumerate(buffer.strides) if stride]
    shape = tuple([nest.sizes[axis] for axis in axes])
    strides = [0] * len(nest.sizes)
    for axis, stride in zip(axes, dense(shape)):
        strides[axis] = stride
    given = Buffer(buffer.dtype, tuple([buffer.strides[axis] for axis in axes]))
    made = Buffer(buffer.dtype, dense(shape))
    is_result = any(store.buffer == b for store in nest.stores)
    copy = Nest(
        shape,
        (False,) * len(shape),
        (made, given) if is_result else (given, made),
        (Value("load", (), buffer.dtype, 0),),
        (Store(1, 0),),
    )
    buffers = list(nest.buffers)
    buffers[b] = Buffer(buffer.dtype, tuple(strides))
    return in_tiles(simplify_axes(copy)), shape, replace(nest, buffers=tuple(buffers))


class Tiles:
    """The part of the Emitter that writes maps in tiles."""

    structure: Structure
    stride_names: dict[tuple[int, int], str]
    entry: list[str]
    loop: Any
    branch: Any
    step: Any
    nest: Any
    write: Any
    line: Any
    choose: Any
    store_all: Any

    def tiles(self, axes: Sequence[int], bases: Sequence[str]) -> None:
        """Emit the loop over [lo, hi) of the flattened axes but the last, a tile at a time."""
        *outer, row, last = axes
        with self.loop("%lo", "%hi", innermost=False, by="%rows") as o:
            index = {row: self.write(f"urem i64 {o}, %n{row}")}
            rest = self.write(f"udiv i64 {o}, %n{row}")
            for axis in reversed(outer):
                index[axis] = self.write(f"urem i64 {rest}, %n{axis}")
                rest = self.write(f"udiv i64 {rest}, %n{axis}")
            at = list(bases)
            for axis in (*outer, row):
                at = self.step(at, axis, index[axis])
            left = self.write(f"sub i64 %n{row}, {index[row]}")
            left = self.choose("slt", left, self.write(f"sub i64 %hi, {o}"))
            few = self.write(f"icmp slt i64 {left}, {ROWS}")
            self.line(f"%rows = select i1 {few}, i64 {left}, i64 {ROWS}")
            with self.loop("0", f"%n{last}", innermost=False, by=str(COLUMNS)) as piece:
                stop = self.choose("slt", self.write(f"add i64 {piece}, {COLUMNS}"), f"%n{last}")
                self.tile(index, at, row, last, piece, stop)

    def tile(
        self,
        index: dict[int, str],
        bases: Sequence[str],
        row: int,
        last: int,
        start: str,
        stop: str,
    ) -> None:
        """Emit one tile, of columns [start, stop)."""
        whole, at = self.structure, list(bases)
        buffers = list(whole.buffers)
        for b in transposed(whole):
            at[b] = self.pack(b, bases[b], last, start, stop)
            dtype, classes = buffers[b]
            buffers[b] = (dtype, (*classes[:-2], GENERAL, 1))
            self.stride_names[b, row] = str(COLUMNS)
        self.structure = replace(whole, buffers=tuple(buffers))
        with self.loop("0", "%rows", innermost=False) as i:
            inside = {**index, row: self.write(f"add i64 {index[row]}, {i}")}
            stored = values_of(whole.stores)
            rows = self.step(at, row, i)
            self.nest([last], {}, rows, inside, stored, self.store_all, (start, stop))
        self.structure = whole

    def pack(self, b: int, base: str, last: int, start: str, stop: str) -> str:
        """Transpose columns [start, stop) of a buffer; return where column 0 would be."""
        element = STORED[self.structure.buffers[b][0]]
        stride = self.stride_names[b, last]
        tile = f"%tile{b}"
        self.entry.append(f"  {tile} = alloca [{ROWS * COLUMNS} x {element}], align 64")
        origin = self.write(f"sub i64 0, {start}")
        shifted = self.write(f"getelementptr {element}, ptr {tile}, i64 {origin}")

        def source(column: str) -> str:
            offset = self.write(f"mul nsw i64 {column}, {stride}")
            return self.write(f"getelementptr {element}, ptr {base}, i64 {offset}")

        complete = self.write(f"icmp eq i64 %rows, {ROWS}")
        length = self.write(f"sub i64 {stop}, {start}")
        eights = self.write(f"and i64 {length}, {-ROWS}")
        packed = self.write(f"select i1 {complete}, i64 {eights}, i64 0")
        middle = self.write(f"add i64 {start}, {packed}")
        with self.branch(self.write(f"icmp slt i64 {start}, {middle}")):
            with self.loop(start, middle, innermost=False, by=str(ROWS)) as j:
                columns = [source(self.write(f"add i64 {j}, {k}")) for k in range(ROWS)]
                below = self.write(f"getelementptr {element}, ptr {shifted}, i64 {j}")
                self.transpose(element, columns, below)
        with self.branch(self.write(f"icmp slt i64 {middle}, {stop}")):
            with self.loop(middle, stop, innermost=False) as j:
                column = source(j)
                below = self.write(f"getelementptr {element}, ptr {shifted}, i64 {j}")
                with self.loop("0", "%rows", innermost=False, scalar=True) as i:
                    place = self.write(f"getelementptr {element}, ptr {column}, i64 {i}")
                    value = self.write(f"load {element}, ptr {place}")
                    offset = self.write(f"mul i64 {i}, {COLUMNS}")
                    place = self.write(f"getelementptr {element}, ptr {below}, i64 {offset}")
                    self.line(f"store {element} {value}, ptr {place}")
        return shifted

    def transpose(self, element: str, sources: Sequence[str], out: str) -> None:
        """Transpose eight vectors of eight: exchange blocks of 1, 2 and 4 of rows as far apart."""
        kind, align = f"<{ROWS} x {element}>", f"align {BYTES[element]}"
        rows = [self.write(f"load {kind}, ptr {place}, {align}") for place in sources]
        for width in (1, 2, 4):
            even = [k if not k & width else k - width + ROWS for k in range(ROWS)]
            odd = [k + width if not k & width else k + ROWS for k in range(ROWS)]
            for k in range(ROWS):
                if not k & width:
                    pair = f"{kind} {rows[k]}, {kind} {rows[k + width]}"
                    for at, chosen in ((k, even), (k + width, odd)):
                        mask = ", ".join([f"i32 {x}" for x in chosen])
                        rows[at] = self.write(f"shufflevector {pair}, <{ROWS} x i32> <{mask}>")
        for k, vector in enumerate(rows):
            place = self.write(f"getelementptr {element}, ptr {out}, i64 {k * COLUMNS}")
            self.line(f"store {kind} {vector}, ptr {place}, {align}")
