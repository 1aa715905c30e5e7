"""interpret: run a Graph with NumPy, as a Program: a list of (eval, inputs, outputs)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.ir.graph import Graph, Literal
from lucid.public.declare import public
from lucid.support.caches import memoize

_ndarray = np.ndarray


@public("ir")
class Program:
    """A Graph ready to run on arrays: `program(inputs) -> outputs`."""

    __slots__ = ("_constants", "_n_results", "_outputs", "_steps", "graph")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        number: dict[Any, int] = {var: i for i, var in enumerate(graph.vars())}
        n_vars, n_inputs = len(number), len(graph.inputs)
        self._n_results = n_vars - n_inputs
        constants: list[Any] = []

        def constant(literal: Literal) -> int:
            constants.append(literal.array)
            return n_vars + len(constants) - 1

        self._outputs = tuple(
            [constant(x) if x.__class__ is Literal else number[x] for x in graph.outputs]
        )
        kept: set[int] = {*self._outputs, *range(n_inputs)}
        steps = []
        for op, inputs, outputs, _ in reversed(graph.equations):
            ins = tuple([constant(x) if x.__class__ is Literal else number[x] for x in inputs])
            outs = tuple([number[var] for var in outputs])
            dead = tuple([s for s in (*ins, *outs) if s < n_vars and s not in kept])
            kept.update(ins)
            steps.append((op.eval, ins, outs, dead))
        steps.reverse()
        self._steps: list[tuple[Callable[..., Any], Any, Any, Any]] = steps
        self._constants = constants

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        n_inputs = len(self.graph.inputs)
        assert len(inputs) == n_inputs
        env = [*inputs, *[None] * self._n_results, *self._constants]
        with np.errstate(all="ignore"):
            for function, ins, outs, dead in self._steps:
                value = function(*[env[i] for i in ins])
                if value.__class__ is tuple:
                    for s, v in zip(outs, value):
                        env[s] = v
                else:
                    env[outs[0]] = value
                for s in dead:
                    env[s] = None
        return [
            v if v.__class__ is _ndarray else np.asarray(v) for v in [env[s] for s in self._outputs]
        ]


@memoize(maxsize=256)
def program_of(graph: Graph) -> Program:
    """Return the Program of a Graph that is the body of an operation, cached."""
    return Program(graph)


@public("ir")
def evaluate(graph: Graph, *inputs: Any) -> list[np.ndarray]:
    """Return the outputs of a Graph for these arrays, computed with NumPy.

    >>> import lucid, numpy as np
    >>> graph = lucid.ir.parse("graph f(x: f32[2]):\\n    %0: f32[2] = mul x 2.0\\n    return %0")
    >>> lucid.ir.evaluate(graph, np.ones(2, "float32"))[0].tolist()
    [2.0, 2.0]
    """
    return Program(graph)([np.asarray(x) for x in inputs])
