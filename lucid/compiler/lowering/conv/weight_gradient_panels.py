"""The gradient of a convolution's weights by panels: tiles of the input times packed cotangents.

The cotangent is packed with some results side by side for every place. A unit has some channels of
the input, whose sums for all results stay in its own memory: for some images at a time their tiles
are copied, and vectors of results are multiplied by one element of a window after the other. At the
end sums are written the other way round, as weights lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from lucid.compiler.lowering.conv.conv_kernel import scratch, spatial
from lucid.compiler.lowering.conv.conv_step import grouped, joined, known, work_of
from lucid.compiler.lowering.conv.pack_operands import PackWork, turn
from lucid.compiler.lowering.conv.register_blocks import (
    ROWS_COST,
    Block,
    block_bytes,
    multiply_panels,
    panel_of,
)
from lucid.compiler.lowering.conv.weight_gradient_rows import (
    CHUNKED_NS,
    PARTS_BYTES,
    SumWork,
    correlated,
    fewer,
    parts_of,
    rows_of,
)
from lucid.compiler.lowering.conv.window_tiles import (
    COPY_NS,
    FLOPS_PER_NS,
    LOCAL_BYTES,
    WORDS,
    Windows,
    copy_tile,
    forward_axis,
    kinds,
    shared_words,
    starts,
    table,
)
from lucid.compiler.lowering.loop_language import Int, Loops, Pointer
from lucid.compiler.lowering.nest_builder import label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.graph import Equation
from lucid.ir.types import Type

FEWEST = 48  # windows' elements of a unit that are worth a pass over the cotangent
UNITS = 8
PIECE_BYTES = 1 << 17  # of a panel, for all windows before the next

WEIGH_WORDS = (
    *WORDS, "panels", "out", "part_bytes", "chunks", "steps", "steps_each", "images",
    "images_each", "image_bytes", "results", "blocks", "taps", "all_channels", "channel_parts",
    "row_table", "row_blocks", "term_table", "terms", "tile_terms", "piece", "sums",
)  # fmt: skip


@lru_cache(maxsize=64)
def weigh_kernel(dtype: str, block: Block) -> TextKernel:
    """Units are chunks of images and tiles, of parts of the channels of groups."""
    name = f"weigh_{dtype}_{block}"
    code = Loops(name)
    a = shared_words(code, WEIGH_WORDS)
    local = code.pointer(WORDS.index("local")).at(code.lo // a["grain"] * a["chunk_bytes"])
    zeros = multiply_panels(code, dtype, block, apart=8)
    with code.loop(code.lo, code.hi) as unit:
        chunk, part = unit % a["chunks"], unit // a["chunks"]
        c0, g = part % a["channel_parts"] * a["channels"], part // a["channel_parts"]
        here = {**a, "channels": (a["all_channels"] - c0).min(a["channels"])}
        sums, begin = local.at(a["sums"]), chunk * a["steps_each"]
        with code.loop(begin, (begin + a["steps_each"]).min(a["steps"])) as step:
            new = step.is_("eq", begin)
            add_step(code, here, dtype, block, local, sums, (new, zeros), step, g, c0)
        write_weights(code, here, dtype, block, sums, chunk, g, c0)
    return TextKernel(name, code.text())


def add_step(
    code: Loops,
    a: dict[str, Int],
    dtype: str,
    block: Block,
    local: Pointer,
    sums: Pointer,
    start: tuple[str, Pointer],
    step: Int,
    g: Int,
    c0: Int,
) -> None:
    """The products of a tile of some images; the first of a unit begin with zeros.

    The last tile ends where the places end: those that it shares with the one before are skipped.
    """
    source, panels = code.pointer(WORDS.index("source")), table(code, a, "panels")
    row = block.rows * kinds(dtype)[1]
    tiles = a["n0"] * a["n1"] * a["n2"]
    tile, image = step % tiles, step // tiles * a["images_each"]
    here, first = (a["images"] - image).min(a["images_each"]), starts(code, a, tile)
    with code.loop(0, here) as b:
        begin = source.at((image + b) * a["sn"] + g * a["sg"] + c0 * a["sc"])
        copy_tile(code, a, dtype, begin, local.at(b * a["image_bytes"]), first, "0.0")
    plane, line = tile // a["n1"] * a["t0"], tile % a["n1"] * a["t1"]
    begin_term = (plane * a["q1"] + line) * a["q2"]
    skipped = begin_term - (first[0] * a["q1"] + first[1]) * a["q2"]
    count = here * a["tile_terms"] - skipped
    panel = panels.at((g * a["blocks"] * a["images"] * a["terms"]) * row)
    panel = panel.at((image * a["terms"] + begin_term) * row)
    offsets, rows = table(code, a, "term_table").at(skipped * 8), table(code, a, "row_table")
    with (
        code.loop(0, count, a["piece"]) as k,
        code.loop(0, a["blocks"]) as number,
        code.loop(0, a["channels"] * a["taps"], block.columns) as r,
    ):
        at = number * a["row_blocks"] + r // block.columns
        total = sums.at(at * block_bytes(dtype, block))
        is_new = code.write(f"and i1 {start[0]}, {k.is_('eq', 0)}")
        before = code.either(is_new, start[1], total)
        given = [
            panel.at((number * a["images"] * a["terms"] + k) * row), local, rows.at(r * 8),
            offsets.at(k * 8), before, total,
        ]  # fmt: skip
        passed = ", ".join(f"ptr {p.name}" for p in given)
        length = (count - k).min(a["piece"])
        code.line(f"call void @multiply({passed}, i64 {length.name})")


def write_weights(
    code: Loops,
    a: dict[str, Int],
    dtype: str,
    block: Block,
    sums: Pointer,
    chunk: Int,
    g: Int,
    c0: Int,
) -> None:
    item = kinds(dtype)[1]
    out = code.pointer(WEIGH_WORDS.index("out")).at(chunk * a["part_bytes"])
    apart = a["all_channels"] * a["taps"] * item
    with code.loop(0, a["blocks"]) as number:
        m = number * block.rows
        source = sums.at(number * a["row_blocks"] * block_bytes(dtype, block))
        target = out.at((g * a["results"] + m) * apart + c0 * a["taps"] * item)
        height, width = a["channels"] * a["taps"], (a["results"] - m).min(block.rows)
        between = (code.number(block.rows * item), code.number(item))
        turn(code, dtype, source, between, target, apart, height, width)


@dataclass(eq=False)
class WeighWork:
    """All products, added up by chunks into `parts` (chunks, ...)."""

    windows: Windows
    panels: Array  # (G, blocks, images and places, rows)
    parts: Array
    channels: int
    results: int
    images_each: int
    chunks: int
    local: Array
    grain: int
    block: Block
    label: str

    def kernels(self) -> Sequence[Any]:
        return (weigh_kernel(self.windows.dtype, self.block),)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        w, block = self.windows, self.block
        rows = np.concatenate([w.rows, np.repeat(w.rows[-1:], -len(w.rows) % block.columns)])
        image_bytes = w.channels * w.channel_bytes
        places = w.places((0, 0, 0))[:, 0]
        terms = (np.arange(self.images_each)[:, None] * image_bytes + places).reshape(-1)
        steps = math.ceil(w.images / self.images_each) * w.tiles
        channel_parts = math.ceil(self.channels / w.channels)
        values = w.words(builder, self.local, self.grain) | {
            "panels": self.panels.address, "out": self.parts.address,
            "part_bytes": self.parts.type.size // self.chunks * w.item, "chunks": self.chunks,
            "steps": steps, "steps_each": math.ceil(steps / self.chunks), "images": w.images,
            "images_each": self.images_each, "image_bytes": image_bytes, "results": self.results,
            "blocks": self.panels.shape[1], "taps": len(w.offsets),
            "all_channels": self.channels, "channel_parts": channel_parts,
            "row_table": builder.constant(rows), "row_blocks": len(rows) // block.columns,
            "term_table": builder.constant(terms), "terms": w.all_places,
            "tile_terms": len(places), "piece": PIECE_BYTES // (block.rows * w.item),
            "sums": sums_place(w, self.images_each),
        }  # fmt: skip
        args = [values[name] for name in WEIGH_WORDS]
        products = len(terms) * len(rows) * self.results
        each = 2.0 * products / FLOPS_PER_NS[w.dtype]
        each += COPY_NS * self.images_each * w.local_bytes / w.item
        cost, extent = each * math.ceil(steps / self.chunks), channel_parts * self.chunks
        (kernel,) = self.kernels()
        extent *= w.groups
        builder.call(kernels[kernel.key], args, extent, cost, self.grain, label=self.label)


def sums_place(w: Windows, images: int) -> int:
    """Where the sums begin in local memory."""
    return -(-(images * w.channels * w.channel_bytes + 64) // 64) * 64


def sums_bytes(w: Windows, block: Block, results: int) -> int:
    height = -(-len(w.rows) // block.columns) * block.columns
    return -(-results // block.rows) * block.rows * height * w.item


def is_run(w: Windows) -> bool:
    """Are a tile's places one run of those of an image?"""
    tile, (a, b, c) = w.tile, (axis.places for axis in w.axes)
    return tile[2] == c and (tile[1] == b or tile[0] == 1 or a == 1)


def channels_of(windows: Windows, block: Block, results: int) -> Windows:
    """So few channels at a time that there are units, and what they read and add up is held."""
    each = windows.channels
    while True:
        w, parts = replace(windows, channels=each), math.ceil(windows.channels / each)
        held = w.tiles == 1 and sums_bytes(w, block, results) <= 2 * LOCAL_BYTES
        if (held and w.groups * parts >= UNITS) or len(w.rows) <= FEWEST or each == 1:
            return w
        each = fewer(windows.channels, each)


def weighed(
    layout: Any,
    windows: Windows,
    y: Array,
    apart: tuple[int, ...],
    out: Array,
    block: Block,
    label: str,
) -> list[Any]:
    """The work of one gradient; `y` is read with the strides `apart`."""
    g, c, m = windows.groups, windows.channels, y.shape[1] // windows.groups
    w = channels_of(windows, block, m)
    units = g * math.ceil(c / w.channels)
    chunks = math.ceil(UNITS / units) if w.work > CHUNKED_NS else 1
    images = max(1, LOCAL_BYTES // w.local_bytes) if w.tiles == 1 else 1
    images = min(images, math.ceil(w.images / chunks))
    steps = math.ceil(w.images / images) * w.tiles
    chunks = max(1, min(chunks, steps, PARTS_BYTES // (out.type.size * w.item)))
    chunks = math.ceil(steps / math.ceil(steps / chunks))
    places = [axis.places for axis in w.axes]
    shape = (g, math.ceil(m / block.rows), w.images * math.prod(places), block.rows)
    panels = layout.workspace("panels", Type(y.type.dtype, shape))
    room = sums_place(w, images) + sums_bytes(w, block, m)
    local, grain = scratch(layout, room, units * chunks)
    parts = parts_of(layout, out, chunks)
    n, across, down, *rest = apart
    return [
        PackWork(y, (g, m, w.images, *places), (across, down, n, *rest), panels, label),
        WeighWork(w, panels, parts, c, m, images, chunks, local, grain, block, label),
        SumWork(parts, out, label),
    ]


def block_of(windows: Windows, results: int) -> Block:
    """The same for any number of images."""
    w, height = windows, len(windows.rows)
    by_rows, rows, columns = rows_of(results, height)
    by_panels, m, n = panel_of(w.dtype, results, height)
    block = Block(m, n, True)
    cheaper = by_panels * w.all_places < by_rows * w.all_vectors * w.lanes * ROWS_COST
    return block if cheaper and is_run(channels_of(w, block, results)) else Block(rows, columns)


class ConvolutionWeightStep:
    accepts = staticmethod(known)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        x, y = (layout.array(v) for v in eqn.inputs)
        out, g = layout.array(eqn.outputs[0]), op.groups
        axes = [
            forward_axis(*each)
            for each in zip(
                spatial(x.shape[2:], 1), spatial(y.shape[2:], 1), spatial(op.size, 1),
                spatial(op.stride, 1), spatial(op.padding, 0), spatial(op.dilation, 1),
            )
        ]  # fmt: skip
        ns = work_of(x.dtype, y.type.size * x.shape[1] // g * math.prod(op.size))
        axes, source, apart = joined(axes, grouped(x, g), grouped(y, g))
        windows = Windows(x, source, x.shape[0], g, x.shape[1] // g, tuple(axes), ns)  # type: ignore[arg-type]
        block = block_of(windows, y.shape[1] // g)
        by = weighed if block.panels else correlated
        return by(layout, windows, y, apart, out, block, label_of(eqn))
