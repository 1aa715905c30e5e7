"""Classifiers of three sizes, trained by SGD on cross entropy; the smallest also not compiled."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from workloads import training


def layers(rng: np.random.Generator, *sizes: int) -> list[np.ndarray]:
    """Weight, bias, weight, bias, ..."""
    params = []
    for n, m in pairwise(sizes):
        params += [rng.normal(0, n**-0.5, (n, m)), rng.normal(0, 0.1, m)]
    return [p.astype(np.float32) for p in params]


def classes(rng: np.random.Generator, count: int, batch: int) -> np.ndarray:
    """Labels as rows of an identity matrix."""
    return np.eye(count, dtype=np.float32)[rng.integers(0, count, batch)]


def data(rng: np.random.Generator, sizes: tuple[int, ...], batch: int) -> Any:
    x = rng.normal(size=(batch, sizes[0])).astype(np.float32)
    return layers(rng, *sizes), (x, classes(rng, sizes[-1], batch))


small_data = small_inplace_data = small_eager_data = partial(data, sizes=(2, 32, 32, 2), batch=32)
medium_data = medium_eager_data = partial(data, sizes=(784, 128, 10), batch=64)
large_data = partial(data, sizes=(784, 512, 256, 10), batch=128)


def forward(activation: Any, params: Any, x: Any) -> Any:
    for w, b in zip(params[:-2:2], params[1:-2:2]):
        x = activation(x @ w + b)
    return x @ params[-2] + params[-1]


def lucid_loss(activation: str) -> Any:
    import lucid

    f, cross_entropy = getattr(lucid, activation), lucid.nn.functional.cross_entropy
    return lambda params, x, y: cross_entropy(forward(f, params, x), y)


def jax_loss(activation: str) -> Any:
    import jax

    f = getattr(jax.nn, activation)
    return lambda params, x, y: -(jax.nn.log_softmax(forward(f, params, x)) * y).sum(-1).mean()


def torch_loss(activation: str) -> Any:
    import torch

    f, cross_entropy = getattr(torch, activation), torch.nn.functional.cross_entropy
    return lambda params, x, y: cross_entropy(forward(f, params, x), y)


LOSSES = {"lucid": lucid_loss, "jax": jax_loss, "torch": torch_loss, "torch.compile": torch_loss}
TRAIN = {
    "lucid": training.lucid,
    "jax": training.jax,
    "torch": training.torch,
    "torch.compile": training.torch_compile,
}


def systems(activation: str, **train: Any) -> dict[str, Any]:
    def maker(system: str) -> Any:
        loss = LOSSES[system.removesuffix(".jit")]
        return lambda data: train_of[system](loss(activation), *data)

    train_of = {**TRAIN, **train}
    return {system: maker(system) for system in train_of}


def eager_systems(activation: str) -> dict[str, Any]:
    style = {"lucid": training.lucid_eager, "lucid.jit": training.lucid_inplace}
    found = systems(activation, **style)
    return {system: found[system] for system in (*style, "torch")}


SMALL_SYSTEMS = systems("tanh")
SMALL_INPLACE_SYSTEMS = systems("tanh", lucid=training.lucid_inplace)
SMALL_EAGER_SYSTEMS, MEDIUM_EAGER_SYSTEMS = eager_systems("tanh"), eager_systems("relu")
MEDIUM_SYSTEMS = systems("relu")
LARGE_SYSTEMS = systems("relu")
