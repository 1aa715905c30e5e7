"""Runge and Kutta through y₀' = x₀, yᵢ' = xᵢ yᵢ₋₁ from 0 to 2: the gradient of the last y by x."""

from __future__ import annotations

from typing import Any

import numpy as np

SIZE, STEPS, END = 20, 200, 2.0
SIZES = [{"n": n, "s": s} for n in (1000, 10000, 100000) for s in (1, 10, 100)]


def data(rng: np.random.Generator, n: int = SIZE, s: int = STEPS) -> list[Any]:
    return [rng.uniform(0.5, 1.5, size=n)]


def objective(lib: Any, x: Any, steps: int = STEPS) -> Any:
    h = END / steps
    one = lib.ones((1,), dtype=x.dtype)

    def slope(y: Any) -> Any:
        return x * lib.concatenate([one, y[:-1]])

    def step(y: Any, _: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lib.scan(step, lib.zeros_like(x), None, length=steps)[0]


def variants(lib: Any, n: int = SIZE, s: int = STEPS) -> dict[str, Any]:
    return {"ode": lib.compiled(lib.grad(lambda x: objective(lib, x, s)[-1]))}
