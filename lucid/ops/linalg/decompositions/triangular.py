"""Linear systems with a factored matrix: triangular systems, and those with an LU factorization."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import LinAlgError
from lucid.ir.types import Type
from lucid.ops.linalg.contraction import adjoint_matrix, product
from lucid.ops.linalg.matrices import (
    Matrixwise,
    check_system,
    eval_in_float32,
    matrix_label,
    per_matrix,
)
from lucid.ops.shape.diagonals import tril, triu
from lucid.ops.shape.movement import Reshape, Transpose
from lucid.tape.bind import bind


class LinearSystem(Matrixwise, abstract=True):
    """x = a⁻¹ b, with the matrix `a` the first operand and `b` the last.

    If the matrix is not batched, the examples become further columns of one right-hand side.
    """

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        if any(batched[:-1]):
            return super().batch(n, batched, *xs)
        *matrix, b = xs
        outer, (rows, columns) = b.shape[1:-2], b.shape[-2:]
        behind = (*range(1, b.ndim - 1), 0, b.ndim - 1)
        wide = bind(Reshape((*outer, rows, n * columns)), bind(Transpose(behind), b))
        x = bind(Reshape((*outer, rows, n, columns)), bind(self, *matrix, wide))
        in_front = (b.ndim - 2, *range(b.ndim - 2), b.ndim - 1)
        return bind(Transpose(in_front), x)


class TriangularSolve(LinearSystem):
    """The x with `a x = b` (or `aᴴ x = b`) for one triangle of `a`, with unit diagonal if `unit`.

    A zero on the diagonal gives inf or nan, as in PyTorch.
    """

    upper: bool
    unit: bool = False
    adjoint: bool = False
    lowering = "lucid.compiler.lowering.lapack.factorize:TriangularSolveLowering"

    def infer(self, a: Type, b: Type) -> Type:
        check_system("solve_triangular", a, b)
        return b

    @eval_in_float32
    def eval(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import get_blas_funcs

        if not b.size:
            return b.copy()
        trsm = get_blas_funcs("trsm", dtype=a.dtype)
        columns = b.swapaxes(-1, -2).copy()
        options = {
            "lower": self.upper,  # of the transposed matrix, which is in Fortran order
            "trans_a": 0 if self.adjoint else 1,
            "diag": self.unit,
            "overwrite_b": True,
        }
        for m, rhs in zip(per_matrix(a.conj() if self.adjoint else a), per_matrix(columns)):
            trsm(1.0, m.T, rhs.T, **options)
        return columns.swapaxes(-1, -2)

    def triangle(self, x: Any) -> Any:
        return triu(x, int(self.unit)) if self.upper else tril(x, -int(self.unit))

    def jvp(self, ts: tuple[Any, ...], x: Any, a: Any, b: Any) -> Any:
        ta, tb = ts
        if ta is not None:
            ta = self.triangle(ta)
            moved = product(adjoint_matrix(ta) if self.adjoint else ta, x)
            tb = -moved if tb is None else tb - moved
        return bind(self, a, tb)

    def vjp(self, ct: Any, x: Any, a: Any, b: Any) -> tuple[Any, Any]:
        gb = bind(TriangularSolve(self.upper, self.unit, not self.adjoint), a, ct)
        ga = product(x, adjoint_matrix(gb)) if self.adjoint else product(gb, adjoint_matrix(x))
        return -self.triangle(ga), gb


class LuSolve(LinearSystem):
    """The x with `a x = b` (or `aᴴ x = b`), by the factors of `a` that `lu_factor` gives.

    The derivative is that of a⁻¹ b with respect to `a` and `b`; none flows to the factors. So
    derivatives of any order reuse the factors.
    """

    adjoint: bool = False
    checked: bool = True  # raise if the matrix is singular
    lowering = "lucid.compiler.lowering.lapack.factorize:LuSolveLowering"

    def infer(self, a: Type, packed: Type, pivots: Type, b: Type) -> Type:
        check_system("solve", a, b)
        return b

    @eval_in_float32
    def eval(
        self, a: np.ndarray, packed: np.ndarray, pivots: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        from scipy.linalg import get_lapack_funcs

        if self.checked:
            check_nonsingular("solve", packed)
        if not b.size:
            return b.copy()
        getrs = get_lapack_funcs("getrs", dtype=a.dtype)
        trans = 2 if self.adjoint else 0
        columns = b.swapaxes(-1, -2).copy()
        swaps = pivots.reshape(-1, pivots.shape[-1]) - 1
        for lu, p, rhs in zip(per_matrix(packed), swaps, per_matrix(columns)):
            getrs(lu.T, p, rhs.T, trans=trans, overwrite_b=True)
        return columns.swapaxes(-1, -2)

    def jvp(self, ts: tuple[Any, ...], x: Any, a: Any, packed: Any, pivots: Any, b: Any) -> Any:
        ta, tb = ts[0], ts[3]
        if ta is not None:
            moved = product(adjoint_matrix(ta) if self.adjoint else ta, x)
            tb = -moved if tb is None else tb - moved
        return None if tb is None else bind(self, a, packed, pivots, tb)

    def vjp(
        self, ct: Any, x: Any, a: Any, packed: Any, pivots: Any, b: Any
    ) -> tuple[Any, None, None, Any]:
        gb = bind(LuSolve(not self.adjoint, self.checked), a, packed, pivots, ct)
        ga = product(x, adjoint_matrix(gb)) if self.adjoint else product(gb, adjoint_matrix(x))
        return -ga, None, None, gb


def check_nonsingular(name: str, packed: np.ndarray) -> None:
    """Raise for the first matrix whose U has a zero on its diagonal."""
    diagonal = packed.diagonal(axis1=-2, axis2=-1)
    if diagonal.all():
        return
    *index, at = (int(i) for i in np.argwhere(diagonal == 0)[0])
    raise LinAlgError(
        f"{name}: {matrix_label(tuple(index))} is singular: diagonal element {at} of U in its LU "
        "factorization is zero; lstsq and pinv take singular matrices"
    )
