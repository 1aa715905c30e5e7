"""Tiles: maps that read transposed arrays, such as `x.T * y`.

Adjacent elements of `x.T` along the innermost axis are whole rows of x apart: reading them one by
one takes several times as long as all the rest. A tile of eight rows of the result is computed at
a time, in pieces of 64 columns. What it reads of x is transposed in registers, eight by eight, into
a small array of the kernel's own:

    for tile in rows, eight at a time:
        for piece in columns, 64 at a time:
            t[0:8, 0:64] = x[piece, tile].T
            for i in 8:    for j in 64:    z[tile + i, piece + j] = t[i, j] * y[piece + j]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lucid.compiler.kernels.nest import GENERAL, Nest, Structure, reordered, values_of
from lucid.compiler.kernels.scalar_code import BYTES, STORED

ROWS, COLUMNS = 8, 64  # of a tile
MIN_COLUMNS = 16  # of a map that is computed in tiles
MAX_TILES = 4  # arrays, of up to 4 kB each


def in_tiles(nest: Nest) -> Nest:
    """Let a map that reads transposed arrays be computed in tiles, with their rows' axis next."""
    last = len(nest.sizes) - 1
    if nest.structure.mode != "map" or last < 1 or nest.sizes[last] < MIN_COLUMNS:
        return nest
    if not all([nest.buffers[store.buffer].strides[last] == 1 for store in nest.stores]):
        return nest
    loads = [nest.buffers[v.param] for v in nest.values if v.op == "load"]
    for axis in range(last):
        order = [*[a for a in range(last) if a != axis], axis, last]
        found = replace(reordered(nest, order), tiled=True)
        read = any([b.strides[axis] == 1 and b.strides[last] > 1 for b in loads])
        if read and nest.sizes[axis] >= ROWS and transposed(found.structure):
            return found
    return nest


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
