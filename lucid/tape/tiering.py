"""Tiering: an operation that has done enough work in NumPy is compiled as a program of its own.

A native program uses the threads and the BLAS of all compiled programs. NumPy has one thread, and
those of its BLAS wait by spinning, which takes a core from whatever runs next.

Work is counted, never time, so that the same program switches at the same point in every run and
its results are reproducible. The unit is a small equation, about 1.5 µs.
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

ELEMENTS = 200  # elements that NumPy computes in the time Python takes for an equation


class WorkCounter:
    """Counts the work an operation has done, and holds its native program once it is hot.

    limit     the work that makes it hot
    native    the program, arrays -> arrays, or None
    """

    __slots__ = ("limit", "native", "work")

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.work = 0
        self.native: Any = None

    def count_work(self, work: int, graph: Callable[[], Graph]) -> None:
        """Count work done by NumPy; compile `graph()` when it reaches the limit."""
        before, self.work = self.work, self.work + work
        if before < max(self.limit, 1) <= self.work and Hot.compile is not None:
            found = Hot.compile(graph())
            if getattr(found, "plan", None) is not None:  # it is entirely native
                self.native = found


MAX_WORK = (1 << 16) // ELEMENTS  # the most that one run counts


def operation_limit() -> float:
    """Return the work that makes one operation hot: `Hot.threshold` runs on 2^16 elements."""
    return Hot.threshold * MAX_WORK


def work_on(xs: Sequence[Any]) -> int:
    """Return the work of one operation on these arrays."""
    return min(1 + sum([x.size for x in xs]) // ELEMENTS, MAX_WORK)


def single_op_graph(op: Primitive, operands: Sequence[Any]) -> Graph:
    """Return the Graph of one operation on arrays like these and on these Literals."""
    atoms = [x if x.__class__ is Literal else Var(Type(x.dtype, x.shape)) for x in operands]
    result = op.infer(*[x.type for x in atoms])
    types = result if isinstance(result, tuple) else (result,)
    outputs = tuple([Var(t) for t in types])
    inputs = tuple([x for x in atoms if x.__class__ is Var])
    return Graph(op.name, inputs, (Equation(op, tuple(atoms), outputs),), outputs)


MAX_ENTRIES = 2048
_counters: dict[Any, OpCounter] = {}


class OpCounter(WorkCounter):
    """The WorkCounter of one operation on operands with these types and memory layouts.

    A native program reads row-major memory. Only a heavy operation is worth copying other layouts
    for; NumPy computes the others in the order of the memory.

    transposed    operands whose last two axes are swapped in memory: the program swaps them back
    """

    __slots__ = ("transposed",)

    def __init__(self, op: Primitive, arrays: Sequence[np.ndarray]) -> None:
        any_layout = op.native_from <= HEAVY or all([x.flags.c_contiguous for x in arrays])
        super().__init__(operation_limit() if any_layout else math.inf)
        self.transposed = tuple([not x.flags.c_contiguous and is_transposed(x) for x in arrays])

    def graph(self, op: Primitive, xs: Sequence[Any]) -> Graph:
        """Return the Graph of `op` on row-major operands, transposing some of them first."""
        from lucid.ops.shape.movement import Transpose

        inner = single_op_graph(op, xs)
        inputs, equations = list(inner.inputs), list(inner.equations)
        for i, transposed in enumerate(self.transposed):
            if transposed:
                swapped = inner.inputs[i]
                *outer, rows, columns = swapped.type.shape
                inputs[i] = Var(Type(swapped.type.dtype, (*outer, columns, rows)))
                n = len(outer)
                swap = Transpose((*range(n), n + 1, n))
                equations.insert(0, Equation(swap, (inputs[i],), (swapped,)))
        return Graph(inner.name, tuple(inputs), tuple(equations), inner.outputs)


def evict_older_half(table: dict[Any, Any]) -> None:
    """Drop the older half of the entries if a table is full."""
    if len(table) >= MAX_ENTRIES:
        for key in list(table)[: MAX_ENTRIES // 2]:
            table.pop(key, None)


def is_transposed(x: np.ndarray) -> bool:
    return x.ndim > 1 and x.swapaxes(-1, -2).flags.c_contiguous


def run(op: Primitive, *xs: Any) -> Any:
    """Return `op.eval` of arrays and Literals, or the result of its native program if it is hot.

    The program takes a Literal as one more array, unless literals of the operation are static.
    """
    if not op.literals_are_static:
        xs = tuple([x.array if x.__class__ is Literal else x for x in xs])
    values: list[Any] = [x.value if x.__class__ is Literal else x for x in xs]
    if Hot.compile is None:
        return op.eval(*values)
    arrays = [x for x in xs if x.__class__ is not Literal]
    parts = [x.key if x.__class__ is Literal else (x.shape, x.strides, x.dtype.char) for x in xs]
    key = (op, *parts)
    counter = _counters.get(key)
    if counter is None:
        evict_older_half(_counters)
        counter = _counters.setdefault(key, OpCounter(op, arrays))
    if counter.native is None:
        counter.count_work(work_on(arrays), lambda: counter.graph(op, xs))
        return op.eval(*values)
    outs = counter.native(
        [x.swapaxes(-1, -2) if t else x for x, t in zip(arrays, counter.transposed)]
    )
    return outs[0] if len(outs) == 1 else tuple(outs)
