"""The weight gradient of a convolution by rows: tiles of the input times tiles of the cotangent.

For some images at a time both tiles are copied into local memory, the cotangent with zeros at
positions of other tiles, so that an element of the result is one long dot product. A kernel holds
`rows` x `columns` of them in registers. Images and tiles are split into a few chunks, by sizes
alone; each chunk leaves a partial result, and a second kernel sums these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.conv.conv_kernel import scratch
from lucid.compiler.lowering.conv.register_blocks import Block, multiply_add, registers, store_sums
from lucid.compiler.lowering.conv.window_tiles import (
    COPY_NS,
    FLOPS_PER_NS,
    LANES,
    LOCAL_BYTES,
    WORDS,
    Windows,
    copy_row,
    copy_tile,
    fill_row,
    llvm_types,
    load_words,
    tile_start,
    word_pointer,
)
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer, Variable
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.types import Type
from lucid.support.caches import memoize

LENGTH = 96  # the fewest vectors of a dot product, if there are that many
PARTS_BYTES = 1 << 23
BLOCK = 32  # elements that the sum of partial results processes at a time
CHUNKS = 8
CHUNKED_NS = 20_000  # cheaper gradients are not split into chunks

ROW_WORDS = (
    *WORDS, "y", "yn", "yg", "ym", "y0", "y1", "y2", "out", "part_bytes", "chunks", "steps",
    "steps_each", "images", "images_each", "image_bytes", "results", "results_each", "result_parts",
    "rows", "taps", "all_channels", "channel_parts", "row_table", "vectors", "vector_table",
    "y_local", "y_row_bytes",
)  # fmt: skip


@memoize(maxsize=256)
def row_kernel(dtype: str, rows: int, columns: int) -> TextKernel:
    """A unit is a chunk of images and tiles, for some results and channels of a group."""
    name = f"weight_gradient_rows_{dtype}_{rows}_{columns}"
    code = LLVMBuilder(name)
    a = load_words(code, ROW_WORDS)
    chunk_of_units = code.lo // a["grain"]
    local = code.pointer(WORDS.index("local")).at(chunk_of_units * a["chunk_bytes"])
    multiply(code, dtype, rows, columns)
    positions, offsets = word_pointer(code, a, "vector_table"), word_pointer(code, a, "row_table")
    sums = code.alloca(f"[{rows * columns} x {llvm_types(dtype)[2]}]")
    with code.loop(code.lo, code.hi) as unit:
        chunk, part = unit % a["chunks"], unit // a["chunks"]
        c0, part = part % a["channel_parts"] * a["channels"], part // a["channel_parts"]
        m0, g = part % a["result_parts"] * a["results_each"], part // a["result_parts"]
        count = (a["results"] - m0).min(a["results_each"])
        channels = (a["all_channels"] - c0).min(a["channels"])
        height = channels * a["taps"]
        item = llvm_types(dtype)[1]
        begin_of = g * a["results"] * a["rows"] + c0 * a["taps"]
        out = code.pointer(ROW_WORDS.index("out")).at(chunk * a["part_bytes"] + begin_of * item)
        begin = chunk * a["steps_each"]
        with code.loop(begin, (begin + a["steps_each"]).min(a["steps"])) as step:
            tiles = a["n0"] * a["n1"] * a["n2"]
            image = step // tiles * a["images_each"]
            here = (a["images"] - image).min(a["images_each"])
            here_of = {**a, "channels": channels}
            gather(code, here_of, dtype, local, step % tiles, image, here, g, m0, count, c0)
            vectors = here * a["vectors"]
            is_first = step.icmp("eq", begin)
            with code.loop(0, count, rows) as m, code.loop(0, height, columns) as k:
                y = local.at(a["y_local"] + m * a["y_row_bytes"])
                given = [y, local, positions, offsets.at(k * 8), sums]
                passed = [f"ptr {p.name}" for p in given]
                passed += [f"i64 {vectors.name}", f"i64 {a['y_row_bytes'].name}"]
                code.line(f"call void @multiply({', '.join(passed)})")
                accumulate(
                    code, a, dtype, (rows, columns), sums, out, m0, (count, height), m, k, is_first
                )
    return TextKernel(name, code.text())


def gather(
    code: LLVMBuilder,
    a: dict[str, Int],
    dtype: str,
    local: Pointer,
    tile: Int,
    image: Int,
    here: Int,
    g: Int,
    m0: Int,
    count: Int,
    c0: Int,
) -> None:
    """Copy the tiles of some images of both operands to local memory."""
    source, y = code.pointer(WORDS.index("source")), code.pointer(ROW_WORDS.index("y"))
    element, item, _ = llvm_types(dtype)
    first = tile_start(code, a, tile)
    numbers = [tile // (a["n2"] * a["n1"]), tile // a["n2"] % a["n1"], tile % a["n2"]]
    skipped = [number * a[f"t{i}"] - first[i] for i, number in enumerate(numbers)]
    with code.loop(0, here) as b:
        begin = source.at((image + b) * a["sn"] + g * a["sg"] + c0 * a["sc"])
        copy_tile(code, a, dtype, begin, local.at(b * a["image_bytes"]), first, "0.0")
    row_bytes = (a["t2"] + (LANES[dtype] - 1)) // LANES[dtype] * (LANES[dtype] * item)
    held = local.at(a["y_local"])
    with code.loop(0, count) as m, code.loop(0, here) as b:
        place = held.at(m * a["y_row_bytes"] + b * a["t0"] * a["t1"] * row_bytes)
        plane = y.at((image + b) * a["yn"] + g * a["yg"] + (m0 + m) * a["ym"])
        with code.loop(0, a["t0"]) as i, code.loop(0, a["t1"]) as j:
            row = place.at((i * a["t1"] + j) * row_bytes)
            counts = code.write(f"and i1 {i.icmp('sge', skipped[0])}, {j.icmp('sge', skipped[1])}")
            low = code.select(counts, skipped[2], a["t2"])
            at = (first[0] + i) * a["y0"] + (first[1] + j) * a["y1"] + (first[2] + low) * a["y2"]
            fill_row(code, element, item, row, code.number(0), low, "0.0")
            copy_row(code, dtype, plane.at(at), row.at(low * item), a["t2"] - low, a["y2"])
            fill_row(code, element, item, row, a["t2"], row_bytes // item, "0.0")


def multiply(code: LLVMBuilder, dtype: str, rows: int, columns: int) -> None:
    """Write a function for dot products of cotangent rows with window rows."""
    _, item, vector = llvm_types(dtype)
    names = ("y", "local", "places", "offsets", "sums")
    parameters = [*[f"ptr noalias %{n}" for n in names], "i64 %n", "i64 %row_bytes"]
    inner = code.inner("multiply", ", ".join(parameters))
    y, local, positions, offsets, out = (Pointer(inner, f"%{n}") for n in names)
    ys = [y.at(Int(inner, "%row_bytes") * i) for i in range(rows)]
    xs = [local.at(inner.load_int(offsets.at(j * 8))) for j in range(columns)]
    sums = [[Variable(inner, vector) for _ in range(columns)] for _ in range(rows)]
    for row in sums:
        for each in row:
            each.set("zeroinitializer")
    with inner.loop(0, Int(inner, "%n")) as v:
        at = inner.load_int(positions.at(v * 8))
        left = [inner.load(vector, row.at(v * (LANES[dtype] * item)), item) for row in ys]
        for j, x in enumerate(xs):
            right = inner.load(vector, x.at(at), item)
            for i in range(rows):
                total = sums[i][j]
                total.set(multiply_add(inner, vector, left[i], right, total.get()))
    store_sums(inner, vector, sums, out)


def accumulate(
    code: LLVMBuilder,
    a: dict[str, Int],
    dtype: str,
    block: tuple[int, int],
    sums: Pointer,
    out: Pointer,
    m0: Int,
    size: tuple[Int, Int],
    m: Int,
    k: Int,
    is_first: str,
) -> None:
    element, item, vector = llvm_types(dtype)
    name = f"llvm.vector.reduce.fadd.v{LANES[dtype]}{dtype}"
    code.declarations[f"declare {element} @{name}({element}, {vector})"] = None
    rows, columns = block
    with (
        code.loop(0, (size[0] - m).min(rows)) as i,
        code.loop(0, (size[1] - k).min(columns)) as j,
    ):
        place = out.at(((m0 + m + i) * a["rows"] + k + j) * item)
        total = code.load(vector, sums.at((i * columns + j) * 32), 32)
        value = code.write(f"call reassoc {element} @{name}({element} -0.0, {vector} {total})")
        before = code.load(element, place, item)
        added = code.write(f"fadd {element} {before}, {value}")
        chosen = f"select i1 {is_first}, {element} {value}, {element} {added}"
        code.store(element, code.write(chosen), place, item)


@dataclass(eq=False)
class RowGradientWork:
    """Sums all products by chunks into `parts` (chunks, ...)."""

    windows: Windows
    y: Array
    strides: tuple[int, ...]  # of y: n, g, m and three axes, in elements
    parts: Array
    channels: int
    results: int
    results_each: int
    images_each: int
    chunks: int
    local: Array
    grain: int
    block: tuple[int, int]
    label: str

    @property
    def kernel(self) -> TextKernel:
        return row_kernel(self.windows.dtype, *self.block)

    def kernels(self) -> Sequence[Any]:
        return (self.kernel,)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        w, columns = self.windows, self.block[1]
        offsets = w.rows
        row_table = np.concatenate([offsets, np.repeat(offsets[-1:], -len(offsets) % columns)])
        positions = np.array([at for at, _ in w.vectors((0, 0, 0))])
        image_bytes = w.channels * w.channel_bytes
        several = (np.arange(self.images_each)[:, None] * image_bytes + positions).reshape(-1)
        steps = math.ceil(w.images / self.images_each) * w.tiles
        values = w.words(builder, self.local, self.grain)
        byte_strides = [stride * w.item for stride in self.strides]
        parts = math.ceil(self.results / self.results_each)
        channel_parts = math.ceil(self.channels / w.channels)
        values |= {
            "y": self.y.address, **dict(zip(("yn", "yg", "ym", "y0", "y1", "y2"), byte_strides)),
            "out": self.parts.address, "part_bytes": self.parts.type.size // self.chunks * w.item,
            "chunks": self.chunks, "steps": steps, "steps_each": math.ceil(steps / self.chunks),
            "images": w.images, "images_each": self.images_each, "image_bytes": image_bytes,
            "results": self.results, "results_each": self.results_each, "result_parts": parts,
            "rows": self.channels * len(w.offsets), "taps": len(w.offsets),
            "all_channels": self.channels, "channel_parts": channel_parts,
            "row_table": builder.constant(row_table), "vectors": len(positions),
            "vector_table": builder.constant(several),
            "y_local": y_offset(w, self.images_each),
            "y_row_bytes": y_row_bytes(w, self.images_each),
        }  # fmt: skip
        args = [values[name] for name in ROW_WORDS]
        extent = w.groups * parts * channel_parts * self.chunks
        products = len(several) * w.lanes * len(offsets) * self.results_each
        local = self.images_each * w.local_bytes / w.item
        each = 2.0 * products / FLOPS_PER_NS[w.dtype] + COPY_NS * local
        cost = each * math.ceil(steps / self.chunks)
        builder.call(kernels[self.kernel.key], args, extent, cost, self.grain, label=self.label)


def y_offset(w: Windows, images: int) -> int:
    """The offset of the cotangent's tiles in local memory."""
    return -(-(images * w.channels * w.channel_bytes + 64) // 64) * 64


def y_row_bytes(w: Windows, images: int) -> int:
    return images * len(w.vectors((0, 0, 0))) * w.lanes * w.item


@memoize(maxsize=2)
def sum_kernel(dtype: str) -> TextKernel:
    """Sums blocks of the partial results of chunks, in order."""
    name = f"sum_parts_{dtype}"
    code = LLVMBuilder(name)
    source, out, chunks, n = code.pointer(0), code.pointer(1), code.word(2), code.word(3)
    element, item, _ = llvm_types(dtype)
    vector = f"<{BLOCK} x {element}>"
    total, one = Variable(code, vector), Variable(code, element)
    with code.loop(code.lo, code.hi) as block:
        first = block * BLOCK
        whole = (n - first).icmp("sge", BLOCK)
        with code.if_(whole):
            total.set("zeroinitializer")
            with code.loop(0, chunks) as c:
                x = code.load(vector, source.at((c * n + first) * item), item)
                total.set(code.write(f"fadd {vector} {total.get()}, {x}"))
            code.store(vector, total.get(), out.at(first * item), item)
        with code.loop(code.select(whole, n, first), (first + BLOCK).min(n)) as i:
            one.set("0.0")
            with code.loop(0, chunks) as c:
                x = code.load(element, source.at((c * n + i) * item), item)
                one.set(code.write(f"fadd {element} {one.get()}, {x}"))
            code.store(element, one.get(), out.at(i * item), item)
    return TextKernel(name, code.text())


@dataclass(eq=False)
class SumWork:
    """Sums the partial results of chunks; nothing to do for a single chunk."""

    parts: Array
    out: Array
    label: str

    def kernels(self) -> Sequence[Any]:
        return (sum_kernel(self.out.dtype),)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        chunks, n = self.parts.shape
        if chunks > 1:
            kernel = kernels[sum_kernel(self.out.dtype).key]
            args = [self.parts.address, self.out.address, chunks, n]
            blocks = math.ceil(n / BLOCK)
            builder.call(kernel, args, blocks, chunks * BLOCK * 0.1, label=self.label)


def choose_channels(
    x: Array, strides: tuple[int, ...], groups: int, channels: int, axes: Any, ns: float
) -> tuple[Windows, int]:
    """Choose channels and images per step so that dot products are long and tiles fit."""
    each = channels
    while True:
        w = Windows(x, strides, x.shape[0], groups, each, axes, ns, pad_rows=True)
        length = len(w.vectors((0, 0, 0)))
        images = min(w.images, math.ceil(LENGTH / length))
        fits = images * w.local_bytes <= LOCAL_BYTES and (w.tiles == 1 or length >= LENGTH)
        if fits or each <= 8:
            return w, max(1, min(images, LOCAL_BYTES // w.local_bytes))
        each = next_smaller(channels, each)


def next_smaller(channels: int, each: int) -> int:
    """The most channels per part that give more parts than `each` does."""
    return math.ceil(channels / math.ceil(channels / (each - 1)))


def choose_row_block(results: int, height: int) -> tuple[float, int, int]:
    """Return the cost of a vector of positions, and the sizes of the cheapest block."""
    most, found = registers(), []
    for i in range(1, min(results, 6) + 1):
        for j in range(1, min(height, most // i, 12) + 1):
            done = -(-results // i) * i * (-(-height // j) * j)
            idle = max(1.0, 8 / (i * j))
            found.append((done * max(idle, 0.75 + (1 / i + 1 / j) / 2), -i * j, i, j))
    cost, _, rows, columns = min(found)
    return cost, rows, columns


def gradient_by_rows(
    layout: Any,
    windows: Windows,
    y: Array,
    y_strides: tuple[int, ...],
    out: Array,
    block: Block,
    label: str,
) -> list[Any]:
    """Return the work of a weight gradient; `y` is read with the strides `y_strides`."""
    g, c, ns = windows.groups, windows.channels, windows.work
    m = y.shape[1] // g
    w, images = choose_channels(windows.array, windows.strides, g, c, windows.axes, ns)
    steps = math.ceil(w.images / images) * w.tiles
    nbytes = out.type.size * w.item
    chunks = max(1, min(CHUNKS, steps, PARTS_BYTES // nbytes)) if ns > CHUNKED_NS else 1
    chunks = math.ceil(steps / math.ceil(steps / chunks))
    each = max(8, LOCAL_BYTES // y_row_bytes(w, images))
    each = math.ceil(m / math.ceil(m / each))
    extent = g * math.ceil(m / each) * math.ceil(c / w.channels) * chunks
    rows = -(-each // block.rows) * block.rows
    room = y_offset(w, images) + rows * y_row_bytes(w, images)
    local, grain = scratch(layout, room, extent)
    parts = partial_results(layout, out, chunks)
    size = (block.rows, block.columns)
    work = RowGradientWork(
        w, y, y_strides, parts, c, m, each, images, chunks, local, grain, size, label
    )
    return [work, SumWork(parts, out, label)]


def partial_results(layout: Any, out: Array, chunks: int) -> Array:
    """Memory for the partial results of chunks; a single chunk uses the result's own."""
    kind = Type(out.type.dtype, (chunks, out.type.size))
    if chunks > 1:
        return layout.workspace("parts", kind)
    return Array(out.ref, kind, (0, 1), out.offset)
