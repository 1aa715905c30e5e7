"""The incomplete gamma functions, with derivatives in both operands.

The derivative in a has no closed form. For x <= 1 it is a power series in x; elsewhere an integral
without a sign change (up to x if log(x) <= digamma(a), else from x on), by Gauss-Legendre
quadrature with 40 points. The remaining error is that of x**a e**-x / gamma(a) itself, about
a log(a) roundings in float64; smaller dtypes are computed in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ir.types import broadcast_shapes
from lucid.ops.core.apply import floating_binary
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.conditional import maximum, minimum, where
from lucid.ops.elementwise.exponential import exp, expm1, log, log1p, sqrt
from lucid.ops.special.error_and_gamma import digamma, lgamma
from lucid.ops.special.from_scipy import FromScipy
from lucid.public.declare import public
from lucid.support.caches import memoize
from lucid.tape.node import wrap

POINTS, TERMS = 40, 20
NEGLIGIBLE = 40.0  # e**-40 is below rounding error


class Gammainc(FromScipy):
    """The integral of t**(a - 1) e**-t / gamma(a) from 0 to x."""

    function, saves = "gammainc", "x"

    def partials(self, y: Any, a: Any, x: Any) -> tuple[Any, ...]:
        in_a = None if isinstance(a, float) else gammainc_grad_a(a, x)
        return in_a, None if isinstance(x, float) else gamma_density(a, x)


class Gammaincc(FromScipy):
    """1 - gammainc, accurate where it is small."""

    function, saves = "gammaincc", "x"

    def partials(self, y: Any, a: Any, x: Any) -> tuple[Any, ...]:
        in_a = None if isinstance(a, float) else -gammainc_grad_a(a, x)
        return in_a, None if isinstance(x, float) else -gamma_density(a, x)


GAMMAINC, GAMMAINCC = Gammainc(), Gammaincc()


def to_float64(a: Any, x: Any) -> tuple[Any, Any, np.dtype]:
    """Return both operands as float64 tensors, and their original dtype."""
    dtype = x.dtype if isinstance(a, float) else a.dtype
    a, x = [wrap(np.array(v)) if isinstance(v, float) else cast(v, "float64") for v in (a, x)]
    return a, x, dtype


def gamma_density(a: Any, x: Any) -> Any:
    """Return x**(a - 1) e**-x / gamma(a), the derivative of gammainc in x."""
    a, x, dtype = to_float64(a, x)
    first = where(x == 0, where(a == 1, 0.0, (a - 1.0) * log(x)), (a - 1.0) * log(x))
    return cast(exp(first - x - lgamma(a)), dtype)


def gammainc_grad_a(a: Any, x: Any) -> Any:
    """Return the derivative of gammainc in a."""
    a, x, dtype = to_float64(a, x)
    shape = broadcast_shapes(a.shape, x.shape)
    a, x = a.expand(shape), x.expand(shape)
    small = x <= 1
    near = _grad_by_series(a, where(small, x, 0.5))
    far = _grad_by_integral(a, where(small, 2.0, x))
    grad = where(small, near, far)
    at_end = (x == 0) | (x == math.inf)
    return cast(where(at_end & (a > 0), 0.0, grad), dtype)


def _grad_by_series(a: Any, x: Any) -> Any:
    """By gammainc = x**a / gamma(a + 1) (1 + sum of a (-x)**k / (k! (a + k))), for x <= 1."""
    numbers = np.arange(1.0, TERMS)
    k, signs = wrap(numbers), wrap(np.cumprod(-1 / numbers))
    below, above = a.unsqueeze(-1), x.unsqueeze(-1)
    powers = signs * exp(k * log(above))
    total = 1.0 + (powers * (below / (below + k))).sum(-1)
    change = (powers * (k / ((below + k) * (below + k)))).sum(-1)
    scale = exp(a * log(x) - lgamma(a + 1.0))
    return scale * ((log(x) - digamma(a + 1.0)) * total + change)


def _grad_by_integral(a: Any, x: Any) -> Any:
    """-(integral of |log(t) - digamma(a)| t**(a - 1) e**-t / gamma(a)), t = x e**±v, for x >= 1.

    Beyond the end of the interval the integrand is below e**-40 of its value at v = 0, since
    v - 1 + e**-v >= v² / (2 + v) and v - log(1 + v) >= v² / (2 + 4 v / 3).
    """
    points, weights = quadrature()
    log_x = log(x)
    # a (log(t) - digamma(a)) is a (log(t) - digamma(a + 1)) + 1, which holds at a = 0 too.
    start = a * (log_x - digamma(a + 1.0)) + 1.0
    lower = start <= 0
    end = where(lower, _lower_end(maximum(a, 1.0), x), _upper_end(a, x))
    v = end.unsqueeze(-1) * points
    v = where(lower.unsqueeze(-1), -v, v)
    a_v = a.unsqueeze(-1) * v
    power = exp(a_v - x.unsqueeze(-1) * expm1(v))
    total = (weights * (start.unsqueeze(-1) + a_v) * power).sum(-1) * end
    total = where(lower, total, -total)
    return total * exp(a * log_x - x - lgamma(a + 1.0))


def _lower_end(a: Any, x: Any) -> Any:
    """Return the root of (a - x) v + x v² / (2 + v) = 40."""
    half = 0.5 * NEGLIGIBLE - maximum(a - x, 0.0)
    return (half + sqrt(half * half + 2.0 * NEGLIGIBLE * a)) / a


def _upper_end(a: Any, x: Any) -> Any:
    """Return log(1 + u) for the root of (x - a) u + a u² / (2 + 4 u / 3) = 40."""
    apart, a = maximum(x - a, 0.0), minimum(a, x)
    square = apart * (4 / 3) + a
    half = NEGLIGIBLE * (2 / 3) - apart
    return log1p((half + sqrt(half * half + 2.0 * NEGLIGIBLE * square)) / square)


@memoize()
def _legendre_nodes() -> tuple[np.ndarray, np.ndarray]:
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    return (points + 1) / 2, weights / 2


def quadrature() -> tuple[Any, Any]:
    """Return the quadrature points and weights on [0, 1]."""
    points, weights = _legendre_nodes()
    return wrap(points), wrap(weights)


@public("lucid", "Tensor", name="igamma", inplace=True)
@public("special")
def gammainc(input: Any, other: Any) -> Any:
    """The regularized lower incomplete gamma function, elementwise.

    It is the integral of t**(a - 1) e**-t / gamma(a) from 0 to x, for a = `input` and x = `other`,
    with derivatives in both.

    >>> import lucid
    >>> lucid.special.gammainc(lucid.tensor([1.0, 4.0]), lucid.tensor([1.0, 4.0]))
    Tensor([0.63212055, 0.56652987])
    """
    return floating_binary(GAMMAINC, input, other)


@public("lucid", "Tensor", name="igammac", inplace=True)
@public("special")
def gammaincc(input: Any, other: Any) -> Any:
    """The regularized upper incomplete gamma function, `1 - gammainc(input, other)`."""
    return floating_binary(GAMMAINCC, input, other)
