"""Linear algebra functions that PyTorch has outside torch.linalg: `lucid.svd`, `lucid.lu`, ...

They differ from those in `lucid.linalg` in arguments and results, as in PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid import random
from lucid.errors import ArgumentError
from lucid.linalg import determinants
from lucid.linalg.arguments import as_matrix, as_pivots, as_system
from lucid.linalg.decompositions import QR, LUFactor, LUFactorEx, lu_factor_ex
from lucid.linalg.decompositions import cholesky as cholesky_factor
from lucid.linalg.decompositions import qr as qr_factors
from lucid.linalg.eigenvalues import pinv
from lucid.linalg.eigenvalues import svd as singular_values
from lucid.linalg.reflections import householder_product
from lucid.linalg.solving import cholesky_solve, inv, triangular_system
from lucid.linalg.solving import lu_solve as solve_by_lu
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.linalg.contraction import adjoint_matrix
from lucid.ops.linalg.decompositions.degenerate import column, row
from lucid.ops.linalg.decompositions.factorizations import LuParts, Permutation, transpose_matrix
from lucid.ops.linalg.matrices import constant_like, real_dtype
from lucid.ops.shape.creation import empty, zeros
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.node import wrap

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


MAX_ITERATIONS = 10_000  # of svd_lowrank; a few are enough


class SVD(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor


class LUParts(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


class TriangularSolution(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor


@public("lucid", "Tensor")
def det(input: Any) -> Any:
    """`linalg.det`: the determinant."""
    return determinants.det(input)


@public("lucid", "Tensor")
def slogdet(input: Any) -> determinants.Slogdet:
    """`linalg.slogdet`: the sign of the determinant and the logarithm of its absolute value."""
    return determinants.slogdet(input)


@public("lucid", "Tensor")
def inverse(input: Any) -> Any:
    """`linalg.inv`: the inverse of a square matrix; a singular one raises LinAlgError."""
    return inv(input)


@public("lucid", "Tensor")
def pinverse(input: Any, rcond: Any = 1e-15) -> Any:
    """`linalg.pinv`: singular values up to `rcond` times the largest count as zero."""
    return pinv(input, rcond)


@public("lucid", "Tensor")
def orgqr(input: Any, input2: Any) -> Any:
    """`linalg.householder_product`: the Q of the vectors and factors returned by `geqrf`."""
    return householder_product(input, input2)


@public_function("lucid", "Tensor")
def cholesky(input: Any, upper: bool = False) -> Any:
    """`linalg.cholesky`: the lower triangular L with A = L Lᴴ, or Lᴴ if `upper`."""
    return cholesky_factor(input, upper=upper)


@public_function("lucid", "Tensor")
def cholesky_inverse(input: Any, upper: bool = False) -> Any:
    """The inverse of A, from the Cholesky factor of A.

    >>> import lucid
    >>> lucid.cholesky_inverse(lucid.tensor([[2.0, 0.0], [0.0, 4.0]]))
    Tensor([[0.25  , 0.    ],
            [0.    , 0.0625]])
    """
    factor = as_matrix("cholesky_inverse", input)
    return cholesky_solve(constant_like(np.eye(factor.shape[-1]), factor), factor, upper)


@public_function("lucid", "Tensor")
def qr(input: Any, some: bool = True) -> QR:
    """`linalg.qr`, reduced if `some` and complete otherwise."""
    return qr_factors(input, "reduced" if some else "complete")


@public_function("lucid", "Tensor")
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> SVD:
    """A = U diag(S) Vᴴ: `linalg.svd` with V itself; U and V are zeros without `compute_uv`."""
    found = singular_values(input, full_matrices=not some)
    if compute_uv:
        return SVD(found.U, found.S, adjoint_matrix(found.Vh))
    *outer, m, n = as_tensor(input).shape
    dtype = found.U.dtype
    return SVD(zeros(*outer, m, m, dtype=dtype), found.S, zeros(*outer, n, n, dtype=dtype))


@public_function("lucid", "Tensor")
def lu(A: Any, pivot: bool = True, get_infos: bool = False) -> LUFactor | LUFactorEx:
    """`linalg.lu_factor`: L and U in one matrix and the pivots, and `info` if `get_infos`."""
    found = lu_factor_ex(A, pivot=pivot)
    return found if get_infos else LUFactor(found.LU, found.pivots)


@public_function("lucid", "Tensor")
def lu_solve(input: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """The X with A X = `input`, from the result of `lu` for A."""
    return solve_by_lu(LU_data, LU_pivots, input)


@public_function()
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> LUParts:
    """P, L and U from the result of `lu`; parts that are not unpacked are empty.

    >>> import lucid
    >>> P, L, U = lucid.lu_unpack(*lucid.lu(lucid.tensor([[0.0, 2.0], [4.0, 1.0]])))
    >>> U
    Tensor([[4., 1.],
            [0., 2.]])
    """
    packed = as_matrix("lu_unpack", LU_data, square=False)
    pivots = as_pivots("lu_unpack", LU_pivots, packed)
    m = packed.shape[-2]
    nothing = empty(0, dtype=packed.dtype)
    P = L = U = nothing
    if unpack_pivots:
        order = bind(Permutation(m), pivots)
        P = cast(row(order) == column(wrap(np.arange(m))), packed.dtype)
    if unpack_data:
        parts = LuParts(transpose_matrix(packed), pivots)
        L, U = parts.lower, parts.upper
    return LUParts(P, L, U)


@public_function("lucid", "Tensor")
def triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolution:
    """The X with A X = b = `input` (Aᵀ X = b if `transpose`) for a triangular A, and A itself."""
    A, b = as_system("triangular_solve", A, input)
    used, above = (transpose_matrix(A), not upper) if transpose else (A, bool(upper))
    return TriangularSolution(
        triangular_system("triangular_solve", used, b, above, unitriangular), A
    )


def random_range(A: Any, q: int, niter: int, M: Any) -> Any:
    """Return orthonormal columns that approximately span the first q left singular vectors.

    (Halko, Martinsson and Tropp, Finding structure with randomness, 2009, algorithm 4.4.)
    """

    def product(x: Any, adjoint: bool = False) -> Any:
        moved = A if M is None else A - M
        return (adjoint_matrix(moved) if adjoint else moved) @ x

    start = random.randn(A.shape[-1], q, dtype=real_dtype(A.dtype))
    Q = qr_factors(product(cast(start, A.dtype))).Q
    for _ in range(niter):
        Q = qr_factors(product(qr_factors(product(Q, adjoint=True)).Q)).Q
    return Q


@public_function()
def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> SVD:
    """The first q singular values and vectors of A (or A - M), by random projections."""
    A = as_matrix("svd_lowrank", A, square=False)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if not 0 <= q <= min(A.shape[-2:]) or not 0 <= niter <= MAX_ITERATIONS:
        facts = f"q={q}, niter={niter} for {A.shape}; q must be at most the smaller size"
        facts += f", niter at most {MAX_ITERATIONS}"
        raise ArgumentError(f"svd_lowrank: {facts}")
    M = None if M is None else as_tensor(M).expand(A.shape)
    is_wide = A.shape[-2] < A.shape[-1]
    if is_wide:
        A, M = adjoint_matrix(A), None if M is None else adjoint_matrix(M)
    Q = random_range(A, q, niter, M)
    small = adjoint_matrix(Q) @ (A if M is None else A - M)
    U, S, Vh = singular_values(small, full_matrices=False)
    U, V = Q @ U, adjoint_matrix(Vh)
    return SVD(V, S, U) if is_wide else SVD(U, S, V)


@public_function()
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> SVD:
    """Principal components by `svd_lowrank`; the mean of the rows is subtracted if `center`."""
    A = as_matrix("pca_lowrank", A, square=False)
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
