"""Solvers of linear equations that only multiply: each `(product, b, tol, max_steps) -> x`.

`product` is a linear function of a vector. The loops are `while_loop` and `scan`, so a solver is a
program like any other: traced, batched and compiled.
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
    """The matrix, column by column at once, and then LU."""
    from lucid.func.batching import vmap
    from lucid.linalg import solve

    columns = vmap(product)(eye(b.shape[0], dtype=b.dtype))
    return solve(columns.T, b)


def dot(x: Any, y: Any) -> Any:
    return (x.conj() * y).real.sum() if x.dtype.kind == "c" else (x * y).sum()


def divided(a: Any, b: Any) -> Any:
    """a / b, and 0 where b is 0: an iteration that has arrived stays there."""
    nothing = b == 0
    return where(nothing, 0.0, a / where(nothing, 1.0, b))


def conjugate_gradient(product: Product, b: Any, tol: float, max_steps: int | None) -> Any:
    """For symmetric positive definite matrices."""
    limit = 10 * b.shape[0] if max_steps is None else max_steps
    bound = tol * tol * dot(b, b)

    def going(state: Any) -> Any:
        _, _, _, square, count = state
        return (square > bound) & (count < limit)

    def step(state: Any) -> Any:
        x, r, p, square, count = state
        moved = product(p)
        length = divided(square, dot(p, moved))
        x, r = x + length * p, r - length * moved
        after = dot(r, r)
        return x, r, r + divided(after, square) * p, after, count + 1

    start = (b * 0.0, b, b, dot(b, b), as_tensor(0))
    return while_loop(going, step, start)[0]


def bicgstab(product: Product, b: Any, tol: float, max_steps: int | None) -> Any:
    """For any matrix, with few vectors."""
    limit = 10 * b.shape[0] if max_steps is None else max_steps
    bound = tol * tol * dot(b, b)

    def going(state: Any) -> Any:
        r, count = state[1], state[-1]
        return (dot(r, r) > bound) & (count < limit)

    def step(state: Any) -> Any:
        x, r, p, rho, count = state
        v = product(p)
        alpha = divided(rho, dot(b, v))
        s = r - alpha * v
        t = product(s)
        omega = divided(dot(t, s), dot(t, t))
        x, r = x + alpha * p + omega * s, s - omega * t
        after = dot(b, r)
        beta = divided(after, rho) * divided(alpha, omega)
        return x, r, r + beta * (p - omega * v), after, count + 1

    start = (b * 0.0, b, b, dot(b, b), as_tensor(0))
    return while_loop(going, step, start)[0]


def gmres(product: Product, b: Any, tol: float, max_steps: int | None) -> Any:
    """For any matrix: the least residual in a Krylov space, begun anew every few vectors."""
    n = b.shape[0]
    size = min(RESTART, n)
    limit = -(-10 * n // size) if max_steps is None else -(-max_steps // size)
    norm = dot(b, b) ** 0.5

    def going(state: Any) -> Any:
        _, r, count = state
        return (dot(r, r) ** 0.5 > tol * norm) & (count < limit)

    def cycle(state: Any) -> Any:
        x, r, count = state
        x = x + correction(product, r, size)
        return x, b - product(x), count + 1

    return while_loop(going, cycle, (b * 0.0, b, as_tensor(0)))[0]


def correction(product: Product, r: Any, size: int) -> Any:
    """The combination of Krylov vectors of `r` that leaves the least residual."""
    from lucid.linalg import lstsq

    length = dot(r, r) ** 0.5
    first = zeros(size + 1, r.shape[0], dtype=r.dtype)
    rows = arange(size + 1)
    basis = where((rows == 0)[:, None], divided(r, length), first)

    def extend(basis: Any, k: Any) -> Any:
        w = product(basis[k])
        h = basis.conj() @ w
        w = w - h @ basis
        again = basis.conj() @ w  # a second time, because the first leaves rounding errors
        w, h = w - again @ basis, h + again
        norm = dot(w, w) ** 0.5
        basis = where((rows == k + 1)[:, None], divided(w, norm), basis)
        return basis, where(rows == k + 1, norm, h)

    basis, columns = scan(extend, basis, arange(size))
    target = where(rows == 0, length, zeros(size + 1, dtype=r.dtype))
    weights = lstsq(columns.T, target[:, None]).solution[:, 0]
    return weights @ basis[:size]


SOLVERS: dict[str, Any] = {
    "cg": conjugate_gradient, "gmres": gmres, "bicgstab": bicgstab, "dense": dense
}  # fmt: skip
