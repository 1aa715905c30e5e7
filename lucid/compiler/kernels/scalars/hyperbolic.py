"""tanh, sinh, cosh and their inverses, from the parts of expm1 and log.

The inverses take the logarithm of a float and its error, so that earlier rounding is harmless.
"""

from __future__ import annotations

import math

from .declare import scalar
from .exponential import LN2, LOG2_E, exp, expm1_part, quotient, reduce_exp
from .language import (
    Value,
    clamp,
    copysign,
    fast_two_sum,
    fma,
    nearest,
    poly,
    root,
    scaled_one,
    select,
    two_product,
    two_sum,
)
from .logarithm import log_sum

# Where tanh is 1 to the last bit.
_TANH_HIGH = {"f4": 10.0, "f8": 20.0}
# sinh(r) = r + r**3 * (c0 + ...); cosh(r) = 1 + r**2 * (c0 + ...); for 0 <= r <= ln2
_SINH = {
    "f4": (0.16666671633720398, 0.008332658559083939, 0.00020091852638870478),
    "f8": (
        0.16666666666666666, 0.008333333333333708, 0.00019841269840764912, 2.7557319535890347e-06,
        2.50520112659909e-08, 1.60738301972447e-10, 6.786636466853634e-13,
    ),
}  # fmt: skip
_COSH = {
    "f4": (0.5, 0.041666675359010696, 0.0013887963723391294, 2.508640864107292e-05),
    "f8": (
        0.5, 0.04166666666666665, 0.0013888888888893064, 2.4801587297155767e-05,
        2.7557321527412674e-07, 2.087612712256353e-09, 1.1557750011122825e-11,
    ),
}  # fmt: skip
# Just beyond the overflow of sinh and cosh.
_SINH_HIGH = {"f4": 89.42, "f8": 710.48}
# Below this, three terms of the series are enough, and the logarithm would round too early.
_SMALL = 2.0**-9


@scalar("numpy.tanh")
def tanh(x: Value) -> Value:
    """The hyperbolic tangent, (e**2x - 1) / (e**2x + 1)."""
    _, k_bits, r = reduce_exp(clamp(2 * abs(x), 0, 2 * _TANH_HIGH[x.type]))
    power = scaled_one(k_bits, x.format)
    top = fma(power, expm1_part(r), power - 1)
    bottom = top + 2
    larger = top > 2
    error = select(larger, 2, top) - (bottom - select(larger, top, 2))
    return copysign(quotient(top, bottom, error), x)


def _halves(x: Value) -> tuple[Value, Value, Value, Value]:
    """sinh(r), cosh(r) - 1, 2**k / 2 and 2**-k / 2 for |x| = k ln2 + r with 0 <= r <= ln2."""
    high, low = LN2[x.type]
    a = clamp(abs(x), 0, _SINH_HIGH[x.type])
    k, k_bits = nearest(clamp(fma(a, LOG2_E, -0.5), 0, x.format.bias + 1))
    r = fma(k, -low, fma(k, -high, a))
    z = r * r
    # 2**(k-1) and 2**(-k-1), of which the second vanishes beside the first where it underflows.
    up = scaled_one(k_bits - 1, x.format)
    _, down_bits = nearest(clamp(-1 - k, 1 - x.format.bias, 0))
    down = scaled_one(down_bits, x.format)
    s, c = fma(r * z, poly(z, *_SINH[x.type]), r), z * poly(z, *_COSH[x.type])
    return s, c, up, down


@scalar("numpy.sinh")
def sinh(x: Value) -> Value:
    """The hyperbolic sine."""
    s, c, up, down = _halves(x)
    return copysign(fma(up - down, c, (up + down) * s) + (up - down), x)


@scalar("numpy.cosh")
def cosh(x: Value) -> Value:
    """The hyperbolic cosine."""
    s, c, up, down = _halves(x)
    return fma(up, c + s, fma(down, c - s, down)) + up


@scalar("lucid.ops.elementwise.logarithms.sinhc_of_array", ulps=4)
def sinhc(x: Value) -> Value:
    """sinh(x) / x, and 1 at 0; (e**(|x|/2))**2 / 2|x| where sinh overflows first."""
    a = abs(x)
    half = exp(0.5 * clamp(a, 0, 2 * _SINH_HIGH[x.type]))
    far = select(a < math.inf, 0.5 * half / a * half, a)
    near = select(a == 0, 1, sinh(a) / a)
    return select(a > 20, far, select(a <= 20, near, x))


def _root_of_sum(p: Value, p_low: Value) -> tuple[Value, Value]:
    """sqrt(p + p_low) as a float and its error."""
    s = root(p)
    return s, (fma(-s, s, p) + p_low) / (2 * s)


def _log_of_sum(a: Value, b: Value, b_low: Value) -> Value:
    """log(a + b + b_low)."""
    total, error = two_sum(a, b)
    return log_sum(total, error + b_low)


@scalar("numpy.arcsinh")
def asinh(x: Value) -> Value:
    """The inverse hyperbolic sine, log(x + sqrt(x**2 + 1))."""
    a = abs(x)
    z = a * a
    large = a > 2.0 ** (x.format.mantissa + 5)
    square, square_low = two_product(a, a)
    p, p_low = two_sum(square, x.like(1))
    s, s_low = _root_of_sum(p, p_low + square_low)
    s, s_low = select(large, 0, s), select(large, 0, s_low)
    y = _log_of_sum(a, s, s_low) + select(large, x.like(math.log(2)), 0)
    y = select(a < _SMALL, fma(a * z, poly(z, -1 / 6, 3 / 40), a), y)
    return copysign(select(a < math.inf, y, a), x)


@scalar("numpy.arccosh")
def acosh(x: Value) -> Value:
    """The inverse hyperbolic cosine, log(x + sqrt(x**2 - 1))."""
    large = x > 2.0 ** (x.format.mantissa + 5)
    square, square_low = two_product(x, x)
    p, p_low = two_sum(square - 1, square_low)
    s, s_low = _root_of_sum(p, p_low)
    s, s_low = select(large, 0, s), select(large, 0, s_low)
    y = _log_of_sum(x, s, s_low) + select(large, x.like(math.log(2)), 0)
    y = select(x < math.inf, y, x)
    y = select(x == 1, 0, y)
    return select(x < 1, math.nan, y)


@scalar("numpy.arctanh")
def atanh(x: Value) -> Value:
    """The inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2."""
    a = abs(x)
    z = a * a
    top, top_low = fast_two_sum(x.like(1), a)
    bottom, bottom_low = fast_two_sum(x.like(1), -a)
    inverse = 1 / bottom
    q = top * inverse
    q_low = (fma(-q, bottom_low, fma(-q, bottom, top) + top_low)) * inverse
    y = 0.5 * log_sum(q, q_low)
    y = select(a < _SMALL, fma(a * z, poly(z, 1 / 3, 1 / 5, 1 / 7), a), y)
    y = select(a == 1, math.inf, y)
    return copysign(select(a <= 1, y, math.nan), x)
