"""The lowering of a collective: instructions that call back into `execution`.

One instruction posts it, and another one, before the first reader of its result, waits for it;
where nothing runs between the two they are one. The plan has released the GIL; a callback takes it
to post the requests, and the MPI calls release it again. An error cannot cross the plan: it is
kept, later collectives of the plan do nothing, and it is raised when the plan returns.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.lowering.external.ufunc_calls import copy_dense
from lucid.compiler.lowering.nest_builder import label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.native_kernel import Kernel
from lucid.distributed.execution import Started, begin, finish, run_into
from lucid.distributed.runtime import runtime
from lucid.ir.graph import Equation, Literal, Var
from lucid.ir.types import Type

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int64, ctypes.c_int64)
NS = 20_000.0  # estimated: long enough that the plan releases the GIL
POLL_NS = 200_000.0  # estimated work between two polls


class RunningPlan(threading.local):
    """What the plan that runs in this thread has left open.

    error      of a collective, to be raised when the plan returns
    started    the collectives that it has posted, by their result
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.started: dict[Var, Started] = {}

    def settle(self, interrupt: BaseException | None) -> None:
        """After the plan: raise the error of a collective.

        After an interrupt in a computation other ranks still wait for the rest of the plan, so that
        no later collective can be right.
        """
        error, self.error = self.error, None
        self.started.clear()
        if interrupt is not None and runtime().size > 1 and not runtime().broken:
            runtime().broken = f"{type(interrupt).__name__} in a compiled function"
        if interrupt is None and error is not None:
            raise error


RUNNING = RunningPlan()


def view(address: int, type: Type) -> np.ndarray:
    """Return the array at an address."""
    nbytes = max(type.size * type.dtype.itemsize, 1)
    memory = (ctypes.c_char * nbytes).from_address(address)
    return np.ndarray(type.shape, type.dtype, memory)  # type: ignore[arg-type]


class CollectiveLowering:
    """Lowers a collective to instructions of the plan."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return True

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        return posting(layout, eqn, run_at)

    @staticmethod
    def start(layout: Any, eqn: Equation) -> list[Any]:
        return posting(layout, eqn, begin_at)

    @staticmethod
    def wait(layout: Any, eqn: Equation) -> list[Any]:
        return [CollectiveWork(eqn, (), f"wait for {label_of(eqn)}", finish_at)]

    @staticmethod
    def poll(layout: Any, eqn: Equation) -> list[Any]:
        return [PollWork(eqn, (), "poll", poll_at)]


def posting(layout: Any, eqn: Equation, action: Callable[[Equation, Any], None]) -> list[Any]:
    """Return the work that calls `action` with the addresses of the result and the operand."""
    (x,), (y,), label = eqn.inputs, eqn.outputs, label_of(eqn)
    work: list[Any] = []
    if isinstance(x, Literal):
        given: Any = x.array
    else:
        given = layout.array(x)
        if not given.is_dense:
            given = copy_dense(layout, given, work, label)
    layout.builder.settle = RUNNING.settle
    layout.builder.receive(layout.array(y).address)
    return [*work, CollectiveWork(eqn, [layout.array(y), given], label, action)]


@dataclass(eq=False)
class CollectiveWork:
    """The call of one collective: result, operand."""

    eqn: Equation
    arrays: Sequence[Any]
    label: str
    action: Callable[[Equation, Any], None]

    def kernels(self) -> Sequence[Any]:
        return ()

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        args = [x.address if isinstance(x, Array) else builder.constant(x) for x in self.arrays]
        function = callback(self.action, self.eqn)
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        kernel = Kernel(self.label, address, function)  # type: ignore[arg-type]
        builder.call(kernel, args, 1, NS, label=self.label)


class PollWork(CollectiveWork):
    """A call of MPI in which collectives in flight advance: between others they do not."""

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        if builder.work - builder.polled > POLL_NS:
            builder.polled = builder.work
            super().add(builder, kernels)


def callback(action: Callable[[Equation, Any], None], eqn: Equation) -> Any:
    """Return the C function that calls an action, unless one before it has failed."""

    def call(args: Any, lo: int, hi: int) -> None:
        if RUNNING.error is None:
            try:
                action(eqn, args)
            except BaseException as error:
                RUNNING.error = error

    return SIGNATURE(call)


def arrays_at(eqn: Equation, args: Any) -> tuple[np.ndarray, np.ndarray]:
    return view(args[1], eqn.inputs[0].type), view(args[0], eqn.outputs[0].type)


def run_at(eqn: Equation, args: Any) -> None:
    x, out = arrays_at(eqn, args)
    run_into(eqn.op, x, out, eqn.source)


def begin_at(eqn: Equation, args: Any) -> None:
    x, out = arrays_at(eqn, args)
    if eqn.op.size == 1:  # type: ignore[attr-defined]
        run_into(eqn.op, x, out, eqn.source)
    else:
        RUNNING.started[eqn.outputs[0]] = begin(eqn.op, x, out, eqn.source)


def poll_at(eqn: Equation, args: Any) -> None:
    for started in runtime().in_flight[:1]:
        started.requests[0].Test()


def finish_at(eqn: Equation, args: Any) -> None:
    started = RUNNING.started.pop(eqn.outputs[0], None)
    if started is not None:
        finish(started)
