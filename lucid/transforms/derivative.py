"""Derivative: what jvp and vjp make of a Graph: one from residuals and seeds to derivatives.

Residuals are the values of the original Graph that the derivative reads; seeds are tangents of its
inputs or cotangents of its outputs. None stands for a derivative that is zero throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.rewrite import trimmed
from lucid.ir.types import Type
from lucid.ops.core.promote import get_default_dtype
from lucid.transforms.rule import Rule


@dataclass(frozen=True, eq=False)
class Derivative:
    """`graph(*residuals, *seeds, *constants)` gives the derivatives that are not zero.

    residuals    Vars of the original Graph, which are inputs of this one too
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


class Builder:
    """The equations of a Derivative while it is made."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.equations: list[Equation] = []
        self.constants: dict[int, tuple[Var, np.ndarray]] = {}
        self.default = get_default_dtype()

    def constant(self, array: np.ndarray) -> Var:
        """The Var of an array that a rule brought in."""
        if id(array) not in self.constants:
            self.constants[id(array)] = (Var(Type(array.dtype, array.shape)), array)
        return self.constants[id(array)][0]

    def apply(self, rule: Rule, given: list[Any], source: Any) -> list[Any]:
        """Write a rule's equations for operands, results and seeds; what it gives (None: zero)."""
        env = given
        if rule.constants:
            env += [self.constant(array) for array in rule.constants]
        for op, refs, types in rule.steps:
            inputs = tuple([env[r] if r.__class__ is int else r for r in refs])
            outputs = (Var(types[0]),) if len(types) == 1 else tuple([Var(t) for t in types])
            self.equations.append(Equation(op, inputs, outputs, source))
            env += outputs
        return [None if r is None else env[r] for r in rule.results]

    def finish(self, seeds: Sequence[Var | None], results: Sequence[Var | None]) -> Derivative:
        """The Derivative that computes `results` (None: zero), without what they do not need."""
        needed: set[Any] = {r for r in results if r is not None}
        equations = []
        for eqn in reversed(self.equations):
            if not needed.isdisjoint(eqn.outputs):
                eqn = trimmed(eqn, needed)
                needed.update(eqn.inputs)
                equations.append(eqn)
        equations.reverse()
        residuals = tuple([var for var in self.graph.vars() if var in needed])
        chosen = tuple([i for i, seed in enumerate(seeds) if seed in needed])
        constants = [(var, array) for var, array in self.constants.values() if var in needed]
        inputs = (*residuals, *[seeds[i] for i in chosen], *[var for var, _ in constants])
        outputs = tuple([r for r in results if r is not None])
        return Derivative(
            Graph(self.graph.name, inputs, tuple(equations), outputs),  # type: ignore[arg-type]
            residuals,
            chosen,
            tuple([array for _, array in constants]),
            tuple([r is not None for r in results]),
        )
