"""K-means by Newton's method: the gradient over the diagonal of the Hessian, one jvp of the grad.

A coordinate of a center meets no other in the cost, so the product with ones is the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

POINTS, CENTERS, D = 2000, 10, 8
SIZES = [{"k": k, "n": n, "d": d} for k in (10, 100, 1000) for n in (1000, 10000) for d in (8, 16)]


def data(rng: np.random.Generator, k: int = CENTERS, n: int = POINTS, d: int = D) -> list[Any]:
    points = rng.normal(size=(n, d))
    return [points[:k] + 0.01, points]


def objective(lib: Any, centers: Any, points: Any) -> Any:
    """The sum of squared distances to the nearest center."""
    apart = points[:, None, :] - centers
    return lib.amin((apart * apart).sum(2), 1).sum()


def direction(lib: Any) -> Any:
    def newton(centers: Any, points: Any) -> Any:
        gradient = lib.grad(lambda c: objective(lib, c, points))
        slope, diagonal = lib.jvp(gradient, (centers,), (lib.ones_like(centers),))
        return slope / diagonal

    return newton


def variants(lib: Any, **size: int) -> dict[str, Any]:
    return {"kmeans": lib.compiled(direction(lib))}
