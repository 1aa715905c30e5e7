"""Cases for reading and writing by integer tensors."""

import numpy as np

from lucid.ops.indexing import PutAlong, TakeAlong
from tests.cases.case import Arg, Case, boolean, complex_, index, integer, real


def around(*shape, size):
    """Indices of both signs."""
    return Arg("index", shape, -size, size)


def take_along(axis):
    return lambda x, i: np.take_along_axis(x, i, axis)


def put_along(axis, size):
    def expected(values, indices):
        shape = list(values.shape)
        shape[axis] = size
        out = np.zeros(shape, values.dtype)
        for place in np.ndindex(values.shape):
            target = (*place[:axis], indices[place], *place[axis + 1 :])
            out[target] += values[place]
        return out

    return expected


CASES = [
    Case(TakeAlong(0), (real(4), index(6, high=4)), take_along(0)),
    Case(TakeAlong(1), (real(2, 3), around(2, 4, size=3)), take_along(1)),
    Case(TakeAlong(0), (complex_(3, 2), around(2, 2, size=3)), take_along(0)),
    Case(TakeAlong(1), (integer(2, 3, 2), around(2, 1, 2, size=3)), take_along(1)),
    Case(TakeAlong(1), (boolean(2, 3), index(2, 3, high=3)), take_along(1)),
    Case(TakeAlong(1), (real(2, 3), index(2, 0, high=3)), take_along(1), label="empty"),
    Case(TakeAlong(1), (real(0, 3), index(0, 2, high=3)), take_along(1), label="no rows"),
    Case(PutAlong(0, 4), (real(6), index(6, high=4)), put_along(0, 4)),
    Case(PutAlong(1, 3), (real(2, 4), around(2, 4, size=3)), put_along(1, 3)),
    Case(PutAlong(0, 3), (complex_(4, 2), around(4, 2, size=3)), put_along(0, 3)),
    Case(PutAlong(1, 3), (integer(2, 5, 2), around(2, 5, 2, size=3)), put_along(1, 3)),
    Case(PutAlong(1, 3), (real(2, 0), index(2, 0, high=3)), put_along(1, 3), label="empty"),
    Case(PutAlong(1, 3), (real(0, 2), index(0, 2, high=3)), put_along(1, 3), label="no rows"),
]
