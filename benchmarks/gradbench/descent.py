"""Gradient descent whose rate doubles after ten good steps and halves after a bad one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RATE, ENOUGH, GOOD_STEPS = 1e-5, 1e-5, 10


def gradient(lib: Any, mode: str, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The gradient by forward ("f") or reverse ("r") mode."""
    return lib.jacfwd(f) if mode == "f" else lib.grad(f)


def argmin(lib: Any, mode: str, f: Callable[[Any], Any], start: Any) -> Any:
    slope = gradient(lib, mode, f)

    def rate_of(state: Any) -> Any:
        _, _, _, rate, good = state
        return lib.where(good == GOOD_STEPS, 2 * rate, rate)

    def going(state: Any) -> Any:
        length = lib.sqrt((state[2] ** 2).sum())
        return (length > ENOUGH) & (rate_of(state) * length > ENOUGH)

    def step(state: Any) -> Any:
        x, value, direction, _, good = state
        rate = rate_of(state)
        good = lib.where(good == GOOD_STEPS, 0.0, good)
        there = x - rate * direction
        found = f(there)
        return lib.cond(
            found < value,
            lambda: (there, found, slope(there), rate, good + 1),
            lambda: (x, value, direction, rate / 2, 0 * good),
        )

    rate = lib.array(RATE)
    first = (start, f(start), slope(start), rate, 0 * rate)
    return lib.while_loop(going, step, first)[0]


def argmax(lib: Any, mode: str, f: Callable[[Any], Any], start: Any) -> Any:
    return argmin(lib, mode, lambda x: -f(x), start)
