"""The Hessian of the loss of a logistic regression: 50 weights, 1000 rows, float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import pure

WEIGHTS, ROWS = 50, 1000


def data(rng: np.random.Generator) -> Any:
    signs = rng.choice([-1.0, 1.0], ROWS)
    return [rng.normal(0, 0.1, WEIGHTS), rng.normal(size=(ROWS, WEIGHTS)), signs]


def lucid(data: Any) -> Any:
    import lucid

    def loss(w: Any, x: Any, y: Any) -> Any:
        return lucid.log1p(lucid.exp(-y * (x @ w))).mean()

    return pure.lucid(lucid.func.hessian(loss), data)


def jax(data: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def loss(w: Any, x: Any, y: Any) -> Any:
        return jnp.log1p(jnp.exp(-y * (x @ w))).mean()

    return pure.jax(jax.hessian(loss), data)


def torch(data: Any, run: Any = pure.torch) -> Any:
    import torch

    def loss(w: Any, x: Any, y: Any) -> Any:
        return torch.log1p(torch.exp(-y * (x @ w))).mean()

    return run(torch.func.hessian(loss), data)


def torch_compile(data: Any) -> Any:
    return torch(data, pure.torch_compile)


SYSTEMS = {"lucid": lucid, "jax": jax, "torch": torch, "torch.compile": torch_compile}
