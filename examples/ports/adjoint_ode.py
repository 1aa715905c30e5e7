"""Rates of a predator-prey equation from noisy counts, by the adjoint equation and scipy.optimize.

    python examples/ports/adjoint_ode.py

`lucid.func.odeint` solves the equation; with derivative="adjoint" the gradient solves a second
equation backward in time, and `minimize` takes the jitted value and gradient directly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

import lucid
from lucid.func import odeint, value_and_grad

RATES = np.array([1.1, 0.4, 0.1, 0.4])
START = np.array([10.0, 5.0])


def lotka_volterra(y: Any, t: Any, rates: Any) -> Any:
    prey, predators = y[0], y[1]
    return lucid.stack(
        [
            rates[0] * prey - rates[1] * prey * predators,
            rates[2] * prey * predators - rates[3] * predators,
        ]
    )


def main(points: int = 25) -> float:
    times = np.linspace(0.0, 8.0, points)
    exact = odeint(lotka_volterra, START, times, RATES)
    counts = exact * np.exp(0.02 * np.random.default_rng(0).normal(size=exact.shape))

    def misfit(logs: Any) -> Any:
        states = odeint(
            lotka_volterra, START, times, lucid.exp(logs), rtol=1e-6, derivative="adjoint"
        )
        return ((lucid.log(states) - np.log(counts)) ** 2).sum()

    guess = np.log(RATES * np.array([1.15, 0.9, 1.1, 0.9]))
    found = minimize(lucid.jit(value_and_grad(misfit)), guess, jac=True, method="L-BFGS-B")
    rates = np.exp(found.x)
    print(f"{found.nfev} evaluations: rates {rates.round(3)}, true ones {RATES}")
    return float(np.abs(rates / RATES - 1.0).max())


if __name__ == "__main__":
    main()
