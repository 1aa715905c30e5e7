"""exp, exp2, expm1 and sigmoid: x = k ln2 + r with |r| <= ln2/2, and a polynomial in r.

The result is scaled by 2**k in two steps, so that gradual underflow rounds once and the factors
2**128 and 2**1024 never appear.
"""

from __future__ import annotations

from .declare import scalar
from .language import (
    Value,
    bits,
    clamp,
    copysign,
    fast_two_sum,
    fma,
    nearest,
    poly,
    scaled_one,
    select,
)

LOG2_E = 1.4426950408889634
# ln2 in parts; k times the first is exact by the fma that uses it.
LN2 = {
    "f4": (0.693147182464599609375, -1.904654323148236017e-09),
    "f8": (6.93147180559945286227e-01, 2.31904681384629955842e-17),
}
# e**r = 1 + r + r**2 * (c0 + c1 r + ...), minimax for the relative error of e**r, then of e**r - 1.
_EXP = {
    "f4": (
        0.5, 0.16666515171527863, 0.04166658595204353, 0.008369325660169125, 0.001392102800309658,
    ),
    "f8": (
        0.5000000000000013, 0.1666666666666686, 0.041666666666507604, 0.008333333333192246,
        0.001388888894957522, 0.00019841270190708714, 2.4801486906374888e-05,
        2.755695159205346e-06, 2.763246930620601e-07, 2.520779419496265e-08,
    ),
}  # fmt: skip
_EXPM1 = {
    "f4": (
        0.5, 0.16666539013385773, 0.04166661202907562, 0.008367111906409264, 0.0013917027972638607,
    ),
    "f8": (
        0.5, 0.16666666666666677, 0.04166666666666667, 0.008333333333321386,
        0.0013888888888886049, 0.0001984126988681672, 2.4801587317840885e-05,
        2.7557243451145843e-06, 2.755728316003774e-07, 2.5109321115669337e-08,
        2.091080171232714e-09,
    ),
}  # fmt: skip
# 2**r = 1 + r * (c0 + c1 r + ...)
_EXP2 = {
    "f4": (
        0.6931471824645996, 0.2402263730764389, 0.05550374835729599, 0.009619353339076042,
        0.0013384221820160747, 0.0001516134652774781,
    ),
    "f8": (
        0.6931471805599453, 0.2402265069591015, 0.05550410866482406, 0.009618129107586217,
        0.001333355814577433, 0.0001540353046737188, 1.5252734481215797e-05,
        1.3215430094157287e-06, 1.017778085561989e-07, 7.074679278430408e-09,
        4.498513912710417e-10,
    ),
}  # fmt: skip
# Beyond these, exp is 0 or inf.
_EXP_RANGE = {"f4": (-105.0, 89.0), "f8": (-747.0, 710.0)}
_EXP2_RANGE = {"f4": (-152.0, 128.0), "f8": (-1078.0, 1024.0)}
# Below these, expm1 is -1 to the last bit.
_EXPM1_LOW = {"f4": -19.0, "f8": -40.0}


def scale(y: Value, k: Value, k_bits: Value) -> Value:
    """y * 2**k, down to the smallest subnormal and up to inf; k also in the low bits of k_bits."""
    _, half_bits = nearest(k * 0.5)
    rest_bits = k_bits - half_bits
    return y * scaled_one(half_bits, y.format) * scaled_one(rest_bits, y.format)


def reduce_exp(x: Value) -> tuple[Value, Value, Value]:
    """k as a float, k in the low bits of an integer, and r = x - k ln2."""
    high, low = LN2[x.type]
    shifted = fma(x, LOG2_E, x.format.magic)
    k = shifted - x.format.magic
    return k, bits(shifted), fma(k, -low, fma(k, -high, x))


@scalar("numpy.exp")
def exp(x: Value) -> Value:
    """e**x."""
    k, k_bits, r = reduce_exp(clamp(x, *_EXP_RANGE[x.type]))
    return scale(fma(poly(r, *_EXP[x.type]), r * r, r) + 1, k, k_bits)


def exp_sum(x: Value, low: Value) -> Value:
    """e**(x + low), where low is small compared with x, or 0."""
    m, k, k_bits = exp_parts(x, low)
    return scale(m + 1, k, k_bits)


def exp_parts(x: Value, low: Value) -> tuple[Value, Value, Value]:
    """m, k, and k in low bits, where e**(x + low) = (1 + m) 2**k."""
    k, k_bits, r = reduce_exp(clamp(x, *_EXP_RANGE[x.type]))
    r, error = fast_two_sum(r, low)
    return fma(poly(r, *_EXP[x.type]), r * r, error) + r, k, k_bits


def moderate_exp_parts(x: Value) -> tuple[Value, Value]:
    """m and k in low bits, where e**x = (1 + m) 2**k, for results that are normal numbers."""
    _, k_bits, r = reduce_exp(x)
    return fma(poly(r, *_EXP[x.type]), r * r, r), k_bits


@scalar("numpy.exp2")
def exp2(x: Value) -> Value:
    """2**x."""
    x = clamp(x, *_EXP2_RANGE[x.type])
    k, k_bits = nearest(x)
    r = x - k
    return scale(fma(poly(r, *_EXP2[x.type]), r, 1), k, k_bits)


def expm1_part(r: Value) -> Value:
    """e**r - 1 for |r| <= ln2/2."""
    return fma(r * r, poly(r, *_EXPM1[r.type]), r)


@scalar("numpy.expm1")
def expm1(x: Value) -> Value:
    """e**x - 1, exact to the last bits near 0."""
    _, high = _EXP_RANGE[x.type]
    k, k_bits, r = reduce_exp(clamp(x, _EXPM1_LOW[x.type], high))
    m = expm1_part(r)
    # 2**(k-1), so that k = 128 (1024) is still finite.
    half = scaled_one(k_bits - 1, x.format)
    y = 2 * fma(half, m, half - 0.5)
    return copysign(select(k == 0, m, y), x)


def quotient(a: Value, b: Value, b_low: Value, a_low: Value | None = None) -> Value:
    """(a + a_low) / (b + b_low), with an error of little more than half an ulp."""
    inverse = 1 / b
    q = a * inverse
    rest = fma(-q, b, a)
    if a_low is not None:
        rest = rest + a_low
    return fma(fma(-q, b_low, rest), inverse, q)


@scalar("scipy.special.expit")
def sigmoid(x: Value) -> Value:
    """1 / (1 + e**-x), with gradual underflow far to the left."""
    e = exp(-abs(x))
    bottom = 1 + e
    return quotient(select(x < 0, e, 1), bottom, e - (bottom - 1))
