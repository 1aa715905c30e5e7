"""Windows over spatial axes, split into tiles that are copied to local memory as kernels read them.

A kernel reads a source (N, G, C, three axes) at `step q + residue + step shift - low` for every
output position q and every tap of a window. For one image, group and tile of positions it first
copies the elements that the tile reads into local memory, including padding, with elements that are
`step` apart side by side:

    local[c, residue, i] = source[c, step (q0 + i) + residue - low]

so that tap t of adjacent positions is a run of adjacent elements, at an offset `offsets[t]`,
whatever step, dilation and padding are.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer, Variable
from lucid.compiler.plan.arrays import Array
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.types import Type
from lucid.support.caches import cached_property, memoize

LANES = {"f32": 8, "f64": 4}
LOCAL_BYTES = 1 << 18
COPY_NS = 0.1  # estimated, for an element of a tile
FLOPS_PER_NS = {"f32": 60.0, "f64": 30.0}
CHUNKS = 16  # the most chunks that run at once, each with its own local memory

WORDS = (
    "source", "local", "chunk_bytes", "grain", "groups", "channels", "phases", "phase_table",
    "n0", "n1", "n2", "t0", "t1", "t2", "q0", "q1", "q2", "l0", "l1", "l2",
    "d0", "d1", "d2", "step0", "step1", "step2", "low0", "low1", "low2",
    "sn", "sg", "sc", "s0", "s1", "s2",
)  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """One axis: the source's size, the output positions, and a residue and a shift per tap."""

    size: int
    positions: int
    step: int
    low: int
    taps: tuple[tuple[int, int], ...]

    @property
    def residues(self) -> list[int]:
        return sorted({residue for residue, _ in self.taps})

    @property
    def reach(self) -> int:
        return max(shift for _, shift in self.taps)

    @property
    def is_plain(self) -> bool:
        """True if every position reads only the element at its own index."""
        return (self.step, self.low, self.taps) == (1, 0, ((0, 0),)) and self.positions == self.size


def forward_axis(
    size: int, positions: int, kernel: int, stride: int, low: int, dilation: int
) -> Axis:
    taps = tuple((dilation * k % stride, dilation * k // stride) for k in range(kernel))
    return Axis(size, positions, stride, low, taps)


@dataclass(frozen=True)
class Windows:
    """Windows of an array: its strides (n, g, c and three axes, in elements), sizes and axes."""

    array: Array
    strides: tuple[int, ...]
    images: int
    groups: int
    channels: int
    axes: tuple[Axis, Axis, Axis]
    work: float  # estimated ns for all positions of all images
    pad_rows: bool = False  # rows are padded with zeros to whole vectors

    @property
    def dtype(self) -> str:
        return self.array.dtype

    @property
    def item(self) -> int:
        return self.array.type.dtype.itemsize

    @property
    def lanes(self) -> int:
        return LANES[self.dtype]

    @cached_property
    def tile(self) -> tuple[int, int, int]:
        """The positions of a tile along each axis, from the sizes alone."""
        counts = [1, 1, 1]

        def sizes() -> list[int]:
            return [math.ceil(axis.positions / n) for axis, n in zip(self.axes, counts)]

        def fits(i: int, least: int, n: int) -> bool:
            counts[i] = n
            return self.nbytes(sizes()) <= LOCAL_BYTES or sizes()[i] <= least

        for i, least in ((0, 1), (1, 4), (2, 8 * self.lanes), (1, 1), (2, self.lanes)):
            tried = range(counts[i], max(self.axes[i].positions, counts[i]) + 1)
            counts[i] = tried[bisect_left(tried, True, key=partial(fits, i, least))]
        found = sizes()
        return found[0], found[1], found[2]

    def nbytes(self, tile: Any) -> int:
        sizes = self.local_sizes(tile)
        return self.channels * len(self.phases) * math.prod(sizes) * self.item

    def local_sizes(self, tile: Any) -> list[int]:
        width = tile[2]
        if self.pad_rows:
            width = -(-width // self.lanes) * self.lanes
        return [n + axis.reach for n, axis in zip((*tile[:2], width), self.axes)]

    @cached_property
    def local(self) -> list[int]:
        return self.local_sizes(self.tile)

    @cached_property
    def counts(self) -> list[int]:
        return [math.ceil(axis.positions / n) for axis, n in zip(self.axes, self.tile)]

    @property
    def tiles(self) -> int:
        return math.prod(self.counts)

    @cached_property
    def phases(self) -> list[tuple[int, ...]]:
        """All combinations of residues along the three axes."""
        return list(itertools.product(*[axis.residues for axis in self.axes]))

    @property
    def local_bytes(self) -> int:
        """The bytes of one tile, with room for a vector that starts at its last element."""
        return self.nbytes(self.tile) + 64

    @property
    def channel_bytes(self) -> int:
        return len(self.phases) * math.prod(self.local) * self.item

    @cached_property
    def offsets(self) -> list[int]:
        """The offsets of the taps of position 0 in a channel of a tile, in bytes."""
        out = []
        for taps in itertools.product(*[axis.taps for axis in self.axes]):
            at = self.phases.index(tuple(residue for residue, _ in taps))
            for (_, shift), n in zip(taps, self.local):
                at = at * n + shift
            out.append(at * self.item)
        return out

    @property
    def rows(self) -> np.ndarray:
        """The offsets of all taps of all channels."""
        steps = np.arange(self.channels)[:, None] * self.channel_bytes
        return (steps + np.array(self.offsets)).reshape(-1)

    def vectors(self, out: tuple[int, ...]) -> list[tuple[int, int]]:
        """The offset of each vector of positions in a channel, and in a result of these strides."""
        width, lanes = self.tile[2], self.lanes
        columns = [min(i, max(width - lanes, 0)) for i in range(0, width, lanes)]
        if self.pad_rows:
            columns = list(range(0, width, lanes))
        found = []
        for i, j in itertools.product(range(self.tile[0]), range(self.tile[1])):
            for k in columns:
                here = ((i * self.local[1] + j) * self.local[2] + k) * self.item
                found.append((here, i * out[0] + j * out[1] + k * out[2]))
        return found

    def positions(self, out: tuple[int, ...]) -> np.ndarray:
        """The same for every single position: (positions, 2)."""
        at = np.indices(self.tile).reshape(3, -1).T
        steps = [self.local[1] * self.local[2], self.local[2], 1]
        return np.stack([at @ np.array(steps) * self.item, at @ np.array(out)], 1)

    @property
    def all_positions(self) -> int:
        return math.prod(axis.positions for axis in self.axes)

    @property
    def all_vectors(self) -> int:
        """The vectors of positions of an image, independent of the number of images."""
        a, b, c = (axis.positions for axis in self.axes)
        return a * b * math.ceil(c / self.lanes)

    def phase_table(self) -> np.ndarray:
        """For each phase, its residues and the first and last index inside along the last axis."""
        axis = self.axes[2]
        rows = []
        for residues in self.phases:
            first = -((residues[2] - axis.low) // axis.step)
            last = (axis.size - 1 + axis.low - residues[2]) // axis.step + 1
            rows.append([*residues, first, max(first, last)])
        return np.array(rows, np.int64)

    def words(self, builder: Any, local: Array, grain: int) -> dict[str, Any]:
        """The argument words of a kernel, by name."""
        values: list[Any] = [
            self.array.address, local.address, local.shape[-1], grain, self.groups, self.channels,
            len(self.phases), builder.constant(self.phase_table()), *self.counts, *self.tile,
            *[axis.positions for axis in self.axes], *self.local,
            *[axis.size for axis in self.axes],
            *[axis.step for axis in self.axes], *[axis.low for axis in self.axes],
            *[stride * self.item for stride in self.strides],
        ]  # fmt: skip
        return dict(zip(WORDS, values, strict=True))


def llvm_types(dtype: str) -> tuple[str, int, str]:
    element, item = ("float", 4) if dtype == "f32" else ("double", 8)
    return element, item, f"<{LANES[dtype]} x {element}>"


def word_pointer(code: LLVMBuilder, a: dict[str, Int], name: str) -> Pointer:
    return Pointer(code, code.write(f"inttoptr i64 {a[name].name} to ptr"))


def tile_start(code: LLVMBuilder, a: dict[str, Int], tile: Int) -> list[Int]:
    """The first position of a tile; the last tile ends where the positions end."""
    found = []
    for i, number in ((2, tile % a["n2"]), (1, tile // a["n2"] % a["n1"])):
        found.append((number * a[f"t{i}"]).min(a[f"q{i}"] - a[f"t{i}"]))
    number = tile // (a["n2"] * a["n1"])
    found.append((number * a["t0"]).min(a["q0"] - a["t0"]))
    return found[::-1]


def copy_tile(
    code: LLVMBuilder,
    a: dict[str, Int],
    dtype: str,
    source: Pointer,
    local: Pointer,
    first: list[Int],
    fill: str,
) -> None:
    """Copy the elements that a tile reads of an image's group to local memory, padded by `fill`."""
    element, item, _ = llvm_types(dtype)
    row_bytes, stride = a["l2"] * item, a["step2"] * a["s2"]
    with code.loop(0, a["channels"]) as c, code.loop(0, a["phases"]) as phase:
        entry = word_pointer(code, a, "phase_table").at(phase * 40)
        residues = [code.load_int(entry.at(8 * i)) for i in range(3)]
        begin = (code.load_int(entry.at(24)) - first[2]).max(0).min(a["l2"])
        end = (code.load_int(entry.at(32)) - first[2]).max(begin).min(a["l2"])
        column = (first[2] + begin) * a["step2"] + residues[2] - a["low2"]
        plane = (c * a["phases"] + phase) * a["l0"] * a["l1"]
        with code.loop(0, a["l0"]) as i:
            at0 = (first[0] + i) * a["step0"] + residues[0] - a["low0"]
            with code.loop(0, a["l1"]) as j:
                at1 = (first[1] + j) * a["step1"] + residues[1] - a["low1"]
                inside = code.write(
                    f"and i1 {at0.icmp('ult', a['d0'])}, {at1.icmp('ult', a['d1'])}"
                )
                low, high = code.select(inside, begin, 0), code.select(inside, end, 0)
                row = local.at((plane + i * a["l1"] + j) * row_bytes)
                moved = c * a["sc"] + at0 * a["s0"] + at1 * a["s1"] + column * a["s2"]
                fill_row(code, element, item, row, code.number(0), low, fill)
                given, there = source.at(code.select(inside, moved, 0)), row.at(low * item)
                copy_row(code, dtype, given, there, high - low, stride)
                fill_row(code, element, item, row, high, a["l2"], fill)


def fill_row(
    code: LLVMBuilder, element: str, item: int, row: Pointer, start: Int, stop: Int, fill: str
) -> None:
    with code.loop(start, stop) as k:
        code.store(element, fill, row.at(k * item), item)


def copy_row(
    code: LLVMBuilder, dtype: str, source: Pointer, row: Pointer, count: Int, stride: Int
) -> None:
    """`count` elements that are `stride` bytes apart, packed side by side."""
    if not any(function.name == "copy_row" for function in code.functions):
        write_copy_row(
            code.inner("copy_row", "ptr %source, ptr %row, i64 %count, i64 %stride"), dtype
        )
    passed = f"ptr {source.name}, ptr {row.name}, i64 {count.name}, i64 {stride.name}"
    code.line(f"call void @copy_row({passed})")


def write_copy_row(code: LLVMBuilder, dtype: str) -> None:
    """Copies by vectors if the stride is one or two elements, by half vectors if there are few.

    The last vector overlaps the one before. With stride two, elements come from two vectors that
    overlap in one element, so that nothing is read beyond the last.
    """
    element, item, _ = llvm_types(dtype)
    source, row = Pointer(code, "%source"), Pointer(code, "%row")
    count, stride = Int(code, "%count"), Int(code, "%stride")
    left = Variable(code, "i64")
    left.set(count.name)
    for step, lanes in ((1, LANES[dtype]), (2, LANES[dtype]), (1, LANES[dtype] // 2)):
        vectorizable = code.write(
            f"and i1 {stride.icmp('eq', step * item)}, {count.icmp('sge', lanes)}"
        )
        todo = Int(code, left.get()).icmp("ne", 0)
        with code.if_(code.write(f"and i1 {vectorizable}, {todo}")):
            with code.loop(0, count - lanes, lanes) as k:
                move(code, dtype, source, row, k, step, lanes)
            move(code, dtype, source, row, count - lanes, step, lanes)
            left.set("0")
    with code.loop(0, Int(code, left.get())) as k:
        code.store(element, code.load(element, source.at(k * stride), item), row.at(k * item), item)


def move(
    code: LLVMBuilder, dtype: str, source: Pointer, row: Pointer, k: Int, step: int, lanes: int
) -> None:
    """Copy a vector of elements that are `step` apart, starting at the k-th."""
    element, item, _ = llvm_types(dtype)
    vector = f"<{lanes} x {element}>"
    x = code.load(vector, source.at(k * (step * item)), item)
    if step == 2:
        y = code.load(vector, source.at(k * (2 * item) + (lanes - 1) * item), item)
        chosen = (*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2))
        mask = f"<{lanes} x i32> <{', '.join(f'i32 {i}' for i in chosen)}>"
        x = code.write(f"shufflevector {vector} {x}, {vector} {y}, {mask}")
    code.store(vector, x, row.at(k * item), item)


def load_words(code: LLVMBuilder, names: tuple[str, ...]) -> dict[str, Int]:
    return {name: code.word(i) for i, name in enumerate(names)}


@memoize(maxsize=2)
def gather_kernel(dtype: str) -> TextKernel:
    """Copies tiles of groups of images, one per unit, each to its own memory."""
    name = f"gather_tiles_{dtype}"
    code = LLVMBuilder(name)
    a = load_words(code, WORDS)
    source, local = code.pointer(WORDS.index("source")), code.pointer(WORDS.index("local"))
    tiles = a["n0"] * a["n1"] * a["n2"]
    with code.loop(code.lo, code.hi) as unit:
        some = unit // tiles
        begin = source.at(some // a["groups"] * a["sn"] + some % a["groups"] * a["sg"])
        to = local.at(unit * a["chunk_bytes"])
        copy_tile(code, a, dtype, begin, to, tile_start(code, a, unit % tiles), "0.0")
    return TextKernel(name, code.text())


@dataclass(eq=False)
class GatherWork:
    """Copies all tiles once, for kernels whose units would otherwise copy the same ones."""

    windows: Windows
    local: Array
    label: str

    @classmethod
    def of(cls, layout: Any, windows: Windows, label: str) -> GatherWork:
        count = windows.images * windows.groups * windows.tiles
        room = -(-windows.local_bytes // 64) * 64
        local = layout.workspace("tiles", Type(np.dtype("uint8"), (count, room)))
        return cls(windows, local, label)

    def kernels(self) -> Sequence[Any]:
        return (gather_kernel(self.windows.dtype),)

    def add(self, builder: Any, kernels: dict[Any, Any]) -> None:
        w = self.windows
        args = list(w.words(builder, self.local, 1).values())
        cost = COPY_NS * w.local_bytes / w.item
        (kernel,) = self.kernels()
        builder.call(kernels[kernel.key], args, self.local.shape[0], cost, label=self.label)
