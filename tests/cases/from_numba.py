"""Cases for functions that users wrote for Numba."""

import math

import numba
import numpy as np

from lucid.ops.higher_order.numba_function import NumbaFunction
from lucid.ops.higher_order.numba_ops import FromNumba, NumbaArrays
from tests.cases.case import Case, integer, real


@numba.njit
def wave(x, y):
    return math.sin(x) * y


@numba.njit
def root(x):
    if x == 7.25:
        raise ValueError("a number that is not liked")
    return math.sqrt(x)


@numba.njit
def power(x, n):
    y = x * 0 + 1
    for _ in range(n):
        y *= x
    return y


@numba.njit
def outer(x, w, out):
    for i in range(len(x)):
        for j in range(len(w)):
            out[i, j] = x[i] * w[j]


@numba.njit
def shares(x):
    return x / np.sum(x), np.sum(x)


WAVE = NumbaFunction(wave)
ROOT = NumbaFunction(root, derivative=(lambda x: 0.5 * x**-0.5,))
POWER = NumbaFunction(power, derivative=(lambda x, n: n * x ** (n - 1), None))
OUTER = NumbaFunction(
    outer,
    shape=lambda x, w: (*x, *w),
    rules={"vjp": lambda ct, y, x, w: (ct @ w, ct.T @ x)},
)
OUTER_FORWARD = NumbaFunction(
    outer,
    shape=lambda x, w: (*x, *w),
    rules={"jvp": lambda ts, y, x, w: ts[0][:, None] * w + x[:, None] * ts[1]},
)
SHARES = NumbaFunction(shares, shape=lambda x: [x, ()])

CASES = [
    Case(FromNumba(WAVE), (real(2, 3), real(3)), lambda x, y: np.sin(x) * y),
    Case(FromNumba(WAVE), (real(0, 3), real()), lambda x, y: np.sin(x) * y, label="empty"),
    Case(FromNumba(ROOT), (real(4, low=0.5),), np.sqrt),
    Case(FromNumba(POWER), (real(4, avoid=0.3), integer(4, low=2, high=5)), np.power),
    *[
        Case(NumbaArrays(function), (real(3), real(2)), np.outer)
        for function in (OUTER, OUTER_FORWARD)
    ],
    Case(
        NumbaArrays(OUTER, (True, False)),
        (real(4, 3), real(2)),
        lambda x, w: x[:, :, None] * w,
        label="examples",
    ),
    Case(NumbaArrays(SHARES), (real(5, low=1),), lambda x: (x / x.sum(), x.sum())),
]
