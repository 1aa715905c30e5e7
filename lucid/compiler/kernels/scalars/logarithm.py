"""log, log2, log10, log1p and logaddexp.

x = 2**k m with m in [sqrt(1/2), sqrt(2)) and f = m - 1; `log_curve` gives log(1 + f) - f, and each
base adds k, f and the curve in its own order of rounding.
"""

from __future__ import annotations

import math

from .declare import scalar
from .exponential import LN2, exp_sum
from .language import (
    Value,
    bits,
    copysign,
    fast_two_sum,
    fma,
    from_bits,
    poly,
    scaled_one,
    select,
    two_sum,
    unsigned_to_float,
)

# f4: log(1+f) = f - f**2/2 + f**3 * (c0 + c1 f + ...)
_SERIES_F4 = (
    0.3333331346511841, -0.2500009536743164, 0.20002196729183197, -0.1666327267885208,
    0.14212991297245026, -0.12484344840049744, 0.12020870298147202, -0.11262869089841843,
    0.059438228607177734,
)  # fmt: skip
# f8: with s = f / (2 + f), log(1+f) = 2 s + s**3 * (c0 + c1 s**2 + ...)
_SERIES_F8 = (
    0.6666666666666734, 0.3999999999941466, 0.28571428742394567, 0.22222198572633312,
    0.18183564343195452, 0.15314050361423961, 0.14795949911498638,
)  # fmt: skip


def split_exponent(x: Value) -> tuple[Value, Value]:
    """k as a float and m in [sqrt(1/2), sqrt(2)), x = 2**k m; for x > 0, normal or not."""
    format = x.format
    subnormal = x < format.tiny
    k, m = split_normal(select(subnormal, x * 2.0**format.mantissa, x))
    return k - select(subnormal, x.like(format.mantissa), 0), m


def split_normal(x: Value) -> tuple[Value, Value]:
    """`split_exponent` for x > 0 that is not subnormal."""
    format = x.format
    low = format.bits(math.sqrt(0.5))
    shifted = bits(x) + (format.bits(1.0) - low)
    m = from_bits((shifted & ((1 << format.mantissa) - 1)) + low)
    return unsigned_to_float(shifted >> format.mantissa) - format.bias, m


def log_curve(f: Value) -> Value:
    """log(1 + f) - f for f in [sqrt(1/2) - 1, sqrt(2) - 1)."""
    if f.type == "f4":
        return f * f * fma(poly(f, *_SERIES_F4), f, -0.5)
    s = f / (2 + f)
    z = s * s
    half = 0.5 * f * f
    return fma(s, fma(z, poly(z, *_SERIES_F8), half), -half)


def _edges(x: Value, y: Value) -> Value:
    """The logarithm y with its values at 0, inf, nan and below 0."""
    y = select(x < math.inf, y, x)
    y = select(x == 0, -math.inf, y)
    return select(x < 0, math.nan, y)


@scalar("numpy.log")
def log(x: Value) -> Value:
    """The natural logarithm."""
    high, low = LN2[x.type]
    k, m = split_exponent(x)
    f = m - 1
    return _edges(x, fma(k, high, f + fma(k, low, log_curve(f))))


def _log_base(
    x: Value, scale_high: float, scale_low: float, two_high: float, two_low: float
) -> Value:
    k, m = split_exponent(x)
    f = m - 1
    rest = fma(f, scale_low, log_curve(f) * scale_high)
    return _edges(x, fma(k, two_high, fma(f, scale_high, fma(k, two_low, rest))))


@scalar("numpy.log2")
def log2(x: Value) -> Value:
    """The logarithm to base 2; exact at powers of 2."""
    high, low = x.format.split(2, 1.4426950408889634, 2.0355273740931033e-17)
    return _log_base(x, high, low, 1.0, 0.0)


@scalar("numpy.log10")
def log10(x: Value) -> Value:
    """The logarithm to base 10."""
    e_high, e_low = x.format.split(2, 0.4342944819032518, 1.098319650216765e-17)
    two_high, two_low = x.format.split(2, 0.30102999566398120, -2.8037281277851704e-18)
    return _log_base(x, e_high, e_low, two_high, two_low)


def log_sum(u: Value, c: Value) -> Value:
    """log(u + c) for |c| <= ulp(u) / 2; u normal."""
    high, low = LN2[u.type]
    k, m = split_normal(u)
    f = m - 1
    # c / u, to the first orders of f: c is at most half an ulp of u, nothing beside a large log.
    c = c * scaled_one(bits(u.format.magic - k), u.format) * fma(f, f, 1 - f)
    c = select(u < 2.0**64, c, 0)
    return fma(k, high, f + (c + fma(k, low, log_curve(f))))


@scalar("numpy.log1p")
def log1p(x: Value) -> Value:
    """log(1 + x), exact to the last bits near 0."""
    u, c = two_sum(x.like(1), x)
    y = log_sum(u, c)
    y = select(u < math.inf, y, x)
    y = select(x == -1, -math.inf, y)
    return select(x < -1, math.nan, copysign(y, x))


@scalar("numpy.logaddexp")
def logaddexp(x: Value, y: Value) -> Value:
    """log(e**x + e**y), from the larger one and log(1 + e**-|x - y|).

    Where those two cancel, the bound is in ulps of the larger of them.
    """
    swap = x > y
    larger, smaller = select(swap, x, y), select(swap, y, x)
    gap, error = two_sum(smaller, -larger)
    gap, error = select(x == y, 0, gap), select(gap > -2048, error, 0)
    rest = log_sum(*fast_two_sum(x.like(1), exp_sum(gap, error)))
    return select(gap == gap, larger + rest, gap)
