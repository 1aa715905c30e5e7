"""expand_matrix_exp: scaling to a small norm, a Padé approximation, and repeated squaring.

    exp(a) = exp(a / 2ˢ) to the power 2ˢ, and exp(x) = (v - u)⁻¹ (v + u) for small x

u and v are the odd and the even part of a polynomial. The number of squarings is known only at run
time, so the squaring is an operation of its own, with a loop in the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.ir.graph import Atom, Equation, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.types import DTYPES, SHORT_NAMES
from lucid.ops.elementwise.arithmetic import Abs, Add, Cast, Div, Mul, Sub
from lucid.ops.elementwise.conditional import Maximum, Minimum
from lucid.ops.elementwise.exponential import Exp2, Log2
from lucid.ops.elementwise.logic import Eq
from lucid.ops.elementwise.rounding import Ceil
from lucid.ops.linalg.contraction import Matmul
from lucid.ops.linalg.decompositions.factorizations import LuFactor
from lucid.ops.linalg.decompositions.triangular import LuSolve
from lucid.ops.linalg.matrices import real_dtype
from lucid.ops.linalg.matrix_exp import RepeatedSquare
from lucid.ops.reduce.extrema import Max
from lucid.ops.reduce.reduction import Sum
from lucid.ops.shape.full_and_iota import Iota
from lucid.ops.shape.movement import Reshape

# Padé coefficients, and the norm up to which their approximation is exact to rounding.
SINGLE = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
DOUBLE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
    40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
NORM = {"f32": 3.925724783138660, "f64": 5.371920351148152}
MAX_SQUARINGS = 1100.0  # squarings: no finite norm needs more


def expand_matrix_exp(w: Any, eqn: Equation) -> Sequence[Atom] | None:
    """Expand a matrix_exp; None for dtypes and shapes that stay as they are."""
    (a,) = eqn.inputs
    if not a.type.size or SHORT_NAMES[a.type.dtype] not in ("f32", "f64", "c64", "c128"):
        return None
    times = count_squarings(w, a)
    shape = (*a.type.shape[:-2], 1, 1)
    factor = w.make(Exp2(), w.make(Sub(), Literal(0.0, times.type.dtype), times))
    factor = cast(w, w.make(Reshape(shape), factor), a.type.dtype)
    x = w.make(Mul(), a, factor)
    odd, even = pade_parts(w, x)
    below, above = w.make(Sub(), even, odd), w.make(Add(), even, odd)
    packed, pivots, _ = make_multiple(w, LuFactor(), below)
    y = w.make(LuSolve(checked=False), below, packed, pivots, above)
    return [w.make(RepeatedSquare(), y, w.make(Cast("i64"), times))]


def count_squarings(w: Any, a: Atom) -> Atom:
    """max(0, ceil(log2(norm / limit))) for each matrix, with the 1-norm."""
    real = SHORT_NAMES[real_dtype(a.type.dtype)]
    ndim, dtype = a.type.ndim, DTYPES[real]
    sums = w.make(Sum((ndim - 2,)), w.make(Abs(), a))
    norm = w.make(Max((ndim - 2,)), sums)
    ratio = w.make(Div(), norm, Literal(NORM[real], dtype))
    steps = w.make(Ceil(), w.make(Log2(), w.make(Maximum(), ratio, Literal(1.0, dtype))))
    return w.make(Minimum(), steps, Literal(MAX_SQUARINGS, dtype))


def pade_parts(w: Any, x: Atom) -> tuple[Atom, Atom]:
    """The odd and the even part of the numerator at a matrix."""
    single = SHORT_NAMES[real_dtype(x.type.dtype)] == "f32"
    b = SINGLE if single else DOUBLE
    one = identity(w, x)
    two = w.make(Matmul(), x, x)
    four = w.make(Matmul(), two, two)
    six = w.make(Matmul(), four, two)
    powers = [one, two, four, six]
    odd, even = (linear_combination(w, b[first:8:2], powers) for first in (1, 0))
    if not single:
        high = [two, four, six]
        odd = w.make(Add(), odd, w.make(Matmul(), six, linear_combination(w, b[9::2], high)))
        even = w.make(Add(), even, w.make(Matmul(), six, linear_combination(w, b[8::2], high)))
    return w.make(Matmul(), x, odd), even


def linear_combination(w: Any, weights: Sequence[float], matrices: Sequence[Atom]) -> Atom:
    total = None
    for weight, x in zip(weights, matrices):
        value = complex(weight) if x.type.dtype.kind == "c" else weight
        term = w.make(Mul(), x, Literal(value, x.type.dtype))
        total = term if total is None else w.make(Add(), total, term)
    assert total is not None
    return total


def identity(w: Any, x: Atom) -> Atom:
    shape, ndim = x.type.shape, x.type.ndim
    row, column = (w.make(Iota(shape, axis, "i32")) for axis in (ndim - 2, ndim - 1))
    return cast(w, w.make(Eq(), row, column), x.type.dtype)


def cast(w: Any, x: Atom, dtype: np.dtype) -> Atom:
    return x if x.type.dtype == dtype else w.make(Cast(SHORT_NAMES[dtype]), x)


def make_multiple(w: Any, op: Any, *inputs: Atom) -> tuple[Var, ...]:
    """Write an equation with more than one result."""
    types = infer(op, tuple([x.type for x in inputs]))
    outs = tuple(Var(t) for t in types)
    w.add(Equation(op, inputs, outs, w.source))
    return outs
