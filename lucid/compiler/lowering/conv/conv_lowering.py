"""Lowers convolutions and the gradients of their inputs: sizes, strides and taps.

The gradient of the input is one convolution for each residue of its positions modulo the stride.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from lucid.compiler.lowering.conv.conv_kernel import convolution, three_axes
from lucid.compiler.lowering.conv.window_tiles import (
    FLOPS_PER_NS,
    LANES,
    Axis,
    Windows,
    forward_axis,
)
from lucid.compiler.lowering.nest_builder import fill, label_of
from lucid.compiler.plan.arrays import Array
from lucid.ir.graph import Equation
from lucid.ir.types import SHORT_NAMES


def grouped_strides(array: Array, groups: int) -> tuple[int, ...]:
    """The strides (n, g, c, three axes) of an array (N, g c, ...)."""
    n, c, *rest = array.strides
    return (n, c * (array.shape[1] // groups), c, *three_axes(rest, 0))


def is_supported(eqn: Equation) -> bool:
    """True for real floats, at most three spatial axes and non-empty arrays."""
    op: Any = eqn.op
    return (
        len(op.size) <= 3
        and all(SHORT_NAMES[x.type.dtype] in LANES and x.type.size for x in eqn.inputs)
        and eqn.outputs[0].type.size > 0
    )


def estimated_ns(dtype: str, products: int) -> float:
    return 2 * products / FLOPS_PER_NS[dtype]


def merge_axes(
    axes: list[Axis], source: tuple[int, ...], out: tuple[int, ...]
) -> tuple[list[Axis], tuple[int, ...], tuple[int, ...]]:
    """Merge adjacent axes where every position reads one element and the strides allow it."""
    for i in (1, 0):
        a, b = axes[i], axes[i + 1]
        even = [s[3 + i] == b.size * s[4 + i] or a.size == 1 for s in (source, out)]
        if a.is_plain and b.is_plain and all(even):
            axes = [*axes]
            axes[i + 1] = Axis(a.size * b.size, a.size * b.size, 1, 0, ((0, 0),))
            axes[i] = Axis(1, 1, 1, 0, ((0, 0),))
    return axes, source, out


class ConvolutionLowering:
    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        x, w = (layout.array(v) for v in eqn.inputs)
        out, g = layout.array(eqn.outputs[0]), op.groups
        axes = [
            forward_axis(*each)
            for each in zip(
                three_axes(x.shape[2:], 1), three_axes(op.size, 1), three_axes(w.shape[2:], 1),
                three_axes(op.stride, 1), three_axes(op.padding, 0), three_axes(op.dilation, 1),
            )
        ]  # fmt: skip
        axes, source, target = merge_axes(axes, grouped_strides(x, g), grouped_strides(out, g))
        m, c = w.shape[0] // g, w.shape[1]
        products = out.type.size * c * math.prod(w.shape[2:])
        windows = Windows(x, source, x.shape[0], g, c, tuple(axes), estimated_ns(x.dtype, products))  # type: ignore[arg-type]
        shape = (g, m, c, *three_axes(w.shape[2:], 1))
        down, across, *rest = w.strides
        strides = (down * m, down, across, *three_axes(rest, 0))
        return convolution(layout, windows, w, shape, strides, out, target, label_of(eqn))


class ConvolutionTransposeLowering:
    """One convolution for each residue modulo the stride, with the taps that lead there."""

    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        y, w = (layout.array(v) for v in eqn.inputs)
        out, g, label = layout.array(eqn.outputs[0]), op.groups, label_of(eqn)
        options = [
            backward_axes(*each)
            for each in zip(
                three_axes(y.shape[2:], 1), three_axes(op.size, 1), three_axes(w.shape[2:], 1),
                three_axes(op.stride, 1), three_axes(op.padding, 0), three_axes(op.dilation, 1),
            )
        ]  # fmt: skip
        work: list[Any] = []
        if not all(covers_all_results(*each) for each in zip(options, three_axes(op.size, 1))):
            work += fill(0, out, label)
        o, c = w.shape[0] // g, w.shape[1]
        down, across, *rest = w.strides
        products = y.type.size * c * math.prod(w.shape[2:])
        ns = estimated_ns(y.dtype, products) / max(1, math.prod(map(len, options)))
        for parts in itertools.product(*options):
            target = list(grouped_strides(out, g))
            axes = [part.axis for part in parts]
            first = sum(part.first * target[3 + i] for i, part in enumerate(parts))
            target[3:] = [part.step * s for part, s in zip(parts, target[3:])]
            taps = three_axes(rest, 0)
            start = sum(part.tap * s for part, s in zip(parts, taps))
            given = Array(w.ref, w.type, w.strides, w.offset + start)
            strides = (
                down * o, across, down, *[part.tap_step * s for part, s in zip(parts, taps)]
            )  # fmt: skip
            shape = (g, c, o, *[len(axis.taps) for axis in axes])
            there = Array(out.ref, out.type, out.strides, out.offset + first)
            axes, source, out_strides = merge_axes(axes, grouped_strides(y, g), tuple(target))
            windows = Windows(y, source, y.shape[0], g, o, tuple(axes), ns)  # type: ignore[arg-type]
            work += convolution(layout, windows, given, shape, strides, there, out_strides, label)
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
    positions: int, size: int, kernel: int, stride: int, low: int, dilation: int
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
        axis = Axis(positions, stop - start, 1, most - start, tuple((0, most - e) for e in shifts))
        step = taps[1] - taps[0] if len(taps) > 1 else 1
        found.append(Residue(axis, stride * start + r - low, stride, taps[0], step))
    return found


def covers_all_results(options: list[Residue], size: int) -> bool:
    return sum(part.axis.positions for part in options) == size
