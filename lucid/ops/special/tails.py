"""erfc, erfcx and ndtr of float64 arrays, accurate to a few units in the last place in the tails.

SciPy rounds x**2 before it takes the exponential, which loses x**2 / 2 units. Here x**2 is the sum
of two floats, and e**(x**2) erfc(x) a polynomial, with the coefficients of compiled kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from lucid.ops.core.errstate import quiet
from lucid.ops.special.from_scipy import ufunc

CENTER = 4.0
# With q = (x - c) / (x + c): e**(x**2) erfc(x) = 2 c / (x + c) * (c0 + c1 q + ...) for x >= 0.
ERFCX = (
    0.13699945762506138, -0.12206859113511025, 0.09665108778315462, -0.06760672891415473,
    0.04135644848475209, -0.02175136715497857, 0.009547689363662138,
    -0.003296256667776134, 0.0007640069568115182, -3.511985586088989e-05,
    -5.6881583115434776e-05, 2.2101588303942932e-05, -4.544137943167095e-07,
    -2.3575567902505403e-06, 5.868764217378576e-07, 1.7788782175757533e-07,
    -1.0597664083748027e-07, -9.21820500418177e-09, 1.5860255275861505e-08,
    -1.158389380612099e-10, -2.2703700717778092e-09, 1.3974456105711252e-10,
    2.8846592486872125e-10, -2.846779443920041e-11, -2.2929268839385164e-11,
    3.0470614473273065e-12,
)  # fmt: skip
SQUARE_HIGH = 39.0  # e**(-x**2 / 2) is 0 and e**(x**2) is inf beyond it
_SPLIT = 134217729.0  # 2**27 + 1 cuts a float64 into two halves
_NEAR = 0.7


def accurate(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return erfc, erfcx or ndtr by name."""
    return FUNCTIONS[name]


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a * b rounded, and what the rounding has cut off."""
    product = a * b
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    low = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, low


def _high(x: np.ndarray) -> np.ndarray:
    shifted = _SPLIT * x
    return shifted - (shifted - x)


def _polynomial(x: np.ndarray, coefficients: Sequence[float]) -> np.ndarray:
    y = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        y *= x
        y += c
    return y


def _scaled_erfc(a: np.ndarray) -> np.ndarray:
    """e**(a**2) erfc(a) for a >= 0."""
    a = np.minimum(a, np.finfo(np.float64).max)
    bottom = a + CENTER
    back = bottom - CENTER
    bottom_low = (a - back) + (CENTER - (bottom - back))
    t = 2 * CENTER / bottom
    product, product_low = two_product(t, np.minimum(bottom, 1e150))
    rest = np.where(bottom < 1e150, ((2 * CENTER - product) - product_low) - t * bottom_low, 0.0)
    t_low = rest / bottom
    p = _polynomial((1 - t) - t_low, ERFCX)
    return t * p + t_low * p


@quiet
def erfcx(x: np.ndarray) -> np.ndarray:
    """e**(x**2) erfc(x)."""
    a = np.abs(x)
    y = np.where(a == math.inf, 0.0, _scaled_erfc(a))
    square, low = two_product(*[np.minimum(a, SQUARE_HIGH)] * 2)
    power = np.exp(square)
    power = np.where(np.isinf(power), math.inf, 2 * power + 2 * power * low)
    return np.where(x < 0, power - y, y)


@quiet
def erfc(x: np.ndarray) -> np.ndarray:
    """1 - erf(x)."""
    a = np.abs(x)
    square, low = two_product(*[np.minimum(a, SQUARE_HIGH)] * 2)
    power, scaled = np.exp(-square), _scaled_erfc(a)
    y = power * (scaled - scaled * low)
    return np.where(a < _NEAR, 1 - ufunc("erf")(x), np.where(x < 0, 2 - y, y))


@quiet
def ndtr(x: np.ndarray) -> np.ndarray:
    """The probability that a standard normal variable is at most x."""
    a = np.abs(x)
    square, low = two_product(*[np.minimum(a, SQUARE_HIGH)] * 2)
    power, scaled = np.exp(-0.5 * square), _scaled_erfc(a * math.sqrt(0.5))
    tail = 0.5 * (power * (scaled - 0.5 * scaled * low))
    near = 0.5 + 0.5 * ufunc("erf")(x * math.sqrt(0.5))
    return np.where(a < 0.9, near, np.where(x < 0, tail, 1 - tail))


FUNCTIONS = {"erfc": erfc, "erfcx": erfcx, "ndtr": ndtr}
