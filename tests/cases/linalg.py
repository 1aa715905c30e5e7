"""Cases of the factorizations of matrices and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from lucid.ops.core.runtime_check import Refuse
from lucid.ops.linalg.decompositions.eig import Eig, Eigvals
from lucid.ops.linalg.decompositions.eigh_svd import Eigh, Eigvalsh, Svd, Svdvals
from lucid.ops.linalg.decompositions.factorizations import (
    Cholesky,
    Geqrf,
    LuFactor,
    Permutation,
    Qr,
)
from lucid.ops.linalg.decompositions.triangular import LuSolve, TriangularSolve
from lucid.ops.linalg.known_derivatives import PrecomputedDet, PrecomputedPinv, PrecomputedSlogdet
from lucid.ops.linalg.matrix_exp import MatrixExp, RepeatedSquare
from tests.cases.case import Arg, Case, complex_, integer, real


def raw_qr(a):
    def one(m):
        (packed, tau), _ = scipy.linalg.qr(m, mode="raw")
        return packed, tau

    return each(one, a)


@dataclass(frozen=True)
class Matrix(Arg):
    """A matrix of a `form`: "definite", "regular" (far from singular), "spread" (whose eigenvalues
    and singular values are far apart) or "hermitian" (and spread)."""

    form: str = "regular"

    def make(self, rng: np.random.Generator, dtype: Any) -> np.ndarray:
        x = Arg(self.kind, self.shape).make(rng, "float64")
        m, n = self.shape[-2:]
        steps = np.eye(m, n) * np.arange(1, max(m, n) + 1)[:n]
        if self.form == "definite":
            x = x @ x.swapaxes(-1, -2).conj() + steps
        elif self.form == "regular":
            x = x + 3 * np.eye(m, n)
        else:
            x = 0.3 * x + 2 * steps
            x = (x + x.swapaxes(-1, -2).conj()) / 2 if self.form == "hermitian" else x
        wide = {"complex": {2: "complex64", 4: "complex64", 8: "complex128"}}
        size = np.dtype(dtype).itemsize
        return x.astype(wide["complex"][size] if self.kind == "complex" else dtype)


@dataclass(frozen=True)
class OneTriangle(Matrix):
    """A Hermitian matrix by one of its triangles: what the other one holds does not matter.

    Derivatives are those of moving it to another Hermitian matrix.
    """

    upper: bool = False

    def make(self, rng: np.random.Generator, dtype: Any) -> np.ndarray:
        x = super().make(rng, dtype)
        noise = rng.uniform(1, 2, x.shape) * (1j if x.dtype.kind == "c" else 1)
        return (x + (np.tril(noise, -1) if self.upper else np.triu(noise, 1))).astype(x.dtype)

    def direction(self, t: np.ndarray) -> np.ndarray:
        return (t + t.swapaxes(-1, -2).conj()) / 2


def definite(*shape: int, kind: str = "real", upper: bool = False) -> OneTriangle:
    return OneTriangle(kind, shape, form="definite", upper=upper)


def hermitian(*shape: int, kind: str = "real", upper: bool = False) -> OneTriangle:
    return OneTriangle(kind, shape, form="hermitian", upper=upper)


def matrix(*shape: int, form: str = "regular") -> Matrix:
    return Matrix("real", shape, form=form)


def complex_matrix(*shape: int, form: str = "regular") -> Matrix:
    return Matrix("complex", shape, form=form)


def each(f, a, *others):
    """f of every matrix of a batch, stacked."""
    outer = a.shape[:-2]
    if not a.size:
        return None
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (a, *others)]
    results = [f(*ms) for ms in zip(*flat)]
    if isinstance(results[0], tuple):
        return tuple(np.stack(r).reshape((*outer, *np.shape(r[0]))) for r in zip(*results))
    return np.stack(results).reshape((*outer, *results[0].shape))


def cholesky(a):
    found = each(lambda m: scipy.linalg.cholesky(m, lower=True), a)
    return (a.copy() if found is None else found), np.zeros(a.shape[:-2], "int32")


def lu(a):
    def one(m):
        packed, pivots = scipy.linalg.lapack.get_lapack_funcs("getrf", (m,))(m)[:2]
        return packed.T, (pivots + 1).astype("int32")

    m, n = a.shape[-2:]
    empty = np.zeros((*a.shape[:-2], n, m), a.dtype), np.zeros((*a.shape[:-2], min(m, n)), "int32")
    packed, pivots = each(one, a) or empty
    return packed, pivots, np.zeros(a.shape[:-2], "int32")


def solved(upper, unit, adjoint):
    def one(a, b):
        a = np.triu(a) if upper else np.tril(a)
        if unit:
            a = a - np.diag(np.diag(a)) + np.eye(len(a), dtype=a.dtype)
        return np.linalg.solve(a.conj().T if adjoint else a, b)

    return lambda a, b: each(one, a, b) if a.size else b


def pivots(*shape: int) -> Arg:
    """Valid pivots: every row is exchanged with the last."""
    n = shape[-1]
    return Arg("int", shape, n, n + 1, dtype="int32")


def lu_solved(adjoint):
    def one(a, packed, swaps, b):
        lower = np.tril(packed.T, -1) + np.eye(len(b), dtype=b.dtype)
        whole = lower @ np.triu(packed.T)
        for i, j in reversed(list(enumerate(swaps[:, 0] - 1))):
            whole[[i, j]] = whole[[j, i]]
        return np.linalg.solve(whole.conj().T if adjoint else whole, b)

    def run(a, packed, swaps, b):
        return each(one, a, packed, swaps[..., None], b) if b.size else b

    return run


def eigh(a):
    if not a.size:
        return np.zeros(a.shape[:-1], a.real.dtype), a
    values, vectors = each(lambda m: scipy.linalg.eigh(m, driver="evd"), a)
    return values, vectors.swapaxes(-1, -2).conj()


def svd(full):
    def run(a):
        u, s, v = each(lambda m: scipy.linalg.svd(m.T, full_matrices=full), a)
        return v.swapaxes(-1, -2), s, u.swapaxes(-1, -2)

    return run


def eig(a):
    values, vectors = each(scipy.linalg.eig, a)
    wide = "complex64" if a.dtype.itemsize * (1 + (a.dtype.kind == "f")) == 8 else "complex128"
    return values.astype(wide), vectors.astype(wide)


CASES = [
    Case(Cholesky(), (definite(3, 3),), cholesky),
    Case(Cholesky(), (definite(2, 4, 4),), cholesky),
    Case(Cholesky(), (definite(3, 3, kind="complex"),), cholesky, label="complex"),
    Case(Cholesky(False), (definite(2, 2),), cholesky),
    Case(Cholesky(), (definite(2, 0, 0),), cholesky, label="empty"),
    *[
        Case(TriangularSolve(upper, unit, adjoint), args, solved(upper, unit, adjoint))
        for args in [
            (matrix(3, 3), real(3, 2)),
            (matrix(2, 2, 2), real(2, 2, 1)),
            (complex_matrix(3, 3), complex_(3, 2)),
        ]
        for upper, unit, adjoint in [
            (False, False, False),
            (True, False, True),
            (True, True, False),
            (False, True, True),
        ]
    ],
    Case(TriangularSolve(True), (matrix(0, 0), real(0, 2)), lambda a, b: b, label="empty"),
    Case(LuFactor(), (matrix(3, 3),), lu),
    Case(LuFactor(), (matrix(2, 4, 2),), lu),
    Case(LuFactor(), (matrix(2, 3),), lu),
    Case(LuFactor(), (complex_matrix(2, 3, 3),), lu, label="complex"),
    Case(LuFactor(), (matrix(0, 2),), lu, label="empty"),
    Case(
        Permutation(4),
        (Arg("int", (2, 3), 4, 5, dtype="int32"),),
        lambda p: np.broadcast_to([3, 0, 1, 2], (2, 4)),
    ),
    Case(
        Permutation(2),
        (Arg("int", (2,), 1, 3, dtype="int32"),),
        lambda p: np.array([0, 1] if (p[0] == 2 and p[1] == 1) or (p == [1, 2]).all() else [1, 0]),
    ),
    Case(Qr(), (matrix(3, 3),), lambda a: each(np.linalg.qr, a)),
    Case(Qr(), (matrix(2, 4, 2),), lambda a: each(np.linalg.qr, a)),
    Case(Qr(), (matrix(2, 4),), lambda a: each(np.linalg.qr, a)),
    Case(Qr(), (complex_matrix(3, 2),), lambda a: each(np.linalg.qr, a), label="complex"),
    Case(Qr(), (complex_matrix(2, 3),), lambda a: each(np.linalg.qr, a), label="wide complex"),
    Case(Qr(), (matrix(2, 0),), lambda a: (np.zeros((2, 0)), np.zeros((0, 0))), label="empty"),
    Case(Qr(True), (matrix(2, 3),), lambda a: np.linalg.qr(a, "complete")),
    Case(Eigh(), (hermitian(3, 3),), eigh),
    Case(Eigh(), (hermitian(2, 2, 2),), eigh),
    # LAPACK fixes the phase of complex vectors in its own way, so their slope is another one.
    Case(Eigh(), (hermitian(3, 3, kind="complex"),), eigh, label="complex", smooth=False),
    Case(Eigh(), (matrix(0, 0),), eigh, label="empty"),
    Case(Eigvalsh(), (hermitian(2, 3, 3),), lambda a: eigh(a)[0]),
    Case(Eigvalsh(), (hermitian(3, 3, kind="complex"),), lambda a: eigh(a)[0]),
    Case(Svd(), (matrix(3, 3, form="spread"),), svd(False)),
    Case(Svd(), (matrix(2, 4, 2, form="spread"),), svd(False)),
    Case(Svd(), (matrix(2, 3, form="spread"),), svd(False)),
    Case(Svd(), (complex_matrix(3, 2, form="spread"),), svd(False), label="complex", smooth=False),
    Case(
        Svd(),
        (matrix(2, 0),),
        lambda a: (np.zeros((2, 0)), np.zeros(0), np.zeros((0, 0))),
        label="empty",
    ),
    Case(Svd(True), (matrix(3, 2, form="spread"),), svd(True), smooth=False),  # arbitrary vectors
    Case(Svdvals(), (matrix(2, 3, 2, form="spread"),), lambda a: svd(False)(a)[1]),
    Case(Svdvals(), (complex_matrix(2, 3, form="spread"),), lambda a: svd(False)(a)[1]),
    Case(Geqrf(), (matrix(4, 3),), raw_qr, smooth=False),
    Case(Geqrf(), (complex_matrix(2, 3, 4),), raw_qr, smooth=False),
    Case(Geqrf(), (real(0, 3),), lambda a: (a, np.zeros(0)), label="empty", smooth=False),
    Case(Eig(), (matrix(3, 3, form="spread"),), eig, smooth=False),  # the phase, as above
    Case(Eig(), (complex_matrix(2, 3, 3, form="spread"),), eig, smooth=False),
    Case(Eig(), (matrix(2, 2, form="spread"),), eig),
    Case(Eigvals(), (matrix(2, 3, 3, form="spread"),), lambda a: eig(a)[0]),
    Case(Eigvals(), (complex_matrix(3, 3, form="spread"),), lambda a: eig(a)[0]),
    *[
        Case(LuSolve(adjoint, checked), args, lu_solved(adjoint), smooth=False)
        for args in [
            (matrix(3, 3), matrix(3, 3), pivots(3), real(3, 2)),
            (matrix(2, 2, 2), matrix(2, 2, 2), pivots(2, 2), real(2, 2, 1)),
            (complex_matrix(2, 2), complex_matrix(2, 2), pivots(2), complex_(2, 3)),
            (matrix(0, 0), matrix(0, 0), pivots(0), real(0, 2)),
        ]
        for adjoint, checked in [(False, True), (True, False)]
    ],
    *[
        Case(PrecomputedDet(), args, lambda a, lu, p, d: d, smooth=False)
        for args in [
            (matrix(3, 3), matrix(3, 3), pivots(3), real()),
            (complex_matrix(2, 2, 2), complex_matrix(2, 2, 2), pivots(2, 2), complex_(2)),
            (matrix(0, 0), matrix(0, 0), pivots(0), real()),
        ]
    ],
    *[
        Case(PrecomputedSlogdet(), args, lambda a, lu, p, s, log: (s, log), smooth=False)
        for args in [
            (matrix(2, 3, 3), matrix(2, 3, 3), pivots(2, 3), real(2), real(2)),
            (complex_matrix(2, 2), complex_matrix(2, 2), pivots(2), complex_(), real()),
        ]
    ],
    *[
        Case(PrecomputedPinv(), args, lambda a, p: p, smooth=False)
        for args in [
            (real(3, 2), real(2, 3)),
            (real(2, 2, 3), real(2, 3, 2)),
            (complex_(2, 3), complex_(3, 2)),
        ]
    ],
    Case(MatrixExp(), (real(3, 3),), scipy.linalg.expm),
    Case(MatrixExp(), (real(2, 2, 2),), scipy.linalg.expm),
    Case(MatrixExp(), (complex_(2, 2),), scipy.linalg.expm),
    Case(MatrixExp(), (real(0, 0),), lambda a: a, label="empty"),
    *[
        Case(
            RepeatedSquare(),
            args,
            lambda a, times: each(
                lambda m, k: np.linalg.matrix_power(m, 2 ** int(k[0, 0])), a, times[..., None, None]
            ),
        )
        for args in [
            (Arg("real", (3, 3), -0.5, 0.5), integer(low=2, high=3)),
            (Arg("real", (2, 2, 2), -0.5, 0.5), integer(2, low=0, high=4)),
            (Arg("complex", (2, 3, 3), -0.4, 0.4), integer(2, low=0, high=4)),
        ]
    ],
    Case(Refuse("never"), (real(2, 3), integer(2, 3, low=0, high=1, dtype="bool")), lambda x, b: x),
]
