"""Rows of order statistics, counts and covariances."""

import numpy as np

from lucid.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tests.cases.case import complex_, index, integer, real
from tests.table.row import Row, bad, call

APART = {"distinct": True}
NO_ORDER = bad(DTypeError, "complex", complex_(3))


def chosen(place):
    """Values and indices of the element at `place(n)` of the sorted row."""

    def expected(x, dim=-1, keepdim=False, **words):
        dim, keep = words.get("axis", dim), words.get("keepdims", keepdim)
        row = x if x.ndim else x.reshape(1)
        order = np.argsort(row, axis=dim, kind="stable")
        at = np.take(order, [place(row.shape[dim])], axis=dim)
        values = np.take_along_axis(row, at, dim)
        if not x.ndim:
            return values.reshape(()), at.reshape(())
        return (values, at) if keep else (values.squeeze(dim), at.squeeze(dim))

    return expected


def median(x, dim=None, keepdim=False):
    if dim is None:
        y = np.sort(x.reshape(-1))[(x.size - 1) // 2]
        return np.full([1] * x.ndim, y) if keepdim else y
    return chosen(lambda n: (n - 1) // 2)(x, dim, keepdim)


def kthvalue(x, k, dim=-1, keepdim=False):
    return chosen(lambda n: k - 1)(x, dim, keepdim)


def mode(x, dim=-1, keepdim=False):
    """The smallest of the most frequent values; the index is checked to hold it."""
    rows = np.moveaxis(x, dim, -1)
    out = np.empty(rows.shape[:-1], x.dtype)
    for at in np.ndindex(out.shape):
        values, counts = np.unique(rows[at], return_counts=True)
        out[at] = values[np.argmax(counts)]
    return np.expand_dims(out, dim) if keepdim else out


def quantile(x, q, dim=None, keepdim=False, interpolation="linear"):
    return np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def sort(x, dim=-1, descending=False, stable=False):
    if not x.ndim:
        return x, np.zeros((), int)
    order = np.argsort(-x if descending else x, axis=dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


def topk(x, k, dim=-1, largest=True, sorted=True):
    values, places = sort(x, dim, largest)
    part = np.arange(k)
    return np.take(values, part, dim), np.take(places, part, dim)


def histc(x, bins=100, min=0, max=0):
    return np.histogram(x, bins, None if min == max else (min, max))[0].astype(x.dtype)


def histogram(x, bins, range=None, weight=None, density=False):
    weights = None if weight is None else weight.reshape(-1)
    counts, edges = np.histogram(x, bins, range, weights=weights, density=density)
    return counts.astype(x.dtype), edges


def bincount_in(t, x, weights=None, minlength=0):
    return t.bincount(x, None if weights is None else t.tensor(weights), minlength)


def cov(x, correction=1, fweights=None, aweights=None):
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


def ranked(name, expected, *more, **row):
    calls = [
        call(real(2, 5, **APART), 0),
        call(real(4, **APART)),
        call(real(2, 3, 4, **APART), 1, keepdim=True),
        call(real(2, 3, **APART), dim=-1),
    ]
    refused = [
        NO_ORDER,
        bad(AxisError, "axis 2", real(2, 3), 2),
        bad(ShapeError, "empty", real(0), 0),
    ]
    return Row(name, expected, [*calls, *more], refused, **row)


ROWS = [
    ranked(
        "median",
        median,
        call(real(2, 3, **APART)),
        call(real()),
        call(real(5, **APART), 0),
        torch=lambda t, x, dim=None, keepdim=False: (
            t.median(x) if dim is None else t.median(x, dim, keepdim)
        ),
    ),
    ranked(
        "nanmedian",
        median,
        call(real(2, 3, **APART)),
        call(real()),
        torch=lambda t, x, dim=None, keepdim=False: (
            t.nanmedian(x) if dim is None else t.nanmedian(x, dim, keepdim)
        ),
    ),
    Row(
        "kthvalue",
        kthvalue,
        [
            call(real(5, **APART), 2),
            call(real(2, 6, **APART), 5, 1),
            call(real(3, 2, 2, **APART), 3, 0, True),
            call(real(), 1),
            call(real(0, 3), 2, 1, label="empty-result"),
        ],
        [
            bad(ShapeError, "k=4 is not between 1 and 3", real(3), 4),
            bad(ShapeError, "k=0", real(3), 0),
            bad(AxisError, "axis 1", real(3), 1, 1),
            bad(DTypeError, "complex", complex_(3), 1),
        ],
    ),
    Row(
        "mode",
        mode,
        [
            call(integer(7, low=0, high=3)),
            call(integer(4, 6, low=0, high=2), 0),
            call(integer(2, 5, 3, low=0, high=3), 1, True),
            call(real(2, 3, **APART), -1),
            call(real(1)),
        ],
        [NO_ORDER, bad(AxisError, "axis 1", real(3), 1), bad(ShapeError, "empty", real(0))],
        result=lambda *found: found[0],
        torch=lambda t, x, *args: t.mode(x, *args),
    ),
    Row(
        "msort",
        lambda x: np.sort(x, axis=0),
        [call(real(5, **APART)), call(real(3, 2, **APART)), call(integer(4)), call(real(0, 2))],
        [NO_ORDER],
    ),
    Row(
        "sort",
        sort,
        [
            call(real(6, **APART)),
            call(real(2, 4, 3, **APART), 1),
            call(real(2, 4, **APART), dim=0, descending=True),
            call(integer(8, low=0, high=3), stable=True),
            call(real()),
            call(real(0, 3), 1, label="empty"),
        ],
        [NO_ORDER, bad(AxisError, "axis 2", real(2, 3), 2)],
        torch=lambda t, x, dim=-1, descending=False, stable=False: t.sort(
            x, dim=dim, descending=descending, stable=stable
        ),
    ),
    Row(
        "argsort",
        lambda *args, **words: sort(*args, **words)[1],
        [
            call(real(6, **APART)),
            call(real(2, 4, 3, **APART), 1),
            call(real(2, 4, **APART), dim=0, descending=True),
            call(integer(8, low=0, high=3), stable=True),
            call(real()),
            call(real(0, 3), 1, label="empty"),
        ],
        [NO_ORDER, bad(AxisError, "axis 2", real(2, 3), 2)],
        smooth=False,
        torch=lambda t, x, dim=-1, descending=False, stable=False: t.argsort(
            x, dim=dim, descending=descending, stable=stable
        ),
    ),
    Row(
        "topk",
        topk,
        [
            call(real(6, **APART), 3),
            call(real(2, 5, 2, **APART), 2, 1),
            call(real(2, 4, **APART), 2, dim=0, largest=False),
            call(real(4, **APART), 0, label="none"),
        ],
        [
            bad(ShapeError, "k=9", real(3), 9),
            bad(DTypeError, "complex", complex_(3), 1),
            bad(AxisError, "axis 1", real(3), 1, 1),
        ],
    ),
    Row(
        "quantile",
        quantile,
        [
            call(real(5, **APART), 0.3),
            call(real(2, 4, **APART), 0.6, 1),
            call(real(2, 4, **APART), 0.6, 1, keepdim=True),
            call(real(3, 4, **APART), real(3, low=0.05, high=0.45, distinct=True), dim=0),
            call(real(2, 3, **APART), 0.45, interpolation="lower"),
            call(real(2, 3, **APART), 0.45, interpolation="higher"),
            call(real(2, 3, **APART), 0.45, interpolation="midpoint"),
            call(real(2, 3, **APART), 0.45, interpolation="nearest"),
            call(real(), 0.5),
        ],
        [
            bad(ArgumentError, "outside [0, 1]", real(3), 1.5),
            bad(ArgumentError, "interpolation 'cubic'", real(3), 0.5, interpolation="cubic"),
            bad(ShapeError, "a number or a vector", real(3), real(2, 2, low=0, high=1)),
            bad(DTypeError, "int64", integer(3), 0.5),
            bad(ShapeError, "quantile", real(0), 0.5),
        ],
    ),
    Row(
        "nanquantile",
        quantile,
        [
            call(real(5, **APART), 0.3),
            call(real(2, 4, **APART), 0.6, 1, keepdim=True),
            call(real(3, 4, **APART), real(3, low=0.05, high=0.45, distinct=True), dim=0),
            call(real(2, 3, **APART), 0.45, interpolation="midpoint"),
        ],
        [
            bad(ArgumentError, "outside [0, 1]", real(3), -0.5),
            bad(ShapeError, "nan", real(0), 0.5),
        ],
    ),
    Row(
        "bincount",
        np.bincount,
        [
            call(index(9, high=5)),
            call(index(9, high=5), minlength=7),
            call(index(6, high=4), [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]),
        ],
        [
            bad(DTypeError, "a vector of integers", real(3)),
            bad(DTypeError, "a vector of integers", integer(2, 2)),
            bad(ArgumentError, "negative", integer(3, low=-3, high=-1)),
            bad(ShapeError, "weights", index(3, high=2), real(2)),
            bad(ArgumentError, "minlength", index(3, high=2), minlength=-1),
        ],
        unmapped="the shape depends on values",
        torch=bincount_in,
    ),
    Row(
        "histc",
        histc,
        [
            call(real(20), 5, -1, 1),
            call(real(4, 5), bins=4),
            call(real(7), 3, min=-3, max=3),
            call(real(0), 3, 0, 1, label="empty"),
        ],
        [
            bad(ArgumentError, "0 bins", real(3), 0),
            bad(ArgumentError, "from 2 to 1", real(3), 3, 2, 1),
            bad(DTypeError, "int64", integer(3)),
        ],
        smooth=False,
    ),
    Row(
        "histogram",
        histogram,
        [
            call(real(20), 5, range=(-1.0, 1.0)),
            call(real(4, 5), 4),
            call(real(7), 3, range=(-3.0, 3.0), weight=real(7, low=0.1), density=True),
            call(real(9), real(4, low=1.0, high=1.0)).but(smooth=False),
            call(real(0), 3, range=(0.0, 1.0), label="empty"),
        ],
        [
            bad(ArgumentError, "0 bins", real(3), 0),
            bad(ArgumentError, "from 2", real(3), 3, range=(2.0, 1.0)),
            bad(ShapeError, "edges", real(3), real(2, 2)),
            bad(ShapeError, "weights", real(3), 2, weight=real(2)),
            bad(DTypeError, "int64", integer(3), 4),
        ],
        smooth=False,
    ),
    Row(
        "cov",
        cov,
        [
            call(real(3, 5)),
            call(real(6)),
            call(real(2, 5), correction=0),
            call(real(2, 4), fweights=integer(4, low=1, high=4)),
            call(real(2, 4), aweights=real(4, low=0.2)),
            call(
                real(2, 4),
                correction=0,
                fweights=integer(4, low=1, high=4),
                aweights=real(4, low=0.2),
            ),
            call(complex_(2, 4)),
        ],
        [
            bad(ShapeError, "rows are variables", real(2, 2, 2)),
            bad(ShapeError, "3 observations", real(2, 3), aweights=real(2)),
            bad(DTypeError, "fweights must be integers", real(2, 3), fweights=real(3)),
        ],
    ),
    Row(
        "corrcoef",
        np.corrcoef,
        [call(real(3, 5)), call(real(6)), call(complex_(2, 5))],
        [bad(ShapeError, "rows are variables", real(2, 2, 2))],
    ),
]
