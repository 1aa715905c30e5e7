"""Rows of what is counted in boxes, and reduced in segments."""

from __future__ import annotations

import numpy as np

from lucid.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tests.cases.case import Arg, integer, real
from tests.table.row import Row, bad, call

REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
EMPTY = {"sum": 0.0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1.0}


def histogramdd(x, bins, *, range=None, weight=None, density=False):
    if range is not None:
        range = list(zip(range[::2], range[1::2]))
    if isinstance(bins, list):
        bins = [b.astype(x.dtype) if isinstance(b, np.ndarray) else b for b in bins]
    points = x.reshape(-1, x.shape[-1])
    weight = None if weight is None else weight.reshape(-1)
    return np.histogramdd(points, bins, range, density, weight)


def segments(x, reduce, *, lengths=None, offsets=None, axis=0, unsafe=False, initial=None):
    if axis:
        rows = zip(x, lengths if offsets is None else offsets)
        word = "lengths" if offsets is None else "offsets"
        return np.stack([segments(a, reduce, **{word: b}, initial=initial) for a, b in rows])
    ends = np.cumsum(lengths) if offsets is None else offsets[1:]
    starts = np.concatenate([[0], ends[:-1]]) if offsets is None else offsets[:-1]
    out = []
    for a, b in zip(starts, ends):
        part = x[a:b]
        if a == b:
            value = np.full(x.shape[1:], EMPTY[reduce] if initial is None else initial)
        elif initial is not None and reduce == "mean":
            value = (part.sum(0) + initial) / (b - a)
        else:
            first = [] if initial is None else [np.full((1, *x.shape[1:]), initial)]
            value = REDUCTIONS[reduce](np.concatenate([*first, part]), 0)
        out.append(value)
    return np.stack(out)


class Given(Arg):
    """Integers that are known: lengths or offsets."""

    def make(self, rng, dtype):
        return np.array(self.dtype.split(","), "int64").reshape(self.shape)


def given(*values, shape=None):
    return Given("int", shape or (len(values),), dtype=",".join(map(str, values)))


POINTS, X = real(12, 2), real(6, 2, distinct=True)

ROWS = [
    Row(
        "histogramdd",
        histogramdd,
        [
            call(POINTS, 3),
            call(POINTS, [3, 2], range=(-1.0, 1.0, -2.0, 1.0)),
            call(real(3, 4, 2), [2, 4], weight=real(3, 4, low=0.1), density=True),
            call(real(9, 3), (2, 3, 2)),
            call(POINTS, [given(-1, 0, 2), given(-2, 1)]).but(smooth=False),
        ],
        [
            bad(ShapeError, "bins for 3 axes", POINTS, [2, 2, 2]),
            bad(ShapeError, "not a list of points", real(3), 2),
            bad(ShapeError, "weights of shape (3,)", POINTS, 2, weight=real(3)),
            bad(ArgumentError, "two numbers per axis", POINTS, 2, range=(0.0, 1.0)),
            bad(ArgumentError, "0 bins", POINTS, 0),
            bad(DTypeError, "int64", integer(3, 2), 2),
        ],
        smooth=False,
        torch=lambda t, x, bins, **words: t.histogramdd(
            x,
            [b.to(x.dtype) for b in bins]
            if isinstance(bins, list) and t.is_tensor(bins[0])
            else bins,
            **words,
        ),
    ),
    Row(
        "segment_reduce",
        segments,
        [
            *[call(X, name, lengths=given(1, 3, 2)) for name in REDUCTIONS],
            *[call(X, name, offsets=given(0, 2, 6)) for name in REDUCTIONS],
            *[call(X, name, lengths=given(4, 2), initial=0.5) for name in REDUCTIONS],
            *[
                call(X, name, lengths=given(2, 0, 4), label=f"{name}-empty").but(smooth=False)
                for name in REDUCTIONS
            ],
            call(X, "mean", lengths=given(0, 6), initial=2.0).but(smooth=False),
            call(real(2, 4, 3), "sum", lengths=given(1, 3, 2, 2, shape=(2, 2)), axis=1),
            call(real(5), "prod", lengths=given(2, 3), unsafe=True),
        ],
        [
            bad(ArgumentError, "add up to 4", X, "sum", lengths=given(1, 3)),
            bad(ArgumentError, "is negative", X, "sum", lengths=given(8, -2)),
            bad(ArgumentError, "one of sum", X, "median", lengths=given(6)),
            bad(ArgumentError, "lengths or offsets", X, "sum"),
            bad(ArgumentError, "not indices", X, "sum", indices=given(0, 1)),
            bad(ShapeError, "axes before it", X, "sum", lengths=given(1, 1, 1, 1), axis=1),
            bad(AxisError, "axis 2", X, "sum", lengths=given(6), axis=2),
            bad(DTypeError, "they must be integers", X, "sum", lengths=real(2)),
            bad(DTypeError, "floating", integer(6), "sum", lengths=given(6)),
        ],
        torch=lambda t, x, reduce, dim=0, **words: t.segment_reduce(x, reduce, axis=dim, **words),
    ),
]
