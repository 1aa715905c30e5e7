"""Gaussian mixture: the gradient of the log likelihood, with a Wishart prior on the precisions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

D, K, N = 8, 10, 500
SIZES = [{"d": d, "k": k, "n": 1000} for d in (2, 10, 20, 32, 64) for k in (5, 25, 100)]
GAMMA, M = 1.0, 0


def data(rng: np.random.Generator, d: int = D, k: int = K, n: int = N) -> list[Any]:
    """alpha, the means, the logarithms of the diagonals, the triangles below, the points."""
    return [
        rng.normal(size=k),
        rng.uniform(size=(k, d)),
        rng.normal(size=(k, d)),
        rng.normal(size=(k, d * (d - 1) // 2)),
        rng.normal(size=(n, d)),
    ]


def triangles(lib: Any, l: Any, d: int) -> Any:  # noqa: E741
    """Strictly lower triangular matrices from their elements, column by column."""
    k = l.shape[0]
    place = np.full((d, d), l.shape[1])
    for n, (column, row) in enumerate((i, j) for i in range(d) for j in range(i + 1, d)):
        place[row, column] = n
    padded = lib.concatenate([l, lib.zeros((k, 1), dtype=l.dtype)], 1)
    return padded[:, lib.array(place.ravel())].reshape(k, d, d)


def objective(
    lib: Any,
    alpha: Any,
    means: Any,
    q: Any,
    l: Any,  # noqa: E741
    x: Any,
    gamma: float = GAMMA,
    m: int = M,
) -> Any:
    """log Π_i Σ_k exp(α_k) |Q_k| N(Q_k (x_i - μ_k)) / Σ_k exp(α_k), and the prior of Q."""
    n, d = x.shape
    k = len(alpha)
    centered = x[:, None, :] - means
    scaled = lib.exp(q) * centered + lib.einsum("kij,nkj->nki", triangles(lib, l, d), centered)
    terms = alpha + q.sum(1) - 0.5 * (scaled * scaled).sum(2)
    likelihood = lib.logsumexp(terms, 1).sum() - n * lib.logsumexp(alpha, 0)
    return likelihood - n * d * 0.5 * math.log(2 * math.pi) + prior(lib, q, l, d, k, gamma, m)


def prior(
    lib: Any,
    q: Any,
    l: Any,  # noqa: E741
    d: int,
    k: int,
    gamma: float = GAMMA,
    m: int = M,
) -> Any:
    n = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(
        math.lgamma(0.5 * (n - j)) for j in range(d)
    )
    constant = n * d * (math.log(gamma) - 0.5 * math.log(2)) - log_gamma
    squares = (lib.exp(q) ** 2).sum() + (l * l).sum()
    return k * constant - 0.5 * gamma**2 * squares + m * q.sum()


def variants(lib: Any, **size: int) -> dict[str, Any]:
    gradient = lib.grad(lambda *args: objective(lib, *args), argnums=(0, 1, 2, 3))
    return {"gmm": lib.compiled(gradient)}
