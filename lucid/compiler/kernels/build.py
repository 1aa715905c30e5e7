"""Groups of equations -> Nests: what a kernel loads, computes and stores, and its cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lucid.compiler.fusion.groups import Group, Reading
from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.borders import mark_borders
from lucid.compiler.kernels.nest import (
    READS,
    Buffer,
    IndexedAxis,
    Nest,
    Store,
    Structure,
    Value,
    constants_to_arguments,
    is_argument,
    long_axis_last,
    simplify_axes,
)
from lucid.compiler.kernels.reuse_across_loops import reuse_across_loops
from lucid.compiler.kernels.transposed import adjacent_axis_last, in_tiles
from lucid.compiler.plan.arrays import Array, dense
from lucid.ir.graph import Equation, Literal, Var
from lucid.ir.types import SHORT_NAMES, Type

COSTS = {
    "load": 0.1, "const": 0.0, "number": 0.0, "reduce": 0.1, "iota": 0.05, "offset": 0.2, "at": 0.4,
    "guarded": 0.2, "scan": 1.0,
}  # fmt: skip
EXPENSIVE = 0.6  # ns for a function such as exp
CHEAP = 0.06

DTYPE_NAMES = {short: str(dtype) for dtype, short in SHORT_NAMES.items()}


def used_buffers(nest: Nest) -> list[int]:
    used, _ = _used(nest)
    return used


def _used(nest: Nest) -> tuple[list[int], list[int]]:
    values: set[int] = set()
    stack = [v for store in nest.stores for v in (store.value, *store.at)]
    while stack:
        v = stack.pop()
        if v not in values:
            values.add(v)
            stack.extend(nest.values[v].args)
    buffers = {Structure.buffer_of(nest.values[v]) for v in values} - {-1}
    buffers |= {store.buffer for store in nest.stores}
    return sorted(buffers), sorted(values)


def prune(nest: Nest) -> Nest:
    """The nest with only the values and buffers that its stores need."""
    buffers, values = _used(nest)
    buffer_at = {b: i for i, b in enumerate(buffers)}
    value_at = {v: i for i, v in enumerate(values)}
    kept = []
    numbers: list[Any] = []
    for v in values:
        value = nest.values[v]
        param = buffer_at[value.param] if value.op in READS else value.param
        if value.op == "number":
            param = len(numbers)
            numbers.append(nest.numbers[value.param])
        kept.append(Value(value.op, tuple(value_at[a] for a in value.args), value.dtype, param))
    stores = tuple(
        Store(buffer_at[s.buffer], value_at[s.value], tuple(value_at[a] for a in s.at), s.combines)
        for s in nest.stores
    )
    chosen = tuple(nest.buffers[b] for b in buffers)
    equations = tuple(nest.equations[v] for v in values) if nest.equations else ()
    return replace(
        nest,
        buffers=chosen,
        values=tuple(kept),
        stores=stores,
        numbers=tuple(numbers),
        equations=equations,
    )


def reduces_in_one_pass(nest: Nest) -> bool:
    """True if all axes but perhaps the last are reduced, in one pass over the domain."""
    if not nest.reduced or not all(nest.reduced[:-1]) or nest.reduced == (False,):
        return False
    if any(value.op == "scan" for value in nest.values) or any(s.at for s in nest.stores):
        return False
    stage = nest.structure.stage
    return max(stage) <= 1 and all(
        stage[s.value] == 0 for s in nest.stores if varies_along_reduced(nest, s)
    )


def varies_along_reduced(nest: Nest, store: Store) -> bool:
    """True if a store writes at every point of the reduced axes."""
    strides = nest.buffers[store.buffer].strides
    return any(s for s, r in zip(strides, nest.reduced) if r)


def split_chunks(nest: Nest, chunks: int) -> tuple[Nest, Nest]:
    """Split a one-pass reduction into partial results per chunk and a nest that combines them.

    Both have one more buffer per reduction: its partial results, a number or a row for each chunk.
    """
    reductions = [v for v, value in enumerate(nest.values) if value.op == "reduce"]
    kept = [axis for axis, r in enumerate(nest.reduced) if not r]
    row = tuple(int(axis in kept) for axis in range(len(nest.sizes)))
    whole = [
        s
        for s in nest.stores
        if nest.structure.stage[s.value] == 0 and varies_along_reduced(nest, s)
    ]
    extra = [Buffer(nest.values[v].dtype, row) for v in reductions]
    partial = [Store(len(nest.buffers) + k, v) for k, v in enumerate(reductions)]
    first = replace(
        nest, buffers=(*nest.buffers, *extra), stores=(*whole, *partial), partial=bool(kept)
    )
    order = {v: k for k, v in enumerate(reductions)}
    shift = len(reductions)
    values = [
        Value("load", (), nest.values[v].dtype, len(nest.buffers) + k) for v, k in order.items()
    ]
    for v, value in enumerate(nest.values):
        args = (order[v],) if v in order else tuple(a + shift for a in value.args)
        axis = 1 if value.op == "iota" and value.param in kept else value.param
        values.append(value._replace(args=args, param=axis))
    buffers = [restrict_buffer(b, kept, chunks) for b in nest.buffers]
    size = math.prod(nest.sizes[axis] for axis in kept)
    buffers += [Buffer(b.dtype, (size, *[1 for _ in kept])) for b in extra]
    stores = tuple(Store(s.buffer, s.value + shift) for s in nest.stores if s not in whole)
    second = Nest(
        (chunks, *[nest.sizes[axis] for axis in kept]),
        (True, *[False for _ in kept]),
        tuple(buffers),
        tuple(values),
        stores,
        nest.indexed_axes,
        nest.numbers,
        equations=(*[nest.equations[v] for v in reductions], *nest.equations)
        if nest.equations
        else (),
    )
    return first, second


def restrict_buffer(buffer: Buffer, kept: Sequence[int], chunks: int) -> Buffer:
    """A buffer in the domain of the chunks and the kept axes."""
    box = ((0, chunks), *[buffer.box[axis] for axis in kept]) if buffer.box else ()
    return Buffer(buffer.dtype, (0, *[buffer.strides[axis] for axis in kept]), box)


def cost_of(nest: Nest) -> float:
    """Estimated ns per point of the domain."""
    total = 0.0
    for value in nest.values:
        if value.op in COSTS:
            total += COSTS[value.op]
        elif value.op in scalars.table:
            total += EXPENSIVE
        else:
            total += CHEAP
    return total + 0.1 * len(nest.stores)


def extent_of(nest: Nest) -> tuple[int, float]:
    """The extent of a kernel's loop over [lo, hi), and the points of the domain per iteration."""
    if nest.partial:
        return nest.sizes[0], nest.size / max(nest.sizes[0], 1)
    mode = nest.structure.mode
    kept = [n for n, r in zip(nest.sizes, nest.reduced) if not r]
    if mode == "map":
        extent = math.prod(kept[:-1]) if len(kept) > 1 else kept[0]
    elif mode == "rows":
        extent = math.prod(kept) if kept else nest.sizes[0]
    else:
        extent = math.prod(kept[:-1]) if len(kept) > 1 else kept[0]
    return extent, nest.size / max(extent, 1)


class NestBuilder:
    """Turns a Group into a Nest and the arrays of its buffers."""

    def __init__(self, layout: Any, group: Group) -> None:
        self.layout = layout
        self.group = group
        self.readings = layout.lowering.readings
        self.values: list[Value] = []
        self.equations: list[list[Equation]] = []  # for each value, those it comes from
        self.number: dict[Any, int] = {}
        self.value_of: dict[Var, int] = {}
        self.buffers: list[Buffer] = []
        self.arrays: list[Array] = []
        self.indexed_axes: dict[tuple[int, int, int], IndexedAxis] = {}

    def run(self) -> tuple[Nest, list[Array]]:
        group = self.group
        for eqn in group.equations:
            self.current = eqn
            self.value_of[eqn.outputs[0]] = self.equation(eqn)
        stores = []
        for eqn in group.equations:
            var = eqn.outputs[0]
            if var in self.layout.arrays:
                array = self.layout.arrays[var]
                stores.append(Store(self.buffer(array, group.coords[var]), self.value_of[var]))
        reduced = group.reduced or frozenset()
        flags = tuple(axis in reduced for axis in range(len(group.sizes)))
        indexed_axes = tuple(self.indexed_axes.values())
        nest = Nest(
            group.sizes,
            flags,
            tuple(self.buffers),
            tuple(self.values),
            tuple(stores),
            indexed_axes,
            equations=tuple(map(tuple, self.equations)),
        )
        nest = adjacent_axis_last(nest, self.arrays)
        nest = in_tiles(long_axis_last(simplify_axes(self.allocate_columns(nest))))
        if not nest.sizes:
            flat = tuple(Buffer(b.dtype, (0,)) for b in nest.buffers)
            nest = replace(nest, sizes=(1,), reduced=(False,), buffers=flat)
        nest = reuse_across_loops(nest, [array.address for array in self.arrays])
        return constants_to_arguments(mark_borders(nest)), self.arrays

    def allocate_columns(self, nest: Nest) -> Nest:
        """Allocate buffers for the reductions of a column kernel that are not stored."""
        axes = [i for i, n in enumerate(nest.sizes) if n != 1]
        if not axes or nest.reduced[axes[-1]] or not any(nest.reduced[i] for i in axes):
            return nest
        buffers, stores, held = (
            list(nest.buffers),
            list(nest.stores),
            {s.value for s in nest.stores},
        )
        kept = [i for i in axes if not nest.reduced[i]]
        shape = tuple(nest.sizes[i] for i in kept)
        for v, value in enumerate(nest.values):
            if value.op == "reduce" and v not in held:
                array = self.layout.scratch(Type(np.dtype(DTYPE_NAMES[value.dtype]), shape))
                strides = [0] * len(nest.sizes)
                for i, stride in zip(kept, dense(shape)):
                    strides[i] = stride
                buffers.append(Buffer(value.dtype, tuple(strides)))
                self.arrays.append(array)
                stores.append(Store(len(buffers) - 1, v))
        return replace(nest, buffers=tuple(buffers), stores=tuple(stores))

    def add(self, value: Value) -> int:
        key = (value.op, value.args, value.dtype, repr(value.param))
        if key not in self.number:
            self.number[key] = self.append(value)
        return self.used(self.number[key])

    def append(self, value: Value) -> int:
        self.values.append(value)
        self.equations.append([self.current])
        return len(self.values) - 1

    def used(self, v: int) -> int:
        """Note that the current equation uses an existing value."""
        if self.equations[v][-1] is not self.current:
            self.equations[v].append(self.current)
        return v

    def buffer(self, array: Array, coords: Sequence[int | None]) -> int:
        strides = [0] * len(self.group.sizes)
        for n, stride, axis in zip(array.shape, array.strides, coords):
            if axis is not None and n != 1:
                strides[axis] = stride
        self.buffers.append(Buffer(array.dtype, tuple(strides)))
        self.arrays.append(array)
        return len(self.buffers) - 1

    def operand(self, x: Any, points: Sequence[int | None]) -> int:
        if isinstance(x, Literal):
            return self.literal(x)
        base = (self.readings.get(x) or Reading(x, ())).base
        if base in self.value_of:
            return self.value_of[base]
        if isinstance(base, Literal):
            return self.literal(base)
        array = self.layout.array(x)
        coords = [
            None if array.shape[j] == 1 else points[j + len(points) - len(array.shape)]
            for j in range(len(array.shape))
        ]
        strides = [0] * len(self.group.sizes)
        for stride, axis in zip(array.strides, coords):
            if axis is not None:
                strides[axis] = stride
        key = ("load", array.address, tuple(strides), array.dtype)
        if key not in self.number:
            self.buffers.append(Buffer(array.dtype, tuple(strides)))
            self.arrays.append(array)
            self.number[key] = self.append(Value("load", (), array.dtype, len(self.buffers) - 1))
        return self.used(self.number[key])

    def literal(self, x: Literal) -> int:
        """A constant; those that become arguments stay distinct even if their values are equal."""
        value = Value("const", (), SHORT_NAMES[x.dtype], x.value)
        if not is_argument(value):
            return self.add(value)
        return self.append(value)

    def equation(self, eqn: Equation) -> int:
        op, out = eqn.op, eqn.outputs[0]
        points = self.group.points[out]
        dtype = SHORT_NAMES[out.type.dtype]
        if op.has_loop and not op.scalar:
            return op.loop(self, eqn, points)
        args = tuple(self.operand(x, points) for x in eqn.inputs)
        if op.scalar:
            return self.add(Value(op.scalar, args, dtype))
        if self.values[args[0]].dtype != dtype:
            args = (self.add(Value("cast", args, dtype)),)
        if not any(points[i] is not None for i in op.axes):  # type: ignore[attr-defined]
            return args[0]
        if self.layout.wide_sums and op.monoid == "sum" and dtype == "f32":
            args = (self.add(Value("cast", args, "f64")),)
            total = self.add(Value("reduce", args, "f64", "sum"))
            return self.add(Value("cast", (total,), dtype))
        return self.add(Value("reduce", args, dtype, op.monoid))

    # Called by the `loop` of an operation

    def index(self, axis: int | None, dtype: str) -> int:
        """The index along an axis of the domain."""
        constant = Value("const", (), dtype, 0)
        return self.add(constant if axis is None else Value("iota", (), dtype, axis))

    def read_at(
        self,
        eqn: Equation,
        points: Sequence[int | None],
        axes: Sequence[int],
        coords: Sequence[int | None],
    ) -> int:
        """An element of the first operand, read along `axes` at the indices that follow it.

        `coords` are the axes of the domain that its other axes run along.
        """
        x, *indices = eqn.inputs
        array = self.layout.array(x)
        code = self.layout.add_check(eqn, [(i, array.shape[a]) for a, i in zip(axes, indices)])
        offsets = []
        for axis, index in zip(axes, indices):
            value = self.operand(index, points[: index.type.ndim])
            indexed = IndexedAxis(array.shape[axis], array.strides[axis], code)
            offsets.append(self.offset(value, indexed))
        buffer = self.buffer(array, coords)
        return self.add(Value("at", tuple(offsets), array.dtype, buffer))

    def read_inside(
        self, x: Var, points: Sequence[int | None], low: Sequence[int], high: Sequence[int]
    ) -> int:
        """An element of `x`, padded by `low` and `high`, or 0 outside of it."""
        array = crop(self.layout.array(x), low, high)
        dtype, ndim = array.dtype, len(self.group.sizes)
        box = [(0, n) for n in self.group.sizes]
        strides, inside = [0] * ndim, []
        for axis, before, n, stride in zip(points, low, array.shape, array.strides):
            if axis is None:
                continue
            start, size = max(before, 0), self.group.sizes[axis]
            strides[axis], box[axis] = stride, (start, n)
            for op, needed, bound in (
                ("ge", start > 0, start),
                ("lt", start + n < size, start + n),
            ):
                if needed:
                    index = self.add(Value("iota", (), "i32", axis))
                    inside.append(Value(op, (index, self.integer(bound)), "bool"))
        self.buffers.append(Buffer(dtype, tuple(strides), tuple(box)))
        self.arrays.append(array)
        if not inside:
            return self.add(Value("load", (), dtype, len(self.buffers) - 1))
        condition = self.add(inside[0])
        for value in inside[1:]:
            condition = self.add(Value("bitwise_and", (condition, self.add(value)), "bool"))
        return self.add(Value("guarded", (condition,), dtype, len(self.buffers) - 1))

    def integer(self, n: int) -> int:
        return self.literal(Literal(n, np.dtype("int32")))

    def offset(self, index: int, axis: IndexedAxis) -> int:
        """The offset of an index along an indexed axis."""
        key = (index, axis.size, axis.stride)
        self.indexed_axes.setdefault(key, axis)
        return self.add(Value("offset", (index,), "i64", list(self.indexed_axes).index(key)))

    def write_at(self, eqn: Equation, points: Sequence[int | None], axis: int, size: int) -> int:
        """The only value of a row at its index along an axis of `size`, 0 elsewhere."""
        dtype = SHORT_NAMES[eqn.outputs[0].type.dtype]
        value, index = (self.operand(x, points) for x in eqn.inputs)
        code = self.layout.add_check(eqn, [(eqn.inputs[1], size)])
        offset = self.offset(index, IndexedAxis(size, 1, code))
        found = self.add(Value("eq", (self.index(points[axis], "i64"), offset), "bool"))
        zero = self.add(Value("const", (), dtype, 0))
        added = self.add(Value("add", (zero, value), dtype))
        return self.add(Value("where", (found, added, zero), dtype))


def crop(array: Array, low: Sequence[int], high: Sequence[int]) -> Array:
    """The part of an array that negative padding leaves."""
    starts = tuple(max(-n, 0) for n in low)
    limits = tuple(n - max(-k, 0) for n, k in zip(array.shape, high))
    sizes = tuple(b - a for a, b in zip(starts, limits))
    return array.over(sizes, array.strides, sum(a * s for a, s in zip(starts, array.strides)))
