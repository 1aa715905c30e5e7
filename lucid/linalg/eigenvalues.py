"""Eigenvalues, singular values, and what is made of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.linalg.arguments import cutoff, is_tracked, matrix
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.linalg.contraction import adjoint_matrix, product
from lucid.ops.linalg.degenerate import row
from lucid.ops.linalg.eig import Eig, Eigvals
from lucid.ops.linalg.eigh_svd import Eigh, Eigvalsh, Svd, Svdvals
from lucid.ops.linalg.known_derivatives import KnownPinv
from lucid.ops.linalg.matrices import hermitian as hermitian_part
from lucid.tape.bind import bind


class Eigenpairs(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class SVD(NamedTuple):
    U: Any
    S: Any
    Vh: Any


def check_triangle(name: str, UPLO: Any) -> None:
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO={UPLO!r}; it is 'L' or 'U'{at_line()}")


@explained
def eigh(input: Any, UPLO: str = "L") -> Eigenpairs:
    """Eigenvalues, ascending, and orthonormal eigenvectors (columns) of a Hermitian matrix.

    The Hermitian part of A is what counts, so `UPLO` makes no difference and gradients are
    Hermitian. Eigenvectors of a repeated eigenvalue have no derivative: that raises LinAlgError.

    >>> import lucid
    >>> lucid.linalg.eigh(lucid.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Tensor([1., 2.])
    """
    check_triangle("eigh", UPLO)
    values, rows = bind(Eigh(), matrix("eigh", input))
    return Eigenpairs(values, adjoint_matrix(rows))


@explained
def eigvalsh(input: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of a Hermitian matrix, ascending.

    Equal ones share their cotangents, so functions that treat them alike have their gradient.
    """
    check_triangle("eigvalsh", UPLO)
    A = matrix("eigvalsh", input)
    return bind(Eigh(), A)[0] if is_tracked(A) else bind(Eigvalsh(), A)


@explained
def eig(input: Any) -> Eigenpairs:
    """Eigenvalues and eigenvectors (columns) of a square matrix, which are complex.

    Their derivative exists where the eigenvalues are distinct.
    """
    return Eigenpairs(*bind(Eig(), matrix("eig", input)))


@explained
def eigvals(input: Any) -> Any:
    """The eigenvalues of a square matrix, which are complex."""
    A = matrix("eigvals", input)
    return bind(Eig(), A)[0] if is_tracked(A) else bind(Eigvals(), A)


def check_driver(name: str, driver: Any) -> None:
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise ArgumentError(f"{name}: driver={driver!r}; leave it None{at_line()}")


@explained
def svd(A: Any, full_matrices: bool = True, *, driver: Any = None) -> SVD:
    """A = U diag(S) Vh with orthonormal U and Vh and singular values S ≥ 0, descending.

    No derivative flows to the vectors without a singular value, which `full_matrices` adds.

    >>> import lucid
    >>> lucid.linalg.svd(lucid.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    Tensor([2., 1.])
    """
    check_driver("svd", driver)
    return SVD(*bind(Svd(bool(full_matrices)), matrix("svd", A, square=False)))


@explained
def svdvals(A: Any, *, driver: Any = None) -> Any:
    """The singular values, descending; equal ones share their cotangents."""
    check_driver("svdvals", driver)
    A = matrix("svdvals", A, square=False)
    return bind(Svd(), A)[1] if is_tracked(A) else bind(Svdvals(), A)


@explained
def matrix_rank(
    input: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """How many singular values are greater than max(atol, rtol · the largest).

    >>> import lucid
    >>> lucid.linalg.matrix_rank(lucid.ones(3, 3))
    Tensor(1)
    """
    A = matrix("matrix_rank", input, square=False).detach()
    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    if tol is not None:
        atol, rtol = tol, 0.0 if rtol is None else rtol
    return (values > cutoff(values, A.shape, atol, rtol)).sum(dim=-1)


@explained
def pinv(
    input: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """The pseudo-inverse; singular values up to max(atol, rtol · the largest) count as zero.

    Its derivative is that at constant rank, which exists at repeated singular values too.
    """
    A = matrix("pinv", input, square=bool(hermitian))
    rtol = rcond if rtol is None else rtol
    if not hermitian:
        parts = svd(A.detach(), full_matrices=False)
        return pseudo_inverse(A, parts, cutoff(parts.S, A.shape, atol, rtol))
    A = hermitian_part(A)
    values, vectors = eigh(A.detach())
    small = values.abs() <= cutoff(values.abs(), A.shape, atol, rtol)
    inverse = cast(where(small, 0.0, 1.0 / where(small, 1.0, values)), A.dtype)
    known = product(vectors * row(inverse), adjoint_matrix(vectors))
    return bind(KnownPinv(), A, known)


def pseudo_inverse(A: Any, parts: SVD, limit: Any) -> Any:
    """V diag(1/S) Uᴴ, with the derivative of the pseudo-inverse of A."""
    small = parts.S <= limit
    inverse = cast(where(small, 0.0, 1.0 / where(small, 1.0, parts.S)), A.dtype)
    known = product(adjoint_matrix(parts.Vh) * row(inverse), adjoint_matrix(parts.U))
    return bind(KnownPinv(), A, known)
