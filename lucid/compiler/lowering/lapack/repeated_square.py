"""repeated_square: a loop in the plan that runs while any matrix is to be squared again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.lapack.factorize import copy_operand
from lucid.compiler.lowering.lapack.matrix_operands import accepts, batch_size, real_parts, scalar
from lucid.compiler.lowering.nest_builder import NestWriter, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.lapack import call, per_matrix, prefix
from lucid.ir.graph import Equation
from lucid.ir.types import Type

INT64 = np.dtype("int64")


@dataclass(eq=False)
class RepeatWork:
    """Work that is repeated while a flag, which `test` computes, is true."""

    test: Sequence[Any]
    body: Sequence[Any]
    flag: Array
    counter: Array
    label: str

    def kernels(self) -> Sequence[Any]:
        return [kernel for work in (*self.test, *self.body) for kernel in work.kernels()]

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        flag, counter = self.flag.address, self.counter.address
        loop = builder.loop(predicate=flag, counter=counter, label=self.label)  # type: ignore[arg-type]
        with loop.test:
            for work in self.test:
                work.add(builder, kernels)
        with loop.body:
            for work in self.body:
                work.add(builder, kernels)


class RepeatedSquareLowering:
    """Writes squares to a second buffer, and copies back those that are wanted."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        times = layout.array(eqn.inputs[1])
        n, dtype = out.shape[-1], out.type.dtype
        square = layout.scratch(out.type)
        flag, counter = (layout.scratch(Type(np.dtype(d), ())) for d in ("bool", "int64"))
        one, zero = scalar(1, dtype), scalar(0, dtype)
        args = [
            "N",
            "N",
            n,
            n,
            n,
            one,
            per_matrix(out),
            n,
            per_matrix(out),
            n,
            zero,
            per_matrix(square),
            n,
        ]
        multiply = call(layout, prefix(dtype) + "gemm", args, batch_size(out), 2.0 * n**3, label)
        test = any_remaining(times, counter, flag)
        body = [multiply, *select_squared(square, times, counter, out)]
        return [
            *copy_operand(layout, eqn.inputs[0], out, label),
            RepeatWork(test, body, flag, counter, label),
        ]


def any_remaining(times: Array, counter: Array, flag: Array) -> list[Any]:
    """Set the flag if some matrix is to be squared again."""
    writer = NestWriter(times.shape, range(len(times.shape)))
    more = writer.value("lt", "bool", writer.load(counter, ()), writer.load(times))
    some = writer.value("reduce", "bool", more, param="any") if times.shape else more
    writer.store(some, flag, ())
    return writer.work("repeated_square test")


def select_squared(square: Array, times: Array, counter: Array, out: Array) -> list[Any]:
    """Replace the matrices that are to be squared again by their squares."""
    work: list[Any] = []
    for new, old in zip(real_parts(square), real_parts(out)):
        writer = NestWriter(old.shape)
        more = writer.value("lt", "bool", writer.load(counter, ()), writer.load(times))
        value = writer.value("where", old.dtype, more, writer.load(new), writer.load(old))
        writer.store(value, old)
        work += writer.work("repeated_square")
    return work
