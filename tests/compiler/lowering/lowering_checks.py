"""Compiles one equation, checks that every step is native, and compares with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lucid.compiler.compile import compile_graph
from lucid.compiler.plan.executable import Executable, Segment
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.interpret import evaluate
from lucid.ir.primitive import Primitive
from lucid.ir.types import type_of

DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "int64", "float32", "float64"]


def graph_of(op: Primitive, *arrays: np.ndarray) -> Graph:
    inputs = tuple(Var(type_of(x), f"x{i}") for i, x in enumerate(arrays))
    types = op.infer(*[x.type for x in inputs])
    outputs = tuple(Var(t) for t in (types if isinstance(types, tuple) else (types,)))
    return Graph("f", inputs, (Equation(op, inputs, outputs),), outputs)


def compiled(op: Primitive, *arrays: np.ndarray) -> Executable:
    """The program of one equation, all of it native."""
    executable = compile_graph(graph_of(op, *arrays))
    left = [part.op.name for part in executable.parts if not isinstance(part, Segment)]
    assert not left, f"{left} run outside of plans"
    return executable


def same(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> None:
    """Equal to the bit, except for the payload of a nan."""
    for a, b in zip(got, want, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def check(op: Primitive, *arrays: np.ndarray) -> None:
    """Compiled = interpreted, to the bit."""
    want = evaluate(graph_of(op, *arrays), *arrays)
    same(compiled(op, *arrays)(arrays), want)


def numbers(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Numbers of any dtype, some of them equal."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype[0] in "bu" else -9
    return rng.integers(low, 10 if dtype != "bool" else 2, shape).astype(dtype)
