"""Rows of products of vectors and matrices, distances, integrals."""

import math

import numpy as np
from scipy import integrate

from lucid.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tests.cases.case import boolean, complex_, integer, real
from tests.table.row import Row, bad, call


def plus(product):
    def expected(x, a, b, beta=1, alpha=1):
        return (0 if beta == 0 else beta * x) + alpha * product(a, b)

    return expected


def added(name, product, shape, a, b, result):
    calls = [
        call(real(*result), real(*a), real(*b)),
        call(real(*shape), real(*a), real(*b), beta=0.5, alpha=2.0),
        call(real(), real(*a), real(*b)),
        call(real(*result), real(*a), real(*b), beta=0),
        call(complex_(*result), complex_(*a), complex_(*b)),
        call(integer(*result), integer(*a), integer(*b), beta=2, alpha=3),
    ]
    refused = [
        bad(ShapeError, "does not broadcast", real(7), real(*a), real(*b)),
        bad(ShapeError, "shapes", real(*result), real(*a), real()),
        bad(
            ArgumentError, "must be integers", integer(*result), integer(*a), integer(*b), alpha=0.5
        ),
    ]
    return Row(name, plus(product), calls, refused)


def exact(name, function, *shapes, wrong, torch=""):
    """A product of operands with just these axes."""
    calls = [
        call(*[real(*s) for s in shapes]),
        call(*[complex_(*s) for s in shapes]),
        call(*[integer(*s) for s in shapes]),
    ]
    return Row(name, function, calls, wrong, torch=torch)


def cdist(a, b, p=2.0, compute_mode=None):
    gaps = np.abs(np.expand_dims(a, -2) - np.expand_dims(b, -3))
    if p == 0:
        return (gaps != 0).sum(-1).astype(a.dtype)
    return gaps.max(-1) if p == math.inf else (gaps**p).sum(-1) ** (1 / p)


def pdist(x, p=2):
    rows, columns = np.triu_indices(len(x), 1)
    return cdist(x, x, p)[rows, columns]


def dist(x, other, p=2):
    return cdist((x - other).reshape(1, -1), np.zeros((1, (x - other).size)), p).reshape(())


def renorm(x, p, dim, maxnorm):
    axes = tuple(i for i in range(x.ndim) if i != dim % x.ndim)
    lengths = (np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p)
    return np.where(lengths > maxnorm, x * maxnorm / (lengths + 1e-7), x)


def cross(x, other, dim=None):
    x, other = np.broadcast_arrays(x, other)
    dim = x.shape.index(3) if dim is None else dim
    return np.cross(x, other, axis=dim)


def tensordot(x, other, dims=2):
    left, right = (range(-dims, 0), range(dims)) if isinstance(dims, int) else dims
    for i, j in zip(left, right):
        size = max(x.shape[i], other.shape[j])
        x = x if x.shape[i] == size else np.repeat(x, size, i)
        other = other if other.shape[j] == size else np.repeat(other, size, j)
    return np.tensordot(x, other, dims)


def trapezoid(y, x=None, dx=1.0, dim=-1):
    return np.trapezoid(y, x, dx, dim)


def running(y, x=None, dx=1.0, dim=-1):
    return integrate.cumulative_trapezoid(y, x, dx, dim)


def gradient(x, spacing=1, dim=None, edge_order=1):
    steps = spacing if isinstance(spacing, tuple) else (spacing,)
    found = np.gradient(x, *steps, axis=dim, edge_order=edge_order)
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


def gradient_in(t, x, spacing=1, **words):
    if isinstance(spacing, tuple):
        spacing = [t.as_tensor(s) if isinstance(s, np.ndarray) else s for s in spacing]
    return t.gradient(x, spacing=spacing, **words)


INNER = bad(ShapeError, "inner sizes", real(2, 3), real(2, 3))
NO_MM = "donot_use_mm_for_euclid_dist"
MM = "use_mm_for_euclid_dist"

ROWS = [
    Row(
        "matmul",
        np.matmul,
        [
            call(real(2, 3), real(3, 4)),
            call(real(3), real(3)),
            call(real(2, 3), real(3)),
            call(real(3), real(2, 3, 4)),
            call(real(2, 1, 2, 3), real(3, 3, 4)),
            call(complex_(2, 3), complex_(3, 2)),
            call(integer(2, 3), integer(3, 2)),
            call(real(2, 0), real(0, 3), label="empty"),
        ],
        [
            INNER,
            bad(ShapeError, "0-d", real(3), real()),
            bad(ShapeError, "broadcast", real(2, 2, 2), real(3, 2, 2)),
        ],
    ),
    exact(
        "mm",
        np.matmul,
        (2, 3),
        (3, 4),
        wrong=[INNER, bad(ShapeError, "2 and 2 axes", real(2, 3), real(3))],
    ),
    exact(
        "bmm",
        np.matmul,
        (2, 3, 2),
        (2, 2, 4),
        wrong=[
            bad(ShapeError, "2 and 3 matrices", real(2, 1, 2), real(3, 2, 1)),
            bad(ShapeError, "3 and 3 axes", real(2, 3), real(3, 1)),
        ],
    ),
    exact(
        "mv",
        np.matmul,
        (2, 3),
        (3,),
        wrong=[bad(ShapeError, "2 and 1 axes", real(2, 3), real(3, 1))],
    ),
    exact("dot", np.dot, (3,), (3,), wrong=[bad(ShapeError, "inner sizes", real(3), real(2))]),
    exact("vdot", np.vdot, (3,), (3,), wrong=[bad(ShapeError, "inner sizes", real(3), real(2))]),
    Row(
        "inner",
        np.inner,
        [
            call(real(3), real(3)),
            call(real(2, 3), real(4, 3)),
            call(real(), real(2)),
            call(complex_(2), complex_(2)),
        ],
        [bad(ShapeError, "differ in size", real(3), real(2))],
    ),
    exact("outer", np.outer, (2,), (3,), wrong=[bad(DTypeError, "numeric", real(2), "text")]),
    Row(
        "tensordot",
        tensordot,
        [
            call(real(2, 3, 4), real(3, 4, 2)),
            call(real(2, 3), real(3, 2), 1),
            call(real(2), real(3), dims=0),
            call(real(2, 3, 4), real(4, 3, 5), dims=([1, 2], [1, 0])),
            call(complex_(2, 2), complex_(2, 2), 1),
            call(real(1, 2, 3), real(2, 4, 5), ([0, 1], [1, 0])),
            call(real(2, 3), real(1, 2), 1),
            call(real(2, 4, 1), real(3, 1), ([2, 1], [0, 1])),
        ],
        [
            bad(ShapeError, "differ in size", real(2, 3), real(2, 3), ([1], [0])),
            bad(ShapeError, "differ in size", real(2, 3), real(2, 3), ([1], [1, 0])),
            bad(ShapeError, "differ in size", real(2, 3), real(2, 3), 1),
            bad(ShapeError, "3 axes", real(2, 3), real(2, 3), 3),
        ],
    ),
    Row(
        "kron",
        np.kron,
        [
            call(real(2, 2), real(2, 3)),
            call(real(2), real(3)),
            call(real(2, 2), real(3)),
            call(complex_(2), complex_(2)),
        ],
        [bad(DTypeError, "numeric", real(2), "text")],
    ),
    Row(
        "einsum",
        lambda equation, *xs: np.einsum(equation, *xs),
        [
            call("ij,jk->ik", real(2, 3), real(3, 4)),
            call("ii->i", real(3, 3)),
            call("ij->", real(2, 3)),
            call("...ij,...jk->...ik", real(2, 2, 3), real(1, 3, 2)),
            call("i,j", real(2), real(3)),
            call("ij,jk,kl->il", real(2, 3), real(3, 4), real(4, 2)),
            call("bij,bjk,bk->bi", real(2, 3, 2), real(2, 2, 3), real(2, 3)),
            call("ij,jk", complex_(2, 2), complex_(2, 2)),
        ],
        [
            bad(ShapeError, "3 in operand 0 and 2", "ij,jk->ik", real(2, 3), real(2, 3)),
            bad(ShapeError, "not an equation", "i?->i", real(2)),
            bad(ShapeError, "2 terms for 1 operands", "i,j->ij", real(2)),
        ],
    ),
    Row(
        "chain_matmul",
        lambda *xs: xs[0] if len(xs) == 1 else np.linalg.multi_dot(xs),
        [
            call(real(2, 3), real(3, 4), real(4, 1)),
            call(real(2, 3), real(3, 2)),
            call(real(2, 2)),
            call(real(5, 2), real(2, 4), real(4, 3), real(3, 1)),
        ],
        [
            bad(ShapeError, "cannot be chained", real(2, 3), real(2, 3)),
            bad(ShapeError, "at least one"),
        ],
    ),
    added("addmm", np.matmul, (4,), (2, 3), (3, 4), (2, 4)),
    added("addmv", np.matmul, (1,), (2, 3), (3,), (2,)),
    added("addr", np.outer, (3,), (2,), (3,), (2, 3)),
    added("baddbmm", np.matmul, (4,), (2, 2, 3), (2, 3, 4), (2, 2, 4)),
    added("addbmm", lambda a, b: np.matmul(a, b).sum(0), (4,), (2, 2, 3), (2, 3, 4), (2, 4)),
    Row(
        "cross",
        cross,
        [
            call(real(3), real(3)),
            call(real(2, 3), real(2, 3)),
            call(real(3, 4), real(3, 4), 0),
            call(real(1, 3), real(4, 3), dim=-1),
            call(complex_(3), complex_(3)),
        ],
        [
            bad(ShapeError, "three elements", real(2), real(2)),
            bad(ShapeError, "cross", real(2, 3), real(4, 3)),
            bad(DTypeError, "booleans", boolean(3), boolean(3)),
        ],
    ),
    Row(
        "dist",
        dist,
        [
            call(real(2, 3), real(3)),
            call(real(3), real(3), 1),
            call(real(3), real(), 3.0),
            call(real(3), real(3), math.inf),
        ],
        [
            bad(ShapeError, "broadcast", real(3), real(2)),
            bad(ArgumentError, "not a number", real(3), real(3), "a"),
        ],
    ),
    Row(
        "cdist",
        cdist,
        [
            call(real(3, 2), real(4, 2)),
            call(real(2, 3, 2), real(4, 2), 1.0),
            call(real(2, 1, 3, 2), real(3, 4, 2), p=3.0),
            call(real(3, 2), real(4, 2), math.inf),
            call(real(3, 2), real(4, 2), 0.0),
            call(real(27, 2), real(3, 2)),
            call(real(3, 2), real(4, 2), compute_mode=MM),
            call(real(3, 2), real(4, 2), compute_mode=NO_MM),
            call(real(0, 2), real(3, 2), label="empty"),
        ],
        [
            bad(ShapeError, "must be", real(3, 2), real(3, 3)),
            bad(ShapeError, "must be", real(3), real(3, 3)),
            bad(ArgumentError, "nonnegative", real(3, 2), real(3, 2), -1.0),
            bad(ArgumentError, "compute_mode", real(3, 2), real(3, 2), compute_mode="fast"),
            bad(DTypeError, "complex", complex_(3, 2), complex_(3, 2)),
        ],
        # |a|² + |b|² - 2 a·b loses the digits in which a and b agree
        rtol={"float64": 1e-9, "float32": 2e-4},
    ),
    Row(
        "pdist",
        pdist,
        [
            call(real(4, 2)),
            call(real(4, 2), 1.0),
            call(real(3, 2), 3.0),
            call(real(1, 2), label="one"),
        ],
        [
            bad(ShapeError, "not the shape of a matrix", real(3)),
            bad(ArgumentError, "nonnegative", real(3, 2), -1),
        ],
        torch="nn.functional.pdist",
    ),
    Row(
        "renorm",
        renorm,
        [
            call(real(3, 4), 2, 0, 1.5),
            call(real(2, 3, 2, avoid=0.2), 1.0, 1, 3.0),
            call(complex_(2, 3), 2, -1, 1.0),
        ],
        [
            bad(ShapeError, "two axes", real(3), 2, 0, 1.0),
            bad(ArgumentError, "p=0.0 must be positive", real(2, 3), 0, 0, 1.0),
            bad(DTypeError, "int64", integer(2, 3), 2, 0, 1.0),
        ],
    ),
    Row(
        "trapezoid",
        trapezoid,
        [
            call(real(5)),
            call(real(2, 4), dx=0.5),
            call(real(4, 2), dim=0),
            call(real(2, 4), real(4)),
            call(real(2, 4), real(2, 4)),
            call(real(4, 2), real(4), dim=0),
            call(real(1), label="one"),
        ],
        [
            bad(ShapeError, "0-d", real()),
            bad(ArgumentError, "x or dx", real(3), real(3), dx=1.0),
            bad(ShapeError, "points", real(2, 3), real(2)),
            bad(AxisError, "axis 1", real(3), dim=1),
        ],
    ),
    Row(
        "cumulative_trapezoid",
        running,
        [
            call(real(5)),
            call(real(2, 4), dx=0.5),
            call(real(4, 2), dim=0),
            call(real(2, 4), real(4)),
            call(real(2, 4), real(2, 4)),
        ],
        [bad(ShapeError, "0-d", real()), bad(ArgumentError, "x or dx", real(3), real(3), dx=1.0)],
    ),
    Row(
        "gradient",
        gradient,
        [
            call(real(5)),
            call(real(3, 4)),
            call(real(3, 4), spacing=0.5, dim=1),
            call(real(3, 4), spacing=(0.5, 2.0), edge_order=2),
            call(real(4, 2), spacing=(np.array([0.0, 1.0, 3.0, 3.5]),), dim=0),
            call(real(4), spacing=(np.array([0.0, 1.0, 3.0, 3.5]),), edge_order=2),
            call(real(2), label="two"),
        ],
        [
            bad(ShapeError, "1 points", real(1)),
            bad(ShapeError, "2 spacings", real(3), spacing=(1.0, 2.0)),
            bad(ArgumentError, "edge_order must be 1 or 2", real(3), edge_order=3),
            bad(ShapeError, "coordinates", real(3), spacing=(np.zeros(2),)),
        ],
        torch=gradient_in,
    ),
]
