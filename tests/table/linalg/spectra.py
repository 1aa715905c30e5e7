"""Rows of linear algebra: eigenvalues, singular values, norms, powers and products."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from lucid.errors import ArgumentError, AxisError, DTypeError, LinAlgError, ShapeError
from tests.cases.case import Arg, complex_, integer, real
from tests.cases.linalg import complex_matrix, each, hermitian, matrix
from tests.table.linalg.systems import NOT_MATRIX, NOT_SQUARE, SYMMETRIC, zeros
from tests.table.row import Row, bad, call

DROPS_IMAGINARY_PARTS = bad(DTypeError, "imaginary parts", complex_(2, 2), dtype="float64")


def spread(*shape: int):
    return matrix(*shape, form="spread")


def from_lower(A):
    """The Hermitian matrix with this lower triangle."""
    below = np.tril(A, -1)
    return (
        below + below.swapaxes(-1, -2).conj() + np.einsum("...ii,ij->...ij", A, np.eye(A.shape[-1]))
    )


def projectors(values, vectors):
    """Eigenvalues, and what is unique of the vectors: v vᴴ weighted by the values."""
    weighted = vectors * (values**2)[..., None, :]
    return values, weighted @ vectors.mT.conj()


def unique_svd(u, s, vh):
    """Singular values, and what is unique of the vectors."""
    k = s.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    cubed = (s**3)[..., None, :]
    return s, (u * s[..., None, :]) @ vh, (u * cubed) @ u.mT.conj()


def eigh(A, UPLO="L"):
    return each(lambda m: scipy.linalg.eigh(m, lower=UPLO == "L"), A)


def svd(A, full_matrices=True):
    return each(lambda m: scipy.linalg.svd(m, full_matrices=full_matrices), A)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, axis=None, keepdims=False):
    axes = dim if axis is None else axis
    return np.linalg.norm(A, ord, axes, keepdim or keepdims)


def vector_norm(x, ord=2, dim=None, keepdim=False, axis=None):
    axes = dim if axis is None else axis
    shape = x.shape
    if axes is None:
        y = np.linalg.norm(x.reshape(-1), ord)
        return y.reshape([1] * len(shape)) if keepdim else y
    return np.linalg.norm(x, ord, axes, keepdim)


def norm(A, ord=None, dim=None, keepdim=False):
    if ord is None and dim is None:
        return vector_norm(A, 2, None, keepdim)
    return np.linalg.norm(A, ord, dim, keepdim)


def tensorsolve(A, B, dims=None):
    return np.linalg.tensorsolve(A, B, dims)


ROWS = [
    Row(
        "linalg.eigh",
        eigh,
        [
            call(hermitian(3, 3)),
            call(hermitian(2, 2, 2, upper=True), UPLO="U"),
            call(hermitian(3, 3, kind="complex")),
            call(hermitian(3, 3, kind="complex", upper=True), UPLO="U"),
        ],
        refused=[NOT_SQUARE, bad(ArgumentError, "'L' or 'U'", real(2, 2), "X")],
        result=projectors,
        differs=SYMMETRIC,
    ),
    Row(
        "linalg.eigvalsh",
        lambda A, UPLO="L": eigh(A, UPLO)[0],
        [
            call(hermitian(3, 3)),
            call(hermitian(2, 2, 2, upper=True), UPLO="U"),
            call(hermitian(3, 3, kind="complex")),
        ],
        refused=[NOT_SQUARE, bad(ArgumentError, "UPLO=5", real(2, 2), 5)],
        differs=SYMMETRIC,
    ),
    Row(
        "linalg.eig",
        lambda A: each(scipy.linalg.eig, A),
        [call(spread(3, 3)), call(complex_matrix(2, 3, 3, form="spread"))],
        refused=[NOT_SQUARE],
        result=lambda w, v: (w, abs(v)),
    ),
    Row(
        "linalg.eigvals",
        lambda A: each(scipy.linalg.eigvals, A),
        [call(spread(3, 3)), call(spread(2, 2, 2)), call(complex_matrix(3, 3, form="spread"))],
        refused=[NOT_SQUARE],
    ),
    Row(
        "linalg.svd",
        svd,
        [
            call(spread(3, 3)),
            call(spread(2, 4, 2), full_matrices=False),
            call(spread(2, 3), False),
            call(spread(3, 2)),
            call(complex_matrix(3, 2, form="spread"), False),
        ],
        refused=[NOT_MATRIX, bad(ArgumentError, "driver", real(2, 2), driver="fast")],
        result=unique_svd,
    ),
    Row(
        "linalg.svdvals",
        lambda A: svd(A, False)[1],
        [call(spread(3, 3)), call(spread(2, 3, 2)), call(complex_matrix(2, 3, form="spread"))],
        refused=[NOT_MATRIX],
    ),
    Row(
        "linalg.pinv",
        lambda A, hermitian=False, **_: np.linalg.pinv(from_lower(A) if hermitian else A),
        [
            call(matrix(3, 3)),
            call(matrix(2, 4, 2)),
            call(matrix(2, 3), rtol=1e-9),
            call(matrix(2, 3), atol=1e-9),
            call(complex_matrix(3, 2)),
            call(hermitian(3, 3), hermitian=True),
        ],
        refused=[NOT_MATRIX],
        differs=SYMMETRIC,
    ),
    Row(
        "linalg.matrix_rank",
        lambda A, **options: np.linalg.matrix_rank(A),
        [
            call(matrix(3, 3)),
            call(zeros(2, 3, 3)),
            call(matrix(3, 3, form="definite"), hermitian=True),
            call(matrix(3, 3), atol=1e-9),
            call(matrix(3, 3), rtol=1e-9),
        ],
        refused=[NOT_MATRIX],
        smooth=False,
    ),
    Row(
        "linalg.cond",
        lambda A, p=None: np.linalg.cond(A, p),
        [
            call(spread(3, 3)),
            call(spread(3, 2)),
            *[call(spread(2, 3, 3), p) for p in (1, -1, 2, -2, math.inf, "fro", "nuc")],
        ],
        refused=[NOT_MATRIX, bad(ShapeError, "must be square", real(2, 3), 1)],
        differs="PyTorch's backward fails for p = 1, where its inverse was changed in place",
    ),
    Row(
        "linalg.matrix_norm",
        matrix_norm,
        [
            *[call(spread(3, 2), ord) for ord in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)],
            call(spread(2, 3, 3), "nuc", keepdim=True),
            call(spread(3, 2, 3), 1, (0, 2)),
            call(spread(3, 2, 3), math.inf, axis=(2, 0), keepdims=True),
            call(complex_matrix(2, 2), "fro"),
        ],
        refused=[
            NOT_MATRIX,
            bad(ArgumentError, "ord=3", real(2, 2), 3),
            bad(AxisError, "axis 0 appears twice", real(2, 2), 1, (0, 0)),
            bad(AxisError, "two axes", real(2, 2), 1, 0),
            DROPS_IMAGINARY_PARTS,
        ],
    ),
    Row(
        "linalg.vector_norm",
        vector_norm,
        [
            call(real(4)),
            call(real(2, 3), 3),
            call(real(2, 3), 1, dim=1),
            call(real(2, 3), math.inf, 0, True),
            call(real(2, 3), -math.inf, -1),
            call(real(2, 3), 0.5, axis=0),
            call(real(2, 3), 0, dim=0),
            call(complex_(3), 2),
        ],
        refused=[
            bad(AxisError, "axis 3", real(2), 2, 3),
            DROPS_IMAGINARY_PARTS,
            bad(ArgumentError, "not a number", real(2), "nuc"),
        ],
    ),
    Row(
        "linalg.norm",
        norm,
        [
            call(real(2, 3)),
            call(real(2, 3, 2), keepdim=True),
            call(real(3), 1),
            call(spread(3, 2), "nuc"),
            call(spread(3, 2), 2),
            call(real(2, 3), 1, dim=1),
            call(real(2, 3, 2), "fro", dim=(0, 2)),
        ],
        refused=[
            bad(ShapeError, "needs 1 or 2 axes", real(2, 2, 2), 1),
            DROPS_IMAGINARY_PARTS,
            bad(ArgumentError, "ord='max'", real(2, 2), "max"),
        ],
    ),
    Row(
        "linalg.matrix_power",
        np.linalg.matrix_power,
        [
            call(matrix(3, 3), 5),
            call(matrix(2, 2, 2), -2),
            call(matrix(2, 2), 0),
            call(complex_matrix(2, 2), 3),
            call(matrix(2, 2), 1),
            call(integer(2, 2), 3),
        ],
        refused=[
            bad(ShapeError, "must be square", real(2, 3), 2),
            bad(ArgumentError, "matrix_power", real(2, 2), 1.5),
            bad(LinAlgError, "singular", zeros(2, 2), -1),
        ],
    ),
    Row(
        "linalg.matrix_exp",
        scipy.linalg.expm,
        [
            call(real(3, 3)),
            call(real(2, 2, 2)),
            call(complex_(2, 2)),
            call(real(0, 0), label="empty").but(expected=lambda A: A),
            call(Arg("real", (3, 3), -20.0, 20.0), label="large"),
        ],
        refused=[NOT_SQUARE],
        rtol={"float32": 2e-4},  # of large matrices the exponential is as large
    ),
    Row(
        "linalg.multi_dot",
        np.linalg.multi_dot,
        [
            call([real(2, 3), real(3, 4), real(4, 2)]),
            call([real(3), real(3, 4), real(4)]),
            call([real(2, 3), real(3)]),
            call([complex_(2, 3), complex_(3, 1)]),
        ],
        refused=[
            bad(ArgumentError, "1 operands", [real(2, 2)]),
            bad(ShapeError, "inner sizes 3 and 2", [real(2, 3), real(2, 2)]),
            bad(ShapeError, "operand 1 of (2,)", [real(2, 2), real(2), real(2, 2)]),
        ],
    ),
    Row(
        "linalg.tensorinv",
        np.linalg.tensorinv,
        [call(real(4, 2, 2), 1), call(real(2, 2, 4)), call(real(3, 3), ind=1)],
        refused=[bad(ShapeError, "different sizes", real(2, 3, 4))],
    ),
    Row(
        "linalg.tensorsolve",
        tensorsolve,
        [
            call(real(2, 2, 4), real(2, 2)),
            call(real(2, 4, 2), real(2, 2), dims=(1,)).but(
                expected=lambda A, B, dims: np.linalg.tensorsolve(A, B, dims)
            ),
            call(real(3, 3), real(3)),
        ],
        refused=[bad(ShapeError, "not square", real(2, 3, 4), real(2))],
    ),
    Row(
        "linalg.vander",
        lambda x, N=None: np.vander(x.reshape(-1), N, increasing=True).reshape(
            *x.shape, x.shape[-1] if N is None else N
        ),
        [
            call(real(3)),
            call(real(2, 3), N=4),
            call(real(2), N=1),
            call(integer(3)),
            call(complex_(2), N=3),
        ],
        refused=[
            bad(ArgumentError, "at least 1", real(2), N=0),
        ],
        differs="PyTorch refuses N=1",
    ),
    Row(
        "linalg.vecdot",
        lambda x, y, dim=-1: (x.conj() * y).sum(dim),
        [
            call(real(3), real(3)),
            call(real(2, 3), real(3)),
            call(real(2, 3), real(2, 3), dim=0),
            call(complex_(3), complex_(3)),
        ],
        refused=[
            bad(ShapeError, "sizes 3 and 2", real(3), real(2)),
            bad(AxisError, "axis 2", real(3), real(3), dim=2),
        ],
    ),
    Row(
        "linalg.cross",
        lambda x, y, dim=-1: np.cross(x, y, axis=dim),
        [
            call(real(3), real(3)),
            call(real(2, 3), real(1, 3)),
            call(real(3, 2), real(3, 2), dim=0),
            call(complex_(3), complex_(3)),
        ],
        refused=[
            bad(ShapeError, "three elements", real(2), real(2)),
            bad(ShapeError, "numbers of axes differ", real(2, 3), real(3)),
        ],
    ),
    Row(
        "linalg.diagonal",
        lambda A, offset=0, dim1=-2, dim2=-1: np.diagonal(A, offset, dim1, dim2),
        [call(real(3, 3)), call(real(2, 3, 4), offset=1), call(real(2, 3, 2), dim1=0, dim2=2)],
        refused=[bad(ShapeError, "fewer than two axes", real(3))],
    ),
    Row(
        "linalg.matmul",
        np.matmul,
        [call(real(2, 3), real(3, 2)), call(real(2, 2, 3), real(3)), call(real(3), real(3))],
        refused=[bad(ShapeError, "inner sizes", real(2, 3), real(2))],
    ),
]
