"""min over x of max over y of |x|² - |y|², each by gradient descent: descent within descent.

Two modes: the first of the minimum, the second of the maximum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.descent import argmax, argmin


def data(rng: np.random.Generator) -> list[Any]:
    return [np.ones(2)]


def objective(lib: Any, x: Any, y: Any) -> Any:
    return (x * x).sum() - (y * y).sum()


def greatest(lib: Any, mode: str, x: Any, start: Any) -> Any:
    return argmax(lib, mode, lambda y: objective(lib, x, y), start)


def variants(lib: Any) -> dict[str, Any]:
    def solution(outer: str, inner: str) -> Any:
        def solve(start: Any) -> Any:
            def worst(x: Any) -> Any:
                return objective(lib, x, greatest(lib, inner, x, start))

            x = argmin(lib, outer, worst, start)
            return x, greatest(lib, inner, x, start)

        return solve

    modes = [(a, b) for a in "fr" for b in "fr" if a == "f" or lib.reverse_of_while]
    return {f"saddle-{a}{b}": lib.compiled(solution(a, b)) for a, b in modes}
