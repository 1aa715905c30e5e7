"""Cases for cumulative sums, products and extrema, and the recurrence behind their derivatives."""

import numpy as np

from lucid.ops.reduce.cumulative import Cummax, Cummin, Cumprod, Cumsum, LogCumSumExp, Recurrence
from tests.cases.case import Case, boolean, complex_, integer, real


def from_the_end(numpy, axis):
    return lambda x: np.flip(numpy(np.flip(x, axis), axis), axis)


def exclusive(axis):
    """The product of what stands before each place, as a loop."""

    def expected(x):
        x = np.moveaxis(x, axis, 0)
        rows = [np.prod(x[:i], axis=0, dtype=x.dtype) for i in range(len(x))]
        return np.moveaxis(np.array(rows, x.dtype).reshape(x.shape), 0, axis)

    return expected


def recurrence(axis, reverse=False):
    def expected(a, b):
        a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
        state, out = np.zeros_like(b[0]) if len(b) else None, np.zeros_like(b)
        for i in reversed(range(len(b))) if reverse else range(len(b)):
            state = out[i] = a[i] * state + b[i]
        return np.moveaxis(out, 0, axis)

    return expected


def running(best, axis):
    """Values and last indices of running extrema, as a loop over Python numbers."""

    def row(x):
        values, indices = [], []
        for i, element in enumerate(x.tolist()):
            value = best(x[: i + 1].tolist())
            values.append(value)
            indices.append(i if element == value else indices[-1])
        return np.array([values, indices])

    def expected(x):
        if x.size == 0:
            return x, np.zeros(x.shape, "int64")
        both = (
            np.apply_along_axis(row, axis, x)
            if x.ndim == 1
            else np.stack(
                [row(r) for r in np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])], 1
            ).reshape(2, *np.moveaxis(x, axis, -1).shape)
        )
        values, indices = (np.moveaxis(part, -1, axis) for part in both)
        return values.astype(x.dtype), indices.astype("int64")

    return expected


def log_of_sums(axis):
    def expected(x):
        wide = x.astype("float64" if x.dtype.kind == "f" else "complex128")
        return np.log(np.cumsum(np.exp(wide), axis))

    return expected


CASES = [
    Case(Cumsum(0), (real(5),), np.cumsum),
    Case(Cumsum(1), (real(2, 3, 2),), lambda x: np.cumsum(x, 1)),
    Case(Cumsum(0, True), (complex_(4, 2),), from_the_end(np.cumsum, 0)),
    Case(Cumsum(0), (integer(4),), np.cumsum),
    Case(Cumsum(0), (real(0),), np.cumsum, label="empty"),
    Case(Cumsum(1, True), (real(0, 2),), lambda x: x, label="empty-rows"),
    Case(Cumprod(0), (real(5),), np.cumprod),
    Case(Cumprod(1), (real(2, 3, 2),), lambda x: np.cumprod(x, 1)),
    Case(Cumprod(1, True), (complex_(2, 3),), from_the_end(np.cumprod, 1)),
    Case(Cumprod(0), (integer(4),), np.cumprod),
    Case(Cumprod(0), (real(4, low=0, high=0),), np.cumprod, label="all-zero"),
    Case(Cumprod(0), (real(0),), np.cumprod, label="empty"),
    Case(Cumprod(0, False, True), (real(4),), exclusive(0)),
    Case(Cumprod(1, False, True), (complex_(2, 3),), exclusive(1)),
    Case(Cumprod(0, True, True), (real(4, 2),), lambda x: np.flip(exclusive(0)(np.flip(x, 0)), 0)),
    Case(Cumprod(0, False, True), (real(3, low=0, high=0),), exclusive(0), label="zeros-exclusive"),
    Case(Cumprod(0, False, True), (real(1),), lambda x: np.ones(1, x.dtype), label="one-exclusive"),
    Case(Cumprod(0, True, True), (real(0, 2),), lambda x: x, label="empty-exclusive"),
    Case(LogCumSumExp(0), (real(5),), log_of_sums(0)),
    Case(LogCumSumExp(1), (real(2, 3, 2),), log_of_sums(1)),
    Case(LogCumSumExp(0), (real(0),), lambda x: x, label="empty"),
    Case(LogCumSumExp(1), (complex_(2, 4, low=-1, high=1),), log_of_sums(1)),
    Case(Recurrence(0), (real(4), real(4)), recurrence(0)),
    Case(Recurrence(1, True), (real(2, 3), real(2, 3)), recurrence(1, True)),
    Case(Recurrence(0), (complex_(3, 2), complex_(3, 2)), recurrence(0)),
    Case(Recurrence(1), (real(5, 3, 8), real(5, 3, 8)), recurrence(1), label="many-rows"),
    Case(Recurrence(0), (real(0), real(0)), lambda a, b: b, label="empty"),
    Case(Recurrence(0), (real(2, 0), real(2, 0)), lambda a, b: b, label="no-rows"),
]

for op, best in ((Cummax, max), (Cummin, min)):
    CASES += [
        Case(op(0), (real(6, distinct=True),), running(best, 0)),
        Case(op(1), (real(2, 4, 3, distinct=True),), running(best, 1)),
        Case(op(0), (integer(6, low=0, high=3),), running(best, 0), label="ties"),
        Case(op(1), (boolean(2, 5),), running(best, 1)),
        Case(op(0), (real(0),), running(best, 0), label="empty"),
        Case(op(1), (real(0, 3),), running(best, 1), label="empty-rows"),
    ]
