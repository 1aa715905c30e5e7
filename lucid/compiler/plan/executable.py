"""Executable: a compiled Graph as Python calls it: arrays in, arrays out."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import numpy as np

from lucid.compiler.fusion.groups import Step
from lucid.compiler.plan.plan import Plan
from lucid.errors import IndexingError, LinAlgError
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ops.core.runtime_check import Refuse
from lucid.ops.linalg.matrices import Matrixwise
from lucid.tape.modes import local


@dataclass(eq=False)
class Segment:
    """Steps that one plan runs: from arrays of the environment to arrays of the environment."""

    steps: list[Step]
    inputs: list[Var] = field(default_factory=list)
    outputs: list[Var] = field(default_factory=list)
    checks: list[Equation] = field(default_factory=list)  # what the plan's last output tells of
    plan: Plan | None = None
    into: dict[Var, Var] = field(default_factory=dict)  # outputs in the memory of inputs


LIVE: weakref.WeakSet[Executable] = weakref.WeakSet()
WATCHERS: list[Callable[[Executable], None]] = []  # told of every new program: profiles


class Executable:
    """A compiled Graph: arrays in, arrays out."""

    def __init__(
        self, graph: Graph, parts: Sequence[Segment | Equation], producer: dict[Var, Equation]
    ) -> None:
        self.graph = graph
        self.parts = list(parts)
        self.producer = producer
        self.times: dict[str, list[int]] | None = None  # of parts that NumPy runs, for a profile
        self.watched: dict[str, list[int]] = {}
        LIVE.add(self)
        for watcher in WATCHERS:
            watcher(self)
        self.plan: Plan | None = None
        self.overwritten: list[int] = []  # inputs in whose memory the plan leaves outputs
        if len(self.parts) == 1 and isinstance(self.parts[0], Segment):
            part = self.parts[0]
            same = list(part.outputs) == list(graph.outputs)
            given = [graph.inputs.index(x) for x in part.inputs]
            self.plan = part.plan if same else None
            self.checks = bool(part.checks)
            self.given = given if given != list(range(len(graph.inputs))) else None
            self.overwritten = [graph.inputs.index(x) for x in part.into.values()]

    def plans(self) -> list[Plan]:
        return [
            part.plan for part in self.parts if isinstance(part, Segment) and part.plan is not None
        ]

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        if self.plan is not None:
            chosen = inputs if self.given is None else [inputs[i] for i in self.given]
            found = self.plan.run(*chosen)
            results = list(self.plan(*self.copied(chosen)) if found is None else found)
            if self.checks and (code := results.pop()):
                self.explain(inputs, self.parts[0].checks[int(code) - 1])  # type: ignore[union-attr]
            return results
        env: dict[Any, Any] = dict(zip(self.graph.inputs, inputs))
        for part in self.parts:
            if isinstance(part, Segment):
                assert part.plan is not None
                given = list(part.plan(*[env[x] for x in part.inputs]))
                if part.checks and given[-1]:
                    self.explain(inputs, part.checks[int(given[-1]) - 1])
                env.update(zip(part.outputs, given))
            else:
                begin = perf_counter_ns()
                with np.errstate(all="ignore"):
                    out = part.op.eval(*[self.read(x, env) for x in part.inputs])
                if self.times is not None:
                    self.note(part, perf_counter_ns() - begin)
                outs = out if isinstance(out, tuple) else (out,)
                env.update((var, np.asarray(y)) for var, y in zip(part.outputs, outs))
        return [np.asarray(self.read(x, env)) for x in self.graph.outputs]

    def note(self, eqn: Equation, spent: int) -> None:
        """Count the time of an equation that NumPy has computed."""
        source = f"  [{eqn.source}]" if eqn.source else ""
        times = self.times
        if times is not None:
            counted = times.setdefault(f"numpy {eqn.op.name}{source}", [0, 0])
            counted[0] += 1
            counted[1] += spent

    def copied(self, given: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The arguments of the plan, with copies of those that it overwrites."""
        places = [i if self.given is None else self.given[i] for i in range(len(given))]
        copies = {i for i, place in enumerate(places) if place in self.overwritten}
        return [np.array(x, order="C") if i in copies else x for i, x in enumerate(given)]

    def explain(self, inputs: Sequence[np.ndarray], failed: Equation) -> None:
        """Raise the error that a kernel noted: the interpreter finds it again, with its facts."""
        env: dict[Any, Any] = dict(zip(self.graph.inputs, inputs))
        before = local.source
        try:
            for eqn in self.graph.equations:
                local.source = eqn.source or before
                with np.errstate(all="ignore"):
                    out = eqn.op.eval(*[self.read(x, env) for x in eqn.inputs])
                env.update(zip(eqn.outputs, out if isinstance(out, tuple) else (out,)))
        finally:
            local.source = before
        where = f"   [{failed.source}]" if failed.source else ""
        if isinstance(failed.op, (Matrixwise, Refuse)):
            raise LinAlgError(f"{failed.op.name}: there is no result for this matrix{where}")
        raise IndexingError(f"{failed.op.name}: an index was out of range{where}")

    def read(self, x: Any, env: dict[Any, Any]) -> Any:
        if isinstance(x, Literal):
            return x.array
        if x not in env:
            eqn = self.producer[x]
            env[x] = eqn.op.eval(*[self.read(i, env) for i in eqn.inputs])
        return env[x]
