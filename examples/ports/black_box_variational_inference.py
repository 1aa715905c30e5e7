"""Black-box variational inference: a Gaussian fitted to a density that is known up to a factor.

    python examples/ports/black_box_variational_inference.py

In the style of HIPS autograd: NumPy code, gradients of a Monte Carlo estimate, Adam by hand. The
density is that of a banana: y is normal around x², x is normal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lucid.compat.autograd.scipy.stats.norm as norm

import lucid.compat.autograd.numpy as np
import lucid.compat.autograd.numpy.random as npr
from lucid.compat.autograd import grad


def black_box_variational_inference(
    logprob: Callable[[Any, int], Any], size: int, samples: int
) -> tuple[Any, Any, Any]:
    """Return the negative lower bound of a factorized Gaussian, its gradient, and unpack."""

    def unpack(params: Any) -> tuple[Any, Any]:
        return params[:size], params[size:]

    def entropy(log_std: Any) -> Any:
        return 0.5 * size * (1.0 + np.log(2 * np.pi)) + np.sum(log_std)

    def objective(params: Any, t: int) -> Any:
        mean, log_std = unpack(params)
        draws = npr.RandomState(t).randn(samples, size) * np.exp(log_std) + mean
        return -(entropy(log_std) + np.mean(logprob(draws, t)))

    return objective, grad(objective), unpack


def adam(gradient: Any, x: Any, steps: int, rate: float) -> Any:
    m, v = np.zeros(len(x)), np.zeros(len(x))
    for i in range(steps):
        g = gradient(x, i)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - rate * (m / (1 - 0.9 ** (i + 1))) / (np.sqrt(v / (1 - 0.999 ** (i + 1))) + 1e-8)
    return x


def log_density(x: Any, t: int) -> Any:
    """A banana: the second coordinate is near the square of the first."""
    return norm.logpdf(x[:, 0], 0.0, 1.0) + norm.logpdf(x[:, 1], 0.5 * x[:, 0] ** 2, 0.5)


def main(steps: int = 500) -> float:
    objective, gradient, unpack = black_box_variational_inference(log_density, 2, samples=200)
    start = np.concatenate([-1.0 * np.ones(2), -2.0 * np.ones(2)])
    found = adam(gradient, start, steps, 0.05)
    mean, log_std = unpack(found)
    bound = -float(objective(found, steps))
    print(
        f"mean {mean.round(2)}, standard deviations {np.exp(log_std).round(2)}, bound {bound:.3f}"
    )
    return bound


if __name__ == "__main__":
    main()
