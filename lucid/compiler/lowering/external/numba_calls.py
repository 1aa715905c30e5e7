"""Lowers user functions compiled by Numba: they are called by their address, without Python.

The address is looked up when a program is built; the disk cache never stores it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.external.ufunc_calls import (
    broadcast_operand,
    copy_dense,
    uniform_stride,
)
from lucid.compiler.lowering.nest_builder import label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.native_kernel import Kernel
from lucid.ir.graph import Equation, Literal
from lucid.ir.types import Type
from lucid.ops.higher_order.numba_function import NumbaFunction, dispatcher_of
from lucid.public.declare import public

NUMBER_NS = 20.0  # estimated, for a call of a function of scalars
ARRAY_NS = 1000.0  # estimated, for a call of a function of arrays, plus 2 ns per element


@dataclass(eq=False)
class NumbaWork:
    """The call of a NumbaKernel: its words, with arrays and numbers in place of addresses."""

    kernel: Any
    words: Sequence[Any]
    extent: int
    cost: float
    label: str

    def kernels(self) -> Sequence[Any]:
        return ()

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        args = [address(builder, word) for word in self.words]
        native = Kernel(self.label, self.kernel.address, self.kernel)
        builder.call(native, args, self.extent, self.cost, label=self.label)


def address(builder: Builder, word: Any) -> Any:
    if isinstance(word, np.generic):
        return builder.constant(np.asarray(word))
    return word.address if isinstance(word, Array) else word


def error_words(layout: Any, eqn: Equation, kernel: Any) -> list[Any]:
    """The words with the address for errors, and the error code."""
    if not kernel.may_raise:
        return [0, 0]
    code = layout.add_check(eqn)
    return [layout.status, code]


class NumbaScalarLowering:
    """Lowers a function of scalars, called for every element."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return True

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        return lower_scalar_calls(layout, eqn, eqn.op.function)  # type: ignore[attr-defined]


@public("extend")
class NumbaCall:
    """The lowering of an Elementwise primitive by a function of numbers that Numba compiles.

    It is called for every element, without Python; scalar code fuses with its neighbors instead.
    """

    def __init__(self, function: Any) -> None:
        self.function = NumbaFunction(dispatcher_of(function))

    def accepts(self, eqn: Equation) -> bool:
        return True

    def lower(self, layout: Any, eqn: Equation) -> list[Any]:
        return lower_scalar_calls(layout, eqn, self.function)


def lower_scalar_calls(layout: Any, eqn: Equation, function: NumbaFunction) -> list[Any]:
    """Call a function of numbers for every element."""
    out, label = layout.array(eqn.outputs[0]), label_of(eqn)
    if out.type.size == 0:
        return []
    dtypes = tuple([x.type.dtype for x in eqn.inputs])
    kernel = function.scalar_kernel(dtypes, out.type.dtype)
    work: list[Any] = []
    words = [*error_words(layout, eqn, kernel), out, out.type.dtype.itemsize]
    for x in eqn.inputs:
        if isinstance(x, Literal):
            words += [x.dtype.type(x.value), 0]
        else:
            array = broadcast_operand(layout, layout.array(x), out, work, label)
            words += [array, uniform_stride(array)]
    return [*work, NumbaWork(kernel, words, out.type.size, NUMBER_NS, label)]


class NumbaArrayLowering:
    """Lowers a function of arrays, called for every example of a batch."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return True

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        label = label_of(eqn)
        work: list[Any] = []
        xs = [x.type for x in eqn.inputs]
        inner, n = op.inner(xs), op.batch_size(xs)
        outs = [Type(y.type.dtype, y.type.shape[len(n) :]) for y in eqn.outputs]
        kernel = op.function.array_kernel(tuple(inner), tuple(outs))
        words = error_words(layout, eqn, kernel)
        for y, t in zip(eqn.outputs, outs):
            words += [layout.array(y), *op.words(t, bool(n))]
        for x, t in zip(eqn.inputs, inner):
            if isinstance(x, Literal):
                given: Any = x.dtype.type(x.value)
            else:
                given = layout.array(x)
                if not given.is_dense:
                    given = copy_dense(layout, given, work, label)
            words += [given, *op.words(t, x.type.ndim > t.ndim)]
        elements = sum(t.size for t in (*outs, *inner))
        cost = ARRAY_NS + 2 * elements
        return [*work, NumbaWork(kernel, words, math.prod(n), cost, label)]
