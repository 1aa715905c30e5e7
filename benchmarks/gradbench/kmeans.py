"""K-means by Newton's method: the gradient over the diagonal of the Hessian, one jvp of the grad.

A coordinate of a centre meets no other in the cost, so the product with ones is the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

POINTS, CENTRES, D = 2000, 10, 8


def data(rng: np.random.Generator) -> list[Any]:
    points = rng.normal(size=(POINTS, D))
    return [points[:CENTRES] + 0.01, points]


def objective(lib: Any, centres: Any, points: Any) -> Any:
    """The sum of squared distances to the nearest centre."""
    apart = points[:, None, :] - centres
    return lib.amin((apart * apart).sum(2), 1).sum()


def direction(lib: Any) -> Any:
    def newton(centres: Any, points: Any) -> Any:
        gradient = lib.grad(lambda c: objective(lib, c, points))
        slope, diagonal = lib.jvp(gradient, (centres,), (lib.ones_like(centres),))
        return slope / diagonal

    return newton


def variants(lib: Any) -> dict[str, Any]:
    return {"kmeans": lib.compiled(direction(lib))}
