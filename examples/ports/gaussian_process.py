"""Gaussian-process regression: hyperparameters by the marginal likelihood and scipy.optimize.

    python examples/ports/gaussian_process.py

In the style of HIPS autograd: the covariance function and the likelihood are NumPy code, and
`minimize` takes `value_and_grad` with jac=True.
"""

from __future__ import annotations

from typing import Any

import lucid.compat.autograd.scipy.stats.multivariate_normal as mvn
from scipy.optimize import minimize

import lucid.compat.autograd.numpy as np
import lucid.compat.autograd.numpy.random as npr
from lucid.compat.autograd import value_and_grad


def covariance(params: Any, x: Any, others: Any) -> Any:
    """The squared exponential, with logarithms of its scale and lengths as parameters."""
    scaled, scaled_others = x / np.exp(params[1:]), others / np.exp(params[1:])
    distances = np.expand_dims(scaled, 1) - np.expand_dims(scaled_others, 0)
    return np.exp(params[0]) * np.exp(-0.5 * np.sum(distances**2, axis=2))


def unpack(params: Any) -> tuple[Any, Any, Any]:
    return params[0], np.exp(params[1]) + 0.001, params[2:]


def predict(params: Any, x: Any, y: Any, new: Any) -> tuple[Any, Any]:
    """Return the mean and the covariance of the process at new points."""
    mean, noise, kernel = unpack(params)
    between = covariance(kernel, new, x)
    within = covariance(kernel, x, x) + noise * np.eye(len(y))
    center = mean + np.dot(between, np.linalg.solve(within, y - mean))
    spread = covariance(kernel, new, new) - np.dot(between, np.linalg.solve(within, between.T))
    return center, spread


def main(points: int = 30) -> float:
    rng = npr.RandomState(0)
    x = np.linspace(0.0, 6.0, points).reshape(-1, 1)
    y = np.sin(x[:, 0]) + rng.randn(points) * 0.1

    def objective(params: Any) -> Any:
        mean, noise, kernel = unpack(params)
        within = covariance(kernel, x, x) + noise * np.eye(len(y))
        return -mvn.logpdf(y, mean * np.ones(len(y)), within)

    start = np.array([0.0, -1.0, 0.0, 0.0])
    found = minimize(value_and_grad(objective), start, jac=True, method="L-BFGS-B")
    center, _ = predict(found.x, x, y, x)
    error = float(np.sqrt(np.mean((center - np.sin(x[:, 0])) ** 2)))
    noise = float(np.sqrt(np.exp(found.x[1]) + 0.001))
    print(f"{found.nit} iterations, noise {noise:.3f}, error {error:.3f}")
    return error


if __name__ == "__main__":
    main()
