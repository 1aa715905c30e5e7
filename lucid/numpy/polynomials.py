"""np.poly1d's functions of coefficients, highest power first, with NumPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.numpy.contractions import convolve
from lucid.ops.core.promote import as_tensor, to_floating
from lucid.ops.shape import arranging, creation, diagonals, joining, shaping


def coefficients(p: Any) -> Any:
    return shaping.atleast_1d(as_tensor(p))


def polyval(p: Any, x: Any) -> Any:
    p, x = as_tensor(p), as_tensor(x)
    y = creation.zeros_like(x)
    for i in range(p.shape[0]):
        y = y * x + p[i]
    return y


def added(sign: int) -> Any:
    """polyadd, polysub."""

    def run(a1: Any, a2: Any) -> Any:
        a1, a2 = coefficients(a1), coefficients(a2)
        n = max(a1.shape[0], a2.shape[0])
        a1, a2 = (joining.pad(a, (n - a.shape[0], 0)) for a in (a1, a2))
        return a1 + a2 if sign > 0 else a1 - a2

    return run


def polymul(a1: Any, a2: Any) -> Any:
    return convolve(coefficients(a1), coefficients(a2))


def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    u, v = to_floating(coefficients(u)), to_floating(coefficients(v))
    n, m = u.shape[0], v.shape[0]
    quotient = []
    for _ in range(n - m + 1):
        factor = u[0] / v[0]
        quotient.append(factor)
        u = joining.concatenate([u[1:m] - factor * v[1:], u[m:]], 0)
    if not quotient:
        return creation.zeros(1, dtype=u.dtype), u
    return joining.stack(quotient, 0), u if u.shape[0] else creation.zeros(1, dtype=u.dtype)


def polyder(p: Any, m: int = 1) -> Any:
    p = coefficients(p)
    for _ in range(m):
        p = p[:-1] * as_tensor(np.arange(p.shape[0] - 1, 0, -1), p.dtype)
    return p


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    p = to_floating(coefficients(p))
    constants = [0.0] * m if k is None else np.broadcast_to(k, (m,)).tolist()
    for constant in constants:
        n = p.shape[0]
        p = p / as_tensor(np.arange(n, 0, -1), p.dtype)
        p = joining.concatenate([p, as_tensor([constant], p.dtype)], 0)
    return p


def poly(seq_of_zeros: Any) -> Any:
    zeros = to_floating(coefficients(seq_of_zeros))
    if zeros.ndim == 2:
        from lucid.linalg import eigvals

        zeros = eigvals(zeros)
    y = creation.ones(1, dtype=zeros.dtype)
    for i in range(zeros.shape[0]):
        y = joining.concatenate([y, as_tensor([0.0], y.dtype)], 0) - joining.concatenate(
            [as_tensor([0.0], y.dtype), y * zeros[i]], 0
        )
    return y


def roots(p: Any) -> Any:
    from lucid.linalg import eigvals

    p = to_floating(coefficients(p))
    nonzero = np.flatnonzero(p.array("roots"))
    if not nonzero.size:
        return creation.zeros(0, dtype=p.dtype)
    zeros_at_end = p.shape[0] - 1 - int(nonzero[-1])
    p = p[int(nonzero[0]) : int(nonzero[-1]) + 1]
    n = p.shape[0] - 1
    if n == 0:
        return creation.zeros(zeros_at_end, dtype=p.dtype)
    below = diagonals.diag(creation.ones(n - 1, dtype=p.dtype), -1)[1:] if n > 1 else None
    first = (-p[1:] / p[0]).reshape(1, n)
    found = eigvals(first if below is None else joining.concatenate([first, below], 0))
    return joining.pad(found, (0, zeros_at_end)) if zeros_at_end else found


def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    if full or cov:
        facts = "full= and cov= are not supported for tensors; use np.linalg.lstsq"
        raise ArgumentError(f"np.polyfit: {facts}")
    from lucid.linalg import lstsq

    x, y = to_floating(x), to_floating(y)
    powers = arranging.vander(x, deg + 1)
    if w is not None:
        w = as_tensor(w)
        powers, y = powers * w.reshape(-1, 1), y * (w if y.ndim == 1 else w.reshape(-1, 1))
    scale = (powers * powers).sum(0).sqrt()
    found = lstsq(powers / scale, y.reshape(y.shape[0], -1)).solution / scale.reshape(-1, 1)
    return found.reshape(deg + 1, *y.shape[1:])


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.poly: poly,
    np.polyadd: added(1),
    np.polyder: polyder,
    np.polydiv: polydiv,
    np.polyfit: polyfit,
    np.polyint: polyint,
    np.polymul: polymul,
    np.polysub: added(-1),
    np.polyval: polyval,
    np.roots: roots,
}
