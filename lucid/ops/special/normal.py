"""The normal distribution and the scaled error function, accurate far into the tails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ops.core.apply import floating
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import exp
from lucid.ops.special.from_scipy import FromScipy
from lucid.ops.special.tails import accurate
from lucid.public.declare import public

SQRT_HALF = math.sqrt(0.5)
TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
DENSITY = 1 / math.sqrt(2 * math.pi)
FAR = {2: 4.0, 4: 5.0, 8: 10.0}  # where the series becomes as accurate, by itemsize
TERMS = 12


class AccurateTails(FromScipy, abstract=True):
    """A function whose values in float64 are those of `tails`, not SciPy's."""

    def eval(self, *xs: Any) -> Any:
        (x,) = xs
        is_wide = isinstance(x, np.ndarray) and x.dtype == np.float64
        return accurate(self.function)(x) if is_wide else super().eval(x)


class Erfcx(AccurateTails):
    """e**(x*x) erfc(x)."""

    function, saves = "erfcx", "xy"
    scalar = "erfcx"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        near = 2.0 * x * y - TWO_OVER_SQRT_PI
        far = x > FAR[x.dtype.itemsize]
        return (where(far, _erfcx_derivative(where(far, x, 1e9)), near),)


def _erfcx_derivative(x: Any) -> Any:
    """2 x erfcx(x) - 2 / sqrt(pi) = 2 / sqrt(pi) (-z + 1·3 z² - 1·3·5 z³ ...), z = 1 / (2 x x)."""
    z = 0.5 / (x * x)
    total = -z * (2 * TERMS - 1) + 1.0
    for k in range(TERMS - 1, 1, -1):
        total = -z * (2 * k - 1) * total + 1.0
    return -z * total * TWO_OVER_SQRT_PI


class Ndtr(AccurateTails):
    """The cumulative distribution function of the standard normal distribution."""

    function, saves = "ndtr", "x"
    scalar = "ndtr"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (DENSITY * exp(-0.5 * x * x),)


class LogNdtr(FromScipy):
    """log(ndtr(x))."""

    function, saves = "log_ndtr", "x"
    scalar = "log_ndtr"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (2 * DENSITY / erfcx(-SQRT_HALF * x),)


class Ndtri(FromScipy):
    """The inverse of ndtr."""

    function, saves = "ndtri", "y"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (exp(0.5 * y * y) / DENSITY,)


class Erfcinv(FromScipy):
    """The inverse of erfc."""

    function, saves = "erfcinv", "y"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-exp(y * y) / TWO_OVER_SQRT_PI,)


ERFCX, NDTR, LOG_NDTR, NDTRI, ERFCINV = Erfcx(), Ndtr(), LogNdtr(), Ndtri(), Erfcinv()


@public("special")
def erfcx(input: Any) -> Any:
    """e**(x*x) erfc(x), elementwise, accurate where erfc underflows.

    >>> import lucid
    >>> lucid.special.erfcx(lucid.tensor([0.0, 1e10]))
    Tensor([1.000000e+00, 5.641896e-11])
    """
    return floating(ERFCX, input)


@public("special")
def ndtr(input: Any) -> Any:
    """The cumulative distribution function of the standard normal distribution, elementwise."""
    return floating(NDTR, input)


@public("special")
def log_ndtr(input: Any) -> Any:
    """The logarithm of ndtr, elementwise, accurate where ndtr underflows.

    >>> import lucid
    >>> lucid.special.log_ndtr(lucid.tensor([0.0, -40.0]))
    Tensor([-6.9314718e-01, -8.0460846e+02])
    """
    return floating(LOG_NDTR, input)


@public("special")
def ndtri(input: Any) -> Any:
    """The inverse of ndtr, elementwise; nan outside [0, 1]."""
    return floating(NDTRI, input)


@public("special")
def erfcinv(input: Any) -> Any:
    """The inverse of erfc, elementwise; accurate where erfinv(1 - x) is not."""
    return floating(ERFCINV, input)
