"""Rows of reading and writing at indices, and of searching."""

import numpy as np

from lucid.errors import ArgumentError, AxisError, DTypeError, IndexingError, ShapeError
from tests.cases.case import boolean, complex_, index, integer, real
from tests.table.row import Row, bad, call


def each_place(write):
    """`write(y, place, value)` for every element of an index along one axis, in order."""

    def expected(x, dim, places, src=None, reduce=None, **words):
        y = x.copy()
        src = words.get("value", src)
        for at in np.ndindex(places.shape):
            target = (*at[: dim % x.ndim], places[at], *at[dim % x.ndim + 1 :])
            value = src[at] if np.ndim(src) else src
            write(y, target, value) if reduce is None else combine(y, target, value, reduce)
        return y

    return expected


def combine(y, target, value, how):
    y[target] = y[target] + value if how == "add" else y[target] * value


def put(y, target, value):
    y[target] = value


def add(y, target, value):
    y[target] += value


def scatter_reduce(x, dim, places, src, reduce, include_self=True):
    """All that is sent to a place, as a list, reduced by NumPy."""
    sent = {}
    for at in np.ndindex(places.shape):
        target = (*at[: dim % x.ndim], places[at], *at[dim % x.ndim + 1 :])
        sent.setdefault(target, [x[target]] if include_self else []).append(src[at])
    y = x.copy()
    function = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}
    for target, values in sent.items():
        y[target] = function[reduce](values)
    return y


def index_reduce(x, dim, places, source, reduce, include_self=True):
    spread = np.expand_dims(places, [i for i in range(x.ndim) if i != dim % x.ndim])
    return scatter_reduce(
        x, dim, np.broadcast_to(spread, source.shape), source, reduce, include_self
    )


def index_put(x, indices, values, accumulate=False):
    y = x.copy()
    if accumulate:
        np.add.at(y, indices, values)
    else:
        y[indices] = values
    return y


def flat_put(x, places, source, accumulate=False):
    y = x.copy()
    flat = y.reshape(-1)
    for i, value in zip(places.reshape(-1), source.reshape(-1)):
        flat[i] = flat[i] + value if accumulate else value
    return flat.reshape(x.shape)


def along(dim, ndim, part):
    return (*[slice(None)] * (dim % ndim), part)


def index_add(x, dim, places, source, alpha=1):
    y = x.copy()
    np.add.at(y, along(dim, x.ndim, places), alpha * source)
    return y


def index_copy(x, dim, places, source):
    y = x.copy()
    y[along(dim, x.ndim, places)] = source
    return y


def masked_scatter(x, mask, source):
    y = x.copy()
    mask = np.broadcast_to(mask, x.shape)
    y[mask] = source.reshape(-1)[: mask.sum()]
    return y


def masked_select(x, mask):
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


def select_scatter(x, src, dim, i):
    return index_copy(x, dim, i, src)


def slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    return index_copy(x, dim, slice(start, end, step), src)


def diagonal_scatter(x, src, offset=0, dim1=0, dim2=1):
    y = x.copy()
    view = np.diagonal(y, offset, dim1, dim2)
    view.flags.writeable = True
    view[...] = src
    return y


def gather(x, dim, places):
    sizes = [slice(None) if i == dim % x.ndim else slice(n) for i, n in enumerate(places.shape)]
    return np.take_along_axis(x[tuple(sizes)], places, dim)


def take(x, places, dim=None):
    return np.take(x, places, dim)


def take_along(x, places, dim=None):
    if dim is None:
        return np.take_along_axis(x.reshape(-1), places.reshape(-1), 0)
    return np.take_along_axis(x, places, dim)


def searchsorted(rows, values, right=False, side=None, sorter=None, out_int32=False):
    """By counting what is less."""
    rows = rows if sorter is None else np.take_along_axis(rows, sorter, -1)
    rows = np.expand_dims(rows, -2) if rows.ndim > 1 else rows
    values = np.expand_dims(values, -1)
    before = rows <= values if right or side == "right" else rows < values
    return before.sum(-1).astype("int32" if out_int32 else "int64")


def bucketize(values, rows, **words):
    return searchsorted(rows, values, **words)


def unique(x, sorted=True, return_inverse=False, return_counts=False, dim=None):
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    inverse = inverse.reshape(x.shape if dim is None else -1)
    out = (values, *[inverse] * return_inverse, *[counts] * return_counts)
    return out if len(out) > 1 else values


def unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    rows = list(x.reshape(-1)) if dim is None else list(np.moveaxis(x, dim, 0))
    kept, inverse, counts = [], [], []
    for row in rows:
        if not kept or not np.array_equal(row, kept[-1]):
            kept.append(row)
            counts.append(0)
        counts[-1] += 1
        inverse.append(len(kept) - 1)
    values = np.array(kept, x.dtype) if dim is None else np.stack(kept, dim)
    places = np.array(inverse).reshape(x.shape if dim is None else -1)
    out = (values, *[places] * return_inverse, *[np.array(counts)] * return_counts)
    return out if len(out) > 1 else values


def nonzero_static(x, size, fill_value=-1):
    found = np.argwhere(x)[:size]
    filled = np.full((size - len(found), x.ndim), fill_value)
    return np.concatenate([found, filled])


def diff(x, n=1, dim=-1, prepend=None, append=None):
    ends = {k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    return np.diff(x, n, dim, **ends)


def scatter_in(t, x, dim, places, src=None, value=None, reduce=None):
    """PyTorch's scatter, which takes a number by another name and no None."""
    src = value if src is None else src
    places = t.as_tensor(places)
    words = {} if reduce is None else {"reduce": reduce}
    if t.is_tensor(src) and src.ndim:  # a larger src has no derivative in PyTorch
        src = src[tuple(map(slice, places.shape))]
    return t.scatter(x, dim, places, src, **words)


def scatter_add_in(t, x, dim, places, src):
    return t.scatter_add(x, dim, places, src[tuple(map(slice, places.shape))])


LOOK = "the shape depends on values"
OUT = bad(IndexingError, "index 9", real(3), 0, np.array([9]))
FLOATS = bad(DTypeError, "must be integer", real(3), 0, real(2))
SORTED = real(5, low=0.5, high=0.5)  # all equal: in order for every seed

REDUCED = [
    call(real(4, avoid=0.3), 0, index(6, high=4), real(6, avoid=0.3), how, include_self=own)
    for how in ("prod", "mean", "amax", "amin")
    for own in (True, False)
]

ROWS = [
    Row(
        "gather",
        gather,
        [
            call(real(4), 0, index(6, high=4)),
            call(real(3, 4), 1, index(2, 3, high=4)),
            call(real(3, 2, 2), -3, index(4, 2, 1, high=3)),
            call(complex_(3), 0, index(2, high=3)),
            call(real(3), 0, index(0, high=3), label="empty"),
        ],
        [
            OUT,
            FLOATS,
            bad(ShapeError, "smaller than the index", real(2, 3), 1, index(3, 3, high=2)),
        ],
    ),
    Row(
        "take_along_dim",
        take_along,
        [
            call(real(4), index(6, high=4), 0),
            call(real(2, 4), index(2, 3, high=4), 1),
            call(real(2, 3), index(1, 3, high=2), dim=0),
            call(real(2, 3), index(4, high=6)),
            call(real(3), index(0, high=3), 0, label="empty"),
        ],
        [
            bad(IndexingError, "index 9", real(3), np.array([9]), 0),
            bad(ShapeError, "numbers of axes must agree", real(2, 3), index(2, high=2), 1),
        ],
        torch=lambda t, x, i, dim=None: t.take_along_dim(
            x, i.reshape(-1) if dim is None else i, dim
        ),
    ),
    Row(
        "take_along_axis",
        lambda x, places, axis=-1: np.take_along_axis(x, places, axis),
        [call(real(4), index(6, high=4), 0), call(real(2, 4), index(2, 3, high=4))],
        [bad(IndexingError, "index 9", real(3), np.array([9]))],
        torch=None,
    ),
    Row(
        "take",
        take,
        [
            call(real(2, 3), index(4, high=6)),
            call(real(4), index(2, 2, high=4)),
            call(real(2, 3, 2), index(4, high=3), 1),
            call(real(4), index(high=4)),
            call(real(3), index(0, high=3), label="empty"),
        ],
        [
            bad(IndexingError, "index 9", real(3), np.array([9])),
            bad(DTypeError, "must be integer", real(3), real(2)),
        ],
        torch=lambda t, x, i, dim=None: t.take(x, i) if dim is None else t.index_select(x, dim, i),
    ),
    Row(
        "index_select",
        lambda x, dim, places: np.take(x, places, dim),
        [
            call(real(4, 2), 0, index(3, high=4)),
            call(real(2, 3, 2), 1, index(5, high=3)),
            call(real(3), -1, index(0, high=3)),
        ],
        [OUT, FLOATS, bad(ShapeError, "not a vector", real(3), 0, index(2, 2, high=2))],
    ),
    Row(
        "scatter",
        each_place(put),
        [
            call(real(6), 0, np.array([4, 0, 2]), real(3)),
            call(real(2, 5), 1, np.array([[4, 0, 2], [1, 2, 3]]), real(2, 4)),
            call(real(3, 2), -2, np.array([[2, 0]]), 1.5),
            call(real(3), 0, np.array([2]), value=2.5),
            call(real(3, avoid=0.3), 0, index(4, high=3), real(4, avoid=0.3), reduce="add"),
            call(real(3, avoid=0.3), 0, index(4, high=3), real(4, avoid=0.3), reduce="multiply"),
            call(real(3), 0, index(0, high=3), real(0), label="empty"),
        ],
        [
            bad(IndexingError, "index 9", real(3), 0, np.array([9]), 1.0),
            bad(DTypeError, "must be integer", real(3), 0, real(2), 1.0),
            bad(ArgumentError, "give src or value", real(3), 0, index(2, high=3)),
            bad(ShapeError, "src", real(3), 0, index(2, high=3), real(1)),
            bad(
                ArgumentError, "reduce='mean'", real(3), 0, index(2, high=3), real(2), reduce="mean"
            ),
        ],
        torch=scatter_in,
    ),
    Row(
        "scatter_add",
        each_place(add),
        [
            call(real(3), 0, index(5, high=3), real(5)),
            call(real(2, 4), 1, index(2, 3, high=4), real(2, 3)),
            call(real(3, 4), 0, index(2, 2, high=3), real(2, 3)),
            call(real(3), 0, index(0, high=3), real(0), label="empty"),
        ],
        [
            bad(IndexingError, "index 9", real(3), 0, np.array([9]), real(1)),
            bad(ShapeError, "src", real(3), 0, index(2, high=3), real(1)),
        ],
        torch=scatter_add_in,
    ),
    Row(
        "scatter_reduce",
        scatter_reduce,
        [
            *REDUCED,
            call(real(3), 0, index(5, high=3), real(5), "sum"),
            call(real(3), 0, index(5, high=3), real(5), "sum", include_self=False),
            call(real(2, 4), 1, index(2, 3, high=4), real(2, 3), "amax"),
            call(real(3, 4, avoid=0.3), -2, index(2, 2, high=3), real(2, 3, avoid=0.3), "prod"),
            call(real(3), 0, index(0, high=3), real(0), "mean", label="empty"),
        ],
        [
            bad(ArgumentError, "reduce='max'", real(3), 0, index(2, high=3), real(2), "max"),
            bad(IndexingError, "index 9", real(3), 0, np.array([9]), real(1), "amax"),
            bad(ShapeError, "src", real(3), 0, index(2, high=3), real(1), "sum"),
        ],
        differs="PyTorch's forward mode gives 0 for products",
    ),
    Row(
        "index_reduce",
        index_reduce,
        [
            *REDUCED,
            call(real(2, 3, 2), 1, index(4, high=3), real(2, 4, 2), "amax"),
            call(real(3, 2), 0, index(0, high=3), real(0, 2), "mean", label="empty"),
        ],
        [
            bad(ArgumentError, "reduce='sum'", real(3), 0, index(2, high=3), real(2), "sum"),
            bad(ShapeError, "the index needs", real(3), 0, index(2, high=3), real(1), "amax"),
        ],
    ),
    Row(
        "index_add",
        index_add,
        [
            call(real(4), 0, index(6, high=4), real(6)),
            call(real(2, 3, 2), 1, index(4, high=3), real(2, 4, 2), alpha=0.5),
            call(real(3, 2), 0, index(0, high=3), real(0, 2), label="empty"),
        ],
        [
            bad(ShapeError, "the index needs", real(3), 0, index(2, high=3), real(1)),
            bad(IndexingError, "index 9", real(3), 0, np.array([9]), real(1)),
        ],
    ),
    Row(
        "index_copy",
        index_copy,
        [
            call(real(4), 0, np.array([3, 0]), real(2)),
            call(real(2, 3, 2), 1, np.array([2, 0]), real(2, 2, 2)),
            call(real(3), 0, index(0, high=3), real(0), label="empty"),
        ],
        [
            bad(IndexingError, "index 9", real(3), 0, np.array([9]), real(1)),
            bad(ShapeError, "(2,)", real(3), 0, np.array([0]), real(2)),
        ],
    ),
    Row(
        "index_fill",
        index_copy,
        [
            call(real(4), 0, np.array([3, 0]), 1.5),
            call(real(2, 3), 1, index(2, high=3), real()),
            call(integer(3), 0, np.array([1]), 7),
        ],
        [bad(IndexingError, "index 9", real(3), 0, np.array([9]), 1.0)],
    ),
    Row(
        "index_put",
        index_put,
        [
            call(real(4), (np.array([3, 0]),), real(2)),
            call(real(2, 3), (np.array([1, 0]), np.array([2, 2])), real(2)),
            call(real(2, 3), (np.array([1, 0]),), real(3)),
            call(real(3, 2), (index(5, high=3),), real(5, 2), accumulate=True),
            call(real(3, 2), (np.array([True, False, True]),), 2.0),
        ],
        [
            bad(IndexingError, "index 9", real(3), (np.array([9]),), 1.0),
            bad(ShapeError, "tuple of tensors", real(3), 1, 1.0),
            bad(DTypeError, "complex", real(3), (np.array([0]),), complex_(1), True),
        ],
        torch=lambda t, x, i, v, accumulate=False: t.index_put(
            x, tuple(map(t.as_tensor, i)), t.as_tensor(v).to(x), accumulate
        ),
    ),
    Row(
        "put",
        flat_put,
        [
            call(real(2, 3), np.array([5, 0]), real(2)),
            call(real(2, 3), index(4, high=6), real(4), accumulate=True),
            call(real(3), index(0, high=3), real(0), label="empty"),
        ],
        [
            bad(ShapeError, "2 elements for 1 indices", real(3), np.array([0]), real(2)),
            bad(IndexingError, "index 9", real(3), np.array([9]), real(1)),
        ],
        torch=lambda t, x, i, s, accumulate=False: t.put(x, t.as_tensor(i), s, accumulate),
    ),
    Row(
        "masked_fill",
        lambda x, mask, value: np.where(mask, value, x),
        [
            call(real(2, 3), boolean(3), 1.5),
            call(real(3), boolean(2, 3), real()),
            call(real(0), boolean(0), 1.0),
        ],
        [bad(ShapeError, "(2,)", real(3), boolean(2), 1.0)],
    ),
    Row(
        "masked_select",
        masked_select,
        [
            call(real(2, 3), np.array([True, False, True])),
            call(real(3), np.array([[True, False, True], [True] * 3])),
        ],
        [bad(ShapeError, "(3,) and (2,)", real(3), boolean(2))],
        torch=lambda t, x, mask: t.masked_select(x, t.as_tensor(mask)),
    ),
    Row(
        "masked_scatter",
        masked_scatter,
        [
            call(real(2, 3), boolean(2, 3), real(6)),
            call(real(2, 3), boolean(3), real(3, 2)),
            call(complex_(3), boolean(3), complex_(4)),
            call(real(0), boolean(0), real(0), label="empty"),
        ],
        [
            bad(IndexingError, "out of range", real(3), np.array([True, True, True]), real(2)),
            bad(DTypeError, "it must be bool", real(3), integer(3), real(3)),
            bad(DTypeError, "cast one first", real(3), boolean(3), integer(3)),
        ],
    ),
    Row(
        "select_scatter",
        select_scatter,
        [
            call(real(2, 3), real(2), 1, 2),
            call(real(3, 2), real(2), 0, -1),
            call(real(3), real(), 0, 1),
        ],
        [
            bad(ShapeError, "slice of (2,)", real(2, 3), real(3), 1, 0),
            bad(IndexingError, "index 5", real(3), real(), 0, 5),
        ],
    ),
    Row(
        "slice_scatter",
        slice_scatter,
        [
            call(real(5), real(2), 0, 1, 3),
            call(real(2, 6), real(2, 3), dim=1, step=2),
            call(real(5), real(2), start=-2),
            call(real(4), real(0), 0, 2, 2, label="none"),
        ],
        [
            bad(ShapeError, "slice of (2,)", real(5), real(3), 0, 1, 3),
            bad(ShapeError, "step 0", real(5), real(3), step=0),
        ],
    ),
    Row(
        "diagonal_scatter",
        diagonal_scatter,
        [
            call(real(3, 3), real(3)),
            call(real(2, 4), real(2), 1),
            call(real(3, 2, 3), real(2, 2), -1, 0, 2),
            call(real(2, 3), real(0), 3, label="none"),
        ],
        [
            bad(ShapeError, "diagonals of (3,)", real(3, 3), real(2)),
            bad(ShapeError, "fewer than two axes", real(3), real(3)),
        ],
    ),
    Row(
        "nonzero",
        lambda x, as_tuple=False: np.nonzero(x) if as_tuple else np.argwhere(x),
        [
            call(integer(4, low=0, high=2)),
            call(integer(2, 3, low=0, high=2), as_tuple=True),
            call(real(0, 2)),
        ],
        [bad(DTypeError, "numeric", "text")],
        smooth=False,
        unmapped=LOOK,
    ),
    Row(
        "argwhere",
        np.argwhere,
        [call(integer(4, low=0, high=2)), call(integer(2, 3, low=0, high=2)), call(real(0, 2))],
        [bad(DTypeError, "numeric", "text")],
        smooth=False,
        unmapped=LOOK,
    ),
    Row(
        "nonzero_static",
        nonzero_static,
        [
            call(integer(5, low=0, high=2), size=3),
            call(integer(2, 3, low=0, high=2), size=4, fill_value=7),
            call(boolean(2), size=5),
            call(real(0), size=2, label="empty"),
        ],
        [bad(ShapeError, "size -1", integer(3), size=-1)],
        smooth=False,
    ),
    Row(
        "unravel_index",
        lambda i, shape: np.unravel_index(i, shape),
        [
            call(index(5, high=6), (2, 3)),
            call(index(2, 2, high=24), (2, 3, 4)),
            call(index(high=3), (3,)),
        ],
        [
            bad(DTypeError, "integers", real(3), (2, 3)),
            bad(ShapeError, "not a shape", index(2, high=2), ("a",)),
        ],
        smooth=False,
    ),
    Row(
        "searchsorted",
        searchsorted,
        [
            call(SORTED, real(2, 3)),
            call(SORTED, real(4, low=0.5, high=0.5), right=True),
            call(SORTED, real(4, low=0.5, high=0.5), side="right"),
            call(real(2, 4, low=0.5, high=0.5), real(2, 3)),
            call(np.array([1, 2, 2, 4]), integer(5, low=0, high=6), out_int32=True),
            call(np.array([4, 2, 1]), integer(5, low=0, high=6), sorter=np.array([2, 1, 0])),
            call(SORTED, real(0), label="empty"),
        ],
        [
            bad(ArgumentError, "side", SORTED, real(2), side="middle"),
            bad(ShapeError, "axes before the last", real(2, 3), real(4)),
            bad(DTypeError, "complex", complex_(3), complex_(3)),
        ],
        smooth=False,
        torch=lambda t, rows, x, **words: t.searchsorted(
            t.as_tensor(rows),
            x,
            **{k: t.as_tensor(v) if k == "sorter" else v for k, v in words.items()},
        ),
    ),
    Row(
        "bucketize",
        bucketize,
        [
            call(real(2, 3), SORTED),
            call(real(4), np.array([-1.0, 0.0, 1.0]), right=True),
            call(real(), SORTED, out_int32=True),
            call(real(0), SORTED),
        ],
        [bad(ShapeError, "sorted vector", real(3), real(2, 2))],
        smooth=False,
        torch=lambda t, x, rows, **words: t.bucketize(x, t.as_tensor(rows).to(x), **words),
    ),
    Row(
        "isin",
        np.isin,
        [
            call(integer(2, 5), integer(3)),
            call(integer(9), integer(40)),
            call(integer(4), integer(3), invert=True),
            call(integer(), integer(3), assume_unique=True),
            call(real(3), real(0), label="empty"),
        ],
        [bad(DTypeError, "numeric", real(3), "text")],
        smooth=False,
    ),
    Row(
        "unique",
        unique,
        [
            call(integer(8, low=0, high=4)),
            call(integer(2, 6, low=0, high=4), return_inverse=True, return_counts=True),
            call(integer(5, 2, low=0, high=2), dim=0),
            call(real(4, distinct=True)).but(smooth=False),
            call(real(0), label="empty"),
        ],
        [bad(AxisError, "axis 2", integer(3, 2), dim=2)],
        unmapped=LOOK,
        torch=lambda t, x, *args, **words: t.unique(x, *args, **words),
    ),
    Row(
        "unique_consecutive",
        unique_consecutive,
        [
            call(integer(8, low=0, high=2)),
            call(integer(2, 6, low=0, high=2), return_inverse=True, return_counts=True),
            call(integer(6, 1, low=0, high=2), dim=0),
            call(real(0), label="empty"),
        ],
        [bad(AxisError, "axis 2", integer(3, 2), dim=2)],
        unmapped=LOOK,
    ),
    Row(
        "diff",
        diff,
        [
            call(real(5)),
            call(real(2, 4), 2),
            call(real(3, 2), 1, 0),
            call(real(3), prepend=real(2), append=real(1)),
            call(integer(4)),
            call(boolean(5)),
            call(real(1), label="nothing"),
            call(real(0), label="empty").but(expected=lambda x: x),
        ],
        [bad(ShapeError, "0-d", real()), bad(AxisError, "axis 1", real(3), 1, 1)],
    ),
]
