"""The neural tangent kernel: Jacobians of each sample by the parameters, contracted, by vmap.

J(x) = ∂f(x)/∂θ by jacrev for 20 and 5 samples; K[i, j] = Σ J(xᵢ) J(xⱼ)ᵀ over all parameters, as
in PyTorch's tutorial on neural tangent kernels; with an MLP 64-64-64-10 and a small CNN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from workloads import pure
from workloads.mlp import forward, layers

SIZES, TRAIN, TEST = (64, 64, 64, 10), 20, 5
CHANNELS, SIDE = (3, 8, 8), 12


def data(rng: np.random.Generator) -> Any:
    samples = [rng.normal(size=(n, SIZES[0])).astype(np.float32) for n in (TRAIN, TEST)]
    return [layers(rng, *SIZES), *samples]


def cnn_data(rng: np.random.Generator) -> Any:
    """Two 3 x 3 convolutions without padding, and one matrix."""
    params = []
    for n, m in pairwise(CHANNELS):
        params += [rng.normal(0, (9 * n) ** -0.5, (m, n, 3, 3)), rng.normal(0, 0.1, m)]
    flat = CHANNELS[-1] * (SIDE - 4) ** 2
    params += [rng.normal(0, flat**-0.5, (flat, 10)), rng.normal(0, 0.1, 10)]
    samples = [rng.normal(size=(n, CHANNELS[0], SIDE, SIDE)) for n in (TRAIN, TEST)]
    params, samples = ([x.astype(np.float32) for x in xs] for xs in (params, samples))
    return [params, *samples]


eager_data, cnn_eager_data = data, cnn_data


def kernel(f: Callable[..., Any], jacrev: Any, vmap: Any, einsum: Any) -> Any:
    """K for the parameters and two sets of samples."""
    each = vmap(jacrev(f), (None, 0))

    def contracted(params: Any, x1: Any, x2: Any) -> Any:
        pairs = zip(each(params, x1), each(params, x2))
        parts = [
            einsum("Naf,Mbf->NMab", a.reshape(*a.shape[:2], -1), b.reshape(*b.shape[:2], -1))
            for a, b in pairs
        ]
        return sum(parts[1:], start=parts[0])

    return contracted


def mlp(tanh: Any, conv: Any, params: Any, x: Any) -> Any:
    return forward(tanh, params, x)


def cnn(tanh: Any, conv: Any, params: Any, x: Any) -> Any:
    y = x[None]
    for w, b in zip(params[:-2:2], params[1:-2:2]):
        y = tanh(conv(y, w) + b[:, None, None])
    return y.reshape(-1) @ params[-2] + params[-1]


def lucid(network: Any, run: Any, data: Any) -> Any:
    import lucid
    from lucid.func import jacrev, vmap

    f = partial(network, lucid.tanh, lucid.nn.functional.conv2d)
    return getattr(pure, run)(kernel(f, jacrev, vmap, lucid.einsum), data)


def jax(network: Any, data: Any) -> Any:
    import jax

    def conv(x: Any, w: Any) -> Any:
        return jax.lax.conv(x, w, (1, 1), "VALID")

    f = partial(network, jax.numpy.tanh, conv)
    return pure.jax(kernel(f, jax.jacrev, jax.vmap, jax.numpy.einsum), data)


def torch(network: Any, run: Any, data: Any) -> Any:
    import torch
    from torch.func import jacrev, vmap

    f = partial(network, torch.tanh, torch.nn.functional.conv2d)
    return getattr(pure, run)(kernel(f, jacrev, vmap, torch.einsum), data)


def systems(network: Any) -> dict[str, Any]:
    return {
        "lucid": partial(lucid, network, "lucid"),
        "jax": partial(jax, network),
        "torch": partial(torch, network, "torch"),
        "torch.compile": partial(torch, network, "torch_compile"),
    }


def eager_systems(network: Any) -> dict[str, Any]:
    return {
        "lucid": partial(lucid, network, "lucid_eager"),
        "lucid.jit": partial(lucid, network, "lucid"),
        "torch": partial(torch, network, "torch"),
    }


SYSTEMS, CNN_SYSTEMS = systems(mlp), systems(cnn)
EAGER_SYSTEMS, CNN_EAGER_SYSTEMS = eager_systems(mlp), eager_systems(cnn)
