"""Lowers concatenate, pad, slice_set and complex: operands are copied into parts of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.compiler.kernels.scalar_code import LLVM
from lucid.compiler.lowering.nest_builder import NestWriter, copy, fill, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.work import NestWork
from lucid.ir.graph import Equation, Literal, Var
from lucid.ir.types import SHORT_NAMES
from lucid.ops.shape.movement import Slice, pad_plan


def is_supported(eqn: Equation) -> bool:
    return all(SHORT_NAMES[x.type.dtype] in LLVM for x in (*eqn.inputs, *eqn.outputs))


def subarray(
    array: Array, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> Array:
    """A strided box of an array, as a view."""
    found = array.view(Slice(tuple(starts), tuple(limits), tuple(strides)))
    assert found is not None
    return found


class ConcatenateLowering:
    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[NestWork]:
        out, axis = layout.array(eqn.outputs[0]), eqn.op.axis  # type: ignore[attr-defined]
        work, start = [], 0
        for x in eqn.inputs:
            starts, limits = [0] * len(out.shape), list(out.shape)
            starts[axis], limits[axis] = start, start + x.type.shape[axis]
            work += copy(layout, x, subarray(out, starts, limits, [1] * len(starts)), label_of(eqn))
            start = limits[axis]
        return work


class PadLowering:
    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[NestWork]:
        (x,), op = eqn.inputs, eqn.op
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        _, target, source = pad_plan(op.low, op.high, op.interior, x.type.shape)  # type: ignore[attr-defined]
        target = target[:-1]
        if any(s.start >= s.stop for s in target):
            return fill(0, out, label)
        given = layout.array(x)
        if source is not None:
            starts, limits = [s.start for s in source[:-1]], [s.stop for s in source[:-1]]
            given = subarray(given, starts, limits, [1] * len(starts))
        if any(s.step != 1 for s in target):
            work = fill(0, out, label)
        else:
            work = [w for border in borders(out, target) for w in fill(0, border, label)]
        steps = [s.step for s in target]
        inside = subarray(out, [s.start for s in target], [s.stop for s in target], steps)
        return [*work, *copy(layout, given, inside, label)]


def borders(array: Array, inside: Sequence[slice]) -> list[Array]:
    """The parts of an array outside a box, without overlap."""
    out = []
    starts, limits = [0] * len(array.shape), list(array.shape)
    for axis, box in enumerate(inside):
        for start, limit in ((0, box.start), (box.stop, array.shape[axis])):
            if start < limit:
                low = [*starts[:axis], start, *starts[axis + 1 :]]
                high = [*limits[:axis], limit, *limits[axis + 1 :]]
                out.append(subarray(array, low, high, [1] * len(low)))
        starts[axis], limits[axis] = box.start, box.stop
    return out


class SliceSetLowering:
    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[NestWork]:
        (x, updates), op = eqn.inputs, eqn.op
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        region = subarray(out, op.starts, op.limits, op.strides)  # type: ignore[attr-defined]
        return [*copy(layout, x, out, label), *copy(layout, updates, region, label)]


class ComplexLowering:
    """Writes real and imaginary parts side by side."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return all(SHORT_NAMES[x.type.dtype] in ("f32", "f64") for x in eqn.inputs)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[NestWork]:
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        work: list[NestWork] = []
        for x, part in zip(eqn.inputs, out.parts()):
            writer = NestWriter(out.shape)
            axes = range(len(out.shape) - x.type.ndim, len(out.shape))
            writer.store(writer.operand(layout, x, axes), part)
            work += writer.work(label)
        return work


class CopyLowering:
    """Copies complex numbers, part by part; copies of real ones are fused."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return eqn.inputs[0].type.dtype.kind == "c" and isinstance(eqn.inputs[0], Var)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[NestWork]:
        x, out = layout.array(eqn.inputs[0]), layout.array(eqn.outputs[0])
        both = zip(x.parts(), out.parts())
        return [work for a, b in both for work in copy(layout, a, b, label_of(eqn))]


class FullLowering:
    """Fills with one complex number; fills with real ones are fused."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return eqn.inputs[0].type.dtype.kind == "c" and isinstance(eqn.inputs[0], Literal)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[NestWork]:
        out, value = layout.array(eqn.outputs[0]), complex(eqn.inputs[0].value)  # type: ignore[union-attr]
        both = zip((value.real, value.imag), out.parts())
        return [work for x, part in both for work in fill(x, part, label_of(eqn))]
