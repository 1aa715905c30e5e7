"""Factorizations: Cholesky, LU, QR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError
from lucid.linalg.arguments import as_matrix
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import cast
from lucid.ops.core.runtime_check import refuse
from lucid.ops.linalg.contraction import adjoint_matrix
from lucid.ops.linalg.decompositions.degenerate import column, row
from lucid.ops.linalg.decompositions.factorizations import (
    Cholesky,
    LuFactor,
    LuParts,
    Qr,
    transpose_matrix,
)
from lucid.tape.bind import bind
from lucid.tape.node import wrap

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


class CholeskyEx(NamedTuple):
    L: Tensor
    info: Tensor


class LU(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    LU: Tensor
    pivots: Tensor


class LUFactorEx(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor


class QR(NamedTuple):
    Q: Tensor
    R: Tensor


@public_function("linalg")
def cholesky(input: Any, *, upper: bool = False) -> Any:
    """The lower triangular L with A = L Lᴴ of a positive definite matrix, or Lᴴ if `upper`.

    Only the lower triangle of A is read (the upper one if `upper`); gradients are Hermitian.

    >>> import lucid
    >>> lucid.linalg.cholesky(lucid.tensor([[4.0, 2.0], [2.0, 5.0]]))
    Tensor([[2., 0.],
            [1., 2.]])
    """
    return factor_of("cholesky", input, upper, True)[0]


@public_function("linalg")
def cholesky_ex(input: Any, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """`cholesky` without raising: `info` is the order of the minor that failed, or 0."""
    return CholeskyEx(*factor_of("cholesky_ex", input, upper, bool(check_errors)))


def factor_of(name: str, A: Any, upper: Any, checked: bool) -> tuple[Any, Any]:
    """Return the Cholesky factor and LAPACK's info, from the triangle that `upper` names."""
    A = as_matrix(name, A)
    lower, info = bind(Cholesky(checked), adjoint_matrix(A) if upper else A)
    return (adjoint_matrix(lower) if upper else lower), info


def lu_factors(name: str, A: Any, pivot: Any) -> tuple[Any, Any, Any]:
    if not pivot:
        raise ArgumentError(f"{name}: pivot=False is not supported")
    return bind(LuFactor(), as_matrix(name, A, square=False))


@public_function("linalg")
def lu(A: Any, *, pivot: bool = True) -> LU:
    """A = P L U: a permutation, L lower triangular with unit diagonal, U upper triangular.

    >>> import lucid
    >>> lucid.linalg.lu(lucid.tensor([[0.0, 2.0], [4.0, 1.0]])).U
    Tensor([[4., 1.],
            [0., 2.]])
    """
    packed, pivots, _ = lu_factors("lu", A, pivot)
    parts = LuParts(packed, pivots)
    numbers = wrap(np.arange(parts.m))
    order = row(parts.order) == column(numbers)
    return LU(cast(order, packed.dtype), parts.lower, parts.upper)


@public_function("linalg")
def lu_factor(A: Any, *, pivot: bool = True) -> LUFactor:
    """L and U in one matrix, and LAPACK's one-based pivots, as `lu_solve` takes them."""
    packed, pivots, _ = lu_factors("lu_factor", A, pivot)
    return LUFactor(transpose_matrix(packed), pivots)


@public_function("linalg")
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """`lu_factor`, with `info`: the one-based index of the first zero pivot, or 0."""
    packed, pivots, info = lu_factors("lu_factor_ex", A, pivot)
    if check_errors:
        failed = (info != 0).reshape(*info.shape, 1, 1)
        packed = refuse(packed, failed, "lu_factor_ex: a pivot is zero: the matrix is singular")
    return LUFactorEx(transpose_matrix(packed), pivots, info)


@public_function("linalg")
def qr(A: Any, mode: str = "reduced") -> QR:
    """A = Q R with orthonormal columns in Q and R upper triangular.

    `mode` is "reduced" (Q has min(m, n) columns), "complete" (m columns) or "r" (Q is empty).

    >>> import lucid
    >>> Q, R = lucid.linalg.qr(lucid.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> R.abs()
    Tensor([[5. , 2.2],
            [0. , 0.4]])
    """
    A = as_matrix("qr", A, square=False)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: mode={mode!r} is not 'reduced', 'complete' or 'r'")
    q, r = bind(Qr(mode == "complete"), A)
    return QR(wrap(np.zeros(0, A.dtype)), r) if mode == "r" else QR(q, r)
