"""Convolutions: products of packed weights with the windows of a tile that lies in the cache.

A kernel multiplies `rows` channels of the result by `columns` vectors of places at a time, all of
them in registers, and reads each vector of the tile once for all of them: there are no windows in
memory, only the tile. An input's gradient is a convolution for each residue of the places modulo
the stride; a weight's gradient multiplies tiles with tiles, in parts that are added at the end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lucid.compiler.arrays import Array
from lucid.compiler.kernels import TextKernel
from lucid.compiler.plan import Builder
from lucid.compiler.steps.building import fill, label_of
from lucid.compiler.steps.loops import Int, Loops, Pointer, Variable
from lucid.compiler.steps.packing import PackWork
from lucid.compiler.steps.windows import (
    CHUNKS,
    LANES,
    LOCAL_BYTES,
    WORDS,
    Axis,
    Windows,
    copy_tile,
    forward_axis,
    kinds,
    shared_words,
    starts,
    table,
)
from lucid.ir.graph import Equation
from lucid.ir.types import SHORT_NAMES, Type

Three = tuple[int, int, int]
FLOPS_PER_NS = {"f32": 60.0, "f64": 30.0}
PARTED_NS = 100_000  # a step that takes less is not cut for more threads
COPY_NS = 0.1  # estimated, for an element of a tile

CONVOLVE_WORDS = (
    *WORDS, "weights", "out", "rows", "row_table", "blocks", "block_bytes", "results",
    "vectors", "vector_table", "lanes", "images", "images_each", "image_bytes",
    "parts", "blocks_each", "blocks_held", "on", "og", "om", "o0", "o1", "o2",
)  # fmt: skip


@lru_cache(maxsize=1)
def registers() -> int:
    """How many sums a kernel may hold: 32 vector registers, or 16."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    wide = ("AVX512VL", "AVX512_SKX", "ASIMD", "NEON")
    return 24 if any(_multiarray_umath.__cpu_features__.get(name) for name in wide) else 12


def spatial(values: Sequence[int], missing: int) -> Three:
    """Numbers for three axes; those in front that there are not are `missing`."""
    a, b, c = (missing,) * (3 - len(values)) + tuple(values)
    return a, b, c


def grouped(array: Array, groups: int) -> tuple[int, ...]:
    """Strides (n, g, c, three axes) of an array (N, g c, ...)."""
    n, c, *rest = array.strides
    return (n, c * (array.shape[1] // groups), c, *spatial(rest, 0))


@lru_cache(maxsize=256)
def convolve_kernel(dtype: str, rows: int, columns: int, dense: bool) -> TextKernel:
    """Units are tiles of groups of images."""
    name = f"convolve_{dtype}_{rows}_{columns}_{'dense' if dense else 'apart'}"
    code = Loops(name)
    a = shared_words(code, CONVOLVE_WORDS)
    source, out = code.pointer(WORDS.index("source")), code.pointer(CONVOLVE_WORDS.index("out"))
    chunk = code.lo // a["grain"]
    local = code.pointer(WORDS.index("local")).at(chunk * a["chunk_bytes"])
    places, offsets = table(code, a, "vector_table"), table(code, a, "row_table")
    multiply(code, dtype, rows, columns)
    sums = code.space(f"[{rows * columns} x {kinds(dtype)[2]}]")
    with code.loop(code.lo, code.hi) as unit:
        tiles = a["n0"] * a["n1"] * a["n2"]
        part, place = unit % a["parts"], unit // a["parts"]
        first, some = starts(code, a, place % tiles), place // tiles
        n = (some // a["groups"] * a["images_each"]).min(a["images"] - a["images_each"])
        g = some % a["groups"]
        with code.loop(0, a["images_each"]) as b:
            begin = source.at((n + b) * a["sn"] + g * a["sg"])
            copy_tile(code, a, dtype, begin, local.at(b * a["image_bytes"]), first, "0.0")
        target = n * a["on"] + g * a["og"]
        for i in range(3):
            target = target + first[i] * a[f"o{i}"]
        weights = code.pointer(CONVOLVE_WORDS.index("weights")).at(
            g * a["blocks"] * a["block_bytes"]
        )
        begin_block = part * a["blocks_each"]
        end_block = (begin_block + a["blocks_each"]).min(a["blocks"])
        with (
            code.loop(begin_block, end_block, a["blocks_held"]) as held,
            code.loop(0, a["vectors"], columns) as v,
            code.loop(held, (held + a["blocks_held"]).min(end_block)) as block,
        ):
            given = [weights.at(block * a["block_bytes"]), local, places.at(v * 16), offsets]
            passed = ", ".join(f"ptr {p.name}" for p in [*given, sums])
            code.line(f"call void @multiply({passed}, i64 {a['rows'].name})")
            write_out(code, a, dtype, sums, (rows, columns), dense, out.at(target), v, block * rows)
    return TextKernel(name, code.text())


def multiply(code: Loops, dtype: str, rows: int, columns: int) -> None:
    """The sums of products of a block of weights with some vectors of places."""
    _, item, vector = kinds(dtype)
    names = ("weights", "local", "places", "offsets", "sums")
    inner = code.inner("multiply", ", ".join(f"ptr noalias %{n}" for n in names) + ", i64 %n")
    weights, local, places, offsets, out = (Pointer(inner, f"%{n}") for n in names)
    begins = [local.at(inner.load_int(places.at(j * 16))) for j in range(columns)]
    sums = [[Variable(inner, vector) for _ in range(columns)] for _ in range(rows)]
    for each in itertools.chain.from_iterable(sums):
        each.set("zeroinitializer")
    with inner.loop(0, Int(inner, "%n")) as k:
        offset = inner.load_int(offsets.at(k * 8))
        xs = [inner.load(vector, begin.at(offset), item) for begin in begins]
        for i, row in enumerate(sums):
            w = splat(inner, dtype, weights.at(k * (rows * item)).at(i * item))
            for x, total in zip(xs, row):
                total.set(multiply_add(inner, vector, w, x, total.get()))
    keep(inner, vector, sums, out)


def keep(inner: Loops, vector: str, sums: list[list[Variable]], out: Pointer) -> None:
    for i, total in enumerate(itertools.chain.from_iterable(sums)):
        inner.store(vector, total.get(), out.at(32 * i), 32)


def splat(code: Loops, dtype: str, address: Pointer) -> str:
    element, item, vector = kinds(dtype)
    one = code.load(element, address, item)
    first = code.write(f"insertelement {vector} poison, {element} {one}, i64 0")
    mask = f"<{LANES[dtype]} x i32> zeroinitializer"
    return code.write(f"shufflevector {vector} {first}, {vector} poison, {mask}")


def multiply_add(code: Loops, vector: str, x: str, y: str, total: str) -> str:
    product = code.write(f"fmul contract {vector} {x}, {y}")
    return code.write(f"fadd contract {vector} {total}, {product}")


def write_out(
    code: Loops,
    a: dict[str, Int],
    dtype: str,
    sums: Pointer,
    block: tuple[int, int],
    dense: bool,
    out: Pointer,
    v: Int,
    m: Int,
) -> None:
    element, item, vector = kinds(dtype)
    places = table(code, a, "vector_table")
    rows, columns = block
    with code.loop(0, (a["results"] - m).min(rows)) as i, code.loop(0, columns) as j:
        total = sums.at((i * columns + j) * 32)
        target = out.at((m + i) * a["om"] + code.load_int(places.at((v + j) * 16 + 8)))
        if dense:
            code.store(vector, code.load(vector, total, 32), target, item)
        else:
            with code.loop(0, a["lanes"]) as lane:
                one = code.load(element, total.at(lane * item), item)
                code.store(element, one, target.at(lane * a["o2"]), item)


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
    block: tuple[int, int]
    images_each: int
    parts: int

    @property
    def lanes(self) -> int:
        return min(self.windows.lanes, self.windows.tile[2])

    @property
    def kernel(self) -> TextKernel:
        dense = self.lanes == self.windows.lanes and self.strides[5] == 1
        return convolve_kernel(self.windows.dtype, *self.block, dense)

    def kernels(self) -> Sequence[Any]:
        return (self.kernel,)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        w, (rows, columns) = self.windows, self.block
        apart = [stride * w.item for stride in self.strides]
        image_bytes = w.channels * w.channel_bytes
        vectors = [
            (here + b * image_bytes, there + b * apart[0])
            for b in range(self.images_each)
            for here, there in w.vectors(tuple(apart[3:]))
        ]
        vectors += [vectors[-1]] * (-len(vectors) % columns)
        offsets = w.rows
        values = w.words(builder, self.local, self.grain)
        values |= {
            "weights": self.weights.address, "out": self.out.address, "rows": len(offsets),
            "row_table": builder.constant(offsets), "blocks": math.ceil(self.results / rows),
            "block_bytes": len(offsets) * rows * w.item, "results": self.results,
            "vectors": len(vectors), "vector_table": builder.constant(np.array(vectors, np.int64)),
            "lanes": self.lanes, "images": w.images, "images_each": self.images_each,
            "image_bytes": image_bytes, **dict(zip(("on", "og", "om", "o0", "o1", "o2"), apart)),
        }  # fmt: skip
        flops = 2.0 * len(offsets) * self.results * len(vectors) * w.lanes
        each, parts = math.ceil(math.ceil(self.results / rows) / self.parts), self.parts
        held = max(1, LOCAL_BYTES // (len(offsets) * rows * w.item))
        values |= {"parts": parts, "blocks_each": each, "blocks_held": held}
        copied = self.images_each * w.local_bytes / w.item
        cost = flops / parts / FLOPS_PER_NS[w.dtype] + COPY_NS * copied
        args = [values[name] for name in CONVOLVE_WORDS]
        extent = math.ceil(w.images / self.images_each) * w.groups * w.tiles * parts
        builder.call(kernels[self.kernel.key], args, extent, cost, self.grain, label=self.label)


def block_of(results: int, vectors: int) -> tuple[int, int]:
    """Rows and columns of the block in registers, with as little as possible done for nothing."""
    most, found = registers(), []
    for rows in range(1, min(results, 8) + 1):
        for columns in range(1, min(most // rows, 8) + 1):
            done = -(-results // rows) * rows * (-(-vectors // columns) * columns)
            loads = (1 / rows + 1 / columns) / 2  # for each product
            idle = max(1.0, 8 / (rows * columns))  # sums that wait for themselves
            found.append((done * max(idle, 0.75 + loads), -rows * columns, rows, columns))
    return min(found)[2:]


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
    block = block_of(shape[1], windows.all_vectors)
    blocks = math.ceil(shape[1] / block[0])
    laid_out = (shape[0], blocks, *shape[2:], block[0])
    held = layout.workspace("weights", Type(weights.type.dtype, laid_out))
    images = together(windows, len(windows.rows) * shape[1] * windows.item)
    extent = math.ceil(windows.images / images) * windows.groups * windows.tiles
    parts = 1 if windows.work < PARTED_NS else min(blocks, max(1, CHUNKS // extent))
    parts = math.ceil(blocks / math.ceil(blocks / parts))
    local, grain = scratch(layout, images * windows.local_bytes, extent * parts)
    return [
        PackWork(weights, shape, strides, held, label),
        ConvolveWork(
            windows, held, out, out_strides, shape[1], local, grain, label, block, images, parts
        ),
    ]


def together(windows: Windows, weight_bytes: int) -> int:
    """How many images a kernel takes at a time, so that it reads large weights less often."""
    if weight_bytes < LOCAL_BYTES:
        return 1
    room = 2 * LOCAL_BYTES // windows.local_bytes
    spare = windows.images * windows.groups * windows.tiles // CHUNKS * 2
    return max(1, min(windows.images, room, max(spare, 2)))


def known(eqn: Equation) -> bool:
    """Real floats along at most three axes, and something to do."""
    op: Any = eqn.op
    return (
        len(op.size) <= 3
        and all(SHORT_NAMES[x.type.dtype] in LANES and x.type.size for x in eqn.inputs)
        and eqn.outputs[0].type.size > 0
    )


def work_of(dtype: str, products: int) -> float:
    return 2 * products / FLOPS_PER_NS[dtype]


def joined(
    axes: list[Axis], source: tuple[int, ...], out: tuple[int, ...]
) -> tuple[list[Axis], tuple[int, ...], tuple[int, ...]]:
    """Neighbouring axes as one where every place reads one element, and memory goes on evenly."""
    for i in (1, 0):
        a, b = axes[i], axes[i + 1]
        even = [s[3 + i] == b.size * s[4 + i] or a.size == 1 for s in (source, out)]
        if a.is_plain and b.is_plain and all(even):
            axes = [*axes]
            axes[i + 1] = Axis(a.size * b.size, a.size * b.size, 1, 0, ((0, 0),))
            axes[i] = Axis(1, 1, 1, 0, ((0, 0),))
    return axes, source, out


class ConvolutionStep:
    accepts = staticmethod(known)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        x, w = (layout.array(v) for v in eqn.inputs)
        out, g = layout.array(eqn.outputs[0]), op.groups
        axes = [
            forward_axis(*each)
            for each in zip(
                spatial(x.shape[2:], 1), spatial(op.size, 1), spatial(w.shape[2:], 1),
                spatial(op.stride, 1), spatial(op.padding, 0), spatial(op.dilation, 1),
            )
        ]  # fmt: skip
        axes, source, target = joined(axes, grouped(x, g), grouped(out, g))
        m, c = w.shape[0] // g, w.shape[1]
        products = out.type.size * c * math.prod(w.shape[2:])
        windows = Windows(x, source, x.shape[0], g, c, tuple(axes), work_of(x.dtype, products))  # type: ignore[arg-type]
        shape = (g, m, c, *spatial(w.shape[2:], 1))
        down, across, *rest = w.strides
        strides = (down * m, down, across, *spatial(rest, 0))
        return convolution(layout, windows, w, shape, strides, out, target, label_of(eqn))


class ConvolutionTransposeStep:
    """For each residue modulo the stride a convolution with the taps that lead there."""

    accepts = staticmethod(known)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        y, w = (layout.array(v) for v in eqn.inputs)
        out, g, label = layout.array(eqn.outputs[0]), op.groups, label_of(eqn)
        options = [
            backward_axes(*each)
            for each in zip(
                spatial(y.shape[2:], 1), spatial(op.size, 1), spatial(w.shape[2:], 1),
                spatial(op.stride, 1), spatial(op.padding, 0), spatial(op.dilation, 1),
            )
        ]  # fmt: skip
        work: list[Any] = []
        if not all(backward_is_full(*each) for each in zip(options, spatial(op.size, 1))):
            work += fill(0, out, label)
        o, c = w.shape[0] // g, w.shape[1]
        down, across, *rest = w.strides
        products = y.type.size * c * math.prod(w.shape[2:])
        ns = work_of(y.dtype, products) / max(1, math.prod(map(len, options)))
        for parts in itertools.product(*options):
            target = list(grouped(out, g))
            axes = [part.axis for part in parts]
            first = sum(part.first * target[3 + i] for i, part in enumerate(parts))
            target[3:] = [part.step * s for part, s in zip(parts, target[3:])]
            taps = spatial(rest, 0)
            start = sum(part.tap * s for part, s in zip(parts, taps))
            given = Array(w.ref, w.type, w.strides, w.offset + start)
            strides = (
                down * o, across, down, *[part.tap_step * s for part, s in zip(parts, taps)]
            )  # fmt: skip
            shape = (g, c, o, *[len(axis.taps) for axis in axes])
            there = Array(out.ref, out.type, out.strides, out.offset + first)
            axes, source, apart = joined(axes, grouped(y, g), tuple(target))
            windows = Windows(y, source, y.shape[0], g, o, tuple(axes), ns)  # type: ignore[arg-type]
            work += convolution(layout, windows, given, shape, strides, there, apart, label)
        return work


@dataclass(frozen=True)
class Residue:
    """Results `first + step i` along an axis, and the taps `tap + tap_step j` that lead there."""

    axis: Axis
    first: int
    step: int
    tap: int
    tap_step: int


def backward_axes(
    places: int, size: int, kernel: int, stride: int, low: int, dilation: int
) -> list[Residue]:
    """Results i with i + low = stride J + r, for every r that has taps and results."""
    found = []
    for r in range(stride):
        taps = [k for k in range(kernel) if (dilation * k - r) % stride == 0]
        start, stop = -((r - low) // stride), (size - 1 + low - r) // stride + 1
        if not taps or stop <= start:
            continue
        shifts = [(dilation * k - r) // stride for k in taps]
        most = max(shifts)
        axis = Axis(places, stop - start, 1, most - start, tuple((0, most - e) for e in shifts))
        step = taps[1] - taps[0] if len(taps) > 1 else 1
        found.append(Residue(axis, stride * start + r - low, stride, taps[0], step))
    return found


def backward_is_full(options: list[Residue], size: int) -> bool:
    return sum(part.axis.places for part in options) == size
