"""Heat: an operation that has run long enough in NumPy is compiled, as a program of its own.

A native program uses the threads and the BLAS of all compiled programs. NumPy has one thread, and
those of its BLAS wait by spinning, which takes a core from whatever runs next.

How long is counted in work, never in seconds: the same program switches at the same place each time
it runs, so that its numbers are the same. The unit is a small equation, about 1.5 µs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.interpret import Hot
from lucid.ir.primitive import HEAVY, Primitive
from lucid.ir.types import Type

ELEMENTS = 200  # as many take NumPy about as long as Python takes for an equation


class Heat:
    """The work that one thing has done, and its native program once that was enough.

    limit     the work that makes it hot
    native    arrays -> arrays, once there is such a program
    """

    __slots__ = ("limit", "native", "work")

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.work = 0
        self.native: Any = None

    def worked(self, work: int, graph: Callable[[], Graph]) -> None:
        """Note work done by NumPy; when it is enough, compile the Graph that does the same."""
        before, self.work = self.work, self.work + work
        if before < max(self.limit, 1) <= self.work and Hot.compile is not None:
            found = Hot.compile(graph())
            if getattr(found, "plan", None) is not None:  # all of it is native
                self.native = found


RUN = (1 << 16) // ELEMENTS  # work of one run: of one on more elements it is no more


def operation_limit() -> float:
    """The work that makes one operation hot: runs on 2^16 elements, more of them on fewer."""
    return Hot.threshold * RUN


def work_on(xs: Sequence[Any]) -> int:
    """The work of one operation on these arrays."""
    return min(1 + sum([x.size for x in xs]) // ELEMENTS, RUN)


def single(op: Primitive, operands: Sequence[Any]) -> Graph:
    """The Graph of one operation on arrays like these, and on these Literals."""
    atoms = [x if x.__class__ is Literal else Var(Type(x.dtype, x.shape)) for x in operands]
    result = op.infer(*[x.type for x in atoms])
    types = result if isinstance(result, tuple) else (result,)
    outputs = tuple([Var(t) for t in types])
    inputs = tuple([x for x in atoms if x.__class__ is Var])
    return Graph(op.name, inputs, (Equation(op, tuple(atoms), outputs),), outputs)


KEPT = 2048
_heats: dict[Any, Turned] = {}


class Turned(Heat):
    """The Heat of one operation on operands of these types and strides.

    A program reads memory in order. Where it lies otherwise only a heavy operation is worth a copy;
    others NumPy computes in the order in which it lies.

    turned    operands whose last two axes are swapped in memory: the program swaps them back
    """

    __slots__ = ("turned",)

    def __init__(self, op: Primitive, arrays: Sequence[np.ndarray]) -> None:
        takes_any = op.native_from <= HEAVY or all([x.flags.c_contiguous for x in arrays])
        super().__init__(operation_limit() if takes_any else math.inf)
        self.turned = tuple([not x.flags.c_contiguous and is_turned(x) for x in arrays])

    def graph(self, op: Primitive, xs: Sequence[Any]) -> Graph:
        """`op` on operands that are row-major, some of them swapped first."""
        from lucid.ops.shape.movement import Transpose

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


def make_room(table: dict[Any, Any]) -> None:
    """Drop the older half of a full table."""
    if len(table) >= KEPT:
        for key in list(table)[: KEPT // 2]:
            table.pop(key, None)


def is_turned(x: np.ndarray) -> bool:
    return x.ndim > 1 and x.swapaxes(-1, -2).flags.c_contiguous


def run(op: Primitive, *xs: Any) -> Any:
    """`op.eval` of arrays and Literals, or a native program of that one operation where it is hot.

    The program takes a Literal as one more array, unless the operation is another for each.
    """
    if not op.fixes_literals:
        xs = tuple([x.array if x.__class__ is Literal else x for x in xs])
    values: list[Any] = [x.value if x.__class__ is Literal else x for x in xs]
    if Hot.compile is None:
        return op.eval(*values)
    arrays = [x for x in xs if x.__class__ is not Literal]
    parts = [x.key if x.__class__ is Literal else (x.shape, x.strides, x.dtype.char) for x in xs]
    key = (op, *parts)
    heat = _heats.get(key)
    if heat is None:
        make_room(_heats)
        heat = _heats.setdefault(key, Turned(op, arrays))
    if heat.native is None:
        heat.worked(work_on(arrays), lambda: heat.graph(op, xs))
        return op.eval(*values)
    outs = heat.native([x.swapaxes(-1, -2) if t else x for x, t in zip(arrays, heat.turned)])
    return outs[0] if len(outs) == 1 else tuple(outs)
