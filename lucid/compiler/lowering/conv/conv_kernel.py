"""Convolutions: products of packed weights with the windows of a tile that lies in the cache.

A kernel multiplies blocks of results by places (`blocks`), all of them in registers, and reads each
vector of the tile once for all of them: there are no windows in memory, only the tile. Where
results are dealt out to several units, the tiles are copied before, by a step of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lucid.compiler.lowering.conv.pack_operands import PackWork
from lucid.compiler.lowering.conv.register_blocks import (
    Block,
    block_of,
    expect_panels,
    multiply_panels,
    multiply_rows,
    sums_space,
    write_panels,
    write_rows,
)
from lucid.compiler.lowering.conv.window_tiles import (
    CHUNKS,
    COPY_NS,
    FLOPS_PER_NS,
    LOCAL_BYTES,
    WORDS,
    GatherWork,
    Windows,
    copy_tile,
    gather_kernel,
    shared_words,
    starts,
    table,
)
from lucid.compiler.lowering.loop_language import Int, Loops, Pointer
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.types import Type

Three = tuple[int, int, int]
UNITS = 8  # at least, where images could be taken together
MOST = 1024  # places of such images
PARTED_NS = 100_000  # a step that takes less is not cut for more threads

CONVOLVE_WORDS = (
    *WORDS, "weights", "out", "rows", "row_table", "blocks", "block_bytes", "results",
    "vectors", "vector_table", "lanes", "images", "images_each", "image_bytes", "copied",
    "tile_bytes", "spots", "blocks_each", "blocks_held", "on", "og", "om", "o0", "o1", "o2",
)  # fmt: skip


def spatial(values: Sequence[int], missing: int) -> Three:
    """Numbers for three axes; those in front that there are not are `missing`."""
    a, b, c = (missing,) * (3 - len(values)) + tuple(values)
    return a, b, c


@lru_cache(maxsize=256)
def convolve_kernel(dtype: str, block: Block, dense: bool) -> TextKernel:
    """Units are parts of the results for tiles of groups of images."""
    name = f"convolve_{dtype}_{block}_{'dense' if dense else 'apart'}"
    code = Loops(name)
    a = shared_words(code, CONVOLVE_WORDS)
    source, out = code.pointer(WORDS.index("source")), code.pointer(CONVOLVE_WORDS.index("out"))
    local = code.pointer(WORDS.index("local")).at(code.lo // a["grain"] * a["chunk_bytes"])
    multiply = multiply_by_panels if block.panels else multiply_by_rows
    products = multiply(code, a, dtype, block, dense)
    with code.loop(code.lo, code.hi) as unit:
        tiles = a["n0"] * a["n1"] * a["n2"]
        part, spot = unit // a["spots"], unit % a["spots"]
        first, some = starts(code, a, spot % tiles), spot // tiles
        n = (some // a["groups"] * a["images_each"]).min(a["images"] - a["images_each"])
        g = some % a["groups"]
        here = local.at(((n * a["groups"] + g) * tiles + spot % tiles) * a["tile_bytes"])
        with code.loop(0, a["copied"]) as b:
            begin = source.at((n + b) * a["sn"] + g * a["sg"])
            copy_tile(code, a, dtype, begin, here.at(b * a["image_bytes"]), first, "0.0")
        target = n * a["on"] + g * a["og"]
        for i in range(3):
            target = target + first[i] * a[f"o{i}"]
        weights = code.pointer(CONVOLVE_WORDS.index("weights")).at(
            g * a["blocks"] * a["block_bytes"]
        )
        begin_block = part * a["blocks_each"]
        end_block = (begin_block + a["blocks_each"]).min(a["blocks"])
        products(weights, here, out.at(target), begin_block, end_block)
    return TextKernel(name, code.text())


def multiply_by_rows(
    code: Loops, a: dict[str, Int], dtype: str, block: Block, dense: bool
) -> Callable[[Pointer, Pointer, Pointer, Int, Int], None]:
    """As many blocks of weights as the cache holds, for all vectors of places."""
    multiply_rows(code, dtype, block)
    sums = sums_space(code, dtype, block)

    def products(weights: Pointer, here: Pointer, out: Pointer, begin: Int, end: Int) -> None:
        places, offsets = table(code, a, "vector_table"), table(code, a, "row_table")
        with (
            code.loop(begin, end, a["blocks_held"]) as held,
            code.loop(0, a["vectors"], block.columns) as v,
            code.loop(held, (held + a["blocks_held"]).min(end)) as number,
        ):
            given = [weights.at(number * a["block_bytes"]), here, places.at(v * 16), offsets, sums]
            passed = ", ".join(f"ptr {p.name}" for p in given)
            code.line(f"call void @multiply({passed}, i64 {a['rows'].name})")
            write_rows(code, a, dtype, sums, block, dense, out, v, number * block.rows)

    return products


def multiply_by_panels(
    code: Loops, a: dict[str, Int], dtype: str, block: Block, dense: bool
) -> Callable[[Pointer, Pointer, Pointer, Int, Int], None]:
    """One panel after the other, for all places."""
    zeros, sums = multiply_panels(code, dtype, block, apart=16), sums_space(code, dtype, block)

    def products(weights: Pointer, here: Pointer, out: Pointer, begin: Int, end: Int) -> None:
        places, offsets = table(code, a, "vector_table"), table(code, a, "row_table")
        with code.loop(begin, end) as number, code.loop(0, a["vectors"], block.columns) as v:
            m, panel = number * block.rows, weights.at(number * a["block_bytes"])
            given = [panel, here, places.at(v * 16), offsets, zeros, sums]
            passed = ", ".join(f"ptr {p.name}" for p in given)
            expect_panels(code, a, block, out, v, m)
            code.line(f"call void @multiply({passed}, i64 {a['rows'].name})")
            write_panels(code, a, dtype, sums, block, out, v, m)

    return products


@dataclass(eq=False)
class ConvolveWork:
    """One convolution: windows of a source times packed weights (G, blocks, C taps, rows)."""

    windows: Windows
    weights: Array
    out: Array
    strides: tuple[int, ...]  # of the result: n, g, m and three axes, in elements
    results: int
    local: Array
    grain: int
    label: str
    block: Block
    images_each: int
    parts: int

    @property
    def lanes(self) -> int:
        return min(self.windows.lanes, self.windows.tile[2])

    @property
    def gathered(self) -> bool:
        """Have the tiles been copied by a step of their own?"""
        return self.parts > 1

    @property
    def kernel(self) -> TextKernel:
        w, block = self.windows, self.block
        dense = self.lanes == w.lanes and self.strides[5] == 1 and not block.panels
        return convolve_kernel(w.dtype, block, dense)

    def kernels(self) -> Sequence[Any]:
        """All that another number of images may need, too."""
        w = self.windows
        others = self.results > self.block.rows and 2 * w.groups * w.tiles <= CHUNKS
        return (self.kernel, gather_kernel(w.dtype)) if others else (self.kernel,)

    def vectors(self, image_bytes: int, apart: Sequence[int]) -> np.ndarray:
        """For each vector of places, or each place, how far it is in the tiles and the result."""
        w = self.windows
        of_image = w.places if self.block.panels else w.vectors
        one = np.array(of_image(tuple(apart[3:])), np.int64)
        images = np.arange(self.images_each)[:, None, None] * np.array([image_bytes, apart[0]])
        found = (images + one).reshape(-1, 2)
        return np.concatenate([found, np.repeat(found[-1:], -len(found) % self.block.columns, 0)])

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        w, rows, parts = self.windows, self.block.rows, self.parts
        apart = [stride * w.item for stride in self.strides]
        image_bytes = w.channels * w.channel_bytes
        places = {"copied": self.images_each, "tile_bytes": 0}
        if self.gathered:
            places = {"copied": 0, "tile_bytes": self.local.shape[-1], "chunk_bytes": 0}
            image_bytes = self.local.shape[-1] * w.groups * w.tiles
        vectors, offsets = self.vectors(image_bytes, apart), w.rows
        blocks, block_bytes = math.ceil(self.results / rows), len(offsets) * rows * w.item
        spots = math.ceil(w.images / self.images_each) * w.groups * w.tiles
        values = w.words(builder, self.local, self.grain)
        values |= places | {
            "weights": self.weights.address, "out": self.out.address, "rows": len(offsets),
            "row_table": builder.constant(offsets), "blocks": blocks, "block_bytes": block_bytes,
            "results": self.results, "vectors": len(vectors),
            "vector_table": builder.constant(vectors), "lanes": self.lanes, "images": w.images,
            "images_each": self.images_each, "image_bytes": image_bytes, "spots": spots,
            "blocks_each": math.ceil(blocks / parts),
            "blocks_held": max(1, LOCAL_BYTES // block_bytes),
            **dict(zip(("on", "og", "om", "o0", "o1", "o2"), apart)),
        }  # fmt: skip
        done = len(vectors) * (1 if self.block.panels else w.lanes)
        cost = 2.0 * len(offsets) * self.results * done / parts / FLOPS_PER_NS[w.dtype]
        if not self.gathered:
            cost += COPY_NS * self.images_each * w.local_bytes / w.item
        args = [values[name] for name in CONVOLVE_WORDS]
        kernel = kernels[self.kernel.key]
        builder.call(kernel, args, spots * parts, cost, self.grain, label=self.label)


def scratch(layout: Any, nbytes: int, extent: int) -> tuple[Array, int]:
    """Memory for each part of a step that may run at once, and the length of the parts."""
    grain = math.ceil(extent / min(extent, CHUNKS))
    room = -(-nbytes // 64) * 64
    return layout.workspace(
        "tile", Type(np.dtype("uint8"), (math.ceil(extent / grain), room))
    ), grain


def convolution(
    layout: Any,
    windows: Windows,
    weights: Array,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    out: Array,
    out_strides: tuple[int, ...],
    label: str,
) -> list[Any]:
    """The work of one convolution; `weights` is read as (G, M, C, three axes) of these strides."""
    w, terms = windows, math.prod(shape[2:])
    block = block_of(w.dtype, shape[1], w.all_places, w.all_vectors, terms)
    blocks = math.ceil(shape[1] / block.rows)
    laid_out = (shape[0], blocks, terms, block.rows)
    held = layout.workspace("weights", Type(weights.type.dtype, laid_out))
    images = together(w, block, blocks, terms * shape[1] * w.item)
    spots, parts = units_of(w, blocks, images)
    work: list[Any] = [PackWork(weights, shape, strides, held, label)]
    if parts > 1:
        gathered = GatherWork.of(layout, w, label)
        work.append(gathered)
        local, grain = gathered.local, math.ceil(spots * parts / CHUNKS)
    else:
        local, grain = scratch(layout, images * w.local_bytes, spots)
    rest = (local, grain, label, block, images, parts)
    return [*work, ConvolveWork(w, held, out, out_strides, shape[1], *rest)]


def units_of(windows: Windows, blocks: int, images: int) -> tuple[int, int]:
    """Tiles of so many images at a time, and the parts of the results for each."""
    spots = math.ceil(windows.images / images) * windows.groups * windows.tiles
    parts = 1 if windows.work < PARTED_NS else min(blocks, max(1, CHUNKS // spots))
    return spots, math.ceil(blocks / math.ceil(blocks / parts))


def together(windows: Windows, block: Block, blocks: int, weight_bytes: int) -> int:
    """How many images a kernel takes at a time.

    Their places then fill blocks better, and large weights are read less often; but there have to
    be units for threads, and units that copy tiles have to hold them.
    """
    w = windows
    places = w.tile[0] * w.tile[1] * w.tile[2]
    if not block.panels:
        places = places // w.tile[2] * math.ceil(w.tile[2] / w.lanes)
    again = 2 * block.columns if weight_bytes > LOCAL_BYTES else 0
    found = []
    for n in range(1, min(w.images, max(1, MOST // places)) + 1):
        spots, parts = units_of(w, blocks, n)
        held = parts > 1 or n * w.local_bytes <= 2 * LOCAL_BYTES
        if n == 1 or (held and spots * blocks >= UNITS):
            rounded = -(-n * places // block.columns) * block.columns
            found.append((spots * (rounded + again), n))
    return min(found)[1]
