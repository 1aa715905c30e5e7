"""Lowers cumulative ops: loops along one axis in order, with a running state.

Along the last axis the state is a local variable; along any other axis it is a row in memory, so
that the inner loop runs over adjacent elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.compiler.kernels.build import DTYPE_NAMES
from lucid.compiler.kernels.nest import Scan
from lucid.compiler.kernels.scalar_code import LLVM
from lucid.compiler.lowering.nest_builder import NestWriter, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.work import NestWork
from lucid.ir.graph import Equation
from lucid.ir.types import SHORT_NAMES, Type
from lucid.ops.shape.movement import Flip


def is_supported(eqn: Equation) -> bool:
    dtype = SHORT_NAMES[eqn.inputs[0].type.dtype]
    return dtype in LLVM and (eqn.op.scan != "recurrence" or dtype in ("f32", "f64"))


class CumulativeWriter:
    """Builds the loops of one cumulative equation along its axis."""

    def __init__(self, layout: Any, eqn: Equation) -> None:
        op: Any = eqn.op
        self.layout, self.eqn, self.axis = layout, eqn, op.axis
        self.reverse = getattr(op, "reverse", False)
        self.shape = eqn.inputs[0].type.shape
        self.writer = NestWriter(self.shape, [self.axis])

    def flipped(self, array: Array) -> Array:
        return array.view(Flip((self.axis,))) if self.reverse else array  # type: ignore[return-value]

    def load(self, x: Any) -> int:
        return self.writer.load(self.flipped(self.layout.array(x)))

    def scan(self, kind: str, dtype: str, *args: int, exclusive: bool = False) -> int:
        buffer = -1
        if any(n != 1 for n in self.shape[self.axis + 1 :]):
            kept = [i for i in range(len(self.shape)) if i != self.axis]
            rows = tuple(self.shape[i] for i in kept)
            state = self.layout.scratch(Type(np.dtype(DTYPE_NAMES[dtype]), rows))
            buffer = self.writer.buffer(state, kept)
        return self.writer.value("scan", dtype, *args, param=Scan(kind, exclusive, buffer))

    def store(self, value: int, number: int = 0) -> None:
        self.writer.store(value, self.flipped(self.layout.array(self.eqn.outputs[number])))

    def work(self) -> list[NestWork]:
        return self.writer.work(label_of(self.eqn))


class CumulativeLowering:
    """Lowers cumsum, cumprod, logcumsumexp and the linear recurrence."""

    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[NestWork]:
        writer = CumulativeWriter(layout, eqn)
        dtype = SHORT_NAMES[eqn.outputs[0].type.dtype]
        args = [writer.load(x) for x in eqn.inputs]
        exclusive = getattr(eqn.op, "exclusive", False)
        writer.store(writer.scan(eqn.op.scan, dtype, *args, exclusive=exclusive))
        return writer.work()


class CumulativeExtremumLowering:
    """Lowers cummax and cummin: the index is the last one of the extremum so far, or of a nan."""

    accepts = staticmethod(is_supported)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[NestWork]:
        writer = CumulativeWriter(layout, eqn)
        value, dtype = writer.writer.value, SHORT_NAMES[eqn.inputs[0].type.dtype]
        x = writer.load(eqn.inputs[0])
        extreme = writer.scan(eqn.op.scan, dtype, x)
        chosen = value("eq", "bool", x, extreme)
        if dtype in ("f32", "f64"):
            chosen = value("bitwise_or", "bool", chosen, value("ne", "bool", x, x))
        number = value("iota", "i64", param=writer.axis)
        index = value("where", "i64", chosen, number, value("const", "i64", param=0))
        writer.store(extreme)
        writer.store(writer.scan("max", "i64", index), 1)
        return writer.work()
