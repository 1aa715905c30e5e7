"""The lowering of a collective: an instruction that calls back into `execution.run_into`.

The plan has released the GIL; the callback takes it to post the requests, and the MPI calls
release it again. An error cannot cross the plan: it is kept, later collectives of the plan do
nothing, and it is raised when the plan returns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.external.ufunc_calls import copy_dense
from lucid.compiler.lowering.nest_builder import label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.native_kernel import Kernel
from lucid.distributed.execution import run_into
from lucid.ir.graph import Equation, Literal
from lucid.ir.types import Type

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int64, ctypes.c_int64)
NS = 20_000.0  # estimated: long enough that the plan releases the GIL


class KeptErrors:
    """The error of the plan that is running in each thread."""

    def __init__(self) -> None:
        import threading

        self.local = threading.local()

    def is_empty(self) -> bool:
        return getattr(self.local, "error", None) is None

    def keep(self, error: BaseException) -> None:
        self.local.error = error

    def raise_error(self) -> None:
        error = getattr(self.local, "error", None)
        if error is not None:
            self.local.error = None
            raise error


KEPT = KeptErrors()


def view(address: int, type: Type) -> np.ndarray:
    """Return the array at an address."""
    nbytes = max(type.size * type.dtype.itemsize, 1)
    memory = (ctypes.c_char * nbytes).from_address(address)
    return np.ndarray(type.shape, type.dtype, memory)  # type: ignore[arg-type]


class CollectiveLowering:
    """Lowers a collective to an instruction of the plan."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return True

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        (x,), (y,), label = eqn.inputs, eqn.outputs, label_of(eqn)
        work: list[Any] = []
        if isinstance(x, Literal):
            given: Any = x.array
        else:
            given = layout.array(x)
            if not given.is_dense:
                given = copy_dense(layout, given, work, label)
        layout.builder.raise_error = KEPT.raise_error
        return [*work, CollectiveWork(eqn, [layout.array(y), given], label)]


@dataclass(eq=False)
class CollectiveWork:
    """The call of one collective: result, operand."""

    eqn: Equation
    arrays: Sequence[Any]
    label: str

    def kernels(self) -> Sequence[Any]:
        return ()

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        args = [x.address if isinstance(x, Array) else builder.constant(x) for x in self.arrays]
        function = callback(self.eqn)
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        kernel = Kernel(self.label, address, function)  # type: ignore[arg-type]
        builder.call(kernel, args, 1, NS, label=self.label)


def callback(eqn: Equation) -> Any:
    """Return the C function that runs the collective of an equation."""
    op: Any = eqn.op
    given, result, source = eqn.inputs[0].type, eqn.outputs[0].type, eqn.source

    def call(args: Any, lo: int, hi: int) -> None:
        if not KEPT.is_empty():
            return
        try:
            run_into(op, view(args[1], given), view(args[0], result), source)
        except BaseException as error:
            KEPT.keep(error)

    return SIGNATURE(call)
