"""Nest: the loops of one fused kernel as data, between a group of equations and its code.

The domain is a box of axes; some of them are reduced. A value is a number at each point of the
domain, computed from loads, constants, scalar operations and reductions over the reduced axes:

    values[3] = Value("mul", (1, 2), "f32")

A kernel depends on the structure alone (which axes are reduced, which strides are 0 or 1, the
values). Sizes, strides, addresses and constants are arguments (`constants_to_arguments`), so that a
new batch size, whose mean divides by another number, and a new learning rate need no new kernel.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from lucid.compiler.kernels import scalars
from lucid.ir.types import DTYPES
from lucid.support.caches import cached_property

# Ops whose code depends on a constant operand.
CONSTANT_OPERANDS = ("pow", "floor_divide", "remainder", "fmod", "left_shift", "right_shift")
READS = ("load", "at", "guarded")
MOVES = (*READS, "const", "number", "iota", "offset", "cast")
BRANCHING = {"where", "maximum", "minimum", "clamp", "relu", "sign", "scale"}  # unless vectorized
MIN_OPERATIONS = 3  # for each strided array, from which a map collects vectors
GENERAL = 2  # the class of strides other than 0 and 1
SHORT_AXIS = 8  # an innermost axis below this is short
MAX_REORDERED_SIZE = 1 << 15  # points of a map whose axes may be reordered: they stay in the cache
BLOCK = 1 << 11  # points of a block of a larger domain: they stay in the nearest cache
BLOCK_LENGTHS = 32, 64  # at least, and a length for which a block may have more points


class Value(NamedTuple):
    """One number at each point: `op` of other values.

    op "load" reads buffer `param`, "const" is the number `param`, "number" the argument `param` of
    the kernel, "iota" the index along axis `param`, "reduce" combines its argument over the reduced
    axes by `param`. "offset" is the offset of an index along IndexedAxis number `param`, "at" reads
    buffer `param` at the sum of such offsets, "guarded" reads it where its argument is true and is
    0 elsewhere, "scan" is a running result along the reduced axes. The rest are scalar operations;
    a comparison of the last index may have the end of the row that it differs at (`borders.py`).
    """

    op: str
    args: tuple[int, ...]
    dtype: str
    param: Any = None


class Buffer(NamedTuple):
    """An array: its dtype, and its strides, in elements, along the axes of the domain.

    If it covers only a part of the domain, `box` holds its start and size along each axis; points
    outside are never read.
    """

    dtype: str
    strides: tuple[int, ...]
    box: tuple[tuple[int, int], ...] = ()

    @property
    def shift(self) -> int:
        """How many elements before the array the domain starts."""
        return sum(start * stride for (start, _), stride in zip(self.box, self.strides))


class Store(NamedTuple):
    """A value stored to a buffer, at the offsets `at`, or combined with the element there."""

    buffer: int
    value: int
    at: tuple[int, ...] = ()
    combines: str = ""  # the op, such as "add"; "" overwrites


def values_of(stores: Iterable[Store]) -> list[int]:
    """The values that stores write, and their offsets."""
    return [v for store in stores for v in (store.value, *store.at)]


class IndexedAxis(NamedTuple):
    """An indexed axis: its size, its stride in elements, and its error code."""

    size: int
    stride: int
    code: int


class Scan(NamedTuple):
    """A scan: its kind, whether it excludes its own element, and the buffer of its state.

    If the last axis is reduced the state is a local variable, and there is no buffer (-1).
    """

    kind: str
    exclusive: bool = False
    buffer: int = -1


@dataclass(frozen=True)
class Nest:
    """The loops of one kernel over a domain of `sizes`; `partial`, `tiled` as in its Structure.

    `equations` has those that each value comes from, for people to read; the code depends on none.
    """

    sizes: tuple[int, ...]
    reduced: tuple[bool, ...]
    buffers: tuple[Buffer, ...]
    values: tuple[Value, ...]
    stores: tuple[Store, ...]
    indexed_axes: tuple[IndexedAxis, ...] = ()
    numbers: tuple[Any, ...] = ()
    partial: bool = False
    tiled: bool = False
    equations: tuple[tuple[Any, ...], ...] = field(default=(), repr=False, compare=False)

    @cached_property
    def structure(self) -> Structure:
        buffers = tuple(
            (b.dtype, tuple(min(s, GENERAL) if s >= 0 else GENERAL for s in b.strides))
            for b in self.buffers
        )
        return Structure(
            self.reduced,
            buffers,
            self.values,
            self.stores,
            len(self.indexed_axes),
            self.partial,
            self.tiled,
        )

    @property
    def kept_axes(self) -> int:
        return self.reduced.count(False)

    @property
    def kept_size(self) -> int:
        return math.prod(n for n, r in zip(self.sizes, self.reduced) if not r)

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    def arguments(self) -> list[int]:
        """The arguments of a kernel after the addresses: sizes, general strides, numbers."""
        strides = [
            stride
            for buffer, (_, classes) in zip(self.buffers, self.structure.buffers)
            for stride, c in zip(buffer.strides, classes)
            if c == GENERAL
        ]
        dtypes = {v.param: v.dtype for v in self.values if v.op == "number"}
        numbers = [to_word(x, dtypes[k]) for k, x in enumerate(self.numbers)]
        return [*self.sizes, *strides, *numbers]


@dataclass(frozen=True)
class Structure:
    """What the code of a kernel depends on.

    A `partial` column kernel runs over a part [lo, hi) of its rows, and stores a row of results
    for each chunk; other kernels run over a part of the kept axes. A `tiled` map reads arrays that
    are transposed along its last two axes (`transposed.py`).
    """

    reduced: tuple[bool, ...]
    buffers: tuple[tuple[str, tuple[int, ...]], ...]
    values: tuple[Value, ...]
    stores: tuple[Store, ...]
    indexed_axes: int = 0
    partial: bool = False
    tiled: bool = False

    @property
    def key(self) -> Hashable:
        values, stores = tuple(map(_exact_key, self.values)), tuple(map(tuple, self.stores))
        kinds = (self.indexed_axes, self.partial, self.tiled)
        return (self.reduced, self.buffers, values, stores, *kinds)

    @cached_property
    def depends(self) -> tuple[frozenset[int], ...]:
        """The axes along which each value varies."""
        out: list[frozenset[int]] = []
        reduced_axes = frozenset(i for i, r in enumerate(self.reduced) if r)
        for value in self.values:
            if value.op == "load":
                classes = self.buffers[value.param][1]
                out.append(frozenset(i for i, c in enumerate(classes) if c))
            elif value.op == "iota":
                out.append(frozenset([value.param]))
            else:
                union = frozenset().union(*[out[a] for a in value.args])
                buffer = self.buffer_of(value)
                if buffer >= 0:
                    union |= {i for i, c in enumerate(self.buffers[buffer][1]) if c}
                if value.op == "scan":
                    union |= reduced_axes
                out.append(union - reduced_axes if value.op == "reduce" else union)
        return tuple(out)

    @staticmethod
    def buffer_of(value: Value) -> int:
        """The buffer that a value reads, or -1."""
        if value.op in READS:
            return value.param
        return value.param.buffer if value.op == "scan" else -1

    @cached_property
    def stage(self) -> tuple[int, ...]:
        """The number of reductions that must finish before each value can be computed."""
        out: list[int] = []
        for value in self.values:
            before = max((out[a] for a in value.args), default=0)
            out.append(before + 1 if value.op == "reduce" else before)
        return tuple(out)

    def closure(self, wanted: Iterable[int], known: Container[int]) -> list[int]:
        """The values that must be computed for `wanted`, given the `known` ones, in order."""
        seen: set[int] = set()
        stack = list(wanted)
        while stack:
            v = stack.pop()
            if v not in seen and v not in known:
                seen.add(v)
                stack.extend(self.values[v].args)
        return sorted(seen)

    def reductions(self, stage: int) -> list[int]:
        """The reductions of values that are available at a stage."""
        return [
            v
            for v, value in enumerate(self.values)
            if value.op == "reduce" and self.stage[value.args[0]] == stage
        ]

    def full_stores(self, axes: Sequence[int]) -> list[tuple[int, int]]:
        """The indices of stores that vary along the reduced axes, with their stages."""
        inside = frozenset(axes)
        return [
            (k, self.stage[store.value])
            for k, store in enumerate(self.stores)
            if any(self.depends[v] & inside for v in values_of([store]))
            or any(self.buffers[store.buffer][1][a] for a in axes)
        ]

    @property
    def calls_functions(self) -> bool:
        """True if there are functions such as `exp`, which take most of the time."""
        return any([value.op in scalars.table for value in self.values])

    @cached_property
    def is_strided(self) -> bool:
        """True if no elements of arrays are adjacent along the last axis."""
        kinds = {classes[-1] for _, classes in self.buffers}
        return GENERAL in kinds and 1 not in kinds

    @cached_property
    def collects(self) -> bool:
        """True if vectors are worth collecting from elements that are not adjacent."""
        if self.calls_functions:
            return True
        if self.is_strided:
            return False
        ops = [value.op for value in self.values]
        if any(self.reduced) or not BRANCHING.isdisjoint(ops):
            return True
        strided = [classes[-1] for _, classes in self.buffers].count(GENERAL)
        return len([op for op in ops if op not in MOVES]) >= MIN_OPERATIONS * strided

    @property
    def mode(self) -> str:
        """ "map" without reduction, "rows" if the last axis is reduced, "columns" if it is kept."""
        if not any(self.reduced):
            return "map"
        return "rows" if self.reduced[-1] else "columns"


def _exact_key(value: Value) -> Hashable:
    """A key that distinguishes 0.0 from -0.0 and 1 from True."""
    return (value.op, value.args, value.dtype, repr(value.param))


def to_word(value: Any, dtype: str) -> int:
    """A number in the low bytes of a 64-bit word."""
    with np.errstate(over="ignore"):
        found = np.array(value).astype(DTYPES[dtype])
    return int.from_bytes(found.tobytes().ljust(8, b"\0"), "little", signed=True)


def constants_to_arguments(nest: Nest) -> Nest:
    """Turn constants into arguments, except those that the code depends on."""
    inline = {a for value in nest.values if value.op in CONSTANT_OPERANDS for a in value.args}
    inline |= {
        v.args[1] for v in nest.values if v.op == "div" and nest.values[v.args[1]].param == 2
    }
    values, numbers = list(nest.values), list(nest.numbers)
    for v, value in enumerate(values):
        if value.op == "const" and v not in inline and is_argument(value):
            values[v] = value._replace(op="number", param=len(numbers))
            numbers.append(value.param)
    return replace(nest, values=tuple(values), numbers=tuple(numbers))


def is_argument(constant: Value) -> bool:
    """True if a constant becomes an argument: not a bool, 0, 1, -1, inf or nan."""
    x = constant.param
    return constant.dtype != "bool" and x not in (0, 1, -1) and abs(x) < math.inf


def simplify_axes(nest: Nest) -> Nest:
    """Drop axes of size 1 and merge adjacent axes that all buffers traverse contiguously."""
    axes = [i for i, n in enumerate(nest.sizes) if n != 1 or _is_indexed(nest, i)]
    groups: list[list[int]] = []
    for axis in axes:
        if groups and _joinable(nest, groups[-1][-1], axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    new_axis = {axis: i for i, group in enumerate(groups) for axis in group}
    values = tuple(
        v._replace(param=new_axis[v.param]) if v.op == "iota" else v for v in nest.values
    )
    return Nest(
        tuple(math.prod(nest.sizes[a] for a in group) for group in groups),
        tuple(nest.reduced[group[0]] for group in groups),
        tuple(_with_joined_axes(b, groups) for b in nest.buffers),
        values,
        nest.stores,
        nest.indexed_axes,
        nest.numbers,
        equations=nest.equations,
    )


def long_axis_last(nest: Nest) -> Nest:
    """Make a long axis the innermost of a map or scatter whose last axis is short.

    A row of three elements costs more to find (a division for every other axis) than to compute.
    Of a domain that does not stay in the cache the long axis is cut into blocks that do, one after
    the other. A scatter runs in order along its reduced axes alone.
    """
    last, kept = len(nest.sizes) - 1, [i for i, r in enumerate(nest.reduced) if not r]
    scatters = any(store.at for store in nest.stores)
    if not kept or kept[-1] != last or scatters != any(nest.reduced):
        return nest
    if any(v.op == "scan" for v in nest.values):
        return nest
    longest = max(kept, key=lambda axis: nest.sizes[axis])
    few = 2 if scatters or nest.structure.calls_functions else 3  # axes
    if len(kept) < few or not (scatters or is_short(nest, longest)):
        return nest
    if nest.size > MAX_REORDERED_SIZE:
        return in_blocks(nest, longest)
    if longest == last:
        return nest
    return reordered(nest, [*[axis for axis in range(last + 1) if axis != longest], longest])


def is_short(nest: Nest, longest: int) -> bool:
    """True if the last axis is short, and shorter than another."""
    return nest.sizes[-1] < SHORT_AXIS and nest.sizes[longest] >= 2 * nest.sizes[-1]


def in_blocks(nest: Nest, axis: int) -> Nest:
    """Cut a long axis into equal blocks: the blocks first, their elements last."""
    n, last = nest.sizes[axis], len(nest.sizes) - 1
    if _is_indexed(nest, axis) or any(b.box and b.box[axis] != (0, n) for b in nest.buffers):
        return nest
    others = nest.size // n
    longest = min(max(BLOCK // others, BLOCK_LENGTHS[1]), MAX_REORDERED_SIZE // others, n - 1)
    length = next((k for k in range(longest, BLOCK_LENGTHS[0] - 1, -1) if n % k == 0), 0)
    if not length:
        return nest
    parts = replace(
        nest,
        sizes=(n // length, *nest.sizes[:axis], length, *nest.sizes[axis + 1 :]),
        reduced=(False, *nest.reduced),
        buffers=tuple(in_blocks_along(b, axis, n // length, length) for b in nest.buffers),
        values=tuple(v._replace(param=v.param + 1) if v.op == "iota" else v for v in nest.values),
    )
    return reordered(parts, [*[a for a in range(last + 2) if a != axis + 1], axis + 1])


def in_blocks_along(buffer: Buffer, axis: int, count: int, length: int) -> Buffer:
    box = buffer.box
    if box:
        box = ((0, count), *box[:axis], (0, length), *box[axis + 1 :])
    return Buffer(buffer.dtype, (buffer.strides[axis] * length, *buffer.strides), box)


def reordered(nest: Nest, order: Sequence[int]) -> Nest:
    """The nest with its axes in another order."""
    values = tuple(
        v._replace(param=order.index(v.param)) if v.op == "iota" else v for v in nest.values
    )
    return replace(
        nest,
        sizes=tuple(nest.sizes[axis] for axis in order),
        reduced=tuple(nest.reduced[axis] for axis in order),
        buffers=tuple(_with_axes(b, order) for b in nest.buffers),
        values=values,
    )


def _with_axes(buffer: Buffer, axes: Sequence[int]) -> Buffer:
    """A buffer along the chosen axes of the domain."""
    box = tuple(buffer.box[a] for a in axes) if buffer.box else ()
    return Buffer(buffer.dtype, tuple(buffer.strides[a] for a in axes), box)


def _with_joined_axes(buffer: Buffer, groups: Sequence[Sequence[int]]) -> Buffer:
    """A buffer along groups of axes; it covers all of those of a group of several."""
    box = buffer.box and tuple(
        (buffer.box[group[0]][0], math.prod(buffer.box[a][1] for a in group)) for group in groups
    )
    return Buffer(buffer.dtype, tuple(buffer.strides[group[-1]] for group in groups), box)


def _is_indexed(nest: Nest, axis: int) -> bool:
    if nest.reduced[axis] and any(v.op == "scan" for v in nest.values):
        return True
    return any(v.op == "iota" and v.param == axis for v in nest.values)


def _joinable(nest: Nest, a: int, b: int) -> bool:
    if nest.reduced[a] != nest.reduced[b] or _is_indexed(nest, a) or _is_indexed(nest, b):
        return False
    if any(buf.box and buf.box[b] != (0, nest.sizes[b]) for buf in nest.buffers):
        return False
    return all(buf.strides[a] == buf.strides[b] * nest.sizes[b] for buf in nest.buffers)
