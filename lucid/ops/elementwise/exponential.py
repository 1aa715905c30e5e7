"""Elementwise exponentials, logarithms and roots.

At the edge of a domain the derivative is what the formula gives: that of `sqrt` at 0 is inf. A zero
cotangent stays zero there (`ops.core.kinds.Scale`), so unused elements do not spoil a gradient.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ops.core.apply import floating, operands
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import as_tensor, promote_tensors
from lucid.public.declare import public
from lucid.public.lazy import LazyModule
from lucid.tape.bind import bind
from lucid.tape.node import Traced

complex_exponentials: Any = LazyModule("lucid.ops.elementwise.complex_exponentials")

LN2, LN10 = math.log(2), math.log(10)


class Exp(Elementwise):
    numpy = quiet(np.exp)
    scalar, saves = "exp", "y"
    complex_rule = "lucid.compiler.passes.expand.complex_functions:exponential"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (y,)


class Exp2(Elementwise):
    numpy = quiet(np.exp2)
    scalar, saves = "exp2", "y"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (y * LN2,)


def expm1_of_arrays(x: Any) -> Any:
    """np.expm1, with the limits of complex numbers whose real part is not finite."""
    y = np.expm1(x)
    if np.iscomplexobj(x) and not np.isfinite(np.real(x)).all():
        return np.where(np.isfinite(np.real(x)), y, np.exp(x) - 1)
    return y


class Expm1(Elementwise):
    """e**x - 1, exact near 0."""

    numpy = quiet(expm1_of_arrays)
    scalar, saves = "expm1", "y"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (y + 1,)


class Log(Elementwise):
    numpy = quiet(np.log)
    scalar, saves = "log", "x"
    complex_rule = "lucid.compiler.passes.expand.complex_functions:logarithm"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (1 / x,)


class Log2(Elementwise):
    numpy = quiet(np.log2)
    scalar, saves = "log2", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (1 / (x * LN2),)


class Log10(Elementwise):
    numpy = quiet(np.log10)
    scalar, saves = "log10", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (1 / (x * LN10),)


class Log1p(Elementwise):
    """log(1 + x), exact near 0."""

    numpy = quiet(np.log1p)
    scalar, saves = "log1p", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (1 / (x + 1),)


class Logaddexp(Elementwise):
    """log(e**a + e**b) without overflow."""

    numpy = quiet(np.logaddexp)
    scalar, accepts, saves = "logaddexp", "f", "x"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return sigmoid(a - b), sigmoid(b - a)


class Sqrt(Elementwise):
    """The square root. The derivative at 0 is inf."""

    numpy = quiet(np.sqrt)
    scalar, saves = "sqrt", "y"
    complex_rule = "lucid.compiler.passes.expand.complex_functions:square_root"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (0.5 / y,)


class Rsqrt(Elementwise):
    """1 / sqrt(x)."""

    numpy = quiet(lambda x: np.reciprocal(np.sqrt(x)))
    scalar, saves = "rsqrt", "y"
    complex_rule = "lucid.compiler.passes.expand.complex_functions:reciprocal_root"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-0.5 * y * y * y,)


class Cbrt(Elementwise):
    """The real cube root. The derivative at 0 is inf."""

    numpy = np.cbrt
    scalar, accepts, saves = "cbrt", "f", "y"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (1 / (3 * y * y),)


class Sigmoid(Elementwise):
    """1 / (1 + e**-x), which is 0 or 1, never nan, where e**-x overflows or underflows."""

    numpy = quiet(lambda x: np.reciprocal(np.add(np.exp(np.negative(x)), 1)))
    scalar, accepts, saves = "sigmoid", "f", "y"
    numpy_calls = 3

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (y * (1 - y),)


EXP, EXP2, EXPM1 = Exp(), Exp2(), Expm1()
LOG, LOG2, LOG10, LOG1P, LOGADDEXP = Log(), Log2(), Log10(), Log1p(), Logaddexp()
SQRT, RSQRT, CBRT, SIGMOID = Sqrt(), Rsqrt(), Cbrt(), Sigmoid()


@public("lucid", "Tensor", inplace="ufunc", inplace_function=True, numpy="exp")
def exp(input: Any) -> Any:
    """e**x, elementwise."""
    return floating(EXP, input)


@public("lucid", "Tensor", "special", inplace_function=True, numpy="exp2")
def exp2(input: Any) -> Any:
    """2**x, elementwise."""
    return floating(EXP2, input)


@public("lucid", "Tensor", "special", inplace_function=True, numpy="expm1")
def expm1(input: Any) -> Any:
    """e**x - 1, elementwise and exact near 0."""
    return floating(EXPM1, input)


@public("lucid", "Tensor", inplace="ufunc", inplace_function=True, numpy="log")
def log(input: Any) -> Any:
    """The natural logarithm, elementwise: -inf at 0, nan below 0."""
    return floating(LOG, input)


@public("lucid", "Tensor", inplace_function=True, numpy="log2")
def log2(input: Any) -> Any:
    """The logarithm to base 2, elementwise."""
    return floating(LOG2, input)


@public("lucid", "Tensor", inplace_function=True, numpy="log10")
def log10(input: Any) -> Any:
    """The logarithm to base 10, elementwise."""
    return floating(LOG10, input)


@public("lucid", "Tensor", "special", inplace_function=True, numpy="log1p")
def log1p(input: Any) -> Any:
    """log(1 + x), elementwise and exact near 0."""
    return floating(LOG1P, input)


@public("lucid", "Tensor", numpy="logaddexp")
def logaddexp(input: Any, other: Any) -> Any:
    """`log(e**input + e**other)`, elementwise and without overflow."""
    a, b = operands(input, other, floating=True)
    if a.dtype.kind == "c":
        return complex_exponentials.logaddexp(*promote_tensors(input, other))
    return bind(LOGADDEXP, a, b)


@public("lucid", "Tensor", inplace="ufunc", inplace_function=True, numpy="sqrt")
def sqrt(input: Any) -> Any:
    """The square root, elementwise: nan below 0; the derivative at 0 is inf."""
    return floating(SQRT, input)


@public("lucid", "Tensor", inplace_function=True)
def rsqrt(input: Any) -> Any:
    """1 / sqrt(x), elementwise."""
    return floating(RSQRT, input)


@public("lucid", "Tensor", inplace=True, numpy="cbrt")
def cbrt(x: Any) -> Any:
    """The real cube root, elementwise, also of negative numbers.

    >>> import lucid
    >>> lucid.cbrt(lucid.tensor([-8.0, 1.0]))
    Tensor([-2.,  1.])
    """
    return floating(CBRT, x)


@public("lucid", "special", name="expit")
@public("lucid", "Tensor", "nn.functional", inplace_function=True)
def sigmoid(input: Any) -> Any:
    """The logistic function 1 / (1 + e**-x), elementwise.

    >>> import lucid
    >>> lucid.sigmoid(lucid.tensor([-1000.0, 0.0, 1000.0]))
    Tensor([0. , 0.5, 1. ])
    """
    x = input if isinstance(input, Traced) else as_tensor(input)
    if x.dtype.kind == "c":
        return complex_exponentials.sigmoid(x)
    return floating(SIGMOID, x)
