"""The gradient of each sample: vmap of grad of an MLP 32-64-64-10 over a batch of 256."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import pure
from workloads.mlp import classes, jax_loss, layers, lucid_loss, torch_loss

SIZES, BATCH = (32, 64, 64, 10), 256


def data(rng: np.random.Generator) -> Any:
    params = layers(rng, *SIZES)
    x = rng.normal(size=(BATCH, 1, SIZES[0])).astype(np.float32)
    return [params, x, classes(rng, SIZES[-1], BATCH)[:, None]]


def lucid(data: Any) -> Any:
    from lucid.func import grad, vmap

    return pure.lucid(vmap(grad(lucid_loss("tanh")), (None, 0, 0)), data)


def jax(data: Any) -> Any:
    import jax

    return pure.jax(jax.vmap(jax.grad(jax_loss("tanh")), (None, 0, 0)), data)


def torch(data: Any, run: Any = pure.torch) -> Any:
    from torch.func import grad, vmap

    return run(vmap(grad(torch_loss("tanh")), (None, 0, 0)), data)


def torch_compile(data: Any) -> Any:
    return torch(data, pure.torch_compile)


SYSTEMS = {"lucid": lucid, "jax": jax, "torch": torch, "torch.compile": torch_compile}
