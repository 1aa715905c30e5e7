"""Line search for the strong Wolfe conditions: bracket a minimum, then zoom with cubics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

DECREASE, CURVATURE = 1e-4, 0.9
MAX_EVALUATIONS = 25


class Point(NamedTuple):
    """The loss, gradient and slope along the line at a step length."""

    length: float
    loss: float
    gradient: np.ndarray
    slope: float


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimizer, within bounds, of the cubic through two points with their slopes."""
    low, high = bounds or (min(a.length, b.length), max(a.length, b.length))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2
    d2 = square**0.5
    a, b = (a, b) if a.length <= b.length else (b, a)
    share = (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)
    return min(max(b.length - (b.length - a.length) * share, low), high)


def strong_wolfe(
    at: Callable[[float], tuple[float, Any]],
    length: float,
    direction: np.ndarray,
    loss: float,
    gradient: np.ndarray,
    slope: float,
    tolerance_change: float = 1e-9,
) -> Point:
    """Return a point on the line that satisfies the strong Wolfe conditions."""

    def evaluate(t: float) -> Point:
        value, g = at(t)
        return Point(t, value, g, float(g @ direction))

    start = Point(0.0, loss, gradient, slope)
    size = float(np.abs(direction).max())
    before, here = start, evaluate(length)
    for evaluations in range(MAX_EVALUATIONS):
        too_high = here.loss > loss + DECREASE * here.length * slope
        if too_high or (evaluations > 0 and here.loss >= before.loss):
            break
        if abs(here.slope) <= -CURVATURE * slope:
            return here
        if here.slope >= 0:
            break
        least = here.length + 0.01 * (here.length - before.length)
        beyond = cubic_minimum(before, here, (least, here.length * 10))
        before, here = here, evaluate(beyond)
    else:
        before, evaluations = start, MAX_EVALUATIONS
    return zoom(start, before, here, evaluate, size, evaluations + 1, tolerance_change)


def zoom(
    start: Point,
    a: Point,
    b: Point,
    evaluate: Callable[[float], Point],
    size: float,
    evaluations: int,
    tolerance_change: float,
) -> Point:
    """Shrink the bracket [a, b] until a point in it satisfies the conditions."""
    low, high = (a, b) if a.loss <= b.loss else (b, a)
    stuck = False
    while evaluations < MAX_EVALUATIONS:
        left, right = min(low.length, high.length), max(low.length, high.length)
        if (right - left) * size < tolerance_change:
            break
        place = cubic_minimum(a, b)
        margin = 0.1 * (right - left)
        if min(right - place, place - left) < margin:
            if stuck or place >= right or place <= left:
                place = right - margin if right - place < place - left else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        here = evaluate(place)
        evaluations += 1
        if here.loss > start.loss + DECREASE * place * start.slope or here.loss >= low.loss:
            high = here
            a, b = low, high
            continue
        if abs(here.slope) <= -CURVATURE * start.slope:
            return here
        if here.slope * (high.length - low.length) >= 0:
            high = low
        low = here
        a, b = low, high
    return low
