"""Convolution kernels: packed weights times the windows of a tile that stays in the cache.

A kernel computes blocks of results by positions (`register_blocks`) in registers, and reads each
vector of the tile once for the whole block: windows are never materialized, only the tile is. If
the results are split over several units, a separate kernel copies the tiles first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.conv.pack_operands import PackWork
from lucid.compiler.lowering.conv.register_blocks import (
    Block,
    alloca_sums,
    choose_block,
    multiply_panels,
    multiply_rows,
    prefetch_panels,
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
    load_words,
    tile_start,
    word_pointer,
)
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.types import Type
from lucid.support.caches import memoize

Three = tuple[int, int, int]
MIN_UNITS = 8  # the fewest units to leave when images are processed together
MAX_POSITIONS = 1024  # the most positions of images processed together
SPLIT_NS = 100_000  # a cheaper convolution is not split over more threads

CONVOLVE_WORDS = (
    *WORDS, "weights", "out", "rows", "row_table", "blocks", "block_bytes", "results",
    "vectors", "vector_table", "lanes", "images", "images_each", "image_bytes", "copied",
    "tile_bytes", "tile_count", "blocks_each", "blocks_held", "on", "og", "om", "o0", "o1", "o2",
)  # fmt: skip


def three_axes(values: Sequence[int], missing: int) -> Three:
    """Pad values to three axes, with `missing` in front."""
    a, b, c = (missing,) * (3 - len(values)) + tuple(values)
    return a, b, c


@memoize(maxsize=256)
def convolve_kernel(dtype: str, block: Block, dense: bool) -> TextKernel:
    """A unit is a part of the results for one tile of a group of some images."""
    name = f"convolve_{dtype}_{block}_{'dense' if dense else 'strided'}"
    code = LLVMBuilder(name)
    a = load_words(code, CONVOLVE_WORDS)
    source, out = code.pointer(WORDS.index("source")), code.pointer(CONVOLVE_WORDS.index("out"))
    local = code.pointer(WORDS.index("local")).at(code.lo // a["grain"] * a["chunk_bytes"])
    multiply = multiply_by_panels if block.panels else multiply_by_rows
    products = multiply(code, a, dtype, block, dense)
    with code.loop(code.lo, code.hi) as unit:
        tiles = a["n0"] * a["n1"] * a["n2"]
        part, tile = unit // a["tile_count"], unit % a["tile_count"]
        first, some = tile_start(code, a, tile % tiles), tile // tiles
        n = (some // a["groups"] * a["images_each"]).min(a["images"] - a["images_each"])
        g = some % a["groups"]
        here = local.at(((n * a["groups"] + g) * tiles + tile % tiles) * a["tile_bytes"])
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
    code: LLVMBuilder, a: dict[str, Int], dtype: str, block: Block, dense: bool
) -> Callable[[Pointer, Pointer, Pointer, Int, Int], None]:
    """Multiply as many blocks of weights as the cache holds with all vectors of positions."""
    multiply_rows(code, dtype, block)
    sums = alloca_sums(code, dtype, block)

    def products(weights: Pointer, here: Pointer, out: Pointer, begin: Int, end: Int) -> None:
        positions, offsets = (
            word_pointer(code, a, "vector_table"),
            word_pointer(code, a, "row_table"),
        )
        with (
            code.loop(begin, end, a["blocks_held"]) as held,
            code.loop(0, a["vectors"], block.columns) as v,
            code.loop(held, (held + a["blocks_held"]).min(end)) as number,
        ):
            given = [
                weights.at(number * a["block_bytes"]),
                here,
                positions.at(v * 16),
                offsets,
                sums,
            ]
            passed = ", ".join(f"ptr {p.name}" for p in given)
            code.line(f"call void @multiply({passed}, i64 {a['rows'].name})")
            write_rows(code, a, dtype, sums, block, dense, out, v, number * block.rows)

    return products


def multiply_by_panels(
    code: LLVMBuilder, a: dict[str, Int], dtype: str, block: Block, dense: bool
) -> Callable[[Pointer, Pointer, Pointer, Int, Int], None]:
    """Multiply one panel after another with all positions."""
    zeros, sums = (
        multiply_panels(code, dtype, block, entry_bytes=16),
        alloca_sums(code, dtype, block),
    )

    def products(weights: Pointer, here: Pointer, out: Pointer, begin: Int, end: Int) -> None:
        positions, offsets = (
            word_pointer(code, a, "vector_table"),
            word_pointer(code, a, "row_table"),
        )
        with code.loop(begin, end) as number, code.loop(0, a["vectors"], block.columns) as v:
            m, panel = number * block.rows, weights.at(number * a["block_bytes"])
            given = [panel, here, positions.at(v * 16), offsets, zeros, sums]
            passed = ", ".join(f"ptr {p.name}" for p in given)
            prefetch_panels(code, a, block, out, v, m)
            code.line(f"call void @multiply({passed}, i64 {a['rows'].name})")
            write_panels(code, a, dtype, sums, block, out, v, m)

    return products


@dataclass(eq=False)
class ConvolveWork:
    """A convolution: windows of a source times packed weights (G, blocks, C taps, rows)."""

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
        """True if a separate kernel has copied the tiles."""
        return self.parts > 1

    @property
    def kernel(self) -> TextKernel:
        w, block = self.windows, self.block
        dense = self.lanes == w.lanes and self.strides[5] == 1 and not block.panels
        return convolve_kernel(w.dtype, block, dense)

    def kernels(self) -> Sequence[Any]:
        """Return the kernels for this and any other number of images."""
        w = self.windows
        others = self.results > self.block.rows and 2 * w.groups * w.tiles <= CHUNKS
        return (self.kernel, gather_kernel(w.dtype)) if others else (self.kernel,)

    def vectors(self, image_bytes: int, strides: Sequence[int]) -> np.ndarray:
        """The offsets of each vector of positions, or each position, in tiles and result."""
        w = self.windows
        of_image = w.positions if self.block.panels else w.vectors
        one = np.array(of_image(tuple(strides[3:])), np.int64)
        images = np.arange(self.images_each)[:, None, None] * np.array([image_bytes, strides[0]])
        found = (images + one).reshape(-1, 2)
        return np.concatenate([found, np.repeat(found[-1:], -len(found) % self.block.columns, 0)])

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        w, rows, parts = self.windows, self.block.rows, self.parts
        strides = [stride * w.item for stride in self.strides]
        image_bytes = w.channels * w.channel_bytes
        positions = {"copied": self.images_each, "tile_bytes": 0}
        if self.gathered:
            positions = {"copied": 0, "tile_bytes": self.local.shape[-1], "chunk_bytes": 0}
            image_bytes = self.local.shape[-1] * w.groups * w.tiles
        vectors, offsets = self.vectors(image_bytes, strides), w.rows
        blocks, block_bytes = math.ceil(self.results / rows), len(offsets) * rows * w.item
        tile_count = math.ceil(w.images / self.images_each) * w.groups * w.tiles
        values = w.words(builder, self.local, self.grain)
        values |= positions | {
            "weights": self.weights.address, "out": self.out.address, "rows": len(offsets),
            "row_table": builder.constant(offsets), "blocks": blocks, "block_bytes": block_bytes,
            "results": self.results, "vectors": len(vectors),
            "vector_table": builder.constant(vectors), "lanes": self.lanes, "images": w.images,
            "images_each": self.images_each, "image_bytes": image_bytes, "tile_count": tile_count,
            "blocks_each": math.ceil(blocks / parts),
            "blocks_held": max(1, LOCAL_BYTES // block_bytes),
            **dict(zip(("on", "og", "om", "o0", "o1", "o2"), strides)),
        }  # fmt: skip
        done = len(vectors) * (1 if self.block.panels else w.lanes)
        cost = 2.0 * len(offsets) * self.results * done / parts / FLOPS_PER_NS[w.dtype]
        if not self.gathered:
            cost += COPY_NS * self.images_each * w.local_bytes / w.item
        args = [values[name] for name in CONVOLVE_WORDS]
        kernel = kernels[self.kernel.key]
        builder.call(kernel, args, tile_count * parts, cost, self.grain, label=self.label)


def scratch(layout: Any, nbytes: int, extent: int) -> tuple[Array, int]:
    """Return local memory for each chunk that may run at once, and the chunk length."""
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
    """Return the work of a convolution; `weights` is (G, M, C, three axes) with these strides."""
    w, terms = windows, math.prod(shape[2:])
    block = choose_block(w.dtype, shape[1], w.all_positions, w.all_vectors, terms)
    blocks = math.ceil(shape[1] / block.rows)
    laid_out = (shape[0], blocks, terms, block.rows)
    held = layout.workspace("weights", Type(weights.type.dtype, laid_out))
    images = images_per_unit(w, block, blocks, terms * shape[1] * w.item)
    tile_count, parts = count_units(w, blocks, images)
    work: list[Any] = [PackWork(weights, shape, strides, held, label)]
    if parts > 1:
        gathered = GatherWork.of(layout, w, label)
        work.append(gathered)
        local, grain = gathered.local, math.ceil(tile_count * parts / CHUNKS)
    else:
        local, grain = scratch(layout, images * w.local_bytes, tile_count)
    rest = (local, grain, label, block, images, parts)
    return [*work, ConvolveWork(w, held, out, out_strides, shape[1], *rest)]


def count_units(windows: Windows, blocks: int, images: int) -> tuple[int, int]:
    """The number of tiles if `images` are processed together, and of parts of their results."""
    tile_count = math.ceil(windows.images / images) * windows.groups * windows.tiles
    parts = 1 if windows.work < SPLIT_NS else min(blocks, max(1, CHUNKS // tile_count))
    return tile_count, math.ceil(blocks / math.ceil(blocks / parts))


def images_per_unit(windows: Windows, block: Block, blocks: int, weight_bytes: int) -> int:
    """Return how many images a kernel processes together.

    With more images, positions fill blocks better and large weights are read less often; but there
    must be units for all threads, and units that copy tiles must hold them in the cache.
    """
    w = windows
    positions = w.tile[0] * w.tile[1] * w.tile[2]
    if not block.panels:
        positions = positions // w.tile[2] * math.ceil(w.tile[2] / w.lanes)
    again = 2 * block.columns if weight_bytes > LOCAL_BYTES else 0
    found = []
    for n in range(1, min(w.images, max(1, MAX_POSITIONS // positions)) + 1):
        tile_count, parts = count_units(w, blocks, n)
        held = parts > 1 or n * w.local_bytes <= 2 * LOCAL_BYTES
        if n == 1 or (held and tile_count * blocks >= MIN_UNITS):
            rounded = -(-n * positions // block.columns) * block.columns
            found.append((tile_count * (rounded + again), n))
    return min(found)[1]
