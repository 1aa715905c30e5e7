"""Rows of operations that run along an axis and keep its size."""

import numpy as np
from scipy import special

from lucid.errors import AxisError, DTypeError
from tests.cases.case import complex_, integer, real
from tests.table.row import Row, bad, call


def calls(*more, **domain):
    return [
        call(real(4, **domain), 0),
        call(real(2, 3, **domain), -1),
        call(real(2, 3, 2, **domain), dim=1),
        call(real(**domain), 0),
        call(real(0), 0),
        call(real(2, 0), 1),
        *more,
    ]


def with_numbers(function):
    """A number is a row of one."""

    def expected(x, dim, **words):
        y = function(x if x.ndim else x.reshape(1), dim, **words)
        parts = y if isinstance(y, tuple) else (y,)
        parts = tuple(part.reshape(x.shape) for part in parts)
        return parts if isinstance(y, tuple) else parts[0]

    return expected


def running(ufunc):
    """Values so far, and the latest index at which the extreme one stands."""

    def expected(x, dim):
        values = ufunc.accumulate(x, dim)
        places = np.arange(x.shape[dim]).reshape(
            [-1 if i == dim % x.ndim else 1 for i in range(x.ndim)]
        )
        return values, np.maximum.accumulate(np.where(x == values, places, 0), dim)

    return expected


def cumulated(x, dim, dtype=None):
    return np.cumsum(x, dim, dtype=dtype)


def multiplied(x, dim, dtype=None):
    return np.cumprod(x, dim, dtype=dtype)


REFUSED = [
    bad(AxisError, "axis 2", real(3, 3), 2),
    bad(AxisError, "'rows' is not an integer", real(3), "rows"),
]
NO_ORDER = bad(DTypeError, "complex", complex_(3), 0)
MORE = [call(integer(4), 0), call(complex_(3), 0), call(integer(3), 0, dtype=np.dtype("float64"))]
APART = {"distinct": True}

ROWS = [
    Row("cumsum", with_numbers(cumulated), calls(*MORE), REFUSED),
    Row("cumprod", with_numbers(multiplied), calls(*MORE), REFUSED),
    Row(
        "logcumsumexp",
        with_numbers(np.logaddexp.accumulate),
        calls(
            call(complex_(2, 3, low=-1, high=1), 1).but(
                expected=lambda x, dim: np.log(np.cumsum(np.exp(x), dim))
            )
        ),
        REFUSED,
        torch=lambda t, x, dim: t.logcumsumexp(x, dim) if x.numel() else x,
    ),
    Row(
        "cummax",
        with_numbers(running(np.maximum)),
        calls(call(integer(5), 0), **APART),
        [*REFUSED, NO_ORDER],
    ),
    Row(
        "cummin",
        with_numbers(running(np.minimum)),
        calls(call(integer(5), 0), **APART),
        [*REFUSED, NO_ORDER],
    ),
    Row(
        "softmax",
        lambda x, dim: special.softmax(x, dim),
        [call(real(4), 0), call(real(2, 3), -1), call(real(2, 3, 2), dim=1), call(real(0, 3), 1)],
        REFUSED,
    ),
    Row(
        "log_softmax",
        lambda x, dim: special.log_softmax(x, dim),
        [call(real(4), 0), call(real(2, 3), -1), call(real(2, 3, 2), dim=1), call(real(0, 3), 1)],
        REFUSED,
    ),
]
