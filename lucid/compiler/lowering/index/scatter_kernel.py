"""Lowers writes at indices: scatter_add, scatter_set, put_along, combine_along, last_write.

Updates run one after another in row-major order, so that the last of two updates of an element
wins, and sums are the same for any number of threads. Only the axes that are not indexed run in
parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from lucid.compiler.kernels.scalar_code import LLVM
from lucid.compiler.lowering.nest_builder import NestWriter, copy, fill, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.work import NestWork
from lucid.ir.graph import Equation
from lucid.ir.types import SHORT_NAMES, Type
from lucid.ops.index.gather_scatter import unindexed_shape
from lucid.ops.shape.movement import Reshape

Work = list[NestWork]


def is_supported(eqn: Equation) -> bool:
    """True if kernels have these dtypes, and non-empty updates have a non-empty target."""
    typed = all(SHORT_NAMES[x.type.dtype] in LLVM for x in (*eqn.inputs, *eqn.outputs))
    return typed and (eqn.outputs[0].type.size > 0 or eqn.inputs[-1].type.size == 0)


class Scatter:
    """Builds the loops of updates at indices: index axes first, then the remaining axes."""

    def __init__(self, layout: Any, eqn: Equation, target: Array, indices: Sequence[Any]) -> None:
        op: Any = eqn.op
        self.layout, self.eqn, self.target, self.indices = layout, eqn, target, indices
        shape = indices[0].type.shape
        rest = unindexed_shape(op, target.shape)
        depth = len(shape)
        self.writer = NestWriter((*shape, *rest), range(op.batch_dims, depth))
        after = iter(range(depth, depth + len(rest)))
        self.axes = [
            i if i < op.batch_dims else None if i in op.axes else next(after)
            for i in range(len(target.shape))
        ]

    def write(self, updates: Any, combines: str = "") -> Work:
        value = self.writer.operand(self.layout, updates)
        self.writer.store(value, self.target, self.axes, self.offsets(), combines)
        return self.writer.work(label_of(self.eqn), self.layout)

    def offsets(self) -> list[int]:
        writer, layout = self.writer, self.layout
        axes = self.eqn.op.axes  # type: ignore[attr-defined]
        sizes = [self.target.shape[axis] for axis in axes]
        code = layout.add_check(self.eqn, list(zip(self.indices, sizes)))
        loads = [writer.operand(layout, i, range(i.type.ndim)) for i in self.indices]
        return [writer.offset(i, self.target, axis, code) for axis, i in zip(axes, loads)]


class ScatterAddLowering:
    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        out = layout.array(eqn.outputs[0])
        updates, *indices = eqn.inputs
        work = Scatter(layout, eqn, out, indices).write(updates, "add")
        return [*fill(0, out, label_of(eqn)), *work]


class ScatterSetLowering:
    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        out = layout.array(eqn.outputs[0])
        x, updates, *indices = eqn.inputs
        work = Scatter(layout, eqn, out, indices).write(updates)
        return [*copy(layout, x, out, label_of(eqn)), *work]


class PutAlongLowering:
    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        (values, indices), axis = eqn.inputs, eqn.op.axis  # type: ignore[attr-defined]
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        writer = NestWriter(values.type.shape, [axis])
        axes = [None if i == axis else i for i in range(len(out.shape))]
        value = writer.operand(layout, values)
        code = layout.add_check(eqn, [(indices, out.shape[axis])])
        offset = writer.offset(writer.operand(layout, indices), out, axis, code)
        writer.store(value, out, axes, [offset], "add")
        return [*fill(0, out, label), *writer.work(label, layout)]


class CombineAlongLowering:
    """Copies the operand, then combines every value with the element at its index."""

    OPS: ClassVar[dict[str, str]] = {"max": "maximum", "min": "minimum", "prod": "mul"}

    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        (x, values, indices), op = eqn.inputs, eqn.op
        axis: int = op.axis  # type: ignore[attr-defined]
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        writer = NestWriter(values.type.shape, [axis])
        axes = [None if i == axis else i for i in range(len(out.shape))]
        value = writer.operand(layout, values)
        code = layout.add_check(eqn, [(indices, out.shape[axis])])
        offset = writer.offset(writer.operand(layout, indices), out, axis, code)
        writer.store(value, out, axes, [offset], CombineAlongLowering.OPS[op.how])  # type: ignore[attr-defined]
        return [*copy(layout, x, out, label), *writer.work(label, layout)]


class LastWriteLowering:
    """Every update writes its number at its index; those that read it back were the last ones."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return is_supported(eqn) and all(eqn.op.sizes)  # type: ignore[attr-defined]

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        op: Any = eqn.op
        outer = eqn.inputs[0].type.shape[: op.batch_dims]
        label, code = label_of(eqn), layout.add_check(eqn)
        work: Work = []
        flat = [flattened(layout, layout.array(i), op.batch_dims, work, label) for i in eqn.inputs]
        out = layout.array(eqn.outputs[0]).view(Reshape(flat[0].shape))
        last = layout.scratch(Type(np.dtype("int64"), (*outer, *op.sizes)))
        axis = op.batch_dims
        kept: list[int | None] = [*range(axis), *[None] * len(op.sizes)]
        for reading in (False, True):
            writer = NestWriter(flat[0].shape, [] if reading else [axis])
            number = writer.value("iota", "i64", param=axis)
            loads = [writer.load(i) for i in flat]
            offsets = [writer.offset(i, last, axis + k, code) for k, i in enumerate(loads)]
            if reading:
                there = writer.value("at", "i64", *offsets, param=writer.buffer(last, kept))
                writer.store(writer.value("eq", "bool", there, number), out)
            else:
                writer.store(number, last, kept, offsets)
            work += writer.work(label, layout)
        return work


def flattened(layout: Any, array: Array, batch_dims: int, work: Work, label: str) -> Array:
    """An array with one axis after the batch axes, copied if it is not a view."""
    outer = array.shape[:batch_dims]
    shape = Reshape((*outer, int(np.prod(array.shape[batch_dims:]))))
    found = array.view(shape)
    if found is not None:
        return found
    dense = layout.scratch(array.type)
    work += copy(layout, array, dense, label)
    return dense.view(shape)
