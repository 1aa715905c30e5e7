"""A builder of Nests for ops that are lowered alone: arrays in, the work of one loop nest out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lucid.compiler.kernels.build import cost_of
from lucid.compiler.kernels.nest import (
    Buffer,
    IndexedAxis,
    Nest,
    Store,
    Value,
    constants_to_arguments,
    long_axis_last,
    simplify_axes,
)
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.work import NestWork
from lucid.ir.graph import Equation, Literal, Var
from lucid.ir.types import SHORT_NAMES

Axes = Sequence[int | None]


class NestWriter:
    """Builds a Nest over a domain of `sizes`: values first, then stores, then `work`."""

    def __init__(self, sizes: Sequence[int], reduced: Sequence[int] = ()) -> None:
        self.sizes = tuple(sizes)
        self.reduced = tuple(i in reduced for i in range(len(self.sizes)))
        self.buffers: list[Buffer] = []
        self.arrays: list[Array] = []
        self.values: list[Value] = []
        self.stores: list[Store] = []
        self.indexed_axes: list[IndexedAxis] = []

    def buffer(self, array: Array, axes: Axes | None = None) -> int:
        """Add an array whose axes run along `axes` of the domain (None: a fixed index)."""
        axes = range(len(array.shape)) if axes is None else axes
        strides = [0] * len(self.sizes)
        for n, stride, axis in zip(array.shape, array.strides, axes):
            if axis is not None and n != 1:
                strides[axis] += stride
        self.buffers.append(Buffer(array.dtype, tuple(strides)))
        self.arrays.append(array)
        return len(self.buffers) - 1

    def value(self, op: str, dtype: str, *args: int, param: Any = None) -> int:
        self.values.append(Value(op, args, dtype, param))
        return len(self.values) - 1

    def load(self, array: Array, axes: Axes | None = None) -> int:
        return self.value("load", array.dtype, param=self.buffer(array, axes))

    def operand(self, layout: Any, x: Any, axes: Axes | None = None) -> int:
        """Load a Var, or a Literal as a constant."""
        if isinstance(x, Literal):
            return self.value("const", SHORT_NAMES[x.dtype], param=x.value)
        array = layout.array(x)
        return self.load(array, axes if array.shape else ())

    def offset(self, index: int, array: Array, axis: int, code: int) -> int:
        """The offset of an index along an axis of an array; `code` is the error if out of range."""
        self.indexed_axes.append(IndexedAxis(array.shape[axis], array.strides[axis], code))
        return self.value("offset", "i64", index, param=len(self.indexed_axes) - 1)

    def store(
        self,
        value: int,
        array: Array,
        axes: Axes | None = None,
        at: Sequence[int] = (),
        combines: str = "",
    ) -> None:
        self.stores.append(Store(self.buffer(array, axes), value, tuple(at), combines))

    def nest(self) -> Nest:
        nest = Nest(
            self.sizes,
            self.reduced,
            tuple(self.buffers),
            tuple(self.values),
            tuple(self.stores),
            tuple(self.indexed_axes),
        )
        nest = constants_to_arguments(long_axis_last(simplify_axes(nest)))
        if nest.sizes:
            return nest
        flat = tuple(Buffer(b.dtype, (0,)) for b in nest.buffers)
        return replace(nest, sizes=(1,), reduced=(False,), buffers=flat)

    def work(self, label: str, layout: Any = None) -> list[NestWork]:
        """Return the work of the nest, or nothing if the domain is empty."""
        if 0 in self.sizes:
            return []
        nest = self.nest()
        status = layout.status if nest.indexed_axes else None
        return [NestWork(nest, self.arrays, label, cost_of(nest), status=status)]


def label_of(eqn: Equation) -> str:
    return f"{eqn.op.name}  [{eqn.source}]" if eqn.source else eqn.op.name


def copy(layout: Any, source: Any, target: Array, label: str) -> list[NestWork]:
    """Write a Var (of the target's shape, or 0-d), an Array or a Literal into an array."""
    if isinstance(source, Var) and layout.array(source) == target:
        return []  # computed in place
    writer = NestWriter(target.shape)
    if isinstance(source, Array):
        value = writer.load(source)
    else:
        value = writer.operand(layout, source)
    writer.store(value, target)
    return writer.work(label)


def fill(value: Any, target: Array, label: str) -> list[NestWork]:
    """Fill an array with one number."""
    return copy(None, Literal(value, target.type.dtype), target, label)
