"""Images of 28 x 28 through two 3 x 3 convolutions with pooling and a linear layer, batch 32."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import training
from workloads.mlp import classes

BATCH, SIDE, FIRST, SECOND, CLASSES = 32, 28, 16, 32, 10
FEATURES = SECOND * (SIDE // 4) ** 2


def data(rng: np.random.Generator) -> Any:
    shapes = [(FIRST, 1, 3, 3), (FIRST,), (SECOND, FIRST, 3, 3), (SECOND,)]
    shapes += [(FEATURES, CLASSES), (CLASSES,)]
    params = [rng.normal(0, 0.1, shape).astype(np.float32) for shape in shapes]
    images = rng.normal(size=(BATCH, 1, SIDE, SIDE)).astype(np.float32)
    return params, (images, classes(rng, CLASSES, BATCH))


def network(layer: Any, params: Any, x: Any) -> Any:
    """The logits; `layer(x, weight, bias)` is a convolution, relu and max of 2 x 2."""
    k1, b1, k2, b2, w, b = params
    return layer(layer(x, k1, b1), k2, b2).reshape((BATCH, FEATURES)) @ w + b


def lucid(data: Any) -> Any:
    import lucid
    import lucid.nn.functional as functional

    def layer(x: Any, weight: Any, bias: Any) -> Any:
        y = lucid.relu(functional.conv2d(x, weight, bias, padding=1))
        return functional.max_pool2d(y, 2)

    def loss(params: Any, x: Any, y: Any) -> Any:
        return -(lucid.log_softmax(network(layer, params, x), -1) * y).sum(-1).mean()

    return training.lucid(loss, *data)


def jax(data: Any) -> Any:
    import jax
    from jax import lax

    def layer(x: Any, weight: Any, bias: Any) -> Any:
        y = lax.conv_general_dilated(x, weight, (1, 1), "SAME")
        y = jax.nn.relu(y + bias[:, None, None])
        return lax.reduce_window(y, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss(params: Any, x: Any, y: Any) -> Any:
        return -(jax.nn.log_softmax(network(layer, params, x)) * y).sum(-1).mean()

    return training.jax(loss, *data)


def torch(data: Any, train: Any = training.torch) -> Any:
    import torch.nn.functional as functional

    def layer(x: Any, weight: Any, bias: Any) -> Any:
        y = functional.relu(functional.conv2d(x, weight, bias, padding=1))
        return functional.max_pool2d(y, 2)

    def loss(params: Any, x: Any, y: Any) -> Any:
        return functional.cross_entropy(network(layer, params, x), y)

    return train(loss, *data)


def torch_compile(data: Any) -> Any:
    return torch(data, training.torch_compile)


SYSTEMS = {"lucid": lucid, "jax": jax, "torch": torch, "torch.compile": torch_compile}
