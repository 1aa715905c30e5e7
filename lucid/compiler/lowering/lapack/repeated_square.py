"""repeated_square: a loop in the plan that goes on while any matrix is to be squared once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.lapack.factorize import moved
from lucid.compiler.lowering.lapack.matrix_operands import accepts, batch_of, number, parts
from lucid.compiler.lowering.nest_builder import NestWriter, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.lapack import call, each, prefix
from lucid.ir.graph import Equation
from lucid.ir.types import Type

INT64 = np.dtype("int64")


@dataclass(eq=False)
class LoopWork:
    """Work that is repeated while a flag, which other work computes, is true."""

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


class RepeatedSquareStep:
    """Squares go to a second buffer, and from there back where they are wanted."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        times = layout.array(eqn.inputs[1])
        n, dtype = out.shape[-1], out.type.dtype
        square = layout.scratch(out.type)
        flag, counter = (layout.scratch(Type(np.dtype(d), ())) for d in ("bool", "int64"))
        one, zero = number(1, dtype), number(0, dtype)
        args = ["N", "N", n, n, n, one, each(out), n, each(out), n, zero, each(square), n]
        multiply = call(layout, prefix(dtype) + "gemm", args, batch_of(out), 2.0 * n**3, label)
        test = any_left(times, counter, flag)
        body = [multiply, *chosen(square, times, counter, out)]
        return [
            *moved(layout, eqn.inputs[0], out, label),
            LoopWork(test, body, flag, counter, label),
        ]


def any_left(times: Array, counter: Array, flag: Array) -> list[Any]:
    """Whether some matrix is to be squared more often than was done."""
    writer = NestWriter(times.shape, range(len(times.shape)))
    more = writer.value("lt", "bool", writer.load(counter, ()), writer.load(times))
    some = writer.value("reduce", "bool", more, param="any") if times.shape else more
    writer.store(some, flag, ())
    return writer.work("repeated_square test")


def chosen(square: Array, times: Array, counter: Array, out: Array) -> list[Any]:
    """The square where it is wanted, else what there was."""
    work: list[Any] = []
    for new, old in zip(parts(square), parts(out)):
        writer = NestWriter(old.shape)
        more = writer.value("lt", "bool", writer.load(counter, ()), writer.load(times))
        value = writer.value("where", old.dtype, more, writer.load(new), writer.load(old))
        writer.store(value, old)
        work += writer.work("repeated_square")
    return work
