"""Least squares of a polynomial through the signs of n points in [-1, 1]: the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

TERMS, POINTS = 16, 2000
SIZES = [{"n": n, "m": 128} for n in (16, 64, 256, 1024, 4096, 16392)]


def data(rng: np.random.Generator, n: int = POINTS, m: int = TERMS) -> list[Any]:
    return [rng.normal(size=m)]


def objective(lib: Any, x: Any, points: int = POINTS) -> Any:
    t = -1 + 2 / (points - 1) * lib.arange(points, dtype=x.dtype)
    value = lib.zeros_like(t)
    for i in reversed(range(len(x))):
        value = value * t + x[i]
    return 0.5 * ((lib.sign(t) - value) ** 2).sum()


def variants(lib: Any, n: int = POINTS, m: int = TERMS) -> dict[str, Any]:
    return {"llsq": lib.compiled(lib.grad(lambda x: objective(lib, x, n)))}
