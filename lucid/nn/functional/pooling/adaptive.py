"""Pooling to a given size: window i of m in n elements is [floor(i n / m), ceil((i + 1) n / m))."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.nn.functional.spatial import (
    Sizes,
    add_batch_axis,
    as_floating,
    drop_batch_axis,
    int_tuple,
    over_axes,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.index.selection import take_along
from lucid.ops.nn.max_pool import MaxPool
from lucid.ops.reduce.extrema import max as largest
from lucid.ops.shape.joining import take_axis
from lucid.ops.shape.movement import Broadcast, Transpose
from lucid.ops.shape.shaping import movedim
from lucid.public.declare import Dynamic
from lucid.tape.bind import bind
from lucid.tape.node import wrap


def resolve_output_size(name: str, output_size: Any, sizes: Sizes) -> Sizes:
    """Return the output size; None keeps the size of an axis."""
    given = output_size if isinstance(output_size, (tuple, list)) else [output_size]
    given = list(given) * len(sizes) if len(given) == 1 else list(given)
    if len(given) == len(sizes):
        given = [n if size is None else size for size, n in zip(given, sizes)]
    if 0 in sizes:
        raise ShapeError(f"{name}: an input of size {sizes} has no elements to pool")
    return int_tuple(name, "output_size", given, len(sizes), 0)


def window_bounds(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and the stops of m windows over n elements."""
    i = np.arange(m)
    return i * n // m, -(-(i + 1) * n // m)


def adaptive_avg_pool(name: str, axes: int, input: Any, output_size: Any) -> Any:
    """Average over `output_size` windows."""
    x, was_batched = add_batch_axis(name, as_floating(name, input), axes)
    size = resolve_output_size(name, output_size, x.shape[2:])
    if 0 not in size and all(n % m == 0 for n, m in zip(x.shape[2:], size)):
        split = [part for n, m in zip(x.shape[2:], size) for part in (m, n // m)]
        inside = tuple(range(3, 3 + 2 * axes, 2))
        return drop_batch_axis(x.reshape(*x.shape[:2], *split).mean(inside), was_batched)
    for axis, m in enumerate(size, 2):
        starts, stops = window_bounds(x.shape[axis], m)
        place = np.arange(x.shape[axis])[:, None]
        weights = ((starts <= place) & (place < stops)) / (stops - starts)
        x = movedim(movedim(x, axis, -1) @ wrap(weights.astype(x.dtype)), -1, axis)
    return drop_batch_axis(x, was_batched)


def adaptive_max_pool(
    name: str, axes: int, input: Any, output_size: Any, return_indices: bool = False
) -> Dynamic:
    """Take the maximum over `output_size` windows."""
    x, was_batched = add_batch_axis(name, input, axes)
    if x.dtype.kind in "bc":
        raise DTypeError(f"{name}: maxima of dtype {x.dtype} are not defined")
    sizes = x.shape[2:]
    size = resolve_output_size(name, output_size, sizes)
    if 0 not in size and all(n % m == 0 for n, m in zip(sizes, size)):
        window = tuple(n // m for n, m in zip(sizes, size))
        none, one = (0,) * axes, (1,) * axes
        values, indices = bind(MaxPool(size, window, window, none, one), x)
    else:
        values, indices = max_of_windows(x, size)
    values = drop_batch_axis(values, was_batched)
    return (values, drop_batch_axis(indices, was_batched)) if return_indices else values


def max_of_windows(x: Any, size: Sizes) -> tuple[Any, Any]:
    """Take the maximum of gathered windows; the last element is repeated in shorter ones."""
    sizes, axes, reads = x.shape[2:], len(size), []
    for axis, (n, m) in enumerate(zip(sizes, size)):
        starts, stops = window_bounds(n, m)
        width = (stops - starts).max(initial=1)
        reads.append(np.minimum(starts[:, None] + np.arange(width), stops[:, None] - 1))
        x = take_axis(x, 2 + axis, reads[-1].reshape(-1))
    x = x.reshape(*x.shape[:2], *[n for read in reads for n in read.shape])
    places, inside = [2 + 2 * i for i in range(axes)], [3 + 2 * i for i in range(axes)]
    x = bind(Transpose((0, 1, *places, *inside)), x)
    x = x.reshape(*x.shape[:2], *size, math.prod(read.shape[1] for read in reads))
    values, chosen = largest(x, -1)
    index = bind(Broadcast(x.shape, tuple(range(2, x.ndim))), wrap(flat_indices(reads, sizes)))
    kept = chosen.reshape(*chosen.shape, 1)
    return values, take_along(index, kept, x.ndim - 1).reshape(chosen.shape)


def flat_indices(reads: list[np.ndarray], sizes: Sizes) -> np.ndarray:
    """Return the row-major indices of the elements of every window."""
    axes = len(sizes)
    total: Any = 0
    for i, (read, n) in enumerate(zip(reads, sizes)):
        shape = [1] * (2 * axes)
        shape[i], shape[axes + i] = read.shape
        total = total * n + read.reshape(shape)
    return total.reshape(*total.shape[:axes], math.prod(total.shape[axes:]))


def adaptive_max_pool_with_indices(
    name: str, axes: int, input: Any, output_size: Any, return_indices: bool = False
) -> tuple[Any, Any]:
    """`adaptive_max_pool` that returns indices, whatever `return_indices` says."""
    return adaptive_max_pool(name.removesuffix("_with_indices"), axes, input, output_size, True)


@public_function("lucid", "nn.functional")
@over_axes(1, adaptive_avg_pool)
def adaptive_avg_pool1d() -> None:
    """Average `output_size` windows along the last axis.

    >>> import lucid
    >>> lucid.nn.functional.adaptive_avg_pool1d(lucid.tensor([[1.0, 2.0, 6.0]]), 2)
    Tensor([[1.5, 4. ]])
    """


@public_function("nn.functional")
@over_axes(2, adaptive_avg_pool)
def adaptive_avg_pool2d() -> None:
    """Average `output_size` windows of an image."""


@public_function("nn.functional")
@over_axes(3, adaptive_avg_pool)
def adaptive_avg_pool3d() -> None:
    """Average `output_size` windows of a volume."""


@public_function("nn.functional")
@over_axes(1, adaptive_max_pool)
def adaptive_max_pool1d() -> None:
    """Take the maximum of `output_size` windows along the last axis."""


@public_function("nn.functional")
@over_axes(2, adaptive_max_pool)
def adaptive_max_pool2d() -> None:
    """Take the maximum of `output_size` windows of an image."""


@public_function("nn.functional")
@over_axes(3, adaptive_max_pool)
def adaptive_max_pool3d() -> None:
    """Take the maximum of `output_size` windows of a volume."""


@public_function("nn.functional")
@over_axes(1, adaptive_max_pool_with_indices)
def adaptive_max_pool1d_with_indices() -> None:
    """`adaptive_max_pool1d` with `return_indices=True`."""


@public_function("nn.functional")
@over_axes(2, adaptive_max_pool_with_indices)
def adaptive_max_pool2d_with_indices() -> None:
    """`adaptive_max_pool2d` with `return_indices=True`."""


@public_function("nn.functional")
@over_axes(3, adaptive_max_pool_with_indices)
def adaptive_max_pool3d_with_indices() -> None:
    """`adaptive_max_pool3d` with `return_indices=True`."""
