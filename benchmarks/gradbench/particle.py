"""A charged particle between two charges, one of which is moved until it hits the origin.

Two modes: the first of the descent over w, the second of the potential along the path.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.descent import argmin, gradient

DT = 0.1


def data(rng: np.random.Generator) -> list[Any]:
    return [np.zeros(1)]


def objective(lib: Any, mode: str, w: Any) -> Any:
    """The square of where the particle meets the x axis, after steps of Euler from (0, 8)."""
    ten = lib.array(10.0)
    charges = [lib.stack([ten, 10 - w[0]]), lib.array([10.0, 0.0])]

    def potential(x: Any) -> Any:
        return sum(1 / lib.sqrt(((x - c) ** 2).sum()) for c in charges)

    force = gradient(lib, mode, potential)

    def step(state: Any) -> Any:
        x, v = state
        return x + DT * v, v - DT * force(x)

    def above(state: Any) -> Any:
        x, v = state
        return x[1] + DT * v[1] > 0

    start = (lib.array([0.0, 8.0]), lib.array([0.75, 0.0]))
    x, v = lib.while_loop(above, step, start)
    return (x[0] - x[1] / v[1] * v[0]) ** 2


def variants(lib: Any) -> dict[str, Any]:
    def solution(outer: str, inner: str) -> Any:
        return lambda w: argmin(lib, outer, lambda w: objective(lib, inner, w), w)

    modes = [(a, b) for a in "fr" for b in "fr" if a == "f" or lib.reverse_of_while]
    return {f"particle-{a}{b}": lib.compiled(solution(a, b)) for a, b in modes}
