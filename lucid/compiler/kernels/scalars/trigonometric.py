"""sin, cos, tan and their inverses.

sin, cos and tan compute k = rint(x / (pi/2)) and r = x - k pi/2 with pi/2 in three parts (Cody and
Waite), as a float and its error, then polynomials in r. That is accurate for |x| <= 2**16 in
float32 and 2**30 in float64. Beyond, Payne and Hanek's product with the bits of 2/pi is exact for
every float, but computed for all elements with selects it would cost more than everything else. So
it is a real branch: a call with vector variants of its own, which visit single lanes only if one is
huge (`slow_path`). Measured for sin, float64, ns per element:

|                                | AVX-512 | AVX2 |
|--------------------------------|---------|------|
| moderate arguments only        | 1.20    | 1.54 |
| with the branch, none is huge  | 1.24    | 1.63 |
| with the branch, all are huge  | 12      | 23   |
| everything in selects          | 4.06    | 7.15 |
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .declare import scalar
from .exponential import quotient
from .language import (
    Value,
    bits,
    copysign,
    fast_two_sum,
    fma,
    from_bits,
    funnel,
    load,
    multiply_high,
    nearest,
    poly,
    root,
    select,
    to_float,
    two_product,
)
from .slow_path import slow_path

PI_2 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
# Up to here three parts of pi/2 are enough.
_MODERATE = {"f4": 2.0**16, "f8": 2.0**30}
# 64 zeros, then the first 1280 bits of 2/pi.
_TWO_OVER_PI = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
)  # fmt: skip
# sin(r) = r + r**3 * (c0 + c1 r**2 + ...); cos(r) = 1 - r**2/2 + r**4 * (c0 + c1 r**2 + ...)
_SIN = {
    "f4": (-0.16666653752326965, 0.008332093246281147, -0.00019505077216308564),
    "f8": (
        -0.1666666666666662, 0.008333333333319702, -0.0001984126982760861, 2.7557312921555124e-06,
        -2.505063662104925e-08, 1.5889715296665575e-10,
    ),
}  # fmt: skip
_COS = {
    "f4": (0.04166664183139801, -0.0013887130189687014, 2.4412014681729488e-05),
    "f8": (
        0.041666666666666574, -0.0013888888888869719, 2.4801587286729388e-05,
        -2.7557313558108473e-07, 2.087561558577625e-09, -1.1354090730189621e-11,
    ),
}  # fmt: skip
# atan(t) = t + t**3 * (c0 + c1 t**2 + ...) for |t| <= 1/2
_ATAN = {
    "f4": (
        -0.3333323299884796, 0.19994167983531952, -0.14174190163612366, 0.101556196808815,
        -0.0512457899749279,
    ),
    "f8": (
        -0.3333333333333298, 0.19999999999903104, -0.14285714276384934, 0.11111110659575817,
        -0.09090896242792289, 0.07692073876375985, -0.06663810197791815, 0.058582957928440746,
        -0.051219908103621155, 0.04186459592099828, -0.02743419345070972, 0.010116294491106018,
    ),
}  # fmt: skip
# asin(t) = t + t**3 * (c0 + c1 t**2 + ...) for |t| <= 1/2
_ASIN = {
    "f4": (
        0.16666752099990845, 0.074953094124794, 0.04546916112303734, 0.024184703826904297,
        0.04215844348073006,
    ),
    "f8": (
        0.16666666666665408, 0.07500000000337136, 0.04464285682822614, 0.030381959141315737,
        0.022371757942758974, 0.01735970643734821, 0.013885218459626454, 0.012169326247499935,
        0.006527467232853147, 0.01952968892153198, -0.01622653896122886, 0.0319138724466154,
    ),
}  # fmt: skip


def reduce_trig(a: Value) -> tuple[Value, Value, Value]:
    """For a >= 0: k in the low bits of an integer, and a - k pi/2 as a float and its error."""
    first, second, third = a.format.split(3, *PI_2)
    k, k_bits = nearest(a * (2 / math.pi))
    step, step_low = two_product(k, -second)
    r, error = fast_two_sum(fma(k, -first, a), step)
    return k_bits, r, fma(k, -third, error + step_low)


def sin_cos(r: Value, error: Value) -> tuple[Value, Value, Value, Value]:
    """The sine and cosine of r + error, |r| <= pi/4, each as a float and its error."""
    z = r * r
    sine, sine_low = fast_two_sum(r, fma(r * z, poly(z, *_SIN[r.type]), error))
    half = 0.5 * z
    base = 1 - half
    rest = fma(z * z, poly(z, *_COS[r.type]), fma(-r, error, (1 - base) - half))
    cosine, cosine_low = fast_two_sum(base, rest)
    return sine, sine_low, cosine, cosine_low


def _sign(quarter_turns: Value, x: Value) -> Value:
    """The sign bit that two quarter turns set."""
    return (quarter_turns & 2) << (30 if x.type == "f4" else 62)


def reduce_huge(a: Value) -> tuple[Value, Value, Value]:
    """`reduce_trig` for any finite a >= 2**11 in float64 (Payne and Hanek), in integers."""
    exponent = (bits(a) >> 52) - 1075
    mantissa = (bits(a) & ((1 << 52) - 1)) | (1 << 52)
    # a = mantissa * 2**exponent: the bits of 2/pi before `start` make multiples of 4.
    start = exponent + (64 - 2)
    word, shift = start >> 6, start & 63
    w = [load("lucid_two_over_pi", _TWO_OVER_PI, word + i) for i in range(4)]
    w = [funnel(w[i], w[i + 1], shift) for i in range(3)]
    carried = multiply_high(mantissa, w[2])
    low = mantissa * w[1] + carried
    sign = a.format.sign
    carry = select((low ^ sign) < (carried ^ sign), low.like(1), 0)
    high = mantissa * w[0] + multiply_high(mantissa, w[1]) + carry
    # (high, low) is a * 2/pi modulo 4, with 126 bits of fraction.
    k = (high + (1 << 61)) >> 62
    high = high - (k << 62)
    rest = ((high & 0xFFF) << 51) | (low >> 13)
    v, v_low = fast_two_sum(to_float(high & ~0xFFF) * 2.0**-62, to_float(rest) * 2.0**-113)
    r = v * PI_2[0]
    return k, r, fma(v, PI_2[0], -r) + fma(v, PI_2[1], v_low * PI_2[0])


def _sin(x: Value, k: Value, r: Value, error: Value) -> Value:
    sine, _, cosine, _ = sin_cos(r, error)
    sign = _sign(k, x) ^ (bits(x) & x.format.sign)
    return from_bits(bits(select((k & 1) == 0, sine, cosine)) ^ sign)


def _cos(x: Value, k: Value, r: Value, error: Value) -> Value:
    sine, _, cosine, _ = sin_cos(r, error)
    return from_bits(bits(select((k & 1) == 0, cosine, sine)) ^ _sign(k + 1, x))


def _tan(x: Value, k: Value, r: Value, error: Value) -> Value:
    sine, sine_low, cosine, cosine_low = sin_cos(r, error)
    even = (k & 1) == 0
    y = quotient(
        select(even, sine, -cosine),
        select(even, cosine, sine),
        select(even, cosine_low, sine_low),
        select(even, sine_low, -cosine_low),
    )
    return from_bits(bits(y) ^ (bits(x) & x.format.sign))


def _with_slow_path(name: str, function: Callable[..., Value], x: Value) -> Value:
    y = function(x, *reduce_trig(abs(x)))
    return slow_path(name, lambda x: function(x, *reduce_huge(abs(x))), x, y, _MODERATE[x.type])


@scalar("numpy.sin")
def sin(x: Value) -> Value:
    """The sine."""
    return _with_slow_path("sin_huge", _sin, x)


@scalar("numpy.cos")
def cos(x: Value) -> Value:
    """The cosine."""
    return _with_slow_path("cos_huge", _cos, x)


@scalar("numpy.tan")
def tan(x: Value) -> Value:
    """The tangent."""
    return _with_slow_path("tan_huge", _tan, x)


@scalar("numpy.arctan")
def atan(x: Value) -> Value:
    """The arc tangent: 0, pi/4 or pi/2, and an arc of at most atan(1/2)."""
    high, low = x.format.split(2, *PI_2)
    a = abs(x)
    far, near = a > 2, a < 0.5
    top = select(far, -1, select(near, a, a - 1))
    t = top / select(far, a, select(near, 1, a + 1))
    base = select(far, high, select(near, x.like(0), high / 2))
    base_low = select(far, low, select(near, x.like(0), low / 2))
    z = t * t
    return copysign(base + (t + fma(t * z, poly(z, *_ATAN[x.type]), base_low)), x)


@scalar("numpy.arctan2")
def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), in (-pi, pi], with every sign of zero."""
    format = x.format
    high, low = format.split(2, *(part / 2 for part in PI_2))
    ax, ay = abs(x), abs(y)
    steep = ay > ax
    a, b = select(steep, ay, ax), select(steep, ax, ay)
    shrink = select(a > format.huge / 4, x.like(0.25), 1)
    a, b = a * shrink, b * shrink
    diagonal = (b > a * 0.5) | (b == math.inf)
    top, bottom = select(diagonal, b - a, b), select(diagonal, b + a, a)
    t = select(b == math.inf, 0, top) / select(a == 0, 1, bottom)
    # The angle is n pi/4 + turn * atan(t).
    n, turn = select(diagonal, x.like(1), 0), x.like(1)
    n, turn = select(steep, 2 - n, n), select(steep, -turn, turn)
    left = bits(x) < 0
    n, turn = select(left, 4 - n, n), select(left, -turn, turn)
    z = t * t
    arc = fma(t * z, poly(z, *_ATAN[x.type]), t) * turn
    angle = select(n == 0, arc, fma(n, high, fma(n, low, arc)))
    return copysign(angle, y)


def _asin_parts(a: Value) -> tuple[Value, Value, Value]:
    """Whether a > 1/2, s = a or sqrt((1 - a)/2), and asin(s) - s."""
    large = a > 0.5
    z = select(large, (1 - a) * 0.5, a * a)
    s = select(large, root(z), a)
    return large, s, s * z * poly(z, *_ASIN[a.type])


@scalar("numpy.arcsin")
def asin(x: Value) -> Value:
    """The arc sine."""
    high, low = x.format.split(2, *PI_2)
    large, s, curve = _asin_parts(abs(x))
    far, error = fast_two_sum(x.like(high), -2 * s)
    far = far + (error - (2 * curve - low))
    return copysign(select(large, far, s + curve), x)


@scalar("numpy.arccos")
def acos(x: Value) -> Value:
    """The arc cosine."""
    high, low = x.format.split(2, *PI_2)
    large, s, curve = _asin_parts(abs(x))
    middle = high - copysign(s + (curve - copysign(x.like(low), x)), x)
    left = 2 * (high - (s + (curve - low)))
    return select(large, select(x < 0, left, 2 * (s + curve)), middle)
