"""Graphs and operations in double precision: every narrow float and complex dtype is widened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.primitive import Primitive
from lucid.ir.types import DTYPES, SHORT_NAMES, Type
from lucid.ops.elementwise.arithmetic import Cast

WIDE = {
    "float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128",
}  # fmt: skip


def wide_array(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(WIDE[x.dtype.name]) if x.dtype.name in WIDE else x


def wide_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(WIDE.get(dtype.name, dtype))


def wide_literal(x: Literal) -> Literal:
    return Literal(x.value, wide_dtype(x.dtype))


def wide_op_of(eqn: Equation) -> Primitive:
    """Return the wide operation of an equation; what computes no floats from floats stays narrow.

    A random draw in double precision would be another number.
    """
    from_floats = any(x.type.dtype.name in WIDE for x in eqn.inputs)
    holds_graph = any([isinstance(x, Graph | tuple) for x in eqn.op.params().values()])
    return wide_op(eqn.op) if from_floats or holds_graph else eqn.op


def wide_op(op: Primitive) -> Primitive:
    """Return an operation whose dtypes and Graphs are wide."""
    given = op.params()
    found = {name: wide_parameter(name, value) for name, value in given.items()}
    changed = {name: value for name, value in found.items() if value is not given[name]}
    return replace(op, **changed) if changed else op  # type: ignore[type-var]


def wide_parameter(name: str, value: Any) -> Any:
    """Return a parameter of an operation in double precision: itself if nothing in it is narrow."""
    if isinstance(value, Graph):
        return wide_graph(value)
    if name == "dtype" and value in DTYPES and DTYPES[value].name in WIDE:
        return SHORT_NAMES[wide_dtype(DTYPES[value])]
    if isinstance(value, tuple):
        found = tuple([wide_parameter("", x) for x in value])
        return found if any(x is not y for x, y in zip(found, value)) else value
    return value


def wide_graph(graph: Graph) -> Graph:
    """Return the same program in double precision."""
    env: dict[Var, Var] = {x: wide_var(x) for x in graph.inputs}

    def atom(x: Atom) -> Atom:
        return wide_literal(x) if isinstance(x, Literal) else env[x]

    equations = []
    for eqn in graph.equations:
        op, inputs = wide_op_of(eqn), tuple(map(atom, eqn.inputs))
        types = op.infer(*[x.type for x in inputs])
        outputs = tuple(map(Var, types if isinstance(types, tuple) else (types,)))
        equations.append(Equation(op, inputs, outputs, eqn.source))
        for old, new in zip(eqn.outputs, outputs):
            env[old] = new
            if new.type.dtype.name in WIDE:
                env[old] = wide_var(new)
                cast = Cast(SHORT_NAMES[env[old].type.dtype])
                equations.append(Equation(cast, (new,), (env[old],)))
    return Graph(graph.name, tuple(env[x] for x in graph.inputs), tuple(equations),
                 tuple(map(atom, graph.outputs)))  # fmt: skip


def wide_var(x: Var) -> Var:
    return Var(Type(wide_dtype(x.type.dtype), x.type.shape), x.name)
