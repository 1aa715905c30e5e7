"""Executable: a compiled Graph as Python calls it: arrays in, arrays out."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.compiler.plan.plan import Plan
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.tape.modes import local

if TYPE_CHECKING:
    from lucid.compiler.fusion.groups import Step


class Check(NamedTuple):
    """The error of an equation whose kernel checks values."""

    error: type[Exception]
    message: str

    @staticmethod
    def of(eqn: Equation) -> Check:
        where = f"   [{eqn.source}]" if eqn.source else ""
        error, reason = eqn.op.check_error
        return Check(error, f"{eqn.op.name}: {reason}{where}")


class Segment:
    """Steps that one plan runs, with the Vars that it reads and writes."""

    def __init__(
        self, steps: list[Step], inputs: Iterable[Var] = (), outputs: Iterable[Var] = ()
    ) -> None:
        self.steps = steps
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.checks: list[Check] = []  # the last output reports one
        self.plan: Plan | None = None
        self.into: dict[Var, Var] = {}  # outputs computed in the memory of inputs


LIVE: weakref.WeakSet[Executable] = weakref.WeakSet()
CREATION_HOOKS: list[Callable[[Executable], None]] = []  # called with every new Executable


class Executable:
    """A compiled Graph: arrays in, arrays out."""

    is_verified = True  # no result is still to be compared with the interpreter's

    def __init__(
        self, graph: Graph, parts: Sequence[Segment | Equation], producer: dict[Var, Equation]
    ) -> None:
        self.graph = graph
        self.parts = list(parts)
        self.producer = producer
        self.numpy_times: dict[str, list[int]] | None = None  # of NumPy parts, while profiled
        self.saved_times: dict[str, list[int]] = {}
        LIVE.add(self)
        for watcher in CREATION_HOOKS:
            watcher(self)
        self.plan: Plan | None = None
        self.overwritten: list[int] = []  # inputs whose memory the plan reuses for outputs
        if len(self.parts) == 1 and isinstance(self.parts[0], Segment):
            part = self.parts[0]
            same = list(part.outputs) == list(graph.outputs)
            indices = [graph.inputs.index(x) for x in part.inputs]
            self.plan = part.plan if same else None
            self.checks = bool(part.checks)
            self.input_indices = indices if indices != list(range(len(graph.inputs))) else None
            self.overwritten = [graph.inputs.index(x) for x in part.into.values()]

    def plans(self) -> list[Plan]:
        return [
            part.plan for part in self.parts if isinstance(part, Segment) and part.plan is not None
        ]

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        if self.plan is not None:
            indices = self.input_indices
            arrays = inputs if indices is None else [inputs[i] for i in indices]
            results: Any = self.plan.run(*arrays)
            if results is None:
                results = self.plan(*self.copy_overwritten(arrays))
            results = list(results)
            if self.checks and (code := results.pop()):
                self.raise_check_error(inputs, self.parts[0].checks[int(code) - 1])  # type: ignore[union-attr]
            return results
        env: dict[Any, Any] = dict(zip(self.graph.inputs, inputs))
        for part in self.parts:
            if isinstance(part, Segment):
                assert part.plan is not None
                results = list(part.plan(*[env[x] for x in part.inputs]))
                if part.checks and results[-1]:
                    self.raise_check_error(inputs, part.checks[int(results[-1]) - 1])
                env.update(zip(part.outputs, results))
            else:
                begin = perf_counter_ns()
                with np.errstate(all="ignore"):
                    out = part.op.eval(*[self.read(x, env) for x in part.inputs])
                if self.numpy_times is not None:
                    self.record_time(part, perf_counter_ns() - begin)
                outs = out if isinstance(out, tuple) else (out,)
                env.update((var, np.asarray(y)) for var, y in zip(part.outputs, outs))
        return [np.asarray(self.read(x, env)) for x in self.graph.outputs]

    def record_time(self, eqn: Equation, spent: int) -> None:
        """Add the time of an equation that NumPy computed to the profile."""
        source = f"  [{eqn.source}]" if eqn.source else ""
        times = self.numpy_times
        if times is not None:
            counted = times.setdefault(f"numpy {eqn.op.name}{source}", [0, 0])
            counted[0] += 1
            counted[1] += spent

    def copy_overwritten(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the arguments of the plan, with copies of those that it overwrites."""
        indices = self.input_indices or range(len(arrays))
        copies = {i for i, index in enumerate(indices) if index in self.overwritten}
        return [np.array(x, order="C") if i in copies else x for i, x in enumerate(arrays)]

    def raise_check_error(self, inputs: Sequence[np.ndarray], failed: Check) -> None:
        """Raise the error that a kernel reported; the interpreter runs again to find the details.

        Not if that would communicate again.
        """
        ordered = any([eqn.op.ordered for eqn in self.graph.equations])
        env: dict[Any, Any] = dict(zip(self.graph.inputs, inputs))
        before = local.source
        try:
            for eqn in () if ordered else self.graph.equations:
                local.source = eqn.source or before
                with np.errstate(all="ignore"):
                    out = eqn.op.eval(*[self.read(x, env) for x in eqn.inputs])
                env.update(zip(eqn.outputs, out if isinstance(out, tuple) else (out,)))
        finally:
            local.source = before
        raise failed.error(failed.message)

    def read(self, x: Any, env: dict[Any, Any]) -> Any:
        if isinstance(x, Literal):
            return x.array
        if x not in env:
            eqn = self.producer[x]
            env[x] = eqn.op.eval(*[self.read(i, env) for i in eqn.inputs])
        return env[x]
