"""A small GPT: 2 or 12 layers, width 128, 4 heads, 64 tokens of 65 kinds; cross entropy, SGD."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workloads import training

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 2, 128, 4, 64, 8, 65
DEEP_LAYERS = 12
A_LAYER = 12  # parameters: two norms, and weight and bias of four products


def data(rng: np.random.Generator, layers: int = LAYERS) -> Any:
    def weight(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.05, shape).astype(np.float32)

    def norm() -> list[np.ndarray]:
        return [1 + weight(WIDTH), weight(WIDTH)]

    params = [weight(VOCABULARY, WIDTH), weight(LENGTH, WIDTH)]
    for _ in range(layers):
        params += [*norm(), weight(WIDTH, 3 * WIDTH), weight(3 * WIDTH)]
        params += [weight(WIDTH, WIDTH), weight(WIDTH), *norm()]
        params += [weight(WIDTH, 4 * WIDTH), weight(4 * WIDTH)]
        params += [weight(4 * WIDTH, WIDTH), weight(WIDTH)]
    params += [*norm(), weight(WIDTH, VOCABULARY)]
    tokens = rng.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)
    return params, (tokens[:, :-1].copy(), tokens[:, 1:].copy())


def deep_data(rng: np.random.Generator) -> Any:
    return data(rng, DEEP_LAYERS)


def network(ops: Any, params: Any, tokens: Any) -> Any:
    """The logits, through the functions of a library: embed, norm, attend, gelu."""
    x = ops.embed(params[0], tokens) + params[1]
    for i in range(len(params) // A_LAYER):
        p = params[2 + A_LAYER * i : 2 + A_LAYER * (i + 1)]
        x = x + ops.attend(ops.norm(x, p[0], p[1]) @ p[2] + p[3]) @ p[4] + p[5]
        x = x + ops.gelu(ops.norm(x, p[6], p[7]) @ p[8] + p[9]) @ p[10] + p[11]
    return ops.norm(x, params[-3], params[-2]) @ params[-1]


def heads(qkv: Any) -> list[Any]:
    """Queries, keys and values as (batch, head, token, width of a head)."""
    shape = (BATCH, LENGTH, HEADS, WIDTH // HEADS)
    parts = [qkv[..., i * WIDTH : (i + 1) * WIDTH].reshape(shape) for i in range(3)]
    return [part.swapaxes(1, 2) for part in parts]


def attention(ops: Any, qkv: Any, mask: Any) -> Any:
    q, k, v = heads(qkv)
    scores = (q @ k.swapaxes(2, 3)) * (HEADS / WIDTH) ** 0.5
    mixed = ops.softmax(ops.where(mask, scores, -math.inf), -1) @ v
    return mixed.swapaxes(1, 2).reshape((BATCH, LENGTH, WIDTH))


def normalized(x: Any, scale: Any, shift: Any, variance: Any, rsqrt: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * rsqrt(variance + 1e-5) * scale + shift


class LucidOps:
    def __init__(self) -> None:
        import lucid

        self.lucid, self.softmax, self.where = lucid, lucid.softmax, lucid.where
        self.mask = lucid.tensor(np.tri(LENGTH, dtype=bool))

    def embed(self, table: Any, tokens: Any) -> Any:
        return table[tokens]

    def norm(self, x: Any, scale: Any, shift: Any) -> Any:
        variance = self.lucid.var(x, -1, correction=0, keepdim=True)
        return normalized(x, scale, shift, variance, self.lucid.rsqrt)

    def attend(self, qkv: Any) -> Any:
        return attention(self, qkv, self.mask)

    def gelu(self, x: Any) -> Any:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1 + self.lucid.tanh(inner))


class JaxOps:
    def __init__(self) -> None:
        import jax

        self.jax, self.softmax, self.where = jax, jax.nn.softmax, jax.numpy.where
        self.mask = np.tri(LENGTH, dtype=bool)

    def embed(self, table: Any, tokens: Any) -> Any:
        return table[tokens]

    def norm(self, x: Any, scale: Any, shift: Any) -> Any:
        return normalized(x, scale, shift, x.var(-1, keepdims=True), self.jax.lax.rsqrt)

    def attend(self, qkv: Any) -> Any:
        return attention(self, qkv, self.mask)

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=True)


class TorchOps:
    def __init__(self) -> None:
        import torch.nn.functional as functional

        self.f = functional

    def embed(self, table: Any, tokens: Any) -> Any:
        return self.f.embedding(tokens, table)

    def norm(self, x: Any, scale: Any, shift: Any) -> Any:
        return self.f.layer_norm(x, (WIDTH,), scale, shift)

    def attend(self, qkv: Any) -> Any:
        mixed = self.f.scaled_dot_product_attention(*heads(qkv), is_causal=True)
        return mixed.swapaxes(1, 2).reshape((BATCH, LENGTH, WIDTH))

    def gelu(self, x: Any) -> Any:
        return self.f.gelu(x, approximate="tanh")


def lucid(data: Any) -> Any:
    import lucid

    ops = LucidOps()

    def loss(params: Any, tokens: Any, following: Any) -> Any:
        scores = lucid.log_softmax(network(ops, params, tokens), -1)
        return -lucid.take_along_dim(scores, following.long()[..., None], -1).mean()

    return training.lucid(loss, *data)


def jax(data: Any) -> Any:
    import jax

    ops = JaxOps()

    def loss(params: Any, tokens: Any, following: Any) -> Any:
        scores = jax.nn.log_softmax(network(ops, params, tokens))
        return -jax.numpy.take_along_axis(scores, following[..., None], -1).mean()

    return training.jax(loss, *data)


def torch(data: Any, train: Any = training.torch) -> Any:
    import torch.nn.functional as functional

    ops = TorchOps()

    def loss(params: Any, tokens: Any, following: Any) -> Any:
        logits = network(ops, params, tokens)
        logits = logits.reshape(-1, VOCABULARY)
        return functional.cross_entropy(logits, following.reshape(-1).long())

    return train(loss, *data)


def torch_compile(data: Any) -> Any:
    return torch(data, training.torch_compile)


SYSTEMS = {"lucid": lucid, "jax": jax, "torch": torch, "torch.compile": torch_compile}
DEEP_SYSTEMS = {"lucid": lucid, "jax": jax}
