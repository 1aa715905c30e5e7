"""Cases for searching in sorted rows and for combining at indices."""

import numpy as np

from lucid.ops.index.scatter_reduce import CombineAlong
from lucid.ops.index.searching import Searchsorted
from tests.cases.case import Case, boolean, index, integer, real


def counted(right):
    """How many elements of the row are less, or not greater."""

    def expected(row, values):
        row = np.expand_dims(row, -2) if row.ndim > 1 else row
        values = np.expand_dims(values, -1)
        before = row <= values if right else row < values
        return before.sum(-1)

    return expected


def combined(axis, ufunc):
    """One element after the other."""

    def expected(x, values, places):
        y = x.copy()
        for at in np.ndindex(values.shape):
            target = (*at[:axis], places[at], *at[axis + 1 :])
            y[target] = ufunc(y[target], values[at])
        return y

    return expected


def ordered(*shape):
    return real(*shape, low=0.0, high=0.0)  # all equal: in order whatever the seed


CASES = [
    Case(Searchsorted(), (integer(5, low=1, high=2), integer(2, 3, low=0, high=3)), counted(False)),
    Case(Searchsorted(True), (integer(5, low=1, high=2), integer(4, low=0, high=3)), counted(True)),
    Case(Searchsorted(), (ordered(2, 4), real(2, 3)), counted(False)),
    Case(Searchsorted(True), (ordered(2, 1, 4), real(2, 1, 3)), counted(True)),
    Case(Searchsorted(), (ordered(3), real()), counted(False)),
    Case(Searchsorted(), (ordered(0), real(3)), counted(False), label="empty-row"),
    Case(Searchsorted(), (ordered(3), real(0, 2)), counted(False), label="empty"),
    Case(CombineAlong(0, "max"), (real(4), real(6), index(6, high=4)), combined(0, np.maximum)),
    Case(
        CombineAlong(1, "min"),
        (real(2, 3, 2), real(2, 4, 2), index(2, 4, 2, high=3)),
        combined(1, np.minimum),
    ),
    Case(
        CombineAlong(1, "prod"),
        (real(2, 3, avoid=0.5), real(2, 5, avoid=0.5), index(2, 5, high=3)),
        combined(1, np.multiply),
    ),
    Case(
        CombineAlong(0, "max"),
        (integer(3), integer(4), index(4, high=3)),
        combined(0, np.maximum),
        label="integers",
    ),
    Case(
        CombineAlong(0, "prod"),
        (boolean(3), boolean(4), index(4, high=3)),
        combined(0, np.logical_and),
        label="booleans",
    ),
    Case(
        CombineAlong(0, "min"),
        (real(3, 2), real(0, 2), index(0, 2, high=3)),
        combined(0, np.minimum),
        label="none",
    ),
]
