"""The weight gradient of a convolution by panels: tiles of the input times packed cotangents.

The cotangent is packed with a block of results side by side for every position. A unit computes
some channels of the input and keeps their sums for all results in local memory: it copies the tiles
of some images at a time, and multiplies vectors of results by one element of a window after
another. At the end the sums are transposed into the layout of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lucid.compiler.lowering.conv.conv_kernel import scratch, three_axes
from lucid.compiler.lowering.conv.conv_lowering import (
    estimated_ns,
    grouped_strides,
    is_supported,
    merge_axes,
)
from lucid.compiler.lowering.conv.pack_operands import PackWork, transpose
from lucid.compiler.lowering.conv.register_blocks import (
    ROWS_COST,
    Block,
    block_bytes,
    choose_panel_block,
    multiply_panels,
)
from lucid.compiler.lowering.conv.weight_gradient_rows import (
    CHUNKED_NS,
    PARTS_BYTES,
    SumWork,
    choose_row_block,
    gradient_by_rows,
    next_smaller,
    partial_results,
)
from lucid.compiler.lowering.conv.window_tiles import (
    COPY_NS,
    FLOPS_PER_NS,
    LOCAL_BYTES,
    WORDS,
    Windows,
    copy_tile,
    forward_axis,
    llvm_types,
    load_words,
    tile_start,
    word_pointer,
)
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer
from lucid.compiler.lowering.nest_builder import label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.graph import Equation
from lucid.ir.types import Type
from lucid.support.caches import memoize

FEWEST = 48  # the fewest window elements per unit that are worth a pass over the cotangent
MIN_UNITS = 8
PIECE_BYTES = 1 << 17  # bytes of a panel that are used for all windows before the next

PANEL_WORDS = (
    *WORDS, "panels", "out", "part_bytes", "chunks", "steps", "steps_each", "images",
    "images_each", "image_bytes", "results", "blocks", "taps", "all_channels", "channel_parts",
    "row_table", "row_blocks", "term_table", "terms", "tile_terms", "piece", "sums",
)  # fmt: skip


@memoize(maxsize=64)
def panel_kernel(dtype: str, block: Block) -> TextKernel:
    """A unit is a chunk of images and tiles, for some channels of a group."""
    name = f"weight_gradient_panels_{dtype}_{block}"
    code = LLVMBuilder(name)
    a = load_words(code, PANEL_WORDS)
    local = code.pointer(WORDS.index("local")).at(code.lo // a["grain"] * a["chunk_bytes"])
    zeros = multiply_panels(code, dtype, block, entry_bytes=8)
    with code.loop(code.lo, code.hi) as unit:
        chunk, part = unit % a["chunks"], unit // a["chunks"]
        c0, g = part % a["channel_parts"] * a["channels"], part // a["channel_parts"]
        here = {**a, "channels": (a["all_channels"] - c0).min(a["channels"])}
        sums, begin = local.at(a["sums"]), chunk * a["steps_each"]
        with code.loop(begin, (begin + a["steps_each"]).min(a["steps"])) as step:
            new = step.icmp("eq", begin)
            add_step(code, here, dtype, block, local, sums, (new, zeros), step, g, c0)
        write_weights(code, here, dtype, block, sums, chunk, g, c0)
    return TextKernel(name, code.text())


def add_step(
    code: LLVMBuilder,
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
    """Add the products of a tile of some images; the first step of a unit starts from zeros.

    The last tile ends where the positions end, and skips those that it shares with the one before.
    """
    source, panels = code.pointer(WORDS.index("source")), word_pointer(code, a, "panels")
    row = block.rows * llvm_types(dtype)[1]
    tiles = a["n0"] * a["n1"] * a["n2"]
    tile, image = step % tiles, step // tiles * a["images_each"]
    here, first = (a["images"] - image).min(a["images_each"]), tile_start(code, a, tile)
    with code.loop(0, here) as b:
        begin = source.at((image + b) * a["sn"] + g * a["sg"] + c0 * a["sc"])
        copy_tile(code, a, dtype, begin, local.at(b * a["image_bytes"]), first, "0.0")
    plane, line = tile // a["n1"] * a["t0"], tile % a["n1"] * a["t1"]
    begin_term = (plane * a["q1"] + line) * a["q2"]
    skipped = begin_term - (first[0] * a["q1"] + first[1]) * a["q2"]
    count = here * a["tile_terms"] - skipped
    panel = panels.at((g * a["blocks"] * a["images"] * a["terms"]) * row)
    panel = panel.at((image * a["terms"] + begin_term) * row)
    offsets, rows = (
        word_pointer(code, a, "term_table").at(skipped * 8),
        word_pointer(code, a, "row_table"),
    )
    with (
        code.loop(0, count, a["piece"]) as k,
        code.loop(0, a["blocks"]) as number,
        code.loop(0, a["channels"] * a["taps"], block.columns) as r,
    ):
        at = number * a["row_blocks"] + r // block.columns
        total = sums.at(at * block_bytes(dtype, block))
        is_new = code.write(f"and i1 {start[0]}, {k.icmp('eq', 0)}")
        before = code.select_pointer(is_new, start[1], total)
        given = [
            panel.at((number * a["images"] * a["terms"] + k) * row), local, rows.at(r * 8),
            offsets.at(k * 8), before, total,
        ]  # fmt: skip
        passed = ", ".join(f"ptr {p.name}" for p in given)
        length = (count - k).min(a["piece"])
        code.line(f"call void @multiply({passed}, i64 {length.name})")


def write_weights(
    code: LLVMBuilder,
    a: dict[str, Int],
    dtype: str,
    block: Block,
    sums: Pointer,
    chunk: Int,
    g: Int,
    c0: Int,
) -> None:
    item = llvm_types(dtype)[1]
    out = code.pointer(PANEL_WORDS.index("out")).at(chunk * a["part_bytes"])
    row_bytes = a["all_channels"] * a["taps"] * item
    with code.loop(0, a["blocks"]) as number:
        m = number * block.rows
        source = sums.at(number * a["row_blocks"] * block_bytes(dtype, block))
        target = out.at((g * a["results"] + m) * row_bytes + c0 * a["taps"] * item)
        height, width = a["channels"] * a["taps"], (a["results"] - m).min(block.rows)
        between = (code.number(block.rows * item), code.number(item))
        transpose(code, dtype, source, between, target, row_bytes, height, width)


@dataclass(eq=False)
class PanelGradientWork:
    """Sums all products by chunks into `parts` (chunks, ...)."""

    windows: Windows
    panels: Array  # (G, blocks, images and positions, rows)
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
        return (panel_kernel(self.windows.dtype, self.block),)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        w, block = self.windows, self.block
        rows = np.concatenate([w.rows, np.repeat(w.rows[-1:], -len(w.rows) % block.columns)])
        image_bytes = w.channels * w.channel_bytes
        positions = w.positions((0, 0, 0))[:, 0]
        terms = (np.arange(self.images_each)[:, None] * image_bytes + positions).reshape(-1)
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
            "term_table": builder.constant(terms), "terms": w.all_positions,
            "tile_terms": len(positions), "piece": PIECE_BYTES // (block.rows * w.item),
            "sums": sums_offset(w, self.images_each),
        }  # fmt: skip
        args = [values[name] for name in PANEL_WORDS]
        products = len(terms) * len(rows) * self.results
        each = 2.0 * products / FLOPS_PER_NS[w.dtype]
        each += COPY_NS * self.images_each * w.local_bytes / w.item
        cost, extent = each * math.ceil(steps / self.chunks), channel_parts * self.chunks
        (kernel,) = self.kernels()
        extent *= w.groups
        builder.call(kernels[kernel.key], args, extent, cost, self.grain, label=self.label)


def sums_offset(w: Windows, images: int) -> int:
    """The offset of the sums in local memory."""
    return -(-(images * w.channels * w.channel_bytes + 64) // 64) * 64


def sums_bytes(w: Windows, block: Block, results: int) -> int:
    height = -(-len(w.rows) // block.columns) * block.columns
    return -(-results // block.rows) * block.rows * height * w.item


def is_contiguous_run(w: Windows) -> bool:
    """True if a tile's positions are one contiguous run of an image's positions."""
    tile, (a, b, c) = w.tile, (axis.positions for axis in w.axes)
    return tile[2] == c and (tile[1] == b or tile[0] == 1 or a == 1)


def channels_per_unit(windows: Windows, block: Block, results: int) -> Windows:
    """Limit the channels per unit so that there are enough units, and each fits into the cache."""
    each = windows.channels
    while True:
        w, parts = replace(windows, channels=each), math.ceil(windows.channels / each)
        held = w.tiles == 1 and sums_bytes(w, block, results) <= 2 * LOCAL_BYTES
        if (held and w.groups * parts >= MIN_UNITS) or len(w.rows) <= FEWEST or each == 1:
            return w
        each = next_smaller(windows.channels, each)


def gradient_by_panels(
    layout: Any,
    windows: Windows,
    y: Array,
    y_strides: tuple[int, ...],
    out: Array,
    block: Block,
    label: str,
) -> list[Any]:
    """Return the work of a weight gradient; `y` is read with the strides `y_strides`."""
    g, c, m = windows.groups, windows.channels, y.shape[1] // windows.groups
    w = channels_per_unit(windows, block, m)
    units = g * math.ceil(c / w.channels)
    chunks = math.ceil(MIN_UNITS / units) if w.work > CHUNKED_NS else 1
    images = max(1, LOCAL_BYTES // w.local_bytes) if w.tiles == 1 else 1
    images = min(images, math.ceil(w.images / chunks))
    steps = math.ceil(w.images / images) * w.tiles
    chunks = max(1, min(chunks, steps, PARTS_BYTES // (out.type.size * w.item)))
    chunks = math.ceil(steps / math.ceil(steps / chunks))
    positions = [axis.positions for axis in w.axes]
    shape = (g, math.ceil(m / block.rows), w.images * math.prod(positions), block.rows)
    panels = layout.workspace("panels", Type(y.type.dtype, shape))
    room = sums_offset(w, images) + sums_bytes(w, block, m)
    local, grain = scratch(layout, room, units * chunks)
    parts = partial_results(layout, out, chunks)
    n, across, down, *rest = y_strides
    return [
        PackWork(y, (g, m, w.images, *positions), (across, down, n, *rest), panels, label),
        PanelGradientWork(w, panels, parts, c, m, images, chunks, local, grain, block, label),
        SumWork(parts, out, label),
    ]


def choose_block(windows: Windows, results: int) -> Block:
    """Choose a block that does not depend on the number of images."""
    w, height = windows, len(windows.rows)
    by_rows, rows, columns = choose_row_block(results, height)
    by_panels, m, n = choose_panel_block(w.dtype, results, height)
    block = Block(m, n, True)
    cheaper = by_panels * w.all_positions < by_rows * w.all_vectors * w.lanes * ROWS_COST
    return (
        block
        if cheaper and is_contiguous_run(channels_per_unit(w, block, results))
        else Block(rows, columns)
    )


class ConvolutionWeightLowering:
    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        x, y = (layout.array(v) for v in eqn.inputs)
        out, g = layout.array(eqn.outputs[0]), op.groups
        axes = [
            forward_axis(*each)
            for each in zip(
                three_axes(x.shape[2:], 1), three_axes(y.shape[2:], 1), three_axes(op.size, 1),
                three_axes(op.stride, 1), three_axes(op.padding, 0), three_axes(op.dilation, 1),
            )
        ]  # fmt: skip
        ns = estimated_ns(x.dtype, y.type.size * x.shape[1] // g * math.prod(op.size))
        axes, source, y_strides = merge_axes(axes, grouped_strides(x, g), grouped_strides(y, g))
        windows = Windows(x, source, x.shape[0], g, x.shape[1] // g, tuple(axes), ns)  # type: ignore[arg-type]
        block = choose_block(windows, y.shape[1] // g)
        by = gradient_by_panels if block.panels else gradient_by_rows
        return by(layout, windows, y, y_strides, out, block, label_of(eqn))
