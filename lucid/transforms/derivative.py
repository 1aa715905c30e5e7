"""Derivative: the result of jvp and vjp, a Graph from residuals and seeds to derivatives.

Residuals are the values of the original Graph that the derivative reads; seeds are tangents of its
inputs or cotangents of its outputs. None is a derivative that is identically zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.rewrite import prune_outputs
from lucid.ir.types import Type
from lucid.ops.core.promote import get_default_dtype
from lucid.transforms.rule import Rule


class Derivative(NamedTuple):
    """`graph(*residuals, *seeds, *constants)` computes the nonzero derivatives.

    residuals    Vars of the original Graph that are inputs of this one
    seeds        positions of the seeds that are read
    constants    arrays that rules introduced
    nonzero      for every requested derivative, whether it is an output of `graph`
    """

    graph: Graph
    residuals: tuple[Var, ...]
    seeds: tuple[int, ...]
    constants: tuple[np.ndarray, ...]
    nonzero: tuple[bool, ...]

    def with_zeros(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the outputs of `graph` with None inserted for zero derivatives."""
        rest = iter(outputs)
        return [next(rest) if nonzero else None for nonzero in self.nonzero]

    def with_views(self, views: Sequence[Equation]) -> Derivative:
        """Return the Derivative that makes these views itself and reads what they are views of."""
        read, made = dict.fromkeys(self.residuals), []
        for eqn in reversed(views):
            if eqn.outputs[0] in read:
                del read[eqn.outputs[0]]
                read[eqn.inputs[0]] = None  # type: ignore[index]
                made.append(eqn)
        inputs = (*read, *self.graph.inputs[len(self.residuals) :])
        equations = (*reversed(made), *self.graph.equations)
        graph = Graph(self.graph.name, inputs, equations, self.graph.outputs)
        return self._replace(graph=graph, residuals=tuple(read))


class Builder:
    """Collects the equations of a Derivative."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.equations: list[Equation] = []
        self.constants: dict[int, tuple[Var, np.ndarray]] = {}
        self.default = get_default_dtype()

    def constant(self, array: np.ndarray) -> Var:
        """Return the Var of an array that a rule introduced."""
        if id(array) not in self.constants:
            self.constants[id(array)] = (Var(Type(array.dtype, array.shape)), array)
        return self.constants[id(array)][0]

    def apply(self, rule: Rule, given: list[Any], source: Any) -> list[Any]:
        """Add a rule's equations for operands, results and seeds; return its results."""
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
        """Return the Derivative that computes `results` (None: zero), without dead equations."""
        needed: set[Any] = {r for r in results if r is not None}
        equations = []
        for eqn in reversed(self.equations):
            if eqn.op.ordered or not needed.isdisjoint(eqn.outputs):
                eqn = prune_outputs(eqn, needed)
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
