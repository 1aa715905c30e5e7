"""Heavy operations: products of matrices, convolutions and the like, native once they are hot.

NumPy computes them at first. After some runs on operands of the same types an eager call goes to a
native program of that one operation, which uses the threads and the BLAS of compiled programs: the
threads of NumPy's own BLAS wait by spinning, and take a core from whatever runs next.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.heat import ELEMENTS, Heat, operation_limit, single
from lucid.ir.interpret import Hot
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.movement import Transpose

LEAST = 1024  # elements of an operand; below, NumPy is as quick
KEPT = 4096
_heats: dict[Any, Turned] = {}


class Turned(Heat):
    """The Heat of one operation on operands of these types and strides.

    turned    operands whose last two axes are swapped in memory: the program swaps them back
    """

    __slots__ = ("turned",)

    def __init__(self, xs: tuple[np.ndarray, ...]) -> None:
        super().__init__(operation_limit())
        self.turned = tuple([not x.flags.c_contiguous and is_turned(x) for x in xs])

    def graph(self, op: Primitive, xs: tuple[np.ndarray, ...]) -> Graph:
        """`op` on operands that are row-major, some of them swapped first."""
        if not any(self.turned):
            return single(op, xs)
        inner = single(op, xs)
        inputs, equations = list(inner.inputs), list(inner.equations)
        for i, turned in enumerate(self.turned):
            if turned:
                swapped = inner.inputs[i]
                *outer, rows, columns = swapped.type.shape
                inputs[i] = Var(Type(swapped.type.dtype, (*outer, columns, rows)))
                n = len(outer)
                swap = Transpose((*range(n), n + 1, n))
                equations.insert(0, Equation(swap, (inputs[i],), (swapped,)))
        return Graph(inner.name, tuple(inputs), tuple(equations), inner.outputs)


def is_turned(x: np.ndarray) -> bool:
    return x.ndim > 1 and x.swapaxes(-1, -2).flags.c_contiguous


class Heavy(Primitive, abstract=True):
    """An operation that eager calls run natively, once it has come often enough."""

    heavy: ClassVar[bool] = True

    def run(self, *xs: np.ndarray) -> Any:
        if (xs[0].size < LEAST and xs[-1].size < LEAST) or Hot.compile is None:
            return self.eval(*xs)
        key = (self, *[(x.shape, x.strides, x.dtype.char) for x in xs])
        heat = _heats.get(key)
        if heat is None:
            if len(_heats) >= KEPT:
                _heats.clear()
            heat = _heats.setdefault(key, Turned(xs))
        if heat.native is None:
            work = 1 + sum([x.size for x in xs]) // ELEMENTS
            heat.worked(work, lambda: heat.graph(self, xs))
            return self.eval(*xs)
        given = [x.swapaxes(-1, -2) if t else x for x, t in zip(xs, heat.turned)]
        outs = heat.native(given)
        return outs[0] if len(outs) == 1 else tuple(outs)
