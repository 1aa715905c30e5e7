"""interpret: run a Graph with NumPy. Programs are prepared once: a list of (eval, inputs, outputs)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.ir.graph import Graph, Literal, Var

_ndarray = np.ndarray


class Program:
    """A Graph ready to run on arrays: `program(inputs) -> outputs`."""

    __slots__ = ("graph", "_constants", "_free", "_outputs", "_steps")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        number: dict[Var, int] = {}
        constants: list[Any] = []
        for var in graph.vars():
            number[var] = len(number)
        n_vars = len(number)

        def slot(atom: Any) -> int:
            if isinstance(atom, Literal):
                constants.append(atom.array)
                return n_vars + len(constants) - 1
            return number[atom]

        last_use: dict[int, int] = {}
        steps: list[tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = []
        for i, eqn in enumerate(graph.equations):
            ins = tuple(map(slot, eqn.inputs))
            outs = tuple(number[var] for var in eqn.outputs)
            for s in (*ins, *outs):
                last_use[s] = i
            steps.append((eqn.op.eval, ins, outs))
        self._outputs = tuple(map(slot, graph.outputs))
        kept = {*self._outputs, *range(n_vars, n_vars + len(constants)), *range(len(graph.inputs))}
        free: list[list[int]] = [[] for _ in steps]
        for s, i in last_use.items():
            if s not in kept:
                free[i].append(s)
        self._steps = [(*step, tuple(dead)) for step, dead in zip(steps, free)]
        self._constants = constants

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        n_inputs = len(self.graph.inputs)
        assert len(inputs) == n_inputs
        made = sum(len(eqn.outputs) for eqn in self.graph.equations)
        env = [*inputs, *[None] * made, *self._constants]
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
        return [v if v.__class__ is _ndarray else np.asarray(v) for v in [env[s] for s in self._outputs]]


def evaluate(graph: Graph, *inputs: Any) -> list[np.ndarray]:
    """The outputs of a Graph for these arrays, by NumPy.

    >>> import lucid, numpy as np
    >>> graph = lucid.ir.parse("graph f(x: f32[2]):\\n    %0: f32[2] = mul x 2.0\\n    return %0")
    >>> lucid.ir.evaluate(graph, np.ones(2, "float32"))[0].tolist()
    [2.0, 2.0]
    """
    return Program(graph)([np.asarray(x) for x in inputs])
