"""Matrix factorizations by LAPACK: Cholesky, LU with pivots, QR."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError, LinAlgError
from lucid.ir.types import Type
from lucid.ops.core.errstate import quiet
from lucid.ops.index.gather_scatter import PutAlong, TakeAlong
from lucid.ops.linalg.contraction import adjoint_matrix, product
from lucid.ops.linalg.decompositions.triangular import TriangularSolve
from lucid.ops.linalg.matrices import (
    INT32,
    Matrixwise,
    MatrixwiseConstant,
    check_info,
    check_matrix,
    constant_like,
    eval_in_float32,
    hermitian_part,
    per_matrix,
)
from lucid.ops.shape.diagonals import tril, triu
from lucid.ops.shape.joining import cat
from lucid.ops.shape.movement import Broadcast, Transpose
from lucid.tape.bind import bind

INT64 = np.dtype("int64")


def transpose_matrix(x: Any) -> Any:
    return bind(Transpose((*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)), x)


class Cholesky(Matrixwise):
    """The lower L with L Lᴴ = h, and LAPACK's info: 0, or the order of a failed minor.

    h is the Hermitian matrix whose lower triangle is that of a. Derivatives are those in h, as if
    a were moved to another Hermitian matrix.
    """

    checked: bool = True  # raise if a minor is not positive definite
    lowering = "lucid.compiler.lowering.lapack.factorize:CholeskyLowering"

    def infer(self, a: Type) -> tuple[Type, Type]:
        check_matrix("cholesky", a)
        return a, Type(INT32, a.shape[:-2])

    @eval_in_float32
    @quiet
    def eval(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        try:
            return np.linalg.cholesky(a), np.zeros(a.shape[:-2], INT32)
        except np.linalg.LinAlgError:
            pass
        from scipy.linalg import get_lapack_funcs

        potrf = get_lapack_funcs("potrf", dtype=a.dtype)
        lower, info = zip(*[potrf(m, lower=True, clean=True) for m in per_matrix(a)])
        failed = np.array(info, INT32).reshape(a.shape[:-2])
        if self.checked:
            check_info("cholesky", failed, not_definite_message)
        return np.stack(lower).reshape(a.shape), failed

    def jvp(self, ts: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any, None]:
        lower, solve = y[0], TriangularSolve(False)
        half_way = bind(solve, lower, hermitian_part(ts[0]))
        inner = bind(solve, lower, adjoint_matrix(half_way))
        return product(lower, inner * half_diagonal_mask(lower)), None

    def vjp(self, ct: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any]:
        if ct[0] is None:
            return (None,)
        lower, solve = y[0], TriangularSolve(False, adjoint=True)
        inner = product(adjoint_matrix(lower), ct[0]) * half_diagonal_mask(lower)
        half_way = bind(solve, lower, inner)
        return (hermitian_part(bind(solve, lower, adjoint_matrix(half_way))),)


def half_diagonal_mask(x: Any) -> Any:
    """Return ones below the diagonal, a half on it, zeros above."""
    n = x.shape[-1]
    return constant_like(np.tri(n) - 0.5 * np.eye(n), x)


def not_definite_message(minor: int) -> str:
    return f"is not positive definite: its leading minor of order {minor} is not positive"


class LuFactor(Matrixwise):
    """a = P L U in LAPACK's format: L and U in one matrix, one-based pivots, and info.

    The matrix is transposed: its rows are the columns of L and U, the order that LAPACK reads.
    The derivative exists where the leading square of U has no zero on its diagonal.
    """

    lowering = "lucid.compiler.lowering.lapack.factorize:LuFactorLowering"

    def infer(self, a: Type) -> tuple[Type, Type, Type]:
        check_matrix("lu_factor", a, square=False)
        *outer, m, n = a.shape
        pivots = Type(INT32, (*outer, min(m, n)))
        return Type(a.dtype, (*outer, n, m)), pivots, Type(INT32, tuple(outer))

    @eval_in_float32
    def eval(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        *outer, m, n = a.shape
        packed = a.swapaxes(-1, -2).copy()
        pivots = np.empty((*outer, min(m, n)), INT32)
        info = np.zeros(outer, INT32)
        if a.size:
            from scipy.linalg import get_lapack_funcs

            getrf = get_lapack_funcs("getrf", dtype=a.dtype)
            failed = info.reshape(-1)
            rows = zip(per_matrix(packed), pivots.reshape(-1, min(m, n)))
            for i, (out, row_pivots) in enumerate(rows):
                _, swaps, failed[i] = getrf(out.T, overwrite_a=True)
                row_pivots[...] = swaps
            pivots += 1
        return packed, pivots, info

    def jvp(self, ts: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any, None, None]:
        parts = LuParts(y[0], y[1])
        rows = parts.permute_rows(ts[0])
        left = parts.solve_upper_right(rows[..., : parts.k])
        inner = parts.solve_lower(left[..., : parts.k, :])
        lower = left - product(parts.lower, triu(inner))
        upper = parts.solve_lower(rows[..., : parts.k, :])
        upper = upper - product(tril(inner, -1), parts.upper)
        return transpose_matrix(parts.pack(lower, upper)), None, None

    def vjp(self, ct: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any]:
        if ct[0] is None:
            return (None,)
        parts, k = LuParts(y[0], y[1]), min(a.shape[-2:])
        ct_packed = transpose_matrix(ct[0])
        lower = tril(ct_packed, -1)[..., :k]
        upper = triu(ct_packed)[..., :k, :]
        inner = -triu(product(adjoint_matrix(parts.lower), lower))
        inner = inner - tril(product(upper, adjoint_matrix(parts.upper)), -1)
        left = lower + parts.pad_zeros(parts.solve_lower(inner, True), -2, a.shape[-2])
        rows = parts.pad_zeros(parts.solve_upper_right(left, True), -1, a.shape[-1])
        rows = rows + parts.pad_zeros(parts.solve_lower(upper, True), -2, a.shape[-2])
        return (parts.unpermute_rows(rows),)


class LuParts:
    """L, U and the row permutation of a packed LU factorization, with their solves."""

    def __init__(self, packed: Any, pivots: Any) -> None:
        lu = transpose_matrix(packed)
        self.m, self.n = lu.shape[-2:]
        self.k = min(self.m, self.n)
        ones = constant_like(np.eye(self.m, self.k), lu)
        self.lower = tril(lu[..., : self.k], -1) + ones
        self.upper = triu(lu[..., : self.k, :])
        self.order = bind(Permutation(self.m), pivots)

    def solve_lower(self, x: Any, adjoint: bool = False) -> Any:
        """Return L⁻¹ x for the leading square of L, or L⁻ᴴ x if `adjoint`."""
        return bind(TriangularSolve(False, True, adjoint), self.lower[..., : self.k, :], x)

    def solve_upper_right(self, x: Any, adjoint: bool = False) -> Any:
        """Return x U⁻¹ for the leading square of U, or x U⁻ᴴ if `adjoint`."""
        solve = TriangularSolve(True, False, not adjoint)
        return adjoint_matrix(bind(solve, self.upper[..., : self.k], adjoint_matrix(x)))

    def pack(self, lower: Any, upper: Any) -> Any:
        lower, upper = tril(lower, -1), triu(upper)
        return self.pad_zeros(lower, -1, self.n) + self.pad_zeros(upper, -2, self.m)

    def pad_zeros(self, x: Any, axis: int, size: int) -> Any:
        """Pad an axis with zeros at its end."""
        missing = size - x.shape[axis]
        if not missing:
            return x
        shape = list(x.shape)
        shape[axis] = missing
        return cat([x, constant_like(np.zeros(shape), x)], axis)

    def permute_rows(self, x: Any) -> Any:
        """Return Pᵀ x: the rows in the order that the pivots give."""
        return bind(TakeAlong(x.ndim - 2), x, row_indices(self.order, x))

    def unpermute_rows(self, x: Any) -> Any:
        return bind(PutAlong(x.ndim - 2, x.shape[-2]), x, row_indices(self.order, x))


def row_indices(order: Any, x: Any) -> Any:
    """Return the row index of each element of `x` after a permutation."""
    return bind(Broadcast(x.shape, tuple(range(x.ndim - 1))), order)


class Permutation(MatrixwiseConstant):
    """The permutation of `size` rows that LAPACK's sequence of row swaps (pivots) gives."""

    size: int
    lowering = "lucid.compiler.lowering.lapack.factorize:PermutationLowering"

    def infer(self, pivots: Type) -> Type:
        if pivots.dtype != INT32:
            raise DTypeError(f"permutation: pivots of dtype {pivots.dtype}; they must be int32")
        return Type(INT64, (*pivots.shape[:-1], self.size))

    def eval(self, pivots: np.ndarray) -> np.ndarray:
        order = np.empty((*pivots.shape[:-1], self.size), INT64)
        order[...] = np.arange(self.size)
        if pivots.size:
            rows = zip(order.reshape(-1, self.size), pivots.reshape(-1, pivots.shape[-1]))
            for row, swaps in rows:
                for i, j in enumerate(swaps - 1):
                    row[i], row[j] = row[j], row[i]
        return order


class Qr(Matrixwise):
    """a = Q R with orthonormal columns in Q and R upper triangular; all m columns if `complete`.

    The derivative exists where the first min(m, n) columns are independent.
    """

    complete: bool = False
    lowering = "lucid.compiler.lowering.lapack.factorize:QrLowering"

    def infer(self, a: Type) -> tuple[Type, Type]:
        check_matrix("qr", a, square=False)
        *outer, m, n = a.shape
        k = m if self.complete else min(m, n)
        return Type(a.dtype, (*outer, m, k)), Type(a.dtype, (*outer, k, n))

    @eval_in_float32
    def eval(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, r = np.linalg.qr(a, "complete" if self.complete else "reduced")
        return q, r

    def check_derivative(self, a: Any) -> None:
        if self.complete and a.shape[-2] > a.shape[-1]:
            raise LinAlgError(
                "qr: mode='complete' of a matrix with more rows than columns has no derivative, "
                "because the extra columns of Q are arbitrary; use mode='reduced'"
            )

    def jvp(self, ts: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any, Any]:
        self.check_derivative(a)
        (q, r), t, k = y, ts[0], y[1].shape[-2]
        scaled = solve_upper_right(t[..., :k], r[..., :k])
        inner = product(adjoint_matrix(q), scaled)
        below = tril(inner, -1)
        rotation = below - adjoint_matrix(below) + imaginary_diagonal(inner)
        tq = product(q, rotation - inner) + scaled
        tr = product(adjoint_matrix(q), t) - product(rotation, r)
        return tq, triu(tr)

    def vjp(self, ct: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any]:
        self.check_derivative(a)
        (q, r), (gq, gr), k = y, ct, y[1].shape[-2]
        if gq is None and gr is None:
            return (None,)
        gr = None if gr is None else triu(gr)
        if gr is None or a.shape[-1] == k:
            ga = qr_pullback(q, r[..., :k], gq, gr)
            missing = constant_like(np.zeros((*ga.shape[:-1], a.shape[-1] - k)), ga)
            return (ga if a.shape[-1] == k else cat([ga, missing], -1),)
        further = gr[..., k:]  # a = [a₁ a₂] and R = [R₁ Qᴴa₂]
        moved = product(q, product(r[..., k:], adjoint_matrix(further)))
        ga = qr_pullback(q, r[..., :k], moved if gq is None else gq + moved, gr[..., :k])
        return (cat([ga, product(q, further)], -1),)


class Geqrf(MatrixwiseConstant):
    """LAPACK's packed QR: R above, Householder vectors below the diagonal, and the factors τ."""

    def infer(self, a: Type) -> tuple[Type, Type]:
        check_matrix("geqrf", a, square=False)
        return a, Type(a.dtype, (*a.shape[:-2], min(a.shape[-2:])))

    @eval_in_float32
    def eval(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        packed, tau = np.linalg.qr(a, "raw")
        return np.ascontiguousarray(packed.swapaxes(-1, -2)), tau


def qr_pullback(q: Any, r: Any, gq: Any, gr: Any) -> Any:
    """Return the cotangent of a matrix with m ≥ n from those of Q and R."""
    inner = None if gr is None else product(gr, adjoint_matrix(r))
    if gq is not None:
        moved = product(adjoint_matrix(q), gq)
        inner = -moved if inner is None else inner - moved
    above = triu(inner, 1)
    ga = product(q, above + adjoint_matrix(above) + real_diagonal(inner))
    return solve_upper_right(ga if gq is None else ga + gq, r, adjoint=True)


def solve_upper_right(x: Any, upper: Any, adjoint: bool = False) -> Any:
    """Return x R⁻¹, or x R⁻ᴴ if `adjoint`."""
    solve = TriangularSolve(True, False, not adjoint)
    return adjoint_matrix(bind(solve, upper, adjoint_matrix(x)))


def keep_diagonal(x: Any) -> Any:
    return x * constant_like(np.eye(x.shape[-1]), x)


def real_diagonal(x: Any) -> Any:
    return hermitian_part(keep_diagonal(x))


def imaginary_diagonal(x: Any) -> Any:
    diagonal = keep_diagonal(x)
    return diagonal - hermitian_part(diagonal)
