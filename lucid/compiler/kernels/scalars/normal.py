"""erfcx, ndtr, log_ndtr, entr and xlog1py.

e**(x**2) erfc(x) is a polynomial in q = (x - 4) / (x + 4) over the whole half line; the exponent
x**2 / 2 of the normal distribution is computed in twice the precision, so that tails are accurate.
"""

from __future__ import annotations

import math

from lucid.ops.special import tails

from .declare import scalar
from .exponential import exp_parts, scale
from .language import Value, clamp, fma, poly, select, two_product, two_sum
from .logarithm import log, log1p
from .special import ERF

CENTER = tails.CENTER
# With q = (x - c) / (x + c): e**(x**2) erfc(x) = 2 c / (x + c) * (c0 + c1 q + ...) for x >= 0.
ERFCX = {
    "f4": (
        0.1369994580745697, -0.12206859886646271, 0.09665107727050781, -0.06760662794113159,
        0.04135642573237419, -0.021751541644334793, 0.009548164904117584,
        -0.003297426737844944, 0.0007627726881764829, -3.070093589485623e-05,
        -5.6049582781270146e-05, 1.6743175365263596e-05,
    ),
    "f8": tails.ERFCX,
}  # fmt: skip
# Beyond these, ndtr(-x) is 0, and e**(x**2) is inf.
_NDTR_HIGH = {"f4": 14.5, "f8": 39.0}
_SQUARE_HIGH = {"f4": 10.0, "f8": 27.0}


def _scaled_erfc(a: Value) -> Value:
    """e**(a**2) erfc(a) for a >= 0."""
    a = clamp(a, 0, a.format.huge)
    bottom, bottom_low = two_sum(a, a.like(CENTER))
    t = 2 * CENTER / bottom
    t_low = (fma(-t, bottom, 2 * CENTER) - t * bottom_low) / bottom
    p = poly((1 - t) - t_low, *ERFCX[a.type])
    return fma(t, p, t_low * p)


@scalar("scipy.special.erfcx", ulps=4)
def erfcx(x: Value) -> Value:
    """e**(x**2) erfc(x)."""
    a = abs(x)
    y = _scaled_erfc(a)
    square, low = two_product(*[clamp(a, 0, _SQUARE_HIGH[x.type])] * 2)
    m, k, k_bits = exp_parts(square, low)
    power = scale(fma(m, 2, 2), k, k_bits)
    y = select(a == math.inf, 0, y)
    return select(x < 0, power - y, y)


def _upper_tail(x: Value) -> Value:
    """The probability that a standard normal variable exceeds |x|."""
    a = clamp(abs(x), 0, _NDTR_HIGH[x.type])
    square, low = two_product(a, a)
    m, k, k_bits = exp_parts(square * -0.5, low * -0.5)
    y = _scaled_erfc(a * math.sqrt(0.5)) * 0.5
    return scale(fma(m, y, y), k, k_bits)


@scalar("scipy.special.ndtr", ulps=4)
def ndtr(x: Value) -> Value:
    """The probability that a standard normal variable is at most x."""
    tail = _upper_tail(x)
    u = x * math.sqrt(0.5)
    near = fma(fma(u, poly(u * u, *ERF[x.type]), u), 0.5, 0.5)
    return select(abs(x) < 0.9, near, select(x < 0, tail, 1 - tail))


@scalar("scipy.special.log_ndtr", ulps=4)
def log_ndtr(x: Value) -> Value:
    """log(ndtr(x))."""
    scaled = _scaled_erfc(abs(x) * math.sqrt(0.5))
    below = fma(x * -0.5, x, log(scaled * 0.5))
    y = select(x < 0, below, log1p(-_upper_tail(x)))
    return select(x == -math.inf, -math.inf, y)


@scalar("scipy.special.entr", ulps=4)
def entr(x: Value) -> Value:
    """-x log(x): 0 at 0, -inf below."""
    y = -x * log(x)
    y = select(x == 0, 0, y)
    return select(x < 0, -math.inf, y)


@scalar("scipy.special.xlog1py", ulps=4)
def xlog1py(x: Value, y: Value) -> Value:
    """x log(1 + y), and 0 where x is 0."""
    return select((x == 0) & (y == y), 0, x * log1p(y))
