"""Elementwise trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ops.core.apply import dtype_error, floating, floating_binary
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import to_floating
from lucid.public.declare import public
from lucid.public.lazy import LazyModule

conditional: Any = LazyModule("lucid.ops.elementwise.conditional")  # of derivatives
exponential: Any = LazyModule("lucid.ops.elementwise.exponential")


class Sin(Elementwise):
    numpy = quiet(np.sin)
    scalar, saves = "sin", "x"
    complex_rule = "lucid.compiler.passes.expand.complex_functions:sine"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (cos(x),)


class Cos(Elementwise):
    numpy = quiet(np.cos)
    scalar, saves = "cos", "x"
    complex_rule = "lucid.compiler.passes.expand.complex_functions:cosine"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-sin(x),)


class Tan(Elementwise):
    numpy = quiet(np.tan)
    scalar, saves = "tan", "y"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (1 + y * y,)


class Asin(Elementwise):
    """The derivative at -1 and 1 is inf."""

    numpy = quiet(np.arcsin)
    scalar, saves = "asin", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (exponential.rsqrt((1 - x) * (1 + x)),)


class Acos(Elementwise):
    """The derivative at -1 and 1 is -inf."""

    numpy = quiet(np.arccos)
    scalar, saves = "acos", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-exponential.rsqrt((1 - x) * (1 + x)),)


class Atan(Elementwise):
    numpy = quiet(np.arctan)
    scalar, saves = "atan", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (1 / (1 + x * x),)


class Atan2(Elementwise):
    """The angle of the point (b, a). At the origin its derivative is 0, as in PyTorch."""

    numpy = quiet(np.arctan2)
    scalar, accepts, saves = "atan2", "f", "x"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        r = hypot(a, b)
        return divide_no_nan(b / r, r), -divide_no_nan(a / r, r)


class Hypot(Elementwise):
    """sqrt(a*a + b*b) without overflow. At the origin its derivative is 0 (nan in PyTorch)."""

    numpy = quiet(np.hypot)
    scalar, accepts, saves = "hypot", "f", "xy"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return divide_no_nan(a, y), divide_no_nan(b, y)


def divide_no_nan(x: Any, r: Any) -> Any:
    """Return x / r, and 0 where r is 0."""
    return conditional.where(r == 0, 0.0, x / r)


class Sinh(Elementwise):
    numpy = quiet(np.sinh)
    scalar, saves = "sinh", "x"
    complex_rule = "lucid.compiler.passes.expand.complex_functions:hyperbolic_sine"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (cosh(x),)


class Cosh(Elementwise):
    numpy = quiet(np.cosh)
    scalar, saves = "cosh", "x"
    complex_rule = "lucid.compiler.passes.expand.complex_functions:hyperbolic_cosine"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (sinh(x),)


class Tanh(Elementwise):
    numpy = quiet(np.tanh)
    scalar, saves = "tanh", "y"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (1 - y * y,)


class Asinh(Elementwise):
    numpy = quiet(np.arcsinh)
    scalar, saves = "asinh", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (exponential.rsqrt(x * x + 1),)


class Acosh(Elementwise):
    """The derivative at 1 is inf."""

    numpy = quiet(np.arccosh)
    scalar, saves = "acosh", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (exponential.rsqrt(x - 1) * exponential.rsqrt(x + 1),)


class Atanh(Elementwise):
    """The derivative at -1 and 1 is inf."""

    numpy = quiet(np.arctanh)
    scalar, saves = "atanh", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (1 / ((1 - x) * (1 + x)),)


SIN, COS, TAN, ASIN, ACOS, ATAN = Sin(), Cos(), Tan(), Asin(), Acos(), Atan()
SINH, COSH, TANH, ASINH, ACOSH, ATANH = Sinh(), Cosh(), Tanh(), Asinh(), Acosh(), Atanh()
ATAN2, HYPOT = Atan2(), Hypot()


@public("lucid", "Tensor", inplace_function=True, numpy="sin")
def sin(input: Any) -> Any:
    """The sine, elementwise."""
    return floating(SIN, input)


@public("lucid", "Tensor", inplace_function=True, numpy="cos")
def cos(input: Any) -> Any:
    """The cosine, elementwise."""
    return floating(COS, input)


@public("lucid", "Tensor", inplace_function=True, numpy="tan")
def tan(input: Any) -> Any:
    """The tangent, elementwise."""
    return floating(TAN, input)


@public("lucid", "Tensor", aliases=("arcsin",), inplace_function=True, numpy="arcsin")
def asin(input: Any) -> Any:
    """The angle in [-pi/2, pi/2] whose sine is x, elementwise."""
    return floating(ASIN, input)


@public("lucid", "Tensor", aliases=("arccos",), inplace_function=True, numpy="arccos")
def acos(input: Any) -> Any:
    """The angle in [0, pi] whose cosine is x, elementwise."""
    return floating(ACOS, input)


@public("lucid", "Tensor", aliases=("arctan",), inplace_function=True, numpy="arctan")
def atan(input: Any) -> Any:
    """The angle in [-pi/2, pi/2] whose tangent is x, elementwise."""
    return floating(ATAN, input)


@public("lucid", "Tensor", aliases=("arctan2",), inplace=True, numpy="arctan2")
def atan2(input: Any, other: Any) -> Any:
    """The angle in [-pi, pi] of the point with ordinate `input` and abscissa `other`, elementwise.

    The derivative at the origin is 0.

    >>> import lucid
    >>> lucid.atan2(lucid.tensor([1.0, -1.0]), lucid.tensor([0.0, -1.0]))
    Tensor([ 1.5707964, -2.3561945])
    """
    return floating_binary(ATAN2, input, other)


@public("lucid", "Tensor", inplace=True, numpy="hypot")
def hypot(input: Any, other: Any) -> Any:
    """`sqrt(input**2 + other**2)`, elementwise and without overflow; derivative 0 at the origin.

    >>> import lucid
    >>> lucid.hypot(lucid.tensor([3.0, 1e30]), 4.0)
    Tensor([5.e+00, 1.e+30])
    """
    return floating_binary(HYPOT, input, other)


@public("lucid", "Tensor", inplace_function=True, numpy="sinh")
def sinh(input: Any) -> Any:
    """The hyperbolic sine, elementwise."""
    return floating(SINH, input)


@public("lucid", "Tensor", inplace_function=True, numpy="cosh")
def cosh(input: Any) -> Any:
    """The hyperbolic cosine, elementwise."""
    return floating(COSH, input)


@public("lucid", "Tensor", "nn.functional", inplace="ufunc", inplace_function=True, numpy="tanh")
def tanh(input: Any) -> Any:
    """The hyperbolic tangent, elementwise."""
    return floating(TANH, input)


@public("lucid", "Tensor", aliases=("arcsinh",), inplace_function=True, numpy="arcsinh")
def asinh(input: Any) -> Any:
    """The inverse hyperbolic sine, elementwise."""
    return floating(ASINH, input)


@public("lucid", "Tensor", aliases=("arccosh",), inplace_function=True, numpy="arccosh")
def acosh(input: Any) -> Any:
    """The inverse hyperbolic cosine, elementwise: nan below 1."""
    return floating(ACOSH, input)


@public("lucid", "Tensor", aliases=("arctanh",), inplace_function=True, numpy="arctanh")
def atanh(input: Any) -> Any:
    """The inverse hyperbolic tangent, elementwise: nan outside [-1, 1]."""
    return floating(ATANH, input)


@public(name="radians")
@public("lucid", "Tensor", inplace_function=True, numpy=("deg2rad", "radians"))
def deg2rad(input: Any) -> Any:
    """Convert degrees to radians, elementwise."""
    return _to_real_floating("deg2rad", input) * (math.pi / 180)


@public(name="degrees")
@public("lucid", "Tensor", inplace_function=True, numpy=("degrees", "rad2deg"))
def rad2deg(input: Any) -> Any:
    """Convert radians to degrees, elementwise."""
    return _to_real_floating("rad2deg", input) * (180 / math.pi)


def _to_real_floating(name: str, x: Any) -> Any:
    x = to_floating(x)
    if x.dtype.kind == "c":
        raise dtype_error(name, x.dtype, "it takes real dtypes")
    return x
