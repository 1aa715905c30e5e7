"""pow, sqrt, rsqrt, cbrt and hypot.

pow is e**(y log|x|), with the logarithm and the product kept as a float and its error: an exponent
of 700 turns one ulp of the logarithm into a thousand of the result.
"""

from __future__ import annotations

import math

import numpy as np

from .declare import scalar
from .exponential import LN2, exp_sum
from .language import (
    Value,
    bits,
    copysign,
    fast_two_sum,
    fma,
    from_bits,
    nearest,
    poly,
    rint,
    root,
    scaled_one,
    select,
    two_product,
)
from .logarithm import split_exponent

# log((1+s)/(1-s)) = 2 s + s**3 * (c0 + c1 s**2 + ...); for f8, c0 is 2/3 in two parts.
_SERIES_F4 = (0.6666666269302368, 0.4000033438205719, 0.28537294268608093, 0.23582442104816437)
_SERIES_F8 = (
    0.40000000000002256, 0.2857142857009853, 0.22222222520117038, 0.18181784349516672,
    0.15386758168672424, 0.13256797679675125, 0.1319651980911236,
)  # fmt: skip
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# m**(-1/3) for sqrt(1/2) <= m <= sqrt(2), to 4e-5.
_CBRT = (
    1.874518632888794, -1.8618289232254028, 1.5613023042678833, -0.7023842334747314,
    0.12836885452270508,
)  # fmt: skip
# hypot scales where the larger side is above `high` or below `low`.
_HYPOT = {
    "f4": {"high": 2.0**62, "down": 2.0**-66, "low": 2.0**-40, "up": 2.0**86},
    "f8": {"high": 2.0**500, "down": 2.0**-600, "low": 2.0**-400, "up": 2.0**700},
}


@scalar("numpy.sqrt")
def sqrt(x: Value) -> Value:
    """The square root, correctly rounded."""
    return root(x)


@scalar(lambda x: 1 / np.sqrt(x))
def rsqrt(x: Value) -> Value:
    """1 / sqrt(x)."""
    return 1 / root(x)


@scalar("numpy.cbrt")
def cbrt(x: Value) -> Value:
    """The cube root: an approximate m**(-1/3), one step of high order, and a correction."""
    a = abs(x)
    k, m = split_exponent(a)
    third, third_bits = nearest(k * (1 / 3))
    rest = k - 3 * third
    t = m * select(rest == 0, x.like(1), select(rest > 0, x.like(2), 0.5))
    scale = select(rest == 0, x.like(1), select(rest > 0, x.like(2 ** (-1 / 3)), 2 ** (1 / 3)))
    z = poly(m, *_CBRT) * scale
    h = fma(t * z, -z * z, 1)
    steps = (1 / 3, 2 / 9) if x.type == "f4" else (1 / 3, 2 / 9, 14 / 81, 35 / 243)
    z = fma(z * h, poly(h, *steps), z)
    y = t * z * z
    y = fma(fma(y * y, -y, t), z * z * (1 / 3), y)
    y = y * scaled_one(third_bits, x.format)
    y = select(a < math.inf, y, a)
    return copysign(select(a == 0, a, y), x)


@scalar("numpy.hypot")
def hypot(x: Value, y: Value) -> Value:
    """sqrt(x**2 + y**2) without overflow or underflow on the way."""
    size = _HYPOT[x.type]
    x, y = abs(x), abs(y)
    a = select(x > y, x, y)
    high, low = a > size["high"], a < size["low"]
    scale = select(high, size["down"], select(low, size["up"], x.like(1)))
    back = select(high, 1 / size["down"], select(low, 1 / size["up"], x.like(1)))
    x_scaled, y_scaled = x * scale, y * scale
    total = root(fma(x_scaled, x_scaled, y_scaled * y_scaled)) * back
    return select((x == math.inf) | (y == math.inf), math.inf, total)


def log_pair(x: Value) -> tuple[Value, Value]:
    """log(x) for 0 < x < inf as a float and its error, to about twice the precision."""
    k, m = split_exponent(x)
    f = m - 1
    bottom, bottom_low = fast_two_sum(x.like(2), f)
    inverse = 1 / bottom
    s = f * inverse
    s_low = fma(-s, bottom_low, fma(-s, bottom, f)) * inverse
    if x.type == "f4":
        z = s * s
        curve, curve_low = s * z * poly(z, *_SERIES_F4), x.like(0)
    else:
        z, z_low = two_product(s, s)
        z_low = fma(s * 2, s_low, z_low)
        c, c_low = fast_two_sum(x.like(_TWO_THIRDS[0]), z * poly(z, *_SERIES_F8))
        p, p_low = two_product(z, c)
        p_low = fma(z, c_low + _TWO_THIRDS[1], fma(z_low, c, p_low))
        curve, curve_low = two_product(s, p)
        curve_low = fma(s, p_low, fma(s_low, p, curve_low))
    log_m, log_m_low = fast_two_sum(2 * s, curve)
    log_m_low = fma(s_low, 2, log_m_low + curve_low)
    high, low = LN2[x.type]
    step, step_low = two_product(k, high)
    total, error = fast_two_sum(step, log_m)
    return total, error + fma(k, low, step_low + log_m_low)


@scalar("numpy.power", ulps=4)
def pow(x: Value, y: Value) -> Value:
    """x**y with the special cases of IEEE 754."""
    a = abs(x)
    log_high, log_low = log_pair(a)
    # At 0, inf and nan the logarithm above is meaningless.
    log_high = select(a == 0, -math.inf, select(a < math.inf, log_high, a))
    p, p_low = two_product(log_high, y)
    p_low = fma(log_low, y, p_low)
    magnitude = exp_sum(p, select(abs(p) < 2048, p_low, 0))
    magnitude = select((y == 0) | (a == 1), 1, magnitude)
    integral = rint(y) == y
    half = y * 0.5
    odd = integral & (rint(half) != half)
    sign = select(odd, bits(x) & x.format.sign, 0)
    # A nan exponent is not integral either; inf is.
    undefined = (x < 0) & (a < math.inf) & ~integral
    return select(undefined, math.nan, from_bits(bits(magnitude) ^ sign))
