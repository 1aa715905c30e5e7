"""NativeCall: the lowering of a primitive by a C function, called by its address without Python.

    void function(void **args, int64_t lo, int64_t hi)

`args` has the addresses of the results, of the operands, and of the sizes of all of them: int64
numbers, in the same order. Arrays are dense, in row-major order. [lo, hi) is a part of the extent,
and parts run on several threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.external.ufunc_calls import copy_dense
from lucid.compiler.lowering.nest_builder import label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.native_kernel import Kernel
from lucid.ir.graph import Equation, Literal
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.public.declare import public

Types = Sequence[Type]
Choose = Callable[[Primitive, Types, Types], Any]


@public("extend")
class NativeCall:
    """Lowers a primitive to calls of a C function.

    function    (op, operand types, result types) -> the function: an address, a ctypes function or
                a Numba `cfunc`; None if there is none for these types, so that `eval` runs instead
    extent      (op, operand types, result types) -> the number of units that may run in parallel
    ns          the estimated time for one unit of the extent, in nanoseconds
    """

    def __init__(self, function: Choose, extent: Choose | None = None, ns: float = 1e3) -> None:
        self.function, self.extent, self.ns = function, extent, ns

    def accepts(self, eqn: Equation) -> bool:
        return self.function(eqn.op, *types_of(eqn)) is not None

    def lower(self, layout: Any, eqn: Equation) -> list[Any]:
        given, results = types_of(eqn)
        function, label = self.function(eqn.op, given, results), label_of(eqn)
        extent = 1 if self.extent is None else int(self.extent(eqn.op, given, results))
        work: list[Any] = []
        arrays: list[Any] = [layout.array(y) for y in eqn.outputs]
        for x in eqn.inputs:
            if isinstance(x, Literal):
                arrays.append(x.array)
                continue
            array = layout.array(x)
            arrays.append(array if array.is_dense else copy_dense(layout, array, work, label))
        sizes = [n for t in (*results, *given) for n in t.shape]
        arrays.append(np.array(sizes, np.int64))
        return [*work, NativeWork(function, arrays, extent, self.ns, label)] if extent else []


def types_of(eqn: Equation) -> tuple[Types, Types]:
    """Return the types of the operands and of the results."""
    return [x.type for x in eqn.inputs], [y.type for y in eqn.outputs]


@dataclass(eq=False)
class NativeWork:
    """The call of a C function on arrays: those of the plan, and constants."""

    function: Any
    arrays: Sequence[Array | np.ndarray]
    extent: int
    ns: float
    label: str

    def kernels(self) -> Sequence[Any]:
        return ()

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        args = [x.address if isinstance(x, Array) else builder.constant(x) for x in self.arrays]
        kernel = Kernel(self.label, address_of(self.function), self.function)
        builder.call(kernel, args, self.extent, self.ns, label=self.label)


def address_of(function: Any) -> int:
    """Return the address of a C function given as a number, by ctypes or by Numba."""
    if isinstance(function, int):
        return function
    found = getattr(function, "address", None)
    return found if found is not None else ctypes.cast(function, ctypes.c_void_p).value or 0
