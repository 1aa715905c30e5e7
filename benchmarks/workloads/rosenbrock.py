"""The gradient of Rosenbrock's function of 1000 variables, float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import pure


def data(rng: np.random.Generator) -> Any:
    return [rng.normal(size=1000)]


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def lucid(data: Any) -> Any:
    import lucid

    return pure.lucid(lucid.func.grad(rosenbrock), data)


def jax(data: Any) -> Any:
    import jax

    return pure.jax(jax.grad(rosenbrock), data)


def torch(data: Any, run: Any = pure.torch) -> Any:
    import torch

    return run(torch.func.grad(rosenbrock), data)


def torch_compile(data: Any) -> Any:
    return torch(data, pure.torch_compile)


SYSTEMS = {"lucid": lucid, "jax": jax, "torch": torch, "torch.compile": torch_compile}
