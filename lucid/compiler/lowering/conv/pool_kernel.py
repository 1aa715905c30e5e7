"""max_pool: the largest element of every window of a tile, for a vector of positions at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from lucid.compiler.lowering.conv.conv_kernel import scratch, three_axes
from lucid.compiler.lowering.conv.window_tiles import (
    LANES,
    WORDS,
    Windows,
    copy_tile,
    forward_axis,
    llvm_types,
    load_words,
    tile_start,
    word_pointer,
)
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer, Variable
from lucid.compiler.lowering.nest_builder import copy, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.graph import Equation
from lucid.ir.types import SHORT_NAMES
from lucid.ops.nn.max_pool import MaxPool, first_valid_index, flat_index
from lucid.ops.shape.movement import Reshape
from lucid.support.caches import memoize

POOL_WORDS = (
    *WORDS, "values", "indices", "first_table", "taps", "tap_table", "vectors", "vector_table",
    "lanes", "plane", "f0", "f1", "f2", "p0", "p1",
)  # fmt: skip
TAP_NS = 0.3  # estimated, for a vector
LOWEST = {"f32": "0xFFF0000000000000", "f64": "0xFFF0000000000000"}


@memoize(maxsize=16)
def pool_kernel(dtype: str, whole: bool) -> TextKernel:
    """A unit is a tile of a plane; `whole` if every vector of positions is full."""
    name = f"max_pool_{dtype}_{'whole' if whole else 'part'}"
    code = LLVMBuilder(name)
    a = load_words(code, POOL_WORDS)
    source = code.pointer(WORDS.index("source"))
    local = code.pointer(WORDS.index("local")).at(code.lo // a["grain"] * a["chunk_bytes"])
    lanes = LANES[dtype]
    kept = code.alloca(f"[{lanes} x double]"), code.alloca(f"[{lanes} x i64]")
    with code.loop(code.lo, code.hi) as unit:
        tiles = a["n0"] * a["n1"] * a["n2"]
        first, plane = tile_start(code, a, unit % tiles), unit // tiles
        copy_tile(code, a, dtype, source.at(plane * a["sg"]), local, first, LOWEST[dtype])
        place = first[0] * a["p0"] + first[1] * a["p1"] + first[2]
        base = code.number(0)
        for i in range(3):
            base = base + (first[i] * a[f"step{i}"] - a[f"low{i}"]) * a[f"f{i}"]
        positions = word_pointer(code, a, "vector_table")
        with code.loop(0, a["vectors"]) as v:
            entry = positions.at(v * 24)
            here = place + code.load_int(entry.at(8))
            begin = local.at(code.load_int(entry))
            start = base + code.load_int(entry.at(16))
            best, index = largest(code, a, dtype, begin, here, start)
            to = [word_pointer(code, a, name).at(0) for name in ("values", "indices")]
            at = plane * a["plane"] + here
            write_out(code, a, dtype, (best, index), to, at, kept, whole)
    return TextKernel(name, code.text())


def largest(
    code: LLVMBuilder, a: dict[str, Int], dtype: str, begin: Pointer, here: Int, start: Int
) -> tuple[str, str]:
    """The largest elements of a vector of windows, and their flat indices (i32)."""
    _, item, vector = llvm_types(dtype)
    lanes = LANES[dtype]
    indices = f"<{lanes} x i32>"
    best, index = Variable(code, vector), Variable(code, indices)
    lowest = ", ".join([f"{vector.split(' x ')[1][:-1]} {LOWEST[dtype]}"] * lanes)
    best.set(f"<{lowest}>")
    index.set(code.load(indices, word_pointer(code, a, "first_table").at(here * 4), 4))
    across = [
        code.write(f"trunc i64 {(start + a['step2'] * i * a['f2']).name} to i32")
        for i in range(lanes)
    ]
    bases = "poison"
    for i, one in enumerate(across):
        bases = code.write(f"insertelement {indices} {bases}, i32 {one}, i64 {i}")
    taps = word_pointer(code, a, "tap_table")
    with code.loop(0, a["taps"]) as t:
        x = code.load(vector, begin.at(code.load_int(taps.at(t * 16))), item)
        further = code.write(f"trunc i64 {code.load_int(taps.at(t * 16 + 8)).name} to i32")
        one = code.write(f"insertelement {indices} poison, i32 {further}, i64 0")
        shuffle = (
            f"shufflevector {indices} {one}, {indices} poison, <{lanes} x i32> zeroinitializer"
        )
        at = code.write(f"add {indices} {bases}, {code.write(shuffle)}")
        larger = code.write(f"fcmp ogt {vector} {x}, {best.get()}")
        strange = code.write(f"fcmp uno {vector} {x}, {x}")
        chosen = code.write(f"or <{lanes} x i1> {larger}, {strange}")
        for kind, new, held in ((vector, x, best), (indices, at, index)):
            select = f"select <{lanes} x i1> {chosen}, {kind} {new}, {kind} {held.get()}"
            held.set(code.write(select))
    return best.get(), index.get()


def write_out(
    code: LLVMBuilder,
    a: dict[str, Int],
    dtype: str,
    found: tuple[str, str],
    to: list[Pointer],
    at: Int,
    kept: tuple[Pointer, Pointer],
    whole: bool,
) -> None:
    element, item, vector = llvm_types(dtype)
    lanes = LANES[dtype]
    wide = code.write(f"sext <{lanes} x i32> {found[1]} to <{lanes} x i64>")
    parts = ((vector, element, found[0], item), (f"<{lanes} x i64>", "i64", wide, 8))
    for (kind, one, value, size), target, place in zip(parts, to, kept):
        if whole:
            code.store(kind, value, target.at(at * size), size)
            continue
        code.store(kind, value, place, 8)
        with code.loop(0, a["lanes"]) as lane:
            code.store(
                one,
                code.load(one, place.at(lane * size), size),
                target.at((at + lane) * size),
                size,
            )


@dataclass(eq=False)
class MaxPoolWork:
    windows: Windows
    op: Any
    values: Array
    indices: Array
    local: Array
    grain: int
    label: str

    @property
    def lanes(self) -> int:
        return min(self.windows.lanes, self.windows.tile[2])

    @property
    def kernel(self) -> TextKernel:
        return pool_kernel(self.windows.dtype, self.lanes == self.windows.lanes)

    def kernels(self) -> Sequence[Any]:
        return (self.kernel,)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        w, op = self.windows, self.op
        sizes, size = [axis.size for axis in w.axes], [axis.positions for axis in w.axes]
        flat = [sizes[1] * sizes[2], sizes[2], 1]
        rows = [size[1] * size[2], size[2], 1]
        steps = [axis.step * f for axis, f in zip(w.axes, flat)]
        dilation = three_axes(op.dilation, 1)
        window = three_axes(op.window, 1)
        further = [
            sum(k * d * f for k, d, f in zip(taps, dilation, flat))
            for taps in itertools.product(*map(range, window))
        ]
        here, bases = w.vectors((rows[0], rows[1], 1)), w.vectors((steps[0], steps[1], steps[2]))
        vectors = [(at, place, base) for (at, place), (_, base) in zip(here, bases)]
        values = w.words(builder, self.local, self.grain)
        values |= {
            "values": self.values.address, "indices": self.indices.address,
            "first_table": builder.constant(self.first(sizes)), "taps": len(further),
            "tap_table": builder.constant(np.array(list(zip(w.offsets, further)), np.int64)),
            "vectors": len(vectors), "vector_table": builder.constant(np.array(vectors, np.int64)),
            "lanes": self.lanes, "plane": math.prod(size), "f0": flat[0], "f1": flat[1], "f2": 1,
            "p0": rows[0], "p1": rows[1],
        }  # fmt: skip
        cost = TAP_NS * len(vectors) * len(further) + 0.1 * w.local_bytes / w.item
        args = [values[name] for name in POOL_WORDS]
        extent = w.groups * w.tiles
        builder.call(kernels[self.kernel.key], args, extent, cost, self.grain, label=self.label)

    def first(self, sizes: list[int]) -> np.ndarray:
        """The index of the first element of each position's window, padded by a vector."""
        dilation = three_axes(self.op.dilation, 1)
        along = [
            first_valid_index(axis.positions, axis.step, axis.low, d, n)
            for axis, d, n in zip(self.windows.axes, dilation, sizes)
        ]
        found = flat_index(along, tuple(sizes)).reshape(-1)
        return np.concatenate([found, np.zeros(self.windows.lanes, np.int64)]).astype(np.int32)


class MaxPoolLowering:
    @staticmethod
    def accepts(eqn: Equation) -> bool:
        x, op = eqn.inputs[0].type, cast(MaxPool, eqn.op)
        small = len(op.size) <= 3 and math.prod(x.shape[op.outer(x) :]) < 2**30
        return small and SHORT_NAMES[x.dtype] in LANES and eqn.outputs[0].type.size > 0

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        x, label = layout.array(eqn.inputs[0]), label_of(eqn)
        inner = x.shape[len(x.shape) - len(op.size) :]
        planes = Reshape((x.type.size // math.prod(inner), *inner))
        work: list[Any] = []
        found = x.view(planes)
        if found is None:
            dense = layout.workspace("planes", x.type)
            work, found = copy(layout, x, dense, label), dense.view(planes)
        axes = tuple(
            forward_axis(*each)
            for each in zip(
                three_axes(inner, 1), three_axes(op.size, 1), three_axes(op.window, 1),
                three_axes(op.stride, 1), three_axes(op.padding, 0), three_axes(op.dilation, 1),
            )
        )  # fmt: skip
        strides = (0, found.strides[0], 0, *three_axes(found.strides[1:], 0))
        ns = TAP_NS * eqn.outputs[0].type.size * math.prod(op.window) / LANES[x.dtype]
        windows = Windows(found, strides, 1, found.shape[0], 1, axes, ns)  # type: ignore[arg-type]
        local, grain = scratch(layout, windows.local_bytes, windows.groups * windows.tiles)
        values, indices = (layout.array(var) for var in eqn.outputs)
        return [*work, MaxPoolWork(windows, op, values, indices, local, grain, label)]
