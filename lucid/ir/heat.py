"""Heat: an operation that has run long enough in NumPy is compiled, as a program of its own.

How long is counted in work, never in seconds: the same program switches at the same place each time
it runs, so that its numbers are the same. The unit is a small equation, about 1.5 µs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.interpret import Hot
from lucid.ir.primitive import Primitive
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


def operation_limit() -> float:
    """The work that makes a single operation hot: some runs on 2^16 elements."""
    return Hot.threshold * (1 << 16) / ELEMENTS


def single(op: Primitive, operands: Sequence[np.ndarray]) -> Graph:
    """The Graph of one operation on operands like these."""
    inputs = tuple([Var(Type(x.dtype, x.shape)) for x in operands])
    result = op.infer(*[x.type for x in inputs])
    types = result if isinstance(result, tuple) else (result,)
    outputs = tuple([Var(t) for t in types])
    return Graph(op.name, inputs, (Equation(op, inputs, outputs),), outputs)
