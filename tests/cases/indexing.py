"""Cases for reading and writing by integer tensors."""

import numpy as np

from lucid.ops.index.gather_scatter import Gather, PutAlong, ScatterAdd, TakeAlong
from lucid.ops.index.selection import TakeOne
from lucid.ops.index.writing import LastWrite, ScatterSet, SliceSet
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
    Case(TakeOne(0), (real(4), index(high=4)), lambda x, i: x[i]),
    Case(TakeOne(1), (real(2, 3), around(2, size=3)), lambda x, i: x[np.arange(2), i]),
    Case(TakeOne(0), (complex_(3, 2), around(2, size=3)), lambda x, i: x[i, np.arange(2)]),
    Case(
        TakeOne(1),
        (integer(2, 3, 2), around(2, 2, size=3)),
        lambda x, i: np.take_along_axis(x, i[:, None], 1)[:, 0],
    ),
    Case(TakeOne(1), (boolean(2, 3), index(2, high=3)), lambda x, i: x[np.arange(2), i]),
    Case(TakeOne(1), (real(0, 3), index(0, high=3)), lambda x, i: x[:, 0], label="no rows"),
    Case(PutAlong(0, 4), (real(6), index(6, high=4)), put_along(0, 4)),
    Case(PutAlong(1, 3), (real(2, 4), around(2, 4, size=3)), put_along(1, 3)),
    Case(PutAlong(0, 3), (complex_(4, 2), around(4, 2, size=3)), put_along(0, 3)),
    Case(PutAlong(1, 3), (integer(2, 5, 2), around(2, 5, 2, size=3)), put_along(1, 3)),
    Case(PutAlong(1, 3), (real(2, 0), index(2, 0, high=3)), put_along(1, 3), label="empty"),
    Case(PutAlong(1, 3), (real(0, 2), index(0, 2, high=3)), put_along(1, 3), label="no rows"),
]


def gather(axes, batch_dims=0):
    def expected(x, *indices):
        if batch_dims:
            inner = gather([axis - 1 for axis in axes], batch_dims - 1)
            return np.stack([inner(*row) for row in zip(x, *indices)])
        rest = [i for i in range(x.ndim) if i not in axes]
        return x.transpose(*axes, *rest)[indices]

    return expected


def scatter(shape, axes, batch_dims=0, add=True):
    """Element by element, in order."""

    def expected(*operands):
        x, updates, *indices = operands if not add else (None, *operands)
        out = np.zeros(shape, updates.dtype) if add else x.copy()
        updates = np.broadcast_to(updates, indices[0].shape + left_over(out))
        for place in np.ndindex(indices[0].shape):
            target = [slice(None)] * out.ndim
            target[:batch_dims] = place[:batch_dims]
            for axis, i in zip(axes, indices):
                target[axis] = i[place]
            out[tuple(target)] = updates[place] + (out[tuple(target)] if add else 0)
        return out

    def left_over(out):
        return tuple(n for i, n in enumerate(out.shape) if i >= batch_dims and i not in axes)

    return expected


def gather_case(x, *indices, axes, batch_dims=0, label=""):
    expected = gather(axes, batch_dims)
    return Case(Gather(axes, batch_dims), (x, *indices), expected, label=label)


def add_case(shape, axes, updates, *indices, batch_dims=0, label=""):
    expected = scatter(shape, axes, batch_dims)
    op = ScatterAdd(shape, axes, batch_dims)
    return Case(op, (updates, *indices), expected, label=label)


def set_case(axes, x, updates, *indices, batch_dims=0, label=""):
    expected = scatter(x.shape, axes, batch_dims, add=False)
    return Case(ScatterSet(axes, batch_dims), (x, updates, *indices), expected, label=label)


def slice_set(subscript, *bounds):
    def expected(x, updates):
        x = x.copy()
        x[subscript] = updates
        return x

    return lambda x, updates: Case(SliceSet(*bounds), (x, updates), expected)


def last_write(*indices):
    flat = list(zip(*[i.ravel().tolist() for i in indices]))
    return np.array([w not in flat[k + 1 :] for k, w in enumerate(flat)]).reshape(indices[0].shape)


CASES += [
    gather_case(real(4), index(3, high=4), axes=(0,)),
    gather_case(real(4), around(size=4), axes=(0,), label="0-d index"),
    gather_case(real(4, 3), around(2, 2, size=4), axes=(0,)),
    gather_case(complex_(3, 4), around(2, size=4), axes=(1,)),
    gather_case(real(2, 3, 4), around(3, size=2), around(3, size=4), axes=(0, 2)),
    gather_case(real(2, 3), around(2, 2, size=2), around(2, 2, size=3), axes=(0, 1)),
    gather_case(real(2, 4, 3), around(2, 3, size=4), axes=(1,), batch_dims=1),
    gather_case(real(2, 4, 3), around(2, size=3), axes=(2,), batch_dims=1),
    gather_case(real(2, 2, 3), around(2, 2, 4, size=3), axes=(2,), batch_dims=2),
    gather_case(integer(4, 2), index(3, high=4), axes=(0,)),
    gather_case(boolean(4), index(3, high=4), axes=(0,)),
    gather_case(real(4, 2), index(0, high=4), axes=(0,), label="no indices"),
    gather_case(real(4, 0), index(3, high=4), axes=(0,), label="empty rows"),
    add_case((4,), (0,), real(6), index(6, high=4)),
    add_case((4, 3), (0,), real(2, 2, 3), around(2, 2, size=4)),
    add_case((3, 4), (1,), complex_(5, 3), around(5, size=4)),
    add_case((2, 3, 4), (0, 2), real(6, 3), around(6, size=2), around(6, size=4)),
    add_case((2, 4, 3), (1,), real(2, 6, 3), around(2, 6, size=4), batch_dims=1),
    add_case((2, 4, 3), (2,), real(2, 4), around(2, size=3), batch_dims=1),
    add_case((3,), (0,), integer(5), index(5, high=3)),
    add_case((3, 2), (0,), real(0, 2), index(0, high=3), label="no indices"),
    add_case((3, 70), (0,), real(80, 70), index(80, high=3), label="large"),
    set_case((0,), real(4), real(6), index(6, high=4)),
    set_case((0,), real(4, 3), real(2, 2, 3), around(2, 2, size=4)),
    set_case((1,), complex_(3, 4), complex_(5, 3), around(5, size=4)),
    set_case((0, 2), real(2, 3, 4), real(6, 3), around(6, size=2), around(6, size=4)),
    set_case((1,), real(2, 4, 3), real(2, 6, 3), around(2, 6, size=4), batch_dims=1),
    set_case((0,), real(4, 3), real(), around(2, size=4), label="one number"),
    set_case((0,), integer(4), integer(3), around(3, size=4)),
    set_case((0,), real(4), real(0), index(0, high=4), label="no indices"),
    Case(LastWrite((3,)), (index(6, high=3),), last_write),
    Case(LastWrite((2, 2)), (index(2, 3, high=2), index(2, 3, high=2)), last_write),
    Case(
        LastWrite((2,), 1),
        (index(3, 4, high=2),),
        lambda i: np.stack([last_write(row) for row in i]),
    ),
    Case(LastWrite((3,)), (index(0, high=3),), lambda i: np.zeros(0, bool)),
    slice_set(np.s_[1:4], (1,), (4,), (1,))(real(5), real(3)),
    slice_set(np.s_[1:6:2, :2], (1, 0), (6, 2), (2, 1))(real(7, 3), real(3, 2)),
    slice_set(np.s_[1:6:2, :2], (1, 0), (6, 2), (2, 1))(complex_(7, 3), complex_()),
    slice_set(np.s_[2:2], (2,), (2,), (1,))(real(4), real(0)),
    slice_set(np.s_[...], (), (), ())(real(), real()),
    slice_set(np.s_[1:], (1,), (3,), (1,))(integer(3), integer()),
]
