"""Cases for arithmetic, exponentials, trigonometry, special functions and rounding."""

import numpy as np
import scipy.special

from lucid.ops.core.kinds import SCALE
from lucid.ops.elementwise import arithmetic as a
from lucid.ops.elementwise import exponential as e
from lucid.ops.elementwise import rounding as r
from lucid.ops.elementwise import trigonometric as t
from lucid.ops.elementwise.complexes import COMPLEX, CONJ, IMAG, REAL
from lucid.ops.elementwise.power import POW
from lucid.ops.special import error_and_gamma as s
from tests.cases.case import Arg, Case, boolean, complex_, integer, real

away = real(3, 4, low=0.3, high=2.0)
small = real(2, 3, low=-0.9, high=0.9)
disc = complex_(2, 3, low=-0.6, high=0.6)


def unary(op, numpy, *args: Arg, **options) -> list[Case]:
    """Cases of a function of one operand: those given, a 0-d and an empty one like the first."""
    first = args[0]
    scalar = Arg(first.kind, (), first.low, first.high, first.avoid)
    empty = Arg(first.kind, (0, 3), first.low, first.high)
    return [Case(op, (arg,), numpy, **options) for arg in (*args, scalar, empty)]


def binary(op, numpy, first: Arg, second: Arg, **options) -> list[Case]:
    """Cases of a function of two operands: one shape, broadcasting both ways, 0-d, empty."""
    shapes = [((2, 3), (2, 3)), ((2, 1, 3), (4, 1)), ((3,), ()), ((), (2,)), ((0, 3), (1, 3))]

    def shaped(arg: Arg, shape: tuple[int, ...]) -> Arg:
        return Arg(arg.kind, shape, arg.low, arg.high, arg.avoid, dtype=arg.dtype)

    return [Case(op, (shaped(first, x), shaped(second, y)), numpy, **options) for x, y in shapes]


ARITHMETIC = [
    *binary(a.ADD, np.add, real(), real()),
    *binary(a.ADD, np.add, complex_(), complex_()),
    Case(a.ADD, (integer(3), integer(2, 3)), np.add),
    Case(a.ADD, (boolean(4), boolean(4)), np.logical_or, label="bool"),
    *binary(a.SUB, np.subtract, real(), real()),
    Case(a.SUB, (complex_(2), complex_(3, 1)), np.subtract),
    Case(a.SUB, (integer(3), integer()), np.subtract),
    *binary(a.MUL, np.multiply, real(), real()),
    Case(a.MUL, (complex_(2), complex_(3, 1)), np.multiply),
    Case(a.MUL, (integer(3), integer(3)), np.multiply),
    Case(a.MUL, (boolean(4), boolean(4)), np.logical_and, label="bool"),
    *binary(a.DIV, np.divide, real(), real(avoid=0.5)),
    Case(a.DIV, (complex_(2), complex_(3, 1, avoid=0.5)), np.divide),
    *unary(a.NEG, np.negative, real(2, 3), complex_(3), integer(4)),
    *unary(a.ABS, np.abs, real(2, 3, avoid=0.2), complex_(2, 3, avoid=0.2), integer(4)),
    *binary(a.COPYSIGN, np.copysign, real(avoid=0.2), real(avoid=0.2)),
    *binary(SCALE, np.multiply, real(), real()),
    Case(SCALE, (complex_(2), complex_(3, 1)), np.multiply),
    Case(a.Cast("f32"), (real(2, 3),), lambda x: x.astype("float32"), label="to-f32"),
    Case(a.Cast("f64"), (real(2, 3),), lambda x: x.astype("float64"), label="to-f64"),
    Case(a.Cast("c128"), (real(2),), lambda x: x.astype("complex128"), label="real-to-complex"),
    Case(a.Cast("f64"), (complex_(2),), lambda x: x.real.astype("f8"), label="complex-to-real"),
    Case(a.Cast("i32"), (real(4),), lambda x: x.astype("int32"), label="to-int"),
    Case(a.Cast("f64"), (integer(4),), lambda x: x.astype("float64"), label="from-int"),
    Case(a.Cast("bool"), (integer(4),), lambda x: x != 0, label="to-bool"),
]

POWERS = [
    *binary(POW, np.power, real(low=0.3), real()),
    Case(POW, (real(3, low=0.3), real(2, 3, low=-3.0, high=-1.0)), np.power, label="negative"),
    Case(POW, (complex_(3, avoid=0.4), complex_(3)), np.power),
    Case(POW, (integer(3), integer(3, low=0)), np.power),
    Case(POW, (integer(3, low=0, dtype="uint8"), integer(low=0, high=3, dtype="uint8")), np.power),
    *unary(e.EXP, np.exp, real(2, 3), complex_(3)),
    *unary(e.EXP2, np.exp2, real(2, 3), complex_(3)),
    *unary(e.EXPM1, np.expm1, real(2, 3), complex_(3)),
    *unary(e.LOG, np.log, away, complex_(3, avoid=0.3)),
    *unary(e.LOG2, np.log2, away, complex_(3, avoid=0.3)),
    *unary(e.LOG10, np.log10, away, complex_(3, avoid=0.3)),
    *unary(e.LOG1P, np.log1p, small, disc),
    *binary(e.LOGADDEXP, np.logaddexp, real(), real()),
    *unary(e.SQRT, np.sqrt, away, complex_(3, low=0.2)),
    *unary(e.RSQRT, lambda x: 1 / np.sqrt(x), away, complex_(3, low=0.2)),
    *unary(e.CBRT, np.cbrt, real(2, 3, avoid=0.3)),
    *unary(e.SIGMOID, lambda x: scipy.special.expit(x), real(2, 3, low=-30.0, high=30.0)),
]

TRIGONOMETRY = [
    *unary(t.SIN, np.sin, real(2, 3, low=-20.0, high=20.0), complex_(3)),
    *unary(t.COS, np.cos, real(2, 3, low=-20.0, high=20.0), complex_(3)),
    *unary(t.TAN, np.tan, real(2, 3, low=-1.3, high=1.3), complex_(3, low=-1.0, high=1.0)),
    *unary(t.ASIN, np.arcsin, small, disc),
    *unary(t.ACOS, np.arccos, small, disc),
    *unary(t.ATAN, np.arctan, real(2, 3, low=-5.0, high=5.0), disc),
    *unary(t.SINH, np.sinh, real(2, 3), complex_(3)),
    *unary(t.COSH, np.cosh, real(2, 3), complex_(3)),
    *unary(t.TANH, np.tanh, real(2, 3), disc),
    *unary(t.ASINH, np.arcsinh, real(2, 3, low=-5.0, high=5.0), disc),
    *unary(t.ACOSH, np.arccosh, real(2, 3, low=1.3, high=5.0), complex_(3, low=0.2, high=0.8)),
    *unary(t.ATANH, np.arctanh, small, disc),
    *binary(t.ATAN2, np.arctan2, real(avoid=0.3), real(avoid=0.3)),
    *binary(t.HYPOT, np.hypot, real(avoid=0.3), real(avoid=0.3)),
]

SPECIAL = [
    *unary(s.ERF, lambda x: scipy.special.erf(x), real(2, 3)),
    *unary(s.ERFC, lambda x: scipy.special.erfc(x), real(2, 3)),
    *unary(s.ERF, lambda x: scipy.special.erf(x), complex_(2, 3)),
    *unary(s.ERFC, lambda x: scipy.special.erfc(x), complex_(2, 3)),
    *unary(s.ERFINV, lambda x: scipy.special.erfinv(x), small),
    *unary(s.LGAMMA, lambda x: scipy.special.gammaln(x), real(2, 3, low=0.5, high=5.0)),
    *unary(s.DIGAMMA, lambda x: scipy.special.psi(x), real(2, 3, low=0.5, high=5.0)),
    *[
        case
        for n in (1, 2, 5)
        for case in unary(
            s.Polygamma(n),
            lambda x, n=n: scipy.special.polygamma(n, x),
            real(2, 3, low=1.0, high=5.0),
            real(2, low=-0.7, high=-0.3),
        )
    ],
]

between = real(2, 3, low=0.1, high=0.4)  # away from the steps of rounding
steps = real(20, low=-9.0, high=9.0)

ROUNDING = [
    *unary(r.FLOOR, np.floor, between, integer(4), boolean(3)),
    *unary(r.FLOOR, np.floor, steps, smooth=False),
    *unary(r.CEIL, np.ceil, between, integer(4), boolean(3)),
    *unary(r.CEIL, np.ceil, steps, smooth=False),
    *unary(r.TRUNC, np.trunc, between, integer(4), boolean(3)),
    *unary(r.TRUNC, np.trunc, steps, smooth=False),
    *unary(r.ROUND, np.round, between, integer(4)),
    *unary(r.ROUND, np.round, steps, smooth=False),
    *unary(r.Round(2), lambda x: np.round(x, 2), real(20), integer(4), smooth=False),
    *unary(r.Round(-1), lambda x: np.round(x, -1), real(20, low=-99, high=99), smooth=False),
    Case(r.Round(-1), (integer(9, low=-99, high=99),), lambda x: np.round(x, -1)),
    *unary(r.SIGN, np.sign, real(2, 3, avoid=0.2), integer(4)),
    *binary(r.FLOOR_DIVIDE, np.floor_divide, real(), real(avoid=0.3), smooth=False),
    Case(r.FLOOR_DIVIDE, (real(low=2.2, high=2.8), real(low=1.01, high=1.09)), np.floor_divide),
    Case(r.FLOOR_DIVIDE, (integer(9), integer(9, low=1)), np.floor_divide),
    *binary(r.REMAINDER, np.remainder, real(low=0.3, high=0.8), real(low=-2.0, high=-0.9)),
    *binary(r.REMAINDER, np.remainder, real(low=2.2, high=2.8), real(low=1.01, high=1.09)),
    Case(r.REMAINDER, (integer(9), integer(9, low=-4, high=0)), np.remainder),
    *binary(r.FMOD, np.fmod, real(low=-2.8, high=-2.2), real(low=1.01, high=1.09)),
    Case(r.FMOD, (integer(9), integer(9, low=-4, high=0)), np.fmod),
]

COMPLEX_NUMBERS = [
    *unary(REAL, np.real, complex_(2, 3)),
    *unary(IMAG, np.imag, complex_(2, 3)),
    *unary(CONJ, np.conj, complex_(2, 3)),
    *binary(COMPLEX, lambda x, y: x + 1j * y, real(), real()),
]

CASES = [*ARITHMETIC, *POWERS, *TRIGONOMETRY, *SPECIAL, *ROUNDING, *COMPLEX_NUMBERS]
