"""Products of Householder reflections in LAPACK's format: H₁ ⋯ H_k with Hᵢ = 1 - τᵢ vᵢ vᵢᴴ.

vᵢ is 0 before its i-th element, which is 1, and below that is column i of a matrix. The product is
1 - V T Vᴴ with T = D (1 + S D)⁻¹, D = diag(τ), S the strict upper triangle of VᴴV: three matrix
products and one triangular solve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.errors import LinAlgError, ShapeError
from lucid.linalg.arguments import as_matrix, batch_shape, expand_batch
from lucid.linalg.solving import solve_triangular
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.linalg.contraction import adjoint_matrix
from lucid.ops.linalg.decompositions.degenerate import column, row
from lucid.ops.linalg.decompositions.factorizations import Geqrf
from lucid.ops.linalg.matrices import constant_like
from lucid.ops.shape.diagonals import tril, triu
from lucid.tape.bind import bind
from lucid.tape.conversion import needs_grad

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


def householder_vectors(name: str, A: Any, tau: Any, wide: bool = False) -> tuple[Any, Any]:
    """Return the columns vᵢ and the factors τᵢ in one dtype; k < n is allowed only if `wide`."""
    A, tau = promote(as_matrix(name, A, square=False), as_tensor(tau), floating=True)
    m, n = A.shape[-2:]
    k = tau.shape[-1] if tau.ndim else -1
    if tau.shape[:-1] != A.shape[:-2] or not 0 <= k <= n or (k if wide else n) > m:
        facts = f"a matrix of {A.shape} with tau of {tau.shape}; (..., m, n) goes with (..., k)"
        sizes = "k ≤ min(m, n)" if wide else "k ≤ n ≤ m"
        raise ShapeError(f"{name}: {facts} for {sizes}")
    return tril(A[..., :k], -1) + constant_like(np.eye(m, k), A), tau


def apply_reflections(v: Any, tau: Any, x: Any, adjoint: bool = False) -> Any:
    """Return Q x, or Qᴴ x if `adjoint`, for Q = H₁ ⋯ H_k."""
    above = triu(adjoint_matrix(v) @ v, 1) * row(tau)
    inner = adjoint_matrix(v) @ x
    if adjoint:
        scaled = column(tau.conj()) * inner
        lower = adjoint_matrix(above)
        return x - v @ solve_triangular(lower, scaled, upper=False, unitriangular=True)
    solution = solve_triangular(above, inner, upper=True, unitriangular=True)
    return x - v @ (column(tau) * solution)


@public_function("linalg")
def householder_product(input: Any, tau: Any) -> Any:
    """The first n columns of H₁ ⋯ H_k, given as an m × n matrix and k factors.

    >>> import lucid
    >>> lucid.linalg.householder_product(lucid.tensor([[0.0], [1.0]]), lucid.tensor([1.0]))
    Tensor([[ 0.],
            [-1.]])
    """
    v, tau = householder_vectors("householder_product", input, tau)
    m, n = as_tensor(input).shape[-2:]
    return apply_reflections(v, tau, constant_like(np.eye(m, n), v))


@public_function("lucid", "Tensor")
def ormqr(input: Any, input2: Any, input3: Any, left: bool = True, transpose: bool = False) -> Any:
    """Q `input3` for the full Q = H₁ ⋯ H_k: Qᴴ if `transpose`, `input3` Q if not `left`.

    `input` and `input2` are the vectors and their factors, as returned by `geqrf`.
    """
    v, tau = householder_vectors("ormqr", input, input2, wide=True)
    v, other = promote(v, as_matrix("ormqr", input3, square=False))
    x = other if left else adjoint_matrix(other)
    if x.shape[-2] != v.shape[-2]:
        side = "rows" if left else "columns"
        facts = f"Q has {v.shape[-2]} rows and columns, the other matrix {x.shape[-2]} {side}"
        raise ShapeError(f"ormqr: {facts}")
    outer = batch_shape("ormqr", v, x)
    v, x, tau = expand_batch(v, outer), expand_batch(x, outer), expand_batch(tau, outer, 1)
    y = apply_reflections(v, tau, x, adjoint=bool(transpose) == bool(left))
    return y if left else adjoint_matrix(y)


class GeqrfResult(NamedTuple):
    a: Tensor
    tau: Tensor


@public_function("lucid", "Tensor")
def geqrf(input: Any) -> GeqrfResult:
    """QR in LAPACK's packed format: R, and below it the Householder vectors of Q.

    It is not differentiable, as in PyTorch; `linalg.qr` is.
    """
    A = as_matrix("geqrf", input, square=False)
    if needs_grad(A):
        raise LinAlgError("geqrf: not differentiable; use linalg.qr, or detach() the matrix")
    return GeqrfResult(*bind(Geqrf(), A))
