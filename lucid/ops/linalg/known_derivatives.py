"""Precomputed values with an analytic derivative: det, slogdet, pinv.

`det` is computed as a product of diagonal elements of LU, `pinv` from singular vectors.
Differentiating through that would be slow, or fail where the derivative of the result exists. So
these primitives return their last operands, the value, with its derivative in the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ir.types import Type
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.complexes import complex, conj, imag, real
from lucid.ops.elementwise.conditional import maximum, where
from lucid.ops.linalg.contraction import adjoint_matrix, product
from lucid.ops.linalg.decompositions.degenerate import max_abs
from lucid.ops.linalg.decompositions.eigh_svd import diagonal_of
from lucid.ops.linalg.decompositions.factorizations import LuParts, transpose_matrix
from lucid.ops.linalg.decompositions.triangular import LuSolve, TriangularSolve
from lucid.ops.linalg.matrices import Matrixwise, check_matrix, constant_like
from lucid.ops.reduce.cumulative import Cumprod
from lucid.ops.shape.movement import Broadcast
from lucid.tape.bind import bind


class PrecomputedDet(Matrixwise):
    """The determinant `value` of `a`, whose LU factorization is given.

    The gradient is the matrix of cofactors, which is correct for singular matrices too. Second
    derivatives go through the factorization and need a nonsingular matrix.
    """

    forwards = "last"

    def infer(self, a: Type, packed: Type, pivots: Type, value: Type) -> Type:
        check_matrix("det", a)
        return value

    def eval(self, a: Any, packed: Any, pivots: Any, value: np.ndarray) -> np.ndarray:
        return value.copy()

    def jvp(self, ts: tuple[Any, ...], y: Any, a: Any, packed: Any, pivots: Any, value: Any) -> Any:
        return None if ts[0] is None else (ts[0] * cofactors(packed, pivots)).sum(dim=(-2, -1))

    def vjp(
        self, ct: Any, y: Any, a: Any, packed: Any, pivots: Any, value: Any
    ) -> tuple[Any, None, None, None]:
        wide = ct.reshape(*ct.shape, 1, 1)
        return wide * conj(cofactors(packed, pivots)), None, None, None


def cofactors(packed: Any, pivots: Any) -> Any:
    """Return the gradient of det: P L⁻ᵀ diag(products of the other pivots) V⁻ᵀ with U = D V.

    A zero pivot is replaced by a rounding error of the largest: it cancels in the result.
    """
    parts, n = LuParts(packed, pivots), packed.shape[-1]
    if not n:
        return packed
    pivot = diagonal_of(parts.upper)
    axis, column = pivot.ndim - 1, (*pivot.shape, 1)
    info = np.finfo(pivot.abs().dtype)
    least = maximum(max_abs(parts.upper) * float(info.eps), float(info.tiny) ** 0.5)
    pivot = where(pivot == 0, cast(least.reshape(*least.shape[:-1]), pivot.dtype), pivot)
    others = bind(Cumprod(axis, exclusive=True), pivot)
    others = others * bind(Cumprod(axis, reverse=True, exclusive=True), pivot)
    sign = permutation_sign(pivots, packed.dtype)
    middle = (others * sign.reshape(*sign.shape, 1)).reshape(column) * constant_like(
        np.eye(n), packed
    )
    right = bind(TriangularSolve(True, unit=True), parts.upper / pivot.reshape(column), middle)
    solve = TriangularSolve(False, unit=True, adjoint=True)
    return parts.unpermute_rows(bind(solve, conj(parts.lower), transpose_matrix(right)))


def permutation_sign(pivots: Any, dtype: Any) -> Any:
    """Return the sign of the row permutation."""
    unswapped = constant_like(np.arange(1, pivots.shape[-1] + 1), pivots)
    return cast(1 - 2 * ((pivots != unswapped).sum(dim=-1) % 2), dtype)


class PrecomputedSlogdet(Matrixwise):
    """The sign of det a and log |det a|, with the LU factorization of `a` given."""

    forwards = "last"

    def infer(
        self, a: Type, packed: Type, pivots: Type, sign: Type, log: Type
    ) -> tuple[Type, Type]:
        check_matrix("slogdet", a)
        return sign, log

    def eval(
        self, a: Any, packed: Any, pivots: Any, sign: np.ndarray, log: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return sign.copy(), log.copy()

    def jvp(
        self, ts: tuple[Any, ...], y: tuple[Any, ...], a: Any, packed: Any, pivots: Any, *_: Any
    ) -> tuple[Any, Any]:
        if ts[0] is None:
            return None, None
        trace = diagonal_of(bind(LuSolve(), a, packed, pivots, ts[0])).sum(dim=-1)
        if a.dtype.kind == "f":
            return None, trace
        return y[0] * complex(0 * imag(trace), imag(trace)), cast(real(trace), y[1].dtype)

    def vjp(
        self, ct: tuple[Any, ...], y: tuple[Any, ...], a: Any, packed: Any, pivots: Any, *_: Any
    ) -> tuple[Any, ...]:
        gsign, weight = ct
        if a.dtype.kind == "c" and gsign is not None:
            phase = imag(gsign * conj(y[0]))
            weight = complex(0 * phase if weight is None else weight, phase)
        if weight is None:
            return (None,) * 5
        n = a.shape[-1]
        scaled = cast(weight, a.dtype).reshape(*weight.shape, 1, 1) * constant_like(np.eye(n), a)
        return bind(LuSolve(adjoint=True), a, packed, pivots, scaled), None, None, None, None


class PrecomputedPinv(Matrixwise):
    """The pseudo-inverse `value` of `a`, with the derivative at constant rank."""

    saves = "xy"
    forwards = "last"

    def infer(self, a: Type, value: Type) -> Type:
        check_matrix("pinv", a, square=False)
        return value

    def eval(self, a: Any, value: np.ndarray) -> np.ndarray:
        return value.copy()

    def jvp(self, ts: tuple[Any, ...], p: Any, a: Any, value: Any) -> Any:
        if ts[0] is None:
            return None
        t = adjoint_matrix(ts[0])
        first = product(product(p, adjoint_matrix(p)), t)
        second = product(t, product(adjoint_matrix(p), p))
        total = first - product(product(first, a), p)
        total = total + second - product(p, product(a, second))
        return total - product(p, product(ts[0], p))

    def vjp(self, ct: Any, p: Any, a: Any, value: Any) -> tuple[Any, None]:
        g, ph = adjoint_matrix(ct), adjoint_matrix(p)
        first = product(product(g, p), ph)
        second = product(product(ph, p), g)
        total = first - product(a, product(p, first))
        total = total + second - product(product(second, p), a)
        return total - product(ph, product(ct, ph)), None


def identity_like(a: Any) -> Any:
    """Return the identity matrix for each matrix of `a`."""
    n = a.shape[-1]
    eye = constant_like(np.eye(n), a)
    return eye if a.ndim == 2 else bind(Broadcast(a.shape, (a.ndim - 2, a.ndim - 1)), eye)
