"""Rows of linear algebra: factorizations, systems, determinants."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from lucid.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from tests.cases.case import Arg, complex_, integer, real
from tests.cases.linalg import complex_matrix, definite, each, matrix
from tests.table.row import Row, bad, call

SYMMETRIC = (
    "a tangent counts by its Hermitian part, as a gradient does; PyTorch's formulas for tangents "
    "give others a value"
)


def zeros(*shape: int) -> Arg:
    return Arg("real", shape, 0.0, 0.0)


def lower_factor(A, upper=False):
    if not A.size:
        return A
    return each(lambda m: scipy.linalg.cholesky(m, lower=not upper), A)


def no_info(A):
    return np.zeros(A.shape[:-2], "int32")


def solve(A, B, left=True):
    if not left:
        return solve(A.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)
    if B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1]):
        return np.linalg.solve(A, B[..., None])[..., 0]
    return np.linalg.solve(A, B)


def solve_triangular(A, B, upper, left=True, unitriangular=False):
    A = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        n = A.shape[-1]
        A = A - A * np.eye(n) + np.eye(n)
    return solve(A, B) if left else solve(A, B, left=False)


def lu_factor(A):
    def one(m):
        packed, pivots = scipy.linalg.lu_factor(m)
        return packed, (pivots + 1).astype("int32")

    return each(one, A)


def lu_solve(LU, pivots, B, left=True, adjoint=False):
    n = LU.shape[-1]
    lower, upper = np.tril(LU, -1) + np.eye(n), np.triu(LU)
    order = np.arange(n)
    for i, j in enumerate(pivots - 1):
        order[[i, j]] = order[[j, i]]
    a = np.eye(n)[order].T @ lower @ upper
    return solve(a.conj().T if adjoint else a, B, left)


def lstsq(A, B, rcond=None, driver=None):
    def one(a, b):
        x, _, rank, s = scipy.linalg.lstsq(a, b)
        return x, np.asarray(rank), s

    b = B[..., None] if B.ndim == A.ndim - 1 else B
    x, rank, s = each(one, A, b)
    m, n = A.shape[-2:]
    measured = m > n and driver not in (None, "gelsy")
    residuals = (np.abs(A @ x - b) ** 2).sum(-2) if measured else np.zeros(0)
    rank = np.zeros(0) if driver == "gels" else rank
    values = s.astype("float64") if driver in ("gelsd", "gelss") else np.zeros(0)
    return (x[..., 0] if B.ndim == A.ndim - 1 else x), residuals, rank.astype("int64"), values


def qr(A, mode="reduced"):
    if mode == "r":
        return np.zeros(0, A.dtype), each(lambda m: np.linalg.qr(m)[1], A)
    return each(lambda m: tuple(np.linalg.qr(m, mode)), A)


NOT_SQUARE = bad(ShapeError, "2 rows and 3 columns", real(2, 3))
NOT_MATRIX = bad(ShapeError, "not a matrix", real(3))
PIVOTS = Arg("int", (3,), 3, 4, dtype="int32")

ROWS = [
    Row(
        "linalg.cholesky",
        lower_factor,
        [
            call(definite(3, 3)),
            call(definite(2, 4, 4)),
            call(definite(2, 2, upper=True), upper=True),
            call(definite(3, 3, kind="complex")),
            call(definite(3, 3, kind="complex", upper=True), upper=True),
            call(real(0, 0), label="empty"),
        ],
        refused=[
            NOT_SQUARE,
            NOT_MATRIX,
            bad(LinAlgError, ("[0]", "leading minor of order 1"), zeros(2, 3, 3)),
        ],
        differs=SYMMETRIC,
    ),
    Row(
        "linalg.cholesky_ex",
        lambda A, upper=False: (lower_factor(A, upper), no_info(A)),
        [call(definite(3, 3)), call(definite(2, 2, 2, upper=True), upper=True)],
        refused=[
            NOT_SQUARE,
            bad(LinAlgError, "leading minor", zeros(2, 2), check_errors=True),
        ],
        differs=SYMMETRIC,
    ),
    Row(
        "linalg.cholesky_solve",
        lambda B, L, upper=False: np.linalg.solve(
            np.triu(L).swapaxes(-1, -2).conj() @ np.triu(L)
            if upper
            else np.tril(L) @ np.tril(L).swapaxes(-1, -2).conj(),
            B,
        ),
        [
            call(real(3, 2), matrix(3, 3)),
            call(real(3, 2), matrix(3, 3), True),
            call(real(3, 2), matrix(2, 3, 3)),
            call(complex_(2, 2, 1), complex_matrix(2, 2, 2)),
        ],
        refused=[bad(ShapeError, "rows differ", real(2, 2), matrix(3, 3))],
        torch="cholesky_solve",
        differs="only the triangle that is read gets a gradient",
        rtol={"float32": 2e-4},  # the matrix is L Lᴴ, whose condition number is squared
    ),
    Row(
        "linalg.inv",
        np.linalg.inv,
        [
            call(matrix(3, 3)),
            call(matrix(2, 2, 2)),
            call(complex_matrix(3, 3)),
            call(real(2, 0, 0), label="empty"),
            call(integer(1, 1, low=2, high=3)).but(
                expected=lambda A: np.float32(1) / A.astype("float32"), label="integers"
            ),
        ],
        refused=[
            NOT_SQUARE,
            NOT_MATRIX,
            bad(LinAlgError, ("[0]", "singular"), zeros(2, 3, 3)),
        ],
        differs="integers are taken as floats, as NumPy does; PyTorch refuses them",
    ),
    Row(
        "linalg.inv_ex",
        lambda A: (np.linalg.inv(A), no_info(A)),
        [call(matrix(2, 3, 3))],
        refused=[bad(LinAlgError, "singular", zeros(3, 3), check_errors=True)],
    ),
    Row(
        "linalg.solve",
        solve,
        [
            call(matrix(3, 3), real(3, 2)),
            call(matrix(3, 3), real(3)),
            call(matrix(2, 3, 3), real(2, 3)),
            call(matrix(3, 3), real(2, 3, 2)),
            call(matrix(2, 1, 3, 3), real(4, 3, 1)),
            call(matrix(3, 3), real(2, 3), left=False),
            call(complex_matrix(2, 2), complex_(2, 2)),
            call(real(0, 0), real(0, 2), label="empty"),
        ],
        refused=[
            bad(ShapeError, "2 rows and 3 columns", real(2, 3), real(3)),
            bad(ShapeError, "numbers of rows differ", matrix(3, 3), real(2, 2)),
            bad(LinAlgError, ("the matrix is singular", "element 0 of U"), zeros(2, 2), real(2)),
            bad(ShapeError, "sizes 2 and 3", matrix(2, 2, 2), real(3, 2, 1)),
        ],
    ),
    Row(
        "linalg.solve_ex",
        lambda A, B, left=True: (solve(A, B, left), no_info(A)),
        [call(matrix(2, 3, 3), real(2, 3, 1))],
        refused=[bad(LinAlgError, "singular", zeros(2, 2), real(2, 1), check_errors=True)],
    ),
    Row(
        "linalg.solve_triangular",
        solve_triangular,
        [
            call(matrix(3, 3), real(3, 2), upper=True),
            call(matrix(3, 3), real(3, 2), upper=False),
            call(matrix(2, 3, 3), real(3, 1), upper=False, unitriangular=True),
            call(matrix(3, 3), real(2, 3), upper=True, left=False),
            call(complex_matrix(2, 2), complex_(2, 2), upper=False, left=False),
        ],
        refused=[bad(ShapeError, "rows differ", matrix(3, 3), real(2, 2), upper=True)],
    ),
    Row(
        "linalg.lstsq",
        lstsq,
        [
            call(matrix(4, 2), real(4, 3)),
            call(matrix(2, 4, 2), real(2, 4, 1), driver="gelsd"),
            call(matrix(2, 3), real(2, 1)),
            call(complex_matrix(3, 2), complex_(3, 1), driver="gels"),
            call(matrix(4, 2), real(4), driver="gelss"),
        ],
        refused=[
            bad(ShapeError, "rows differ", real(4, 2), real(3, 1)),
            bad(ArgumentError, "driver", real(4, 2), real(4, 1), driver="qr"),
        ],
        differs="a vector is taken as one, as NumPy does; PyTorch refuses it",
    ),
    Row(
        "linalg.det",
        np.linalg.det,
        [
            call(matrix(3, 3)),
            call(matrix(2, 2, 2)),
            call(complex_matrix(2, 2)),
            call(real(1, 1)),
            call(real(2, 0, 0), label="empty"),
        ],
        refused=[NOT_SQUARE, NOT_MATRIX],
    ),
    Row(
        "linalg.slogdet",
        lambda A: tuple(np.linalg.slogdet(A)),
        [call(matrix(3, 3)), call(matrix(2, 2, 2)), call(complex_matrix(3, 3))],
        refused=[NOT_SQUARE],
        result=lambda sign, log: (sign + 0 * log, log),  # PyTorch's tangent of a sign has no memory
    ),
    Row(
        "linalg.logdet",
        lambda A: np.log(np.linalg.det(A)),
        [
            call(matrix(3, 3, form="definite")),
            call(matrix(2, 2, 2, form="definite")),
            call(complex_matrix(2, 2)),
        ],
        refused=[NOT_SQUARE],
        torch="logdet",
    ),
    Row(
        "linalg.lu",
        lambda A: tuple(part.astype(A.dtype) for part in each(scipy.linalg.lu, A)),
        [call(matrix(3, 3)), call(matrix(2, 4, 2)), call(matrix(2, 3)), call(complex_matrix(2, 2))],
        refused=[NOT_MATRIX, bad(ArgumentError, "pivot=False", real(2, 2), pivot=False)],
    ),
    Row(
        "linalg.lu_factor",
        lu_factor,
        [call(matrix(3, 3)), call(matrix(2, 3, 3)), call(complex_matrix(2, 2))],
        refused=[NOT_MATRIX],
    ),
    Row(
        "linalg.lu_factor_ex",
        lambda A: (*lu_factor(A), no_info(A)),
        [
            call(matrix(2, 3, 3)),
            call(matrix(3, 3), check_errors=True).but(
                expected=lambda A, check_errors: (*lu_factor(A), no_info(A))
            ),
        ],
        refused=[bad(LinAlgError, "a pivot is zero", zeros(2, 2), check_errors=True)],
    ),
    Row(
        "linalg.lu_solve",
        lu_solve,
        [
            call(matrix(3, 3), PIVOTS, real(3, 2)),
            call(matrix(3, 3), PIVOTS, real(3, 2), adjoint=True),
            call(matrix(3, 3), PIVOTS, real(2, 3), left=False),
            call(complex_matrix(3, 3), PIVOTS, complex_(2, 3), left=False, adjoint=True),
        ],
        refused=[
            bad(ShapeError, "pivots", matrix(3, 3), integer(2), real(3, 2)),
            bad(ShapeError, "rows differ", matrix(3, 3), PIVOTS, real(2, 2)),
        ],
    ),
    Row(
        "linalg.qr",
        qr,
        [
            call(matrix(3, 3)),
            call(matrix(2, 4, 2)),
            call(matrix(2, 4)),
            call(matrix(4, 2), mode="complete").but(smooth=False),
            call(matrix(2, 3), "complete"),
            call(matrix(4, 2), "r"),
            call(complex_matrix(3, 2)),
        ],
        refused=[
            NOT_MATRIX,
            bad(ArgumentError, "'reduced', 'complete' or 'r'", real(2, 2), "full"),
            bad(DTypeError, "str is not numeric", ["a"]),
        ],
        differs="the derivative of R alone exists in mode 'r' too",
    ),
]
