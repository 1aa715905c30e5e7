"""fold_constants: a recorded Graph and its constant arrays -> the Graph with constants folded.

What is computed from constant arrays and literals alone is computed once, when the function is
traced. Views are kept: a mask that is broadcast stays as small as it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.types import SHORT_NAMES
from lucid.ops.shape.full_and_iota import Full


def fold_constants(
    graph: Graph, constants: dict[Var, np.ndarray]
) -> tuple[Graph, list[np.ndarray]]:
    """The folded Graph, whose last inputs are the constants still needed, and those arrays."""
    values: dict[Any, np.ndarray] = dict(constants)
    folded: dict[Any, Equation] = {}
    remaining: list[Equation] = []
    for eqn in graph.equations:
        given = [x.array if x.__class__ is Literal else values.get(x) for x in eqn.inputs]
        known = not any([x is None for x in given])
        if not known or eqn.op.ordered or is_made_of_literals(eqn):
            remaining.append(eqn)
            continue
        with np.errstate(all="ignore"):
            out = eqn.op.eval(*given)  # type: ignore[arg-type]
        for var, value in zip(eqn.outputs, out if isinstance(out, tuple) else (out,)):
            values[var] = np.asarray(value)
            folded[var] = eqn
    return keep_needed(graph, values, folded, remaining)


def is_made_of_literals(eqn: Equation) -> bool:
    """True for arrays that kernels make themselves (`iota`, `full`); a single number is folded."""
    literals = all([x.__class__ is Literal for x in eqn.inputs])
    return literals and eqn.outputs[0].type.size != 1


def keep_needed(
    graph: Graph, values: dict[Any, Any], folded: dict[Any, Equation], remaining: list[Equation]
) -> tuple[Graph, list[np.ndarray]]:
    """The Graph of the remaining equations, with inputs for the constants that they read."""
    names: dict[Any, Any] = {}
    first: list[Equation] = []
    arrays: list[np.ndarray] = []
    inputs = [var for var in graph.inputs if var not in values]

    def name(x: Any) -> Any:
        if x.__class__ is Literal or x not in values:
            return x
        if x not in names:
            names[x] = make(x)
        return names[x]

    def make(x: Var) -> Var:
        eqn = folded.get(x)
        if eqn is not None and eqn.op.is_view:
            out = Var(x.type)
            first.append(Equation(eqn.op, tuple(map(name, eqn.inputs)), (out,), eqn.source))
            return out
        number = uniform_literal(values[x])
        if number is not None:
            out = Var(x.type)
            full = Full(x.type.shape, SHORT_NAMES[x.type.dtype])
            first.append(Equation(full, (number,), (out,), None))
            return out
        arrays.append(np.asarray(values[x], order="C"))
        inputs.append(Var(x.type, f"k{len(arrays) - 1}"))
        return inputs[-1]

    equations = [Equation(e.op, tuple(map(name, e.inputs)), e.outputs, e.source) for e in remaining]
    outputs = tuple(map(name, graph.outputs))
    return Graph(graph.name, tuple(inputs), (*first, *equations), outputs), arrays


def uniform_literal(array: np.ndarray) -> Literal | None:
    """The literal that every element equals, to the bit, or None."""
    is_key = array.dtype == np.uint32 and array.shape == (2,)  # a random key must stay an array
    if not array.size or array.dtype.kind == "c" or is_key:
        return None
    one = array.ravel()[0]
    if not (array == one).all() or (one == 0 and np.signbit(array).any()):
        return None
    return Literal(one.item(), array.dtype)
