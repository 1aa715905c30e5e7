"""Small functions whose first result is timed: a scalar and its derivative, k-means of 1,000."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import pure

POINTS, CENTERS, D = 20_000, 1_000, 8


def scalar_data(rng: np.random.Generator) -> Any:
    return [rng.normal(size=())]


def kmeans_data(rng: np.random.Generator) -> Any:
    points = rng.normal(size=(POINTS, D)).astype(np.float32)
    return [points[:CENTERS] + np.float32(0.01), points]


def scalar(library: Any) -> Any:
    return lambda x: library.sin(x) * x


def kmeans(library: Any) -> Any:
    """The sum of squared distances to the nearest center."""

    def cost(centers: Any, points: Any) -> Any:
        apart = points[:, None, :] - centers
        return library.amin((apart * apart).sum(2), 1).sum()

    return cost


def lucid_of(f: Any) -> Any:
    def run(data: Any) -> Any:
        import lucid

        return pure.lucid(lucid.func.grad(f(lucid)), data)

    return run


def jax_of(f: Any) -> Any:
    def run(data: Any) -> Any:
        import jax

        return pure.jax(jax.grad(f(jax.numpy)), data)

    return run


SCALAR_SYSTEMS = {"lucid": lucid_of(scalar), "jax": jax_of(scalar)}
KMEANS_SYSTEMS = {"lucid": lucid_of(kmeans), "jax": jax_of(kmeans)}
