"""Matrix-free linear solvers: each is a function `(product, b, tol, max_steps) -> x`.

`product` is a linear function of a vector. The loops are `while_loop` and `scan`, so solvers can be
traced, batched and compiled like any other program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid.func.control_flow import scan, while_loop
from lucid.ops.core.promote import as_tensor
from lucid.ops.elementwise.conditional import where
from lucid.ops.shape.creation import arange, eye, zeros

Product = Callable[[Any], Any]
RESTART = 24


def dense(product: Product, b: Any, tol: float, max_steps: int | None) -> Any:
    """Form the matrix with one batched product and solve by LU."""
    from lucid.func.mapping.batching import vmap
    from lucid.linalg import solve

    columns = vmap(product)(eye(b.shape[0], dtype=b.dtype))
    return solve(columns.T, b)


def dot(x: Any, y: Any) -> Any:
    return (x.conj() * y).real.sum() if x.dtype.kind == "c" else (x * y).sum()


def safe_divide(a: Any, b: Any) -> Any:
    """Return a / b, and 0 where b is 0, so that a converged iteration stays put."""
    is_zero = b == 0
    return where(is_zero, 0.0, a / where(is_zero, 1.0, b))


def conjugate_gradient(product: Product, b: Any, tol: float, max_steps: int | None) -> Any:
    """Solve with a symmetric positive definite matrix (conjugate gradients)."""
    limit = 10 * b.shape[0] if max_steps is None else max_steps
    bound = tol * tol * dot(b, b)

    def not_converged(state: Any) -> Any:
        _, _, _, square, count = state
        return (square > bound) & (count < limit)

    def step(state: Any) -> Any:
        x, r, p, square, count = state
        p_image = product(p)
        length = safe_divide(square, dot(p, p_image))
        x, r = x + length * p, r - length * p_image
        after = dot(r, r)
        return x, r, r + safe_divide(after, square) * p, after, count + 1

    start = (b * 0.0, b, b, dot(b, b), as_tensor(0))
    return while_loop(not_converged, step, start)[0]


def bicgstab(product: Product, b: Any, tol: float, max_steps: int | None) -> Any:
    """Solve with any matrix, storing few vectors (BiCGSTAB)."""
    limit = 10 * b.shape[0] if max_steps is None else max_steps
    bound = tol * tol * dot(b, b)

    def not_converged(state: Any) -> Any:
        r, count = state[1], state[-1]
        return (dot(r, r) > bound) & (count < limit)

    def step(state: Any) -> Any:
        x, r, p, rho, count = state
        v = product(p)
        alpha = safe_divide(rho, dot(b, v))
        s = r - alpha * v
        t = product(s)
        omega = safe_divide(dot(t, s), dot(t, t))
        x, r = x + alpha * p + omega * s, s - omega * t
        after = dot(b, r)
        beta = safe_divide(after, rho) * safe_divide(alpha, omega)
        return x, r, r + beta * (p - omega * v), after, count + 1

    start = (b * 0.0, b, b, dot(b, b), as_tensor(0))
    return while_loop(not_converged, step, start)[0]


def gmres(product: Product, b: Any, tol: float, max_steps: int | None) -> Any:
    """Solve with any matrix by minimizing the residual in a Krylov space, with restarts."""
    n = b.shape[0]
    size = min(RESTART, n)
    limit = -(-10 * n // size) if max_steps is None else -(-max_steps // size)
    norm = dot(b, b) ** 0.5

    def not_converged(state: Any) -> Any:
        _, r, count = state
        return (dot(r, r) ** 0.5 > tol * norm) & (count < limit)

    def cycle(state: Any) -> Any:
        x, r, count = state
        x = x + correction(product, r, size)
        return x, b - product(x), count + 1

    return while_loop(not_converged, cycle, (b * 0.0, b, as_tensor(0)))[0]


def correction(product: Product, r: Any, size: int) -> Any:
    """Return the combination of Krylov vectors of `r` with the smallest residual."""
    from lucid.linalg import lstsq

    length = dot(r, r) ** 0.5
    first = zeros(size + 1, r.shape[0], dtype=r.dtype)
    rows = arange(size + 1)
    basis = where((rows == 0)[:, None], safe_divide(r, length), first)

    def extend(basis: Any, k: Any) -> Any:
        w = product(basis[k])
        h = basis.conj() @ w
        w = w - h @ basis
        again = basis.conj() @ w  # orthogonalize twice against rounding errors
        w, h = w - again @ basis, h + again
        norm = dot(w, w) ** 0.5
        basis = where((rows == k + 1)[:, None], safe_divide(w, norm), basis)
        return basis, where(rows == k + 1, norm, h)

    basis, columns = scan(extend, basis, arange(size))
    target = where(rows == 0, length, zeros(size + 1, dtype=r.dtype))
    weights = lstsq(columns.T, target[:, None]).solution[:, 0]
    return weights @ basis[:size]


SOLVERS: dict[str, Any] = {
    "cg": conjugate_gradient, "gmres": gmres, "bicgstab": bicgstab, "dense": dense
}  # fmt: skip
