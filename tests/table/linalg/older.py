"""Rows of reflections, and of linear algebra by its older names."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from lucid.errors import ArgumentError, LinAlgError, ShapeError
from tests.cases.case import Arg, complex_, real
from tests.cases.linalg import complex_matrix, matrix
from tests.table.linalg.systems import (
    NOT_MATRIX,
    NOT_SQUARE,
    SYMMETRIC,
    definite,
    lower_factor,
    lu_factor,
    lu_solve,
    qr,
    solve_triangular,
    zeros,
)
from tests.table.row import Row, bad, call


def whole_product(A, tau):
    """H₁ ⋯ H_k, one after the other."""
    if A.ndim > 2:
        return np.stack([whole_product(a, t) for a, t in zip(A, tau)])
    m = len(A)
    Q = np.eye(m, dtype=A.dtype)
    for i, t in enumerate(tau):
        v = np.concatenate([np.zeros(i), [1.0], A[i + 1 :, i]])
        Q = Q @ (np.eye(m) - t * np.outer(v, v.conj()))
    return Q


def reflected(A, tau, x, left=True, transpose=False):
    Q = whole_product(A, tau)
    Q = Q.swapaxes(-1, -2).conj() if transpose else Q
    return Q @ x if left else x @ Q


def packed(A):
    """LAPACK's geqrf, by SciPy."""
    if A.ndim > 2:
        parts = [packed(a) for a in A]
        return np.stack([h for h, _ in parts]), np.stack([tau for _, tau in parts])
    (h, tau), _ = scipy.linalg.qr(A, mode="raw")
    return np.ascontiguousarray(h), tau


def small(*shape):
    return Arg("real", shape, -0.9, 0.9)


def small_complex(*shape):
    return Arg("complex", shape, -0.5, 0.5)


def inverse_of_factor(L, upper=False):
    L = np.triu(L).swapaxes(-1, -2).conj() if upper else np.tril(L)
    return np.linalg.inv(L @ L.swapaxes(-1, -2).conj())


def singular(A, some=True, compute_uv=True):
    if not compute_uv:
        m, n = A.shape[-2:]
        zero = [np.zeros((*A.shape[:-2], k, k), A.dtype) for k in (m, n)]
        return zero[0], np.linalg.svd(A, compute_uv=False), zero[1]
    U, S, Vh = np.linalg.svd(A, full_matrices=not some)
    return U, S, Vh.swapaxes(-1, -2).conj()


def up_to_sign(U, S, V):
    """What does not depend on the choice of singular vectors."""
    k = S.shape[-1]
    return abs(U), S, abs(V), (U[..., :k] * S[..., None, :]) @ V[..., :k].conj().swapaxes(-1, -2)


def spread(*shape):
    return matrix(*shape, form="spread")


def low_rank(*shape):
    """A matrix of rank 2, of which random projections find everything."""
    return LowRank("real", shape)


class LowRank(Arg):
    def make(self, rng, dtype):
        *outer, m, n = self.shape
        left, right = rng.normal(size=(*outer, m, 2)), rng.normal(size=(*outer, 2, n))
        return ((left * [3.0, 1.0]) @ right).astype(dtype)


def two_values(A, q=6, niter=2, M=None):
    return np.linalg.svd(A if M is None else A - M, compute_uv=False)[..., :q]


def values_alone(U, S, V):
    return S


def unpacked(LU, pivots, unpack_data=True, unpack_pivots=True):
    m, n = LU.shape
    k, order, empty = min(m, n), np.arange(m), np.zeros(0, LU.dtype)
    for i, j in enumerate(pivots - 1):
        order[[i, j]] = order[[j, i]]
    P = np.eye(m, dtype=LU.dtype)[order].T if unpack_pivots else empty
    L = np.tril(LU[:, :k], -1) + np.eye(m, k)
    return P, L if unpack_data else empty, np.triu(LU[:k]) if unpack_data else empty


PIVOTS = Arg("int", (3,), 3, 4, dtype="int32")
ONE_TRIANGLE = (
    "one triangle is read, so derivatives in the other vanish; PyTorch's formulas give them a value"
)
RANDOM = "the projections are random, so only singular values of a matrix of low rank are compared"
REFUSED = [
    bad(ShapeError, "k ≤ n ≤ m", small(2, 3), small(2)),
    bad(ShapeError, "k ≤ n ≤ m", small(3, 2), small(3)),
    bad(ShapeError, "k ≤ n ≤ m", small(2, 3, 2), small(2)),
    bad(ShapeError, "not a matrix", small(3), small(2)),
]

ROWS = [
    Row(
        "linalg.householder_product",
        lambda A, tau: whole_product(A, tau)[..., : A.shape[-1]],
        [
            call(small(4, 3), small(3)),
            call(small(3, 3), small(2)),
            call(small(2, 4, 2), small(2, 2)),
            call(small_complex(4, 3), small_complex(3)),
            call(small(3, 2), small(0), label="no reflections"),
        ],
        refused=REFUSED,
    ),
    Row(
        "orgqr",
        lambda A, tau: whole_product(A, tau)[..., : A.shape[-1]],
        [call(small(4, 3), small(3)), call(small_complex(4, 3), small_complex(3))],
        refused=REFUSED,
    ),
    Row(
        "det",
        np.linalg.det,
        [call(matrix(3, 3)), call(matrix(2, 2, 2)), call(complex_matrix(2, 2))],
        refused=[NOT_SQUARE, NOT_MATRIX],
    ),
    Row(
        "slogdet",
        lambda A: tuple(np.linalg.slogdet(A)),
        [call(matrix(3, 3)), call(matrix(2, 2, 2)), call(complex_matrix(3, 3))],
        refused=[NOT_SQUARE],
        result=lambda sign, log: (sign + 0 * log, log),  # PyTorch's tangent of a sign has no memory
    ),
    Row(
        "inverse",
        np.linalg.inv,
        [call(matrix(3, 3)), call(matrix(2, 2, 2)), call(complex_matrix(3, 3))],
        refused=[NOT_SQUARE, NOT_MATRIX, bad(LinAlgError, ("[0]", "singular"), zeros(2, 3, 3))],
    ),
    Row(
        "pinverse",
        lambda A, rcond=1e-15: np.linalg.pinv(A, rcond),
        [call(matrix(3, 3)), call(matrix(2, 4, 2)), call(complex_matrix(3, 2), 1e-9)],
        refused=[NOT_MATRIX],
    ),
    Row(
        "geqrf",
        lambda A: tuple(packed(A)),
        [
            call(matrix(4, 3)),
            call(matrix(2, 3, 4)),
            call(complex_matrix(3, 3)),
        ],
        refused=[NOT_MATRIX],
        smooth=False,
    ),
    Row(
        "ormqr",
        reflected,
        [
            call(small(4, 3), small(3), real(4, 2)),
            call(small(4, 3), small(3), real(4, 2), True, True),
            call(small(4, 2), small(2), real(3, 4), False),
            call(small(2, 4, 2), small(2, 2), real(2, 3, 4), left=False, transpose=True),
            call(small_complex(3, 3), small_complex(3), complex_(3, 2), transpose=True),
            call(small(2, 4), small(2), real(2, 3)),
            call(small(3, 5), small(3), real(2, 3), False, True),
        ],
        refused=[
            bad(ShapeError, "k ≤ min(m, n)", small(3, 2), small(3), real(3, 2)),
            bad(ShapeError, "k ≤ min(m, n)", small(2, 3), small(3), real(2, 2)),
            bad(ShapeError, "k ≤ min(m, n)", small(2, 3, 2), small(2), real(3, 2)),
            bad(ShapeError, "not a matrix", small(3), small(2), real(3, 2)),
            bad(ShapeError, "3 rows", small(4, 3), small(3), real(3, 2)),
            bad(ShapeError, "2 columns", small(4, 3), small(3), real(3, 2), False),
        ],
    ),
    Row(
        "cholesky",
        lower_factor,
        [call(definite(3, 3)), call(definite(2, 2, 2, upper=True), True)],
        refused=[NOT_SQUARE, bad(LinAlgError, "leading minor", zeros(2, 2))],
        differs=SYMMETRIC,
    ),
    Row(
        "cholesky_inverse",
        inverse_of_factor,
        [
            call(matrix(3, 3)),
            call(matrix(2, 3, 3), True),
            call(complex_matrix(2, 2)),
        ],
        refused=[NOT_SQUARE, NOT_MATRIX],
        differs=ONE_TRIANGLE,
    ),
    Row(
        "qr",
        lambda A, some=True: qr(A, "reduced" if some else "complete"),
        [
            call(matrix(4, 3)),
            call(matrix(3, 3), False),
            call(matrix(2, 3, 4)),
            call(complex_matrix(3, 2)),
        ],
        refused=[NOT_MATRIX],
        result=lambda Q, R: (Q @ R, abs(R)),
    ),
    Row(
        "svd",
        singular,
        [
            call(spread(3, 3)),
            call(spread(2, 4, 3)),
            call(spread(2, 3), False).but(smooth=False),
            call(spread(3, 2), compute_uv=False).but(smooth=False),
        ],
        refused=[NOT_MATRIX],
        result=up_to_sign,
    ),
    Row(
        "lu",
        lambda A, pivot=True, get_infos=False: (
            *lu_factor(A),
            *([np.zeros(A.shape[:-2], "int32")] if get_infos else []),
        ),
        [call(matrix(3, 3)), call(matrix(2, 3, 3)), call(matrix(3, 3), get_infos=True)],
        refused=[NOT_MATRIX, bad(ArgumentError, "pivot=False", matrix(2, 2), False)],
    ),
    Row(
        "lu_solve",
        lambda b, LU, pivots: lu_solve(LU, pivots, b),
        [
            call(real(3, 2), matrix(3, 3), PIVOTS),
            call(complex_(3, 1), complex_matrix(3, 3), PIVOTS),
        ],
        refused=[
            bad(ShapeError, "rows differ", real(2, 2), matrix(3, 3), PIVOTS),
            bad(ShapeError, "pivots", real(2, 2), matrix(2, 2), PIVOTS),
        ],
    ),
    Row(
        "lu_unpack",
        unpacked,
        [
            call(matrix(3, 3), PIVOTS),
            call(matrix(5, 3), Arg("int", (3,), 3, 6, dtype="int32")),
            call(matrix(3, 4), PIVOTS, unpack_data=False).but(smooth=False),
            call(matrix(3, 3), PIVOTS, True, False),
        ],
        refused=[
            bad(ShapeError, "not a matrix", real(3), PIVOTS),
            bad(ShapeError, "those from lu", matrix(2, 2), PIVOTS),
            bad(ShapeError, "those from lu", matrix(3, 3), real(3)),
        ],
    ),
    Row(
        "triangular_solve",
        lambda b, A, upper=True, transpose=False, unitriangular=False: (
            solve_triangular(
                A.swapaxes(-1, -2) if transpose else A,
                b,
                upper != transpose,
                unitriangular=unitriangular,
            ),
            A,
        ),
        [
            call(real(3, 2), matrix(3, 3)),
            call(real(3, 2), matrix(3, 3), False, True),
            call(real(2, 3, 1), matrix(2, 3, 3), unitriangular=True),
            call(complex_(3, 2), complex_matrix(3, 3), transpose=True),
        ],
        refused=[bad(ShapeError, "rows differ", real(2, 2), matrix(3, 3))],
        differs=ONE_TRIANGLE,
    ),
    Row(
        "svd_lowrank",
        two_values,
        [
            call(low_rank(5, 4), 2),
            call(low_rank(4, 6), 2, 1),
            call(low_rank(2, 6, 4), q=2, M=Arg("real", (2, 6, 4), 0.0, 0.0)).but(smooth=False),
        ],
        refused=[
            NOT_MATRIX,
            bad(ArgumentError, "q=4", real(3, 5), 4),
            bad(ArgumentError, "niter=-1", real(3, 5), 2, -1),
        ],
        result=lambda *found: found[0] if len(found) == 1 else values_alone(*found),
        smooth=False,
        unmapped="it draws random numbers",
        unjitted=RANDOM,
    ),
    Row(
        "pca_lowrank",
        lambda A, q=None, center=True, niter=2: two_values(
            A - A.mean(-2, keepdims=True) if center else A, q
        ),
        [call(low_rank(6, 4), 2), call(low_rank(3, 5), 2, False)],
        refused=[NOT_MATRIX, bad(ArgumentError, "q=9", real(3, 5), 9)],
        result=lambda *found: found[0] if len(found) == 1 else values_alone(*found),
        smooth=False,
        unmapped="it draws random numbers",
        unjitted=RANDOM,
    ),
]
