"""xlogy, logaddexp2, logit, sinc and sinhc.

Each is exact where its plain formula is 0 / 0, 0 * inf or cancels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ops.core.apply import dtype_error, floating, floating_binary
from lucid.ops.core.arguments import public_function
from lucid.ops.core.errstate import quiet
from lucid.ops.core.float16 import in_float32
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import to_floating
from lucid.ops.elementwise.blending import promote_real_floating
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import LN2, LOG, log1p, sigmoid
from lucid.ops.elementwise.trigonometric import sin, tanh
from lucid.tape.bind import bind


class Logaddexp2(Elementwise):
    """log2(2**a + 2**b) without overflow."""

    numpy = quiet(np.logaddexp2)
    accepts, saves = "f", "x"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return sigmoid((a - b) * LN2), sigmoid((b - a) * LN2)


LOGADDEXP2 = Logaddexp2()


@public_function("lucid", "Tensor", numpy="logaddexp2")
def logaddexp2(input: Any, other: Any) -> Any:
    """`log2(2**input + 2**other)`, elementwise and without overflow.

    >>> import lucid
    >>> lucid.logaddexp2(lucid.tensor([1000.0]), lucid.tensor([1000.0]))
    Tensor([1001.])
    """
    return floating_binary(LOGADDEXP2, input, other)


@public_function("lucid", "Tensor", "special", inplace_function=True)
def xlogy(input: Any, other: Any) -> Any:
    """`input * log(other)`, elementwise; 0 where `input` is 0, even if log(other) is not finite.

    >>> import lucid
    >>> lucid.xlogy(lucid.tensor([0.0, 2.0]), lucid.tensor([0.0, 1.0]))
    Tensor([0., 0.])
    """
    x, other = promote_real_floating("xlogy", input, other)
    is_zero = (x == 0) & ((other <= 0) | (other == math.inf))
    return where(is_zero, 0.0, x * bind(LOG, where(is_zero, 1.0, other)))


@public_function("lucid", "Tensor", "special", inplace_function=True)
def logit(input: Any, eps: Any = None) -> Any:
    """log(x / (1 - x)), elementwise, the inverse of sigmoid; x is first clamped to [eps, 1 - eps].

    >>> import lucid
    >>> lucid.logit(lucid.tensor([0.0, 0.5]), eps=0.5)
    Tensor([0., 0.])
    """
    x = to_floating(input)
    if x.dtype.kind == "c":
        raise dtype_error("logit", x.dtype, "it takes floating dtypes")
    if eps is not None:
        x = clamp(x, eps, 1 - eps)
    return bind(LOG, x) - log1p(-x)


# sin(u) / u = 1 - u²/3! + u⁴/5! - ...: for |u| < 0.6 the last term is below 2**-53
SINC_COEFFICIENTS = [(-1) ** k / math.factorial(2 * k + 1) for k in range(8)]
SERIES_RADIUS = 0.6


@public_function("lucid", "Tensor", "special", inplace_function=True, numpy="sinc")
@in_float32
def sinc(input: Any) -> Any:
    """sin(pi x) / (pi x), elementwise, and 1 at 0; derivatives at 0 are exact.

    >>> import lucid
    >>> lucid.sinc(lucid.tensor([0.0, 0.5]))
    Tensor([1.        , 0.63661975])
    """
    return unnormalized_sinc(to_floating(input) * math.pi)


def unnormalized_sinc_at_inf(u: Any) -> Any:
    """Return sin(u) / u, 1 at 0 and 0 at infinity."""
    far = abs(u) == math.inf
    return where(far, 0.0, unnormalized_sinc(where(far, 0.0, u)))


def unnormalized_sinc(u: Any) -> Any:
    """Return sin(u) / u, and 1 at 0."""
    near = abs(u) < SERIES_RADIUS
    square = where(near, u, 0.0)
    square = square * square
    series = square * SINC_COEFFICIENTS[-1]
    for coefficient in SINC_COEFFICIENTS[-2:0:-1]:
        series = (series + coefficient) * square
    u = where(near, 1.0, u)
    return where(near, series + SINC_COEFFICIENTS[0], sin(u) / u)


# The derivative of sinh(x) / x is x (2/3! + 4 x²/5! + 6 x⁴/7! + ...); for |x| < 1 the last term is
# below 2**-53.
SINHC_SLOPE = [2 * k / math.factorial(2 * k + 1) for k in range(1, 10)]


def sinhc_of_array(x: np.ndarray) -> np.ndarray:
    """Return sinh(x) / x; e**|x| / 2|x| where sinh overflows first."""
    size = np.abs(x)
    half = np.exp(0.5 * size)
    far = np.where(size == np.inf, size, 0.5 * half / size * half)
    return np.where(size > 20, far, np.where(size == 0, 1.0, np.sinh(size) / size)).astype(x.dtype)


class Sinhc(Elementwise):
    """sinh(x) / x, and 1 at 0."""

    numpy = quiet(sinhc_of_array)
    scalar, accepts, saves = "sinhc", "f", "xy"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        near = abs(x) < 1
        square = where(near, x * x, 0.0)
        series = square * SINHC_SLOPE[-1]
        for coefficient in SINHC_SLOPE[-2:0:-1]:
            series = (series + coefficient) * square
        far = where(near, 1.0, x)
        return (where(near, (series + SINHC_SLOPE[0]) * x, y * (1 / tanh(far) - 1 / far)),)


SINHC = Sinhc()


@public_function("lucid", "Tensor", inplace_function=True)
def sinhc(input: Any) -> Any:
    """sinh(x) / x, elementwise, and 1 at 0; derivatives at 0 are exact.

    >>> import lucid
    >>> lucid.sinhc(lucid.tensor([0.0, 1.0]))
    Tensor([1.       , 1.1752012])
    """
    return floating(SINHC, input)
