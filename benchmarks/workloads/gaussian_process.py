"""Gaussian process regression: the gradient of the log marginal likelihood, float64.

A squared exponential kernel with a length for each of 4 inputs, noise and a constant mean, as in
the example of HIPS autograd, by Cholesky's factor: 100 points; and 20 points, not compiled.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from workloads import pure

D = 4


def data(rng: np.random.Generator, points: int = 100) -> Any:
    """log lengths, log scale, log noise, mean; inputs; values."""
    params = np.concatenate([0.3 * rng.normal(size=D), [0.1, -2.0, 0.2]])
    x = rng.normal(size=(points, D))
    return [params, x, np.sin(x.sum(1)) + 0.1 * rng.normal(size=points)]


eager_data, small_eager_data = data, partial(data, points=20)


def loss(np: Any, linalg: Any) -> Any:
    """Minus the log likelihood of y at x as a function of the parameters."""

    def f(params: Any, x: Any, y: Any) -> Any:
        lengths, scale, noise = np.exp(params[:D]), np.exp(params[D]), np.exp(params[D + 1])
        z = x / lengths
        apart = z[:, None] - z[None]
        covariance = scale * np.exp(-0.5 * (apart * apart).sum(2)) + noise * np.eye(
            len(x), dtype=np.float64
        )
        factor = linalg.cholesky(covariance)
        rest = linalg.solve(factor, y - params[D + 2])
        return 0.5 * (rest * rest).sum() + np.log(np.diagonal(factor, 0, -1, -2)).sum()

    return f


def lucid(run: Any, data: Any) -> Any:
    import lucid
    from lucid.func import grad

    return getattr(pure, run)(grad(loss(lucid, lucid.linalg)), data)


def jax(data: Any) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return pure.jax(jax.grad(loss(jax.numpy, jax.numpy.linalg)), data)


def torch(run: Any, data: Any) -> Any:
    import torch

    return getattr(pure, run)(torch.func.grad(loss(torch, torch.linalg)), data)


def autograd(data: Any) -> Any:
    import autograd
    import autograd.numpy as np

    return pure.stepping(autograd.grad(loss(np, np.linalg)), data)


SYSTEMS = {
    "lucid": partial(lucid, "lucid"),
    "jax": jax,
    "torch": partial(torch, "torch"),
    "torch.compile": partial(torch, "torch_compile"),
    "autograd": autograd,
}
EAGER_SYSTEMS = SMALL_EAGER_SYSTEMS = {
    "lucid": partial(lucid, "lucid_eager"),
    "lucid.jit": partial(lucid, "lucid"),
    "torch": partial(torch, "torch"),
    "autograd": autograd,
}
