"""Derivative: what jvp and vjp make of a Graph: another Graph, from residuals and seeds to derivatives.

Residuals are the values of the original Graph that the derivative reads; seeds are tangents of its
inputs or cotangents of its outputs. None stands for a derivative that is zero throughout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.ir.cut import cut
from lucid.ir.graph import Atom, Graph, Literal, Var
from lucid.ir.modes import local
from lucid.ir.tape import Trace, leaf


@dataclass(frozen=True, eq=False)
class Derivative:
    """`graph(*residuals, *seeds, *constants)` gives the derivatives that are not zero.

    residuals    Vars of the original Graph
    seeds        positions of the seeds that are read
    constants    arrays that rules brought in
    nonzero      for every derivative asked for, whether it is an output of `graph`
    """

    graph: Graph
    residuals: tuple[Var, ...]
    seeds: tuple[int, ...]
    constants: tuple[np.ndarray, ...]
    nonzero: tuple[bool, ...]

    def spread(self, outputs: Sequence[Any]) -> list[Any]:
        """The outputs of `graph` with None put where the derivative is zero."""
        rest = iter(outputs)
        return [next(rest) if there else None for there in self.nonzero]


class Stage:
    """Tensors without values that stand for the Vars of a Graph while rules are run on them."""

    def __init__(self, graph: Graph, what: str) -> None:
        self.graph = graph
        self.trace = Trace(what)
        self.env = {var: leaf(var.type, self.trace) for var in graph.vars()}

    def __enter__(self) -> Stage:
        self.outer = local.staging
        local.staging = self.trace
        return self

    def __exit__(self, *_: Any) -> None:
        local.staging = self.outer
        self.trace.active = False

    def read(self, x: Atom) -> Any:
        return x if isinstance(x, Literal) else self.env[x]

    def seed(self, x: Atom) -> Any:
        return leaf(x.type, self.trace)

    def finish(self, seeds: Sequence[Any], results: Sequence[Any]) -> Derivative:
        """The Derivative that computes `results` (None: zero), with only the inputs it reads."""
        given = [*self.env.items(), *[(i, s) for i, s in enumerate(seeds) if s is not None]]
        section = cut([x for _, x in given], [r for r in results if r is not None])
        graph = section.graph(self.graph.name)
        used = {x for eqn in graph.equations for x in eqn.inputs} | set(graph.outputs)
        kept = [(var, origin) for var, (origin, _) in zip(graph.inputs, given) if var in used]
        inputs = (*[var for var, _ in kept], *graph.inputs[len(given) :])
        return Derivative(
            Graph(graph.name, inputs, graph.equations, graph.outputs),
            tuple([origin for _, origin in kept if isinstance(origin, Var)]),
            tuple([origin for _, origin in kept if isinstance(origin, int)]),
            tuple([section.slots[slot].saved for slot in section.captured]),
            tuple([r is not None for r in results]),
        )


@contextmanager
def source_of(eqn: Any) -> Iterator[None]:
    """Equations made inside carry the source line of `eqn`."""
    before = local.source
    local.source = eqn.source or before
    try:
        yield
    finally:
        local.source = before
