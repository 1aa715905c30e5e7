"""Convolutions: products of packed weights with the windows of a tile that lies in the cache.

A kernel multiplies blocks of results by places (`blocks`), all of them in registers, and reads each
vector of the tile once for all of them: there are no windows in memory, only the tile. An input's
gradient is a convolution for each residue of the places modulo the stride; a weight's gradient
multiplies tiles with tiles, in parts that are added at the end.
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
from lucid.compiler.steps.blocks import (
    Block,
    block_of,
    multiply_panels,
    multiply_rows,
    sums_space,
    write_panels,
    write_rows,
)
from lucid.compiler.steps.building import fill, label_of
from lucid.compiler.steps.loops import Loops
from lucid.compiler.steps.packing import PackWork
from lucid.compiler.steps.windows import (
    CHUNKS,
    COPY_NS,
    FLOPS_PER_NS,
    LANES,
    LOCAL_BYTES,
    WORDS,
    Axis,
    GatherWork,
    Windows,
    copy_tile,
    forward_axis,
    shared_words,
    starts,
    table,
)
from lucid.ir.graph import Equation
from lucid.ir.types import SHORT_NAMES, Type

Three = tuple[int, int, int]
PARTED_NS = 100_000  # a step that takes less is not cut for more threads

CONVOLVE_WORDS = (
    *WORDS, "weights", "out", "rows", "row_table", "blocks", "block_bytes", "results",
    "vectors", "vector_table", "lanes", "images", "images_each", "image_bytes",
    "spots", "blocks_each", "blocks_held", "on", "og", "om", "o0", "o1", "o2",
)  # fmt: skip


def spatial(values: Sequence[int], missing: int) -> Three:
    """Numbers for three axes; those in front that there are not are `missing`."""
    a, b, c = (missing,) * (3 - len(values)) + tuple(values)
    return a, b, c


def grouped(array: Array, groups: int) -> tuple[int, ...]:
    """Strides (n, g, c, three axes) of an array (N, g c, ...)."""
    n, c, *rest = array.strides
    return (n, c * (array.shape[1] // groups), c, *spatial(rest, 0))


@lru_cache(maxsize=256)
def convolve_kernel(dtype: str, block: Block, dense: bool, gathered: bool) -> TextKernel:
    """Units are parts of the results for tiles of groups of images."""
    name = f"convolve_{dtype}_{block}_{'dense' if dense else 'apart'}"
    name += "_gathered" if gathered else ""
    code = Loops(name)
    a = shared_words(code, CONVOLVE_WORDS)
    source, out = code.pointer(WORDS.index("source")), code.pointer(CONVOLVE_WORDS.index("out"))
    local = code.pointer(WORDS.index("local"))
    if not gathered:
        local = local.at(code.lo // a["grain"] * a["chunk_bytes"])
    places, offsets = table(code, a, "vector_table"), table(code, a, "row_table")
    if block.panels:
        multiply_panels(code, dtype, block, apart=16, start=False)
    else:
        multiply_rows(code, dtype, block)
    sums = sums_space(code, dtype, block)
    with code.loop(code.lo, code.hi) as unit:
        tiles = a["n0"] * a["n1"] * a["n2"]
        part, spot = unit // a["spots"], unit % a["spots"]
        first, some = starts(code, a, spot % tiles), spot // tiles
        n = (some // a["groups"] * a["images_each"]).min(a["images"] - a["images_each"])
        g = some % a["groups"]
        here = local
        if gathered:
            here = local.at(((n * a["groups"] + g) * tiles + spot % tiles) * a["chunk_bytes"])
        else:
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
            code.loop(0, a["vectors"], block.columns) as v,
            code.loop(held, (held + a["blocks_held"]).min(end_block)) as number,
        ):
            given = [weights.at(number * a["block_bytes"]), here, places.at(v * 16), offsets, sums]
            passed = ", ".join(f"ptr {p.name}" for p in given)
            code.line(f"call void @multiply({passed}, i64 {a['rows'].name})")
            m, to = number * block.rows, out.at(target)
            if block.panels:
                write_panels(code, a, dtype, sums, block, to, v, m)
            else:
                write_rows(code, a, dtype, sums, block, dense, to, v, m)
    return TextKernel(name, code.text())


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
        return convolve_kernel(w.dtype, block, dense, self.gathered)

    def kernels(self) -> Sequence[Any]:
        return (self.kernel,)

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
        if self.gathered:
            image_bytes = self.local.shape[-1] * w.groups * w.tiles
        vectors, offsets = self.vectors(image_bytes, apart), w.rows
        blocks, block_bytes = math.ceil(self.results / rows), len(offsets) * rows * w.item
        spots = math.ceil(w.images / self.images_each) * w.groups * w.tiles
        values = w.words(builder, self.local, self.grain)
        values |= {
            "weights": self.weights.address, "out": self.out.address, "rows": len(offsets),
            "row_table": builder.constant(offsets), "blocks": blocks, "block_bytes": block_bytes,
            "results": self.results, "vectors": len(vectors),
            "vector_table": builder.constant(vectors), "lanes": self.lanes, "images": w.images,
            "images_each": self.images_each, "image_bytes": image_bytes, "spots": spots,
            "blocks_each": math.ceil(blocks / parts),
            "blocks_held": max(1, LOCAL_BYTES // block_bytes),
            **dict(zip(("on", "og", "om", "o0", "o1", "o2"), apart)),
        }  # fmt: skip
        places = len(vectors) * (1 if self.block.panels else w.lanes)
        cost = 2.0 * len(offsets) * self.results * places / parts / FLOPS_PER_NS[w.dtype]
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
    images = together(w, terms * shape[1] * w.item)
    spots = math.ceil(w.images / images) * w.groups * w.tiles
    parts = 1 if w.work < PARTED_NS else min(blocks, max(1, CHUNKS // spots))
    parts = math.ceil(blocks / math.ceil(blocks / parts))
    work: list[Any] = [PackWork(weights, shape, strides, held, label)]
    if parts > 1:
        gathered = GatherWork.of(layout, w, label)
        work.append(gathered)
        local, grain = gathered.local, math.ceil(spots * parts / CHUNKS)
    else:
        local, grain = scratch(layout, images * w.local_bytes, spots)
    rest = (local, grain, label, block, images, parts)
    return [*work, ConvolveWork(w, held, out, out_strides, shape[1], *rest)]


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
