"""A determinant by expansion into minors, all minors of a size at once: the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

SIZE = 7
SIZES = [{"size": n} for n in (5, 6, 7, 8, 9, 10, 11)]


def data(rng: np.random.Generator, size: int = SIZE) -> list[Any]:
    return [rng.normal(size=(size, size))]


def determinants(lib: Any, a: Any) -> Any:
    """det of n matrices (n, l, l): along the first row, by n l matrices of l - 1 rows."""
    n, size = a.shape[:2]
    if size == 1:
        return a[:, 0, 0]
    others = np.array([[j for j in range(size) if j != i] for i in range(size)])
    minors = a[:, 1:][:, :, lib.array(others.ravel())].reshape(n, size - 1, size, size - 1)
    below = determinants(lib, lib.swapaxes(minors, 1, 2).reshape(n * size, size - 1, size - 1))
    signs = lib.array((-1.0) ** np.arange(size))
    return (signs * a[:, 0] * below.reshape(n, size)).sum(1)


def objective(lib: Any, a: Any) -> Any:
    return determinants(lib, a[None])[0]


def variants(lib: Any, **size: int) -> dict[str, Any]:
    return {"det": lib.compiled(lib.grad(lambda a: objective(lib, a)))}
