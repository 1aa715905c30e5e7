"""The largest element and the average of windows, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import pure

SHAPE, PLACES, WINDOW, STRIDE, PADDING = (8, 64, 56, 56), (8, 64, 28, 28), 3, 2, 1


def max_data(rng: np.random.Generator) -> Any:
    return [rng.normal(size=shape).astype(np.float32) for shape in (SHAPE, PLACES)]


average_data = max_data


def lucid(pool: str) -> Any:
    def prepare(data: Any) -> Any:
        import lucid
        import lucid.nn.functional as functional

        def f(x: Any, ct: Any) -> Any:
            apply = getattr(functional, pool)
            y, pull = lucid.func.vjp(lambda x: apply(x, WINDOW, STRIDE, PADDING), x)
            return y, pull(ct)[0]

        return pure.lucid(f, data)

    return prepare


def jax(average: bool) -> Any:
    def prepare(data: Any) -> Any:
        import jax
        from jax import lax

        def pool(x: Any) -> Any:
            window, step = (1, 1, WINDOW, WINDOW), (1, 1, STRIDE, STRIDE)
            around = [(0, 0), (0, 0), (PADDING, PADDING), (PADDING, PADDING)]
            if average:
                return lax.reduce_window(x, 0.0, lax.add, window, step, around) / WINDOW**2
            return lax.reduce_window(x, -np.inf, lax.max, window, step, around)

        def f(x: Any, ct: Any) -> Any:
            y, pull = jax.vjp(pool, x)
            return y, pull(ct)[0]

        return pure.jax(f, data)

    return prepare


def torch(pool: str, run: Any = pure.torch) -> Any:
    def prepare(data: Any) -> Any:
        import torch

        def f(x: Any, ct: Any) -> Any:
            apply = getattr(torch.nn.functional, pool)
            x = x.detach().requires_grad_()
            y = apply(x, WINDOW, STRIDE, PADDING)
            return y.detach(), torch.autograd.grad(y, x, ct)[0]

        return run(f, data)

    return prepare


MAX_SYSTEMS = {"lucid": lucid("max_pool2d"), "jax": jax(False), "torch": torch("max_pool2d")}
AVERAGE_SYSTEMS = {"lucid": lucid("avg_pool2d"), "jax": jax(True), "torch": torch("avg_pool2d")}
