"""Cases for functions of the digits of numbers, and for logaddexp2."""

import numpy as np

from lucid.ops.elementwise.digits import Frexp, Gcd, Nextafter
from lucid.ops.elementwise.logarithms import Logaddexp2
from tests.cases.case import Case, integer, real


def parts(x):
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent.astype("int32")


BYTES = integer(5, low=0, high=9, dtype="uint8")
CASES = [
    Case(Logaddexp2(), (real(3), real(2, 3)), np.logaddexp2),
    Case(Logaddexp2(), (real(), real(2)), np.logaddexp2),
    Case(Logaddexp2(), (real(0), real()), np.logaddexp2, label="empty"),
    Case(Frexp(), (real(2, 3, avoid=0.1),), parts),
    Case(Frexp(), (real(avoid=0.1),), parts),
    Case(Frexp(), (real(0, 2),), parts, label="empty"),
    Case(Nextafter(), (real(3), real(2, 3)), lambda a, b: np.nextafter(a, b)),
    Case(Nextafter(), (real(0), real()), np.nextafter, label="empty"),
    Case(Gcd(), (integer(4, low=-12, high=13), integer(3, 4, low=-12, high=13)), np.gcd),
    Case(Gcd(), (integer(), integer(2, low=-1, high=2)), np.gcd, label="zeros"),
    Case(Gcd(), (BYTES, BYTES), np.gcd),
]
