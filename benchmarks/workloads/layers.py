"""Layers, forward and backward: norms, cross entropy of classes, causal attention.

Each pair of a table of systems and a function for its data is a workload. What is timed is the
value of the layer and the gradients for a given cotangent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from workloads import pure
from workloads.pure import stepping

EPS = 1e-5


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


# The same for every layer: value and gradients for the first arguments, `seed` being the last


def lucid(layer: Callable[..., Any], count: int) -> Callable[[Any], Any]:
    def system(data: Any) -> Any:
        import lucid

        def value_and_gradients(*args: Any) -> Any:
            wrt, rest, seed = args[:count], args[count:-1], args[-1]
            y, pull = lucid.func.vjp(lambda *wrt: layer(lucid, *wrt, *rest), *wrt)
            gradients = pull(seed)
            return (y, *(gradients if isinstance(gradients, tuple) else [gradients]))

        return pure.lucid(value_and_gradients, data)

    return system


def jax(layer: Callable[..., Any], count: int) -> Callable[[Any], Any]:
    def system(data: Any) -> Any:
        import jax

        def value_and_gradients(*args: Any) -> Any:
            wrt, rest, seed = args[:count], args[count:-1], args[-1]
            y, pull = jax.vjp(lambda *wrt: layer(jax, *wrt, *rest), *wrt)
            return (y, *pull(seed))

        return pure.jax(value_and_gradients, data)

    return system


def torch(layer: Callable[..., Any], count: int, compiled: bool = False) -> Callable[[Any], Any]:
    def system(data: Any) -> Any:
        import torch

        def run(*args: Any) -> Any:
            return layer(torch, *args)

        forward = torch.compile(run, fullgraph=True) if compiled else run
        tensors = [torch.tensor(x) for x in data]
        for x in tensors[:count]:
            x.requires_grad_()

        def value_and_gradients(*args: Any) -> Any:
            y = forward(*args[:-1])
            return (y.detach(), *torch.autograd.grad(y, args[:count], args[-1]))

        return stepping(value_and_gradients, tensors)

    return system


def systems(layers: dict[str, Callable[..., Any]], count: int) -> dict[str, Any]:
    return {
        "lucid": lucid(layers["lucid"], count),
        "jax": jax(layers["jax"], count),
        "torch": torch(layers["torch"], count),
        "torch.compile": torch(layers["torch"], count, compiled=True),
    }


# Norms


def normalized(x: Any, axes: Any, rsqrt: Any) -> Any:
    return (x - x.mean(axes, keepdims=True)) * rsqrt(x.var(axes, keepdims=True) + EPS)


LAYER_NORM_SYSTEMS = systems(
    {
        "lucid": lambda m, x, w, b: m.nn.functional.layer_norm(x, w.shape, w, b),
        "jax": lambda m, x, w, b: normalized(x, -1, m.lax.rsqrt) * w + b,
        "torch": lambda m, x, w, b: m.nn.functional.layer_norm(x, w.shape, w, b),
    },
    3,
)


def layer_norm_data(rng: np.random.Generator) -> Any:
    rows, width = 512, 256
    return [
        normal(rng, rows, width),
        1 + normal(rng, width),
        normal(rng, width),
        normal(rng, rows, width),
    ]


def image_norm(x: Any, w: Any, b: Any, rsqrt: Any) -> Any:
    return normalized(x, (0, 2, 3), rsqrt) * w[:, None, None] + b[:, None, None]


def of_batch(module: Any, x: Any, w: Any, b: Any) -> Any:
    return module.nn.functional.batch_norm(x, None, None, w, b, training=True)


BATCH_NORM_SYSTEMS = systems(
    {
        "lucid": of_batch,
        "jax": lambda m, x, w, b: image_norm(x, w, b, m.lax.rsqrt),
        "torch": of_batch,
    },
    3,
)


def batch_norm_data(rng: np.random.Generator) -> Any:
    shape = (32, 32, 14, 14)
    return [normal(rng, *shape), 1 + normal(rng, 32), normal(rng, 32), normal(rng, *shape)]


# Cross entropy


def jax_entropy(module: Any, x: Any, t: Any) -> Any:
    scores = module.nn.log_softmax(x)
    return -module.numpy.take_along_axis(scores, t[:, None], 1).mean()


ENTROPY_SYSTEMS = systems(
    {
        "lucid": lambda m, x, t: m.nn.functional.cross_entropy(x, t),
        "jax": jax_entropy,
        "torch": lambda m, x, t: m.nn.functional.cross_entropy(x, t),
    },
    1,
)


def entropy_data(rng: np.random.Generator) -> Any:
    rows, classes = 512, 1000
    return [normal(rng, rows, classes), rng.integers(0, classes, rows), np.float32(1)]


# Attention


def attention(module: Any, q: Any, k: Any, v: Any) -> Any:
    attend = module.nn.functional.scaled_dot_product_attention
    return attend(q, k, v, is_causal=True)


def jax_attention(module: Any, q: Any, k: Any, v: Any) -> Any:
    scores = (q @ k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1])
    seen = np.tri(q.shape[-2], dtype=bool)
    return module.nn.softmax(module.numpy.where(seen, scores, -math.inf), -1) @ v


SHORT_ATTENTION_SYSTEMS = LONG_ATTENTION_SYSTEMS = systems(
    {"lucid": attention, "jax": jax_attention, "torch": attention}, 3
)


def short_attention_data(rng: np.random.Generator) -> Any:
    return [normal(rng, 8, 4, 64, 32) for _ in range(4)]


def long_attention_data(rng: np.random.Generator) -> Any:
    return [normal(rng, 4, 8, 256, 64) for _ in range(4)]
