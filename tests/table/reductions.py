"""Rows of reductions: sums, extrema, means, norms."""

import math

import numpy as np
from scipy import special

from lucid.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tests.cases.case import boolean, complex_, integer, real
from tests.table.families import reduction
from tests.table.row import Row, bad, call

APART = {"distinct": True}
NO_ORDER = bad(DTypeError, "complex", complex_(3))
EMPTY = bad(ShapeError, "empty", real(0))


def reduced(function):
    """NumPy's reduction with its words, and a dtype where one is given."""

    def expected(x, axis, keepdims, **rest):
        return function(x, axis=axis, keepdims=keepdims, **rest)

    return expected


def along(values, indices):
    """PyTorch's max and min: of all elements, or along one axis with indices."""

    def expected(x, dim=None, keepdim=False, **words):
        if dim is None:
            return values(x, **words)
        return values(x, axis=dim, keepdims=keepdim), indices(x, axis=dim, keepdims=keepdim)

    return expected


def index_of(function):
    def expected(x, dim=None, keepdim=False, **words):
        dim, keep = words.get("axis", dim), words.get("keepdims", keepdim)
        if not x.ndim:
            return np.zeros((), int)
        return function(x, axis=dim, keepdims=keep)

    return expected


def norm(x, p=2, dim=None, keepdim=False):
    axes = tuple(range(x.ndim)) if dim is None else dim
    size = np.abs(x)
    if p in (math.inf, -math.inf):
        return (np.max if p > 0 else np.min)(size, axis=axes, keepdims=keepdim)
    if p == 0:
        return (size != 0).sum(axis=axes, keepdims=keepdim).astype(float)
    return (size ** (2.0 if p == "fro" else p)).sum(axis=axes, keepdims=keepdim) ** (
        1 / (2.0 if p == "fro" else p)
    )


def spread(function, with_mean=False):
    """var and std with any of the spellings of the correction."""

    def expected(x, dim=None, unbiased=None, keepdim=False, **words):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = words.get("correction", words.get("ddof", 1 if unbiased is None else unbiased))
        dim, keep = words.get("axis", dim), words.get("keepdims", keepdim)
        y = function(x, axis=dim, ddof=int(correction), keepdims=keep)
        return (y, np.mean(x, axis=dim, keepdims=keep)) if with_mean else y

    return expected


def spread_row(name, function, with_mean=False):
    calls = [
        call(real(2, 3)),
        call(real(4, 3), 0),
        call(real(2, 3, 4), (0, 2), keepdim=True),
        call(real(2, 3), 1, False),
        call(real(2, 3), dim=1, correction=0),
        call(real(5), unbiased=False),
        call(real(2, 3), correction=2),
        call(complex_(4)),
        call(real(0, 3), 1, label="empty-result"),
    ]
    if not with_mean:
        calls += [call(real(4), False), call(real(3, 4), axis=1, ddof=0, keepdims=True)]
    return Row(
        name,
        spread(function, with_mean),
        calls,
        [
            bad(ArgumentError, "one of unbiased", real(3), 0, True, correction=1),
            bad(AxisError, "axis 2", real(2, 3), 2),
        ],
        torch=lambda t, x, *args, **words: getattr(t, name)(x, *args, **spelled(words)),
    )


def spelled(words):
    if "ddof" in words:
        words = {**words, "correction": words["ddof"]}
        del words["ddof"]
    return words


def aminmax(x, dim=None, keepdim=False):
    return np.min(x, axis=dim, keepdims=keepdim), np.max(x, axis=dim, keepdims=keepdim)


def torch_like(name):
    """PyTorch reduces over all axes only without `dim`, and not in one call with several."""

    def run(t, x, dim=None, keepdim=False, **words):
        dims = tuple(range(x.dim())) if dim is None else dim
        return getattr(t, name)(x, dims, keepdim, **words)

    return run


def one_at_a_time(name):
    """PyTorch takes one axis here."""

    def run(t, x, dim=None, keepdim=False, **words):
        dims = range(x.dim()) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
        for d in sorted([d % max(x.dim(), 1) for d in dims], reverse=True):
            x = getattr(t, name)(x, d, keepdim, **words)
        return x

    return run


ROWS = [
    reduction(
        "sum",
        reduced(np.sum),
        call(complex_(2, 3), 1),
        call(integer(3, 2), 0),
        call(boolean(4)),
        call(integer(2, 3), dtype=np.dtype("float64")),
        call(real(2, 3), ()),
    ),
    reduction(
        "prod",
        reduced(np.prod),
        call(complex_(2, 3), 1),
        call(integer(3, 2), 0),
        torch=one_at_a_time("prod"),
    ),
    reduction("any", reduced(np.any), call(boolean(2, 3), 1), smooth=False, make=integer, low=0),
    reduction("all", reduced(np.all), call(boolean(2, 3), 1), smooth=False, make=integer, low=0),
    reduction(
        "count_nonzero",
        lambda x, axis, keepdims: np.count_nonzero(x, axis=axis, keepdims=keepdims),
        call(real(3, 2), 0),
        make=integer,
        smooth=False,
        torch=None,
    ),
    Row(
        "logsumexp",
        lambda x, dim=None, keepdim=False, **w: special.logsumexp(
            x, axis=w.get("axis", dim), keepdims=w.get("keepdims", keepdim)
        ),
        [
            call(real(2, 3), 1),
            call(real(2, 3, 4), (0, 2), True),
            call(real(3, low=800.0, high=900.0), 0),
            call(real(2, 3)),
            call(real(2, 3), axis=0, keepdims=True),
            call(real(0, 3), 1, label="empty-result"),
            call(complex_(2, 3), 1),
            call(complex_(2, 3), (0, 1), True),
        ],
        [bad(AxisError, "axis 1", real(3), 1), bad(AxisError, "axis 1", complex_(3), 1)],
        torch=torch_like("logsumexp"),
    ),
    Row(
        "mean",
        lambda x, dim=None, keepdim=False, **w: np.mean(
            x, axis=w.get("axis", dim), keepdims=w.get("keepdims", keepdim), dtype=w.get("dtype")
        ),
        [
            call(real(2, 3)),
            call(real()),
            call(real(2, 3, 4), (0, 2)),
            call(real(2, 3), 1, True),
            call(real(2, 3), axis=0, keepdims=True),
            call(complex_(2, 3), 1),
            call(integer(4), dtype=np.dtype("float64")),
            call(real(0, 3), 1, label="empty-result"),
        ],
        [
            bad(DTypeError, "int64", real(3), dtype="int64"),
            bad(AxisError, "axis 2", real(2, 3), 2),
        ],
    ),
    reduction("nansum", reduced(np.nansum), call(integer(3, 2), 0)),
    Row(
        "nanmean",
        lambda x, dim=None, keepdim=False: np.nanmean(x, axis=dim, keepdims=keepdim),
        [call(real(2, 3)), call(real()), call(real(2, 3), 1, True), call(real(2, 3, 2), (0, 1))],
        [bad(AxisError, "axis 2", real(2, 3), 2)],
    ),
    Row(
        "max",
        along(np.max, np.argmax),
        [
            call(real(2, 3, **APART)),
            call(real(2, 3, 4, **APART), 1),
            call(real(2, 3, **APART), dim=-1, keepdim=True),
            call(integer(3), 0),
            call(real(3, 0), 0, label="empty-result"),
            call(real(2, 3, **APART), real(3)).but(expected=np.maximum),
        ],
        [NO_ORDER, EMPTY, bad(AxisError, "several", real(2, 3), (0, 1))],
    ),
    Row(
        "min",
        along(np.min, np.argmin),
        [
            call(real(2, 3, **APART)),
            call(real(2, 3, 4, **APART), 1),
            call(real(2, 3, **APART), dim=-1, keepdim=True),
            call(integer(3), 0),
            call(real(3, 0), 0, label="empty-result"),
            call(real(2, 3, **APART), real(3)).but(expected=np.minimum),
        ],
        [NO_ORDER, EMPTY, bad(AxisError, "several", real(2, 3), (0, 1))],
    ),
    reduction(
        "amax", reduced(np.max), call(integer(3, 2), 1), empty=False, refused=[NO_ORDER], **APART
    ),
    reduction(
        "amin", reduced(np.min), call(integer(3, 2), 1), empty=False, refused=[NO_ORDER], **APART
    ),
    Row(
        "aminmax",
        aminmax,
        [
            call(real(2, 3, **APART)),
            call(real()),
            call(real(2, 3, 4, **APART), dim=1),
            call(real(2, 3, **APART), dim=0, keepdim=True),
            call(integer(4)),
        ],
        [NO_ORDER, EMPTY],
    ),
    Row(
        "argmax",
        index_of(np.argmax),
        [
            call(real(2, 3)),
            call(real()),
            call(real(2, 3, 4), 1),
            call(real(2, 3), dim=-1, keepdim=True),
            call(integer(2, 5), axis=1, keepdims=True),
            call(real(3, 0), 0, label="empty-result"),
        ],
        [NO_ORDER, EMPTY, bad(AxisError, "axis 2", real(2, 3), 2)],
        smooth=False,
    ),
    Row(
        "argmin",
        index_of(np.argmin),
        [
            call(real(2, 3)),
            call(real()),
            call(real(2, 3, 4), 1),
            call(real(2, 3), dim=-1, keepdim=True),
            call(integer(2, 5), axis=1, keepdims=True),
            call(real(3, 0), 0, label="empty-result"),
        ],
        [NO_ORDER, EMPTY, bad(AxisError, "axis 2", real(2, 3), 2)],
        smooth=False,
    ),
    spread_row("var", np.var),
    spread_row("std", np.std),
    spread_row("var_mean", np.var, True),
    spread_row("std_mean", np.std, True),
    Row(
        "norm",
        norm,
        [
            call(real(2, 3)),
            call(real()),
            call(real(2, 3, avoid=0.2), 1),
            call(real(2, 3, avoid=0.2), 3.5),
            call(real(2, 3, low=0.1, **APART), math.inf),
            call(real(2, 3, low=0.1, **APART), -math.inf, 1),
            call(real(2, 3), 0),
            call(real(2, 3, 4), 2, (0, 2), True),
            call(real(2, 3), "fro"),
            call(complex_(2, 3)),
            call(real(0), label="empty"),
        ],
        [
            bad(ArgumentError, "matrix norms", real(2, 2), "max"),
            bad(AxisError, "axis 2", real(2), 2, 2),
            bad(DTypeError, "imaginary parts", complex_(2), dtype="float64"),
        ],
    ),
]
