"""Rows of random numbers: shapes, dtypes and bounds; tests/random/test_random.py has the rest."""

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from tests.cases.case import real
from tests.table.row import Row, bad, call

DRAWS = "vmap asks whether examples draw the same numbers"


def within(low, high):
    """Whether all numbers lie in an interval, elementwise."""
    return lambda x: (x >= low) & (x < high)


def half(*size, **_):
    size = size[0] if size and isinstance(size[0], tuple) else size
    return np.full(size, 0.5)


ROWS = [
    Row(
        "rand",
        half,
        [call(2, 3), call((4,)), call(()), call(0, 2), call(3, dtype=np.dtype("float64"))],
        [bad(ShapeError, "not a shape", "ab"), bad(DTypeError, "nonsense", 2, dtype="nonsense")],
        smooth=False,
        result=within(0, 1),
    ),
    Row(
        "randn",
        half,
        [call(2, 3), call((4,)), call(()), call(0, 2), call(3, dtype=np.dtype("float64"))],
        [bad(ShapeError, "not a shape", "ab"), bad(DTypeError, "nonsense", 2, dtype="nonsense")],
        smooth=False,
        result=within(-9, 9),
    ),
    Row(
        "randint",
        lambda *args, size=None: np.ones(size or args[-1], bool),
        [call(5, (2, 3)), call(0, 5, (4,)), call(1, 3, size=(0,))],
        [bad(ShapeError, "pass a size", 5)],
        smooth=False,
        result=within(0, 5),
    ),
    Row(
        "rand_like",
        lambda x: np.full(x.shape, 0.5),
        [call(real(2, 3)), call(real()), call(real(0))],
        [bad(ArgumentError, "rand_like", "text")],
        smooth=False,
        result=within(0, 1),
        unmapped=DRAWS,
    ),
    Row(
        "randn_like",
        lambda x: np.ones(x.shape, bool),
        [call(real(2, 3)), call(real()), call(real(0))],
        [bad(ArgumentError, "randn_like", "text")],
        smooth=False,
        result=within(-9, 9),
        unmapped=DRAWS,
    ),
    Row(
        "randint_like",
        lambda x, *bounds: np.ones(x.shape, bool),
        [call(real(2, 3), 5), call(real(2), 1, 4), call(real(0), 2)],
        [bad(ArgumentError, "randint_like", "text", 2)],
        smooth=False,
        result=within(0, 5),
        unmapped=DRAWS,
    ),
    Row(
        "normal",
        lambda mean, std, size=None: np.ones(
            size or np.broadcast_shapes(np.shape(mean), np.shape(std)), bool
        ),
        [call(0.0, 1.0, (2, 3)), call(real(2, 1), real(3, low=0.1)), call(real(2), 1.0)],
        [bad(ArgumentError, "normal", "a", 1.0, (2,))],
        smooth=False,
        result=within(-20, 20),
        unmapped=DRAWS,
    ),
    Row(
        "randperm",
        np.arange,
        [call(5), call(1), call(0)],
        [bad(ShapeError, "not a shape", "a")],
        smooth=False,
        result=lambda x: np.sort(np.asarray(x)),
        unjitted="the result is sorted by NumPy",
    ),
    Row(
        "bernoulli",
        lambda x, p=None: np.ones(x.shape, bool),
        [call(real(2, 3, low=0, high=1)), call(real(2), 0.5), call(real(0))],
        [bad(DTypeError, "numeric", "text")],
        smooth=False,
        result=lambda x: (x == 0) | (x == 1),
        unmapped=DRAWS,
    ),
    Row(
        "multinomial",
        lambda p, n, replacement=False: np.ones((*p.shape[:-1], n), bool),
        [call(real(5, low=0.1), 3), call(real(2, 4, low=0.1), 6, True), call(real(3, low=0.1), 1)],
        [
            bad(ShapeError, "non-negative", real(3, low=-2, high=-1), 1),
            bad(ShapeError, "without replacement", real(3, low=0.1), 4),
        ],
        smooth=False,
        result=within(0, 5),
        unmapped=DRAWS,
    ),
    Row(
        "poisson",
        lambda rate: np.ones(rate.shape, bool),
        [call(real(2, 3, low=0.1, high=5)), call(real(3, low=20, high=30)), call(real(0))],
        [bad(DTypeError, "numeric", "text")],
        smooth=False,
        result=lambda k: (k >= 0) & (k < 90) & (k == k // 1),
        unmapped=DRAWS,
    ),
    Row(
        "binomial",
        lambda n, p: np.zeros(np.broadcast_shapes(n.shape, p.shape)),
        [call(real(3, low=0, high=0), real(3, low=0, high=1)), call(real(0), real(0))],
        [bad(DTypeError, "numeric", "text", real(2))],
        smooth=False,
        result=lambda k: k == 0,
        unmapped=DRAWS,
    ),
]
