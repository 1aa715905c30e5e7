"""Products of Householder's reflections, as LAPACK packs them: H₁ ⋯ H_k with Hᵢ = 1 - τᵢ vᵢ vᵢᴴ.

vᵢ is 0 before its i-th element, which is 1, and stands in column i of a matrix from there on. The
product is 1 - V T Vᴴ with T = D (1 + S D)⁻¹, D = diag(τ), S what VᴴV has above its diagonal: three
matrix products and one triangular solve.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lucid.errors import LinAlgError, ShapeError
from lucid.ir.source import at_line
from lucid.linalg.arguments import expanded, is_tracked, matrix, outer_shape
from lucid.linalg.solving import solve_triangular
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.linalg.contraction import adjoint_matrix
from lucid.ops.linalg.degenerate import column, row
from lucid.ops.linalg.factorizations import Geqrf
from lucid.ops.linalg.matrices import constant
from lucid.ops.shape.diagonals import tril, triu
from lucid.tape.bind import bind


def vectors(name: str, A: Any, tau: Any, wide: bool = False) -> tuple[Any, Any]:
    """The columns vᵢ and the numbers τᵢ of one dtype; further columns only where `wide`."""
    A, tau = promote(matrix(name, A, square=False), as_tensor(tau), floating=True)
    m, n = A.shape[-2:]
    k = tau.shape[-1] if tau.ndim else -1
    if tau.shape[:-1] != A.shape[:-2] or not 0 <= k <= n or (k if wide else n) > m:
        facts = f"a matrix of {A.shape} with tau of {tau.shape}; (..., m, n) goes with (..., k)"
        sizes = "k ≤ min(m, n)" if wide else "k ≤ n ≤ m"
        raise ShapeError(f"{name}: {facts} for {sizes}{at_line()}")
    return tril(A[..., :k], -1) + constant(np.eye(m, k), A), tau


def reflected(v: Any, tau: Any, x: Any, adjoint: bool = False) -> Any:
    """Q x, or Qᴴ x, for Q = H₁ ⋯ H_k."""
    above = triu(adjoint_matrix(v) @ v, 1) * row(tau)
    inner = adjoint_matrix(v) @ x
    if adjoint:
        scaled = column(tau.conj()) * inner
        lower = adjoint_matrix(above)
        return x - v @ solve_triangular(lower, scaled, upper=False, unitriangular=True)
    turned = solve_triangular(above, inner, upper=True, unitriangular=True)
    return x - v @ (column(tau) * turned)


@explained
def householder_product(input: Any, tau: Any) -> Any:
    """The first n columns of H₁ ⋯ H_k, from the m × n matrix and the k numbers that hold them.

    >>> import lucid
    >>> lucid.linalg.householder_product(lucid.tensor([[0.0], [1.0]]), lucid.tensor([1.0]))
    Tensor([[ 0.],
            [-1.]])
    """
    v, tau = vectors("householder_product", input, tau)
    m, n = as_tensor(input).shape[-2:]
    return reflected(v, tau, constant(np.eye(m, n), v))


@explained
def ormqr(input: Any, input2: Any, input3: Any, left: bool = True, transpose: bool = False) -> Any:
    """Q `input3` for the whole Q = H₁ ⋯ H_k: Qᴴ if `transpose`, `input3` Q if not `left`.

    `input` and `input2` are the vectors and their factors, as `geqrf` gives them.
    """
    v, tau = vectors("ormqr", input, input2, wide=True)
    v, other = promote(v, matrix("ormqr", input3, square=False))
    x = other if left else adjoint_matrix(other)
    if x.shape[-2] != v.shape[-2]:
        side = "rows" if left else "columns"
        facts = f"Q has {v.shape[-2]} rows and columns, the other matrix {x.shape[-2]} {side}"
        raise ShapeError(f"ormqr: {facts}{at_line()}")
    outer = outer_shape("ormqr", v, x)
    v, x, tau = expanded(v, outer), expanded(x, outer), expanded(tau, outer, 1)
    y = reflected(v, tau, x, adjoint=bool(transpose) == bool(left))
    return y if left else adjoint_matrix(y)


class Packed(NamedTuple):
    a: Any
    tau: Any


@explained
def geqrf(input: Any) -> Packed:
    """QR as `householder_product` and `ormqr` take it: R, and below it the reflections of Q.

    It has no derivative, as in PyTorch; that of `linalg.qr` is known.
    """
    A = matrix("geqrf", input, square=False)
    if is_tracked(A):
        raise LinAlgError(f"geqrf: it has no derivative; use linalg.qr, or detach(){at_line()}")
    return Packed(*bind(Geqrf(), A))
