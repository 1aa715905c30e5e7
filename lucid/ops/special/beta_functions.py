"""The gamma and beta functions, and the incomplete beta function with all its derivatives.

Derivatives of betainc in a and b have no closed form. In s = logit(t) its integrand is log-concave
with its greatest value at t = a / (a + b), so the integral over the side of x without it has an
integrand that falls, and three panels of Gauss-Legendre quadrature give it to about 1e-12: two in
which the integrand may bend, and one for the exponential tail.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from lucid.ops.core.apply import floating, floating_binary
from lucid.ops.core.promote import cast, promote_tensors
from lucid.ops.elementwise.conditional import minimum, where
from lucid.ops.elementwise.exponential import exp, expm1, log, log1p, sqrt
from lucid.ops.elementwise.logarithms import xlogy
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.trigonometric import cos, sin
from lucid.ops.special.entropies import xlog1py
from lucid.ops.special.error_and_gamma import digamma
from lucid.ops.special.from_scipy import FromScipy
from lucid.ops.special.incomplete_gamma import (
    NEGLIGIBLE,
    gamma_density,
    gammainc_grad_a,
    quadrature,
)
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.node import wrap

BENDS = (8.0, 36.0)  # beyond the second, e**-v is below rounding error


class Gamma(FromScipy):
    """The gamma function."""

    function, saves = "gamma", "xy"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (y * digamma(x),)


class Rgamma(FromScipy):
    """1 / gamma(x), which is 0 at 0, -1, -2, ..., with the derivative (-1)^n n! at -n."""

    function, saves = "rgamma", "xy"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        at_zero = (x <= 0) & (floor(x) == x)
        mirrored = 1.0 - x  # the derivative of sin(pi x) gamma(1 - x) / pi, which is 1 / gamma(x)
        sine = sin(math.pi * x) / math.pi
        slope = gamma(mirrored) * (cos(math.pi * x) - digamma(mirrored) * sine)
        return (where(at_zero, slope, -y * digamma(where(at_zero, 0.5, x))),)


class Beta(FromScipy):
    """gamma(a) gamma(b) / gamma(a + b)."""

    function, saves = "beta", "xy"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        both = digamma(a + b)
        return y * (digamma(a) - both), y * (digamma(b) - both)


class Betaln(FromScipy):
    """log |beta(a, b)|, without the cancellation of three logarithms."""

    function, saves = "betaln", "x"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        both = digamma(a + b)
        return digamma(a) - both, digamma(b) - both


class Betainc(FromScipy):
    """The integral of t**(a - 1) (1 - t)**(b - 1) / beta(a, b) from 0 to x."""

    function, saves = "betainc", "x"

    def partials(self, y: Any, a: Any, b: Any, x: Any) -> tuple[Any, ...]:
        return *betainc_grads(a, b, x), beta_density(a, b, x)


class Betaincinv(FromScipy):
    """The x with betainc(a, b, x) = p."""

    function, saves = "betaincinv", "xy"

    def partials(self, y: Any, a: Any, b: Any, p: Any) -> tuple[Any, ...]:
        density = beta_density(a, b, y)
        in_a, in_b = betainc_grads(a, b, y)
        return -in_a / density, -in_b / density, 1.0 / density


class Gammaincinv(FromScipy):
    """The x with gammainc(a, x) = p."""

    function, saves = "gammaincinv", "xy"

    def partials(self, y: Any, a: Any, p: Any) -> tuple[Any, ...]:
        density = gamma_density(a, y)
        return -gammainc_grad_a(a, y) / density, 1.0 / density


class Stdtr(FromScipy):
    """The cumulative distribution function of Student's t distribution."""

    function, saves = "stdtr", "x"

    def partials(self, y: Any, df: Any, t: Any) -> tuple[Any, ...]:
        return student_grad_df(df, t), student_density(df, t)


class Stdtrit(FromScipy):
    """The t with stdtr(df, t) = p."""

    function, saves = "stdtrit", "xy"

    def partials(self, y: Any, df: Any, p: Any) -> tuple[Any, ...]:
        density = student_density(df, y)
        return -student_grad_df(df, y) / density, 1.0 / density


class Pdtrik(FromScipy):
    """The real k, where there is one, with gammaincc(k + 1, rate) = p."""

    function, saves = "pdtrik", "xy"

    def partials(self, y: Any, p: Any, rate: Any) -> tuple[Any, ...]:
        in_k = -gammainc_grad_a(y + 1.0, rate)
        return 1.0 / in_k, gamma_density(y + 1.0, rate) / in_k


PDTRIK = Pdtrik()
GAMMA, RGAMMA, BETA, BETALN = Gamma(), Rgamma(), Beta(), Betaln()
BETAINC, BETAINCINV, GAMMAINCINV = Betainc(), Betaincinv(), Gammaincinv()
STDTR, STDTRIT = Stdtr(), Stdtrit()


def in_float64(*xs: Any) -> list[Any]:
    """Return operands, some of which may be Python numbers, as float64 tensors."""
    wide = [wrap(np.array(x)) if isinstance(x, float) else x for x in xs]
    return [cast(x, "float64") for x in wide]


def dtype_like(*xs: Any) -> np.dtype:
    return next(x.dtype for x in xs if not isinstance(x, float))


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """Return x**(a - 1) (1 - x)**(b - 1) / beta(a, b), the derivative of betainc in x."""
    dtype = dtype_like(a, b, x)
    a, b, x = in_float64(a, b, x)
    power = xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x)
    return cast(exp(power - betaln(a, b)), dtype)


def betainc_grads(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """Return the derivatives of betainc in a and in b."""
    dtype = dtype_like(a, b, x)
    a, b, x = in_float64(a, b, x)
    at_end = (x <= 0.0) | (x >= 1.0)
    x = where(at_end, 0.5, x)
    lower = x * (a + b) <= a  # the side of x that is integrated over
    near, falls = where(lower, x, 1.0 - x), where(lower, a, b)
    # Two bounds of where the integrand is negligible: by its bend at x, and by its tail.
    by_bend = _end(falls - (a + b) * near, (a + b) * near * (1.0 - near))
    by_tail = (NEGLIGIBLE - (a + b) * log1p(-near)) / falls
    end = minimum(by_bend, by_tail).detach()
    height = exp(a * log(x) + b * log1p(-x) - betaln(a, b))
    both = digamma(a + b)
    means = digamma(a) - both, digamma(b) - both
    total_a, total_b = 0.0, 0.0
    points, weights = quadrature()
    stops = [end * 0.0, *[minimum(end, bend) for bend in BENDS], end]
    for start, stop in pairwise(stops):
        length = stop - start
        v = start.unsqueeze(-1) + length.unsqueeze(-1) * points
        bent = log1p(near.unsqueeze(-1) * expm1(-v))
        fall = falls.unsqueeze(-1) * v + (a + b).unsqueeze(-1) * bent
        density = exp(-fall) * weights * length.unsqueeze(-1)
        side = lower.unsqueeze(-1)
        log_t = log(x).unsqueeze(-1) - bent - where(side, v, 0.0)
        log_1_t = log1p(-x).unsqueeze(-1) - bent - where(side, 0.0, v)
        total_a = total_a + ((log_t - means[0].unsqueeze(-1)) * density).sum(-1)
        total_b = total_b + ((log_1_t - means[1].unsqueeze(-1)) * density).sum(-1)
    signed = where(lower, height, -height)
    return tuple(cast(where(at_end, 0.0, signed * t), dtype) for t in (total_a, total_b))  # type: ignore


def _end(slope: Any, curvature: Any) -> Any:
    """Return the v with slope v + curvature v² / (2 + v) = 40, beyond which nothing counts."""
    square, half = slope + curvature, 0.5 * NEGLIGIBLE - slope
    return (half + sqrt(half * half + 2.0 * NEGLIGIBLE * square)) / square


def student_density(df: Any, t: Any) -> Any:
    """Return the density of Student's t distribution."""
    dtype = dtype_like(df, t)
    df, t = in_float64(df, t)
    norm = 0.5 * log(df) + betaln(0.5 * df, 0.5)
    return cast(exp(-0.5 * (df + 1.0) * log1p(t * t / df) - norm), dtype)


def student_grad_df(df: Any, t: Any) -> Any:
    """Return the derivative of stdtr in df: it is I_x(df / 2, 1 / 2) / 2 for x = df / (df + t²).

    At t = 0 it is t times the derivative of the density.
    """
    dtype = dtype_like(df, t)
    df, t = in_float64(df, t)
    x = df / (df + t * t)
    in_a = betainc_grads(0.5 * df, wrap(np.array(0.5)), x)[0]
    moved = exp(-0.5 * df * log1p(t * t / df) - betaln(0.5 * df, 0.5)) * sqrt(1.0 - x) / df
    half = 0.5 * (0.5 * in_a + moved)
    in_norm = 0.5 / df + 0.5 * (digamma(0.5 * df) - digamma(0.5 * df + 0.5))
    start = -t * in_norm * student_density(df, t)
    return cast(where(t < 0.0, half, where(t > 0.0, -half, start)), dtype)


@public("special")
def gamma(input: Any) -> Any:
    """The gamma function, elementwise.

    >>> import lucid
    >>> lucid.special.gamma(lucid.tensor([1.0, 5.0]))
    Tensor([ 1., 24.])
    """
    return floating(GAMMA, input)


@public("special")
def rgamma(input: Any) -> Any:
    """1 / gamma(x), elementwise: 0 at 0, -1, -2, ..."""
    return floating(RGAMMA, input)


@public("special")
def gammasgn(input: Any) -> Any:
    """The sign of gamma(x), elementwise; the derivative is 0."""
    from lucid.ops.core.promote import to_floating

    x = to_floating(input)
    below = floor(x)
    signs = where(below % 2.0 == 0.0, 1.0, -1.0)
    pole = where(x == 0.0, where(1.0 / x < 0.0, -1.0, 1.0), math.nan)
    found = where(x > 0.0, 1.0, where(below == x, pole, signs))
    return where(x != x, math.nan, cast(found, x.dtype)).detach()


@public("special")
def beta(a: Any, b: Any) -> Any:
    """The beta function gamma(a) gamma(b) / gamma(a + b), elementwise."""
    return floating_binary(BETA, a, b)


@public("special")
def betaln(a: Any, b: Any) -> Any:
    """log |beta(a, b)|, elementwise, accurate for large a and b."""
    return floating_binary(BETALN, a, b)


@public("special")
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function, elementwise, with derivatives in all operands.

    It is the integral of t**(a - 1) (1 - t)**(b - 1) / beta(a, b) from 0 to x.

    >>> import lucid
    >>> lucid.special.betainc(lucid.tensor(2.0), lucid.tensor(2.0), lucid.tensor([0.25, 0.5]))
    Tensor([0.15625, 0.5    ])
    """
    return bind(BETAINC, *promote_tensors(a, b, x, floating=True))


@public("special")
def betaincinv(a: Any, b: Any, p: Any) -> Any:
    """The x with betainc(a, b, x) = p, elementwise, with derivatives in all operands."""
    return bind(BETAINCINV, *promote_tensors(a, b, p, floating=True))


@public("special")
def gammaincinv(a: Any, p: Any) -> Any:
    """The x with gammainc(a, x) = p, elementwise, with derivatives in both operands."""
    return floating_binary(GAMMAINCINV, a, p)


@public("special")
def stdtr(df: Any, t: Any) -> Any:
    """The cumulative distribution function of Student's t distribution, elementwise."""
    return floating_binary(STDTR, df, t)


@public("special")
def stdtrit(df: Any, p: Any) -> Any:
    """The t with stdtr(df, t) = p, elementwise, with derivatives in both operands."""
    return floating_binary(STDTRIT, df, p)


@public("special")
def pdtrik(p: Any, m: Any) -> Any:
    """The real k with gammaincc(k + 1, m) = p, the quantile of a Poisson distribution's mean m."""
    return floating_binary(PDTRIK, p, m)
