"""The Hessian of the loss of an MLP 64-128-128-10, batch 64, times a vector: jvp of grad."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import pure
from workloads.mlp import classes, jax_loss, layers, lucid_loss, torch_loss

SIZES, BATCH = (64, 128, 128, 10), 64


def data(rng: np.random.Generator) -> Any:
    params, direction = layers(rng, *SIZES), layers(rng, *SIZES)
    x = rng.normal(size=(BATCH, SIZES[0])).astype(np.float32)
    return [params, direction, x, classes(rng, SIZES[-1], BATCH)]


def product(grad: Any, jvp: Any, loss: Any) -> Any:
    def hvp(params: Any, direction: Any, x: Any, y: Any) -> Any:
        return jvp(grad(lambda p: loss(p, x, y)), (params,), (direction,))[1]

    return hvp


def lucid(data: Any) -> Any:
    from lucid.func import grad, jvp

    return pure.lucid(product(grad, jvp, lucid_loss("tanh")), data)


def jax(data: Any) -> Any:
    import jax

    return pure.jax(product(jax.grad, jax.jvp, jax_loss("tanh")), data)


def torch(data: Any, run: Any = pure.torch) -> Any:
    from torch.func import grad, jvp

    return run(product(grad, jvp, torch_loss("tanh")), data)


def torch_compile(data: Any) -> Any:
    return torch(data, pure.torch_compile)


SYSTEMS = {"lucid": lucid, "jax": jax, "torch": torch, "torch.compile": torch_compile}
