"""jax.lax.linalg: factorizations and triangular systems."""

from __future__ import annotations

from typing import Any

import lucid


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """Return the lower Cholesky factor."""
    x = lucid.as_tensor(x)
    return lucid.linalg.cholesky((x + x.mH) / 2 if symmetrize_input else x)


def triangular_solve(
    a: Any, b: Any, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """Solve `op(a) x = b`, or without `left_side` `x op(a) = b`, for a triangular matrix `a`."""
    a, b = lucid.as_tensor(a), lucid.as_tensor(b)
    a = a.conj() if conjugate_a else a
    if transpose_a:
        a, lower = a.mT, not lower
    return lucid.linalg.solve_triangular(
        a, b, upper=not lower, left=left_side, unitriangular=unit_diagonal
    )


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """Solve a system with a lower, a main and an upper diagonal, each as long as the main one."""
    dl, d, du, b = (lucid.as_tensor(x) for x in (dl, d, du, b))
    below = lucid.diag_embed(dl[..., 1:], offset=-1)
    above = lucid.diag_embed(du[..., :-1], offset=1)
    return lucid.linalg.solve(below + lucid.diag_embed(d) + above, b)


def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True) -> tuple[Any, Any]:
    """Return the eigenvectors and the eigenvalues, in JAX's order."""
    values, vectors = lucid.linalg.eigh(lucid.as_tensor(x), "L" if lower else "U")
    return vectors, values


def qr(x: Any, *, full_matrices: bool = True) -> tuple[Any, Any]:
    """Return an orthogonal and an upper triangular factor."""
    q, r = lucid.linalg.qr(lucid.as_tensor(x), "complete" if full_matrices else "reduced")
    return q, r


def svd(x: Any, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return the singular vectors and values, or the values alone."""
    if not compute_uv:
        return lucid.linalg.svdvals(lucid.as_tensor(x))
    return tuple(lucid.linalg.svd(lucid.as_tensor(x), full_matrices))
