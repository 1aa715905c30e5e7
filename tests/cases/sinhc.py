"""All there is to test of sinhc: the primitive, the public name, and the scalar of kernels."""

import mpmath
import numpy as np

from lucid.ops.elementwise.logarithms import SINHC
from tests.cases.case import Case, real
from tests.table.families import unary
from tests.table.row import call


def sinhc(x):
    """The series near 0, where the quotient is 0 / 0."""
    with np.errstate(all="ignore"):
        return np.where(np.abs(x) < 1e-2, 1 + x**2 / 6 + x**4 / 120 + x**6 / 5040, np.sinh(x) / x)


CASES = [
    Case(SINHC, (real(2, 3),), sinhc),
    Case(SINHC, (real(3, low=-5.0, high=5.0),), sinhc, label="far"),
    Case(SINHC, (real(3, low=-1e-3, high=1e-3),), sinhc, label="near"),
    Case(SINHC, (real(),), sinhc),
    Case(SINHC, (real(0, 3),), sinhc, label="empty"),
]

ROWS = [
    unary(
        "sinhc",
        sinhc,
        call(real(4, low=-1e-3, high=1e-3)),
        call(real(4, low=-9.0, high=9.0)),
        takes="f0",
        torch=None,
    ),
]

SCALAR_EXACT = {
    "sinhc": lambda x: mpmath.inf if abs(x) > 1e4 else mpmath.sinh(x) / x if x else mpmath.mpf(1)
}
SCALAR_SPECIAL = {"sinhc": "0:1 -0:1 inf:inf -inf:inf 1000:inf -1000:inf nan:nan"}
