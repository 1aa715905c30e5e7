"""log Σ exp(x), with the maximum taken out: the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

SIZE = 10_000
SIZES = [{"n": 2500 * 2**i} for i in range(0, 10, 3)]


def data(rng: np.random.Generator, n: int = SIZE) -> list[Any]:
    return [rng.normal(size=n)]


def objective(lib: Any, x: Any) -> Any:
    top = lib.amax(x, 0)
    return top + lib.log(lib.exp(x - top).sum())


def variants(lib: Any, **size: int) -> dict[str, Any]:
    return {"lse": lib.compiled(lib.grad(lambda x: objective(lib, x)))}
