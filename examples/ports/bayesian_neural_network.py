"""A Bayesian neural network, its posterior approximated by black-box variational inference.

    python examples/ports/bayesian_neural_network.py

In the style of HIPS autograd: weights are a flat vector, the likelihood is NumPy code on batches of
weight samples, and the prediction's spread grows away from the data.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import lucid.compat.autograd.scipy.stats.norm as norm
from black_box_variational_inference import adam, black_box_variational_inference

import lucid.compat.autograd.numpy as np
import lucid.compat.autograd.numpy.random as npr

Network = Callable[[Any, Any], Any]


def make_network(sizes: list[int], nonlinearity: Any = np.tanh) -> tuple[int, Network]:
    """Return the number of weights, and predictions of (samples, weights) and (points, 1)."""
    shapes = list(pairwise(sizes))
    count = sum((m + 1) * n for m, n in shapes)

    def unpack(weights: Any) -> Any:
        samples, start = len(weights), 0
        for m, n in shapes:
            yield (
                weights[:, start : start + m * n].reshape((samples, m, n)),
                weights[:, start + m * n : start + m * n + n].reshape((samples, 1, n)),
            )
            start += (m + 1) * n

    def predict(weights: Any, inputs: Any) -> Any:
        values = np.expand_dims(inputs, 0)
        for w, b in unpack(weights):
            outputs = np.einsum("mnd,mdo->mno", values, w) + b
            values = nonlinearity(outputs)
        return outputs

    return count, predict


def make_data(points: int = 40) -> tuple[Any, Any]:
    rng = npr.RandomState(0)
    x = np.concatenate([np.linspace(0, 2, points // 2), np.linspace(6, 8, points // 2)])
    y = np.cos(x) + rng.randn(points) * 0.1
    return ((x - 4.0) / 4.0).reshape(-1, 1), y.reshape(-1, 1)


def main(steps: int = 400) -> float:
    count, predict = make_network([1, 15, 15, 1])
    inputs, targets = make_data()

    def log_posterior(weights: Any, t: int) -> Any:
        prior = -0.5 * np.sum(weights**2, axis=1)
        fit = np.sum(norm.logpdf(targets, predict(weights, inputs), 0.1), axis=(1, 2))
        return prior + fit

    _, gradient, unpack = black_box_variational_inference(log_posterior, count, samples=5)
    start = np.concatenate([npr.RandomState(1).randn(count) * 0.3, -5.0 * np.ones(count)])
    mean, log_std = unpack(adam(gradient, start, steps, 0.03))
    draws = npr.RandomState(2).randn(50, count) * np.exp(log_std) + mean
    error = np.sqrt(np.mean((np.mean(predict(draws, inputs), axis=0) - targets) ** 2))
    spread = np.std(predict(draws, np.array([[-1.0], [0.0]])), axis=0).ravel()
    print(f"error of the mean prediction {error:.3f}; spread at the data {spread[0]:.3f}, ", end="")
    print(f"between them {spread[1]:.3f}")
    return float(error)


if __name__ == "__main__":
    main()
