"""Integrals and slopes of values on a grid: trapezoids and central differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError, AxisError, ShapeError
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.index.lookup import diff
from lucid.ops.reduce.cumulative import Cumsum
from lucid.ops.reduce.reduction import sum
from lucid.ops.shape.joining import cat
from lucid.ops.shape.movement import slice_axis
from lucid.tape.bind import bind
from lucid.tape.node import Traced


def trapezoid_areas(name: str, y: Any, x: Any, dx: Any, dim: Any) -> tuple[Any, int]:
    """Return the areas of the trapezoids between neighbors along an axis."""
    y = to_floating(y)
    if not y.ndim:
        raise ShapeError(f"{name}: a 0-d tensor has no axis")
    at = canonicalize_axis(name, dim, y.ndim)
    n = y.shape[at]
    steps: Any = 1 if dx is None else dx
    if x is not None:
        if dx is not None:
            raise ArgumentError(f"{name}: give x or dx, not both")
        steps = spacings(name, to_floating(x), y, at)
    heights = slice_axis(y, at, min(1, n), n) + slice_axis(y, at, 0, max(n - 1, 0))
    return heights * 0.5 * steps, at


def spacings(name: str, x: Any, y: Any, at: int) -> Any:
    if x.ndim == 1 and y.ndim != 1:
        if x.shape[0] != y.shape[at]:
            raise ShapeError(f"{name}: {x.shape[0]} points for {y.shape} along {at}")
        return diff(x).reshape([-1 if i == at else 1 for i in range(y.ndim)])
    back = at - y.ndim
    if x.ndim < -back or x.shape[back] != y.shape[at]:
        raise ShapeError(f"{name}: points of shape {x.shape} for values of {y.shape} along {at}")
    return diff(x, 1, back)


@public_function(aliases=("trapz",))
@aliases(dim="axis")
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along `dim` by the trapezoidal rule, at points `x` or with spacing `dx`.

    >>> import lucid
    >>> lucid.trapezoid(lucid.tensor([1.0, 2.0, 3.0]), dx=2.0)
    Tensor(8.)
    """
    parts, at = trapezoid_areas("trapezoid", y, x, dx, dim)
    return sum(parts, at - as_tensor(y).ndim)


@public_function()
@aliases(dim="axis")
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integrals from the first point to every later one, by the trapezoidal rule."""
    parts, at = trapezoid_areas("cumulative_trapezoid", y, x, dx, dim)
    return bind(Cumsum(at + parts.ndim - as_tensor(y).ndim), parts)


@public_function()
@aliases(dim="axis")
def gradient(
    input: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Any, ...]:
    """The derivatives along axes of values on a grid, by central differences: one tensor per axis.

    `spacing` is one distance, one for each axis, or a vector of coordinates for each axis.

    >>> import lucid
    >>> lucid.gradient(lucid.tensor([1.0, 2.0, 4.0, 8.0]))
    (Tensor([1. , 1.5, 3. , 4. ]),)
    """
    x = to_floating(input)
    spacing = 1 if spacing is None else spacing
    axes = range(x.ndim) if dim is None else dim if isinstance(dim, (list, tuple)) else (dim,)
    numbers = [canonicalize_axis("gradient", axis, x.ndim) for axis in axes]
    if len(set(numbers)) != len(numbers):
        raise AxisError(f"gradient: an axis appears twice in {tuple(axes)}")
    if isinstance(spacing, (list, tuple)):
        steps = list(spacing)
    else:
        steps = [spacing] * len(numbers)
    if len(steps) != len(numbers):
        raise ShapeError(f"gradient: {len(steps)} spacings for {len(numbers)} axes")
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order must be 1 or 2, not {edge_order!r}")
    return tuple(slopes(x, at, step, edge_order) for at, step in zip(numbers, steps))


def slopes(x: Any, at: int, step: Any, edge_order: int) -> Any:
    n = x.shape[at]
    if n < edge_order + 1:
        facts = f"{n} points along axis {at}; edge_order {edge_order} needs {edge_order + 1}"
        raise ShapeError(f"gradient: {facts}")

    def part(first: int, last: int) -> Any:
        return slice_axis(x, at, first, last)

    gaps = gaps_of(step, n, at, x)
    if gaps is None:
        before = after = step
    else:
        before, after = slice_axis(gaps, at, 0, n - 2), slice_axis(gaps, at, 1, n - 1)
    left, middle, right = part(0, max(n - 2, 0)), part(min(1, n), n - 1), part(min(2, n), n)
    if gaps is None:
        inside = (right - left) / (2 * step)
    else:
        weight = before * before
        other = after * after
        inside = (weight * right + (other - weight) * middle - other * left) / (
            before * after * (before + after)
        )
    first, last = (edge_slope(part, gaps, step, n, at, end, edge_order) for end in (True, False))
    return cat([first, inside, last], at)


def gaps_of(step: Any, n: int, at: int, x: Any) -> Any:
    """Return the distances between points if coordinates are given; None for a uniform grid."""
    if not isinstance(step, (Traced, np.ndarray, list)) or not as_tensor(step).ndim:
        return None
    points = as_tensor(step)
    if points.shape != (n,):
        facts = f"coordinates of shape {points.shape} for {n} points along axis {at}"
        raise ShapeError(f"gradient: {facts}")
    return cast(diff(points), x.dtype).reshape([-1 if i == at else 1 for i in range(x.ndim)])


def edge_slope(part: Any, gaps: Any, step: Any, n: int, at: int, first: bool, order: int) -> Any:
    """Return the derivative at one end, from two or three points."""
    indices = [0, 1, 2] if first else [n - 1, n - 2, n - 3]
    values = [part(i, i + 1) for i in indices[: order + 1]]
    sign = 1 if first else -1

    def gap(i: int) -> Any:
        return step if gaps is None else slice_axis(gaps, at, i, i + 1)

    near = gap(0 if first else n - 2)
    if order == 1:
        return sign * (values[1] - values[0]) / near
    far = gap(1 if first else n - 3)
    a = -(2 * near + far) / (near * (near + far))
    b = (near + far) / (near * far)
    c = -near / (far * (near + far))
    return sign * (a * values[0] + b * values[1] + c * values[2])
