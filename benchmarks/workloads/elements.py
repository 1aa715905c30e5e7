"""The gradient of sum(gelu(x y) + sin(z) x) in x, y and z, a million float32 each."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import pure

SIZE = 1_000_000


def data(rng: np.random.Generator) -> Any:
    return [rng.normal(size=SIZE).astype(np.float32) for _ in range(3)]


def lucid(data: Any) -> Any:
    import lucid

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + lucid.erf(x * 0.5**0.5))

    def f(x: Any, y: Any, z: Any) -> Any:
        return (gelu(x * y) + lucid.sin(z) * x).sum()

    return pure.lucid(lucid.func.grad(f, (0, 1, 2)), data)


def jax(data: Any) -> Any:
    import jax

    def f(x: Any, y: Any, z: Any) -> Any:
        return (jax.nn.gelu(x * y, approximate=False) + jax.numpy.sin(z) * x).sum()

    return pure.jax(jax.grad(f, (0, 1, 2)), data)


def torch(data: Any, run: Any = pure.torch) -> Any:
    import torch

    def f(x: Any, y: Any, z: Any) -> Any:
        return (torch.nn.functional.gelu(x * y) + torch.sin(z) * x).sum()

    return run(torch.func.grad(f, (0, 1, 2)), data)


def torch_compile(data: Any) -> Any:
    return torch(data, pure.torch_compile)


SYSTEMS = {"lucid": lucid, "jax": jax, "torch": torch, "torch.compile": torch_compile}
