"""Eigenvalues, singular values, and functions based on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.errors import ArgumentError
from lucid.linalg.arguments import as_matrix, cutoff
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.linalg.contraction import adjoint_matrix, product
from lucid.ops.linalg.decompositions.degenerate import row
from lucid.ops.linalg.decompositions.eig import Eig, Eigvals
from lucid.ops.linalg.decompositions.eigh_svd import Eigh, Eigvalsh, Svd, Svdvals
from lucid.ops.linalg.known_derivatives import PrecomputedPinv
from lucid.ops.linalg.matrices import hermitian_part
from lucid.ops.shape.diagonals import tril, triu
from lucid.tape.bind import bind
from lucid.tape.conversion import needs_grad

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


class Eigenpairs(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def with_lower_triangle(name: str, A: Any, UPLO: Any) -> Any:
    """Return A, or Aᴴ if the upper triangle is the one to read."""
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO={UPLO!r} is not 'L' or 'U'")
    A = as_matrix(name, A)
    return A if UPLO.upper() == "L" else adjoint_matrix(A)


@public_function("linalg")
def eigh(input: Any, UPLO: str = "L") -> Eigenpairs:
    """Eigenvalues, ascending, and orthonormal eigenvectors (columns) of a Hermitian matrix.

    Only the lower triangle of A is read (the upper one if UPLO='U'); gradients are Hermitian.
    Differentiating eigenvectors of a repeated eigenvalue raises LinAlgError.

    >>> import lucid
    >>> lucid.linalg.eigh(lucid.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Tensor([1., 2.])
    """
    values, rows = bind(Eigh(), with_lower_triangle("eigh", input, UPLO))
    return Eigenpairs(values, adjoint_matrix(rows))


@public_function("linalg")
def eigvalsh(input: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of a Hermitian matrix, ascending.

    Only the lower triangle is read (the upper one if UPLO='U'). Equal eigenvalues share their
    cotangents, so symmetric functions of them have correct gradients.
    """
    A = with_lower_triangle("eigvalsh", input, UPLO)
    return bind(Eigh(), A)[0] if needs_grad(A) else bind(Eigvalsh(), A)


@public_function("linalg")
def eig(input: Any) -> Eigenpairs:
    """The complex eigenvalues and eigenvectors (columns) of a square matrix.

    The derivative exists where the eigenvalues are distinct.
    """
    return Eigenpairs(*bind(Eig(), as_matrix("eig", input)))


@public_function("linalg")
def eigvals(input: Any) -> Any:
    """The complex eigenvalues of a square matrix."""
    A = as_matrix("eigvals", input)
    return bind(Eig(), A)[0] if needs_grad(A) else bind(Eigvals(), A)


def check_driver(name: str, driver: Any) -> None:
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise ArgumentError(f"{name}: unknown driver={driver!r}; use None")


@public_function("linalg")
def svd(A: Any, full_matrices: bool = True, *, driver: Any = None) -> SVD:
    """A = U diag(S) Vh with orthonormal U and Vh and singular values S ≥ 0, descending.

    No derivative flows through the vectors without a singular value, which `full_matrices` adds.

    >>> import lucid
    >>> lucid.linalg.svd(lucid.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    Tensor([2., 1.])
    """
    check_driver("svd", driver)
    return SVD(*bind(Svd(bool(full_matrices)), as_matrix("svd", A, square=False)))


@public_function("linalg")
def svdvals(A: Any, *, driver: Any = None) -> Any:
    """The singular values, descending; equal ones share their cotangents."""
    check_driver("svdvals", driver)
    A = as_matrix("svdvals", A, square=False)
    return bind(Svd(), A)[1] if needs_grad(A) else bind(Svdvals(), A)


@public_function("linalg")
def matrix_rank(
    input: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """The number of singular values greater than max(atol, rtol · the largest).

    >>> import lucid
    >>> lucid.linalg.matrix_rank(lucid.ones(3, 3))
    Tensor(1)
    """
    A = as_matrix("matrix_rank", input, square=False).detach()
    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    if tol is not None:
        atol, rtol = tol, 0.0 if rtol is None else rtol
    return (values > cutoff(values, A.shape, atol, rtol)).sum(dim=-1)


@public_function("linalg", aliases=("pinverse",))
def pinv(
    input: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """The pseudo-inverse; singular values up to max(atol, rtol · the largest) count as zero.

    Its derivative is that at constant rank, and exists at repeated singular values too. If
    `hermitian`, only the lower triangle is read.
    """
    A = as_matrix("pinv", input, square=bool(hermitian))
    rtol = rcond if rtol is None else rtol
    if not hermitian:
        parts = svd(A.detach(), full_matrices=False)
        return pseudo_inverse(A, parts, cutoff(parts.S, A.shape, atol, rtol))
    A = hermitian_from_lower(A)
    values, vectors = eigh(A.detach())
    small = values.abs() <= cutoff(values.abs(), A.shape, atol, rtol)
    inverse = cast(where(small, 0.0, 1.0 / where(small, 1.0, values)), A.dtype)
    known = product(vectors * row(inverse), adjoint_matrix(vectors))
    return bind(PrecomputedPinv(), A, known)


def hermitian_from_lower(A: Any) -> Any:
    """Return the Hermitian matrix with the lower triangle of A; its derivative is Hermitian."""
    below, given = tril(A.detach(), -1), hermitian_part(A)
    diagonal = hermitian_part(tril(triu(A.detach())))
    return below + adjoint_matrix(below) + diagonal + (given - given.detach())


def pseudo_inverse(A: Any, parts: SVD, limit: Any) -> Any:
    """Return V diag(1/S) Uᴴ, with the derivative of the pseudo-inverse of A."""
    small = parts.S <= limit
    inverse = cast(where(small, 0.0, 1.0 / where(small, 1.0, parts.S)), A.dtype)
    known = product(adjoint_matrix(parts.Vh) * row(inverse), adjoint_matrix(parts.U))
    return bind(PrecomputedPinv(), A, known)
