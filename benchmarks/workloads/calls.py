"""What a call of a compiled function costs: two arrays of 10 elements, and a list of 20."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import pure

COMPILED = {"lucid": pure.lucid, "jax": pure.jax, "torch.compile": pure.torch_compile}


def add_data(rng: np.random.Generator) -> Any:
    return [rng.normal(size=10).astype(np.float32) for _ in range(2)]


def leaves_data(rng: np.random.Generator) -> Any:
    return [[rng.normal(size=10).astype(np.float32) for _ in range(20)]]


def add(a: Any, b: Any) -> Any:
    return a + b


def double(leaves: Any) -> Any:
    return [x * 2.0 for x in leaves]


def systems(f: Any) -> dict[str, Any]:
    return {name: (lambda data, run=run: run(f, data)) for name, run in COMPILED.items()}


ADD_SYSTEMS = systems(add)
LEAVES_SYSTEMS = systems(double)
