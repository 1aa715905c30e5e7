"""Pooling to a given size: window i of m in n elements is [floor(i n / m), ceil((i + 1) n / m))."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.nn.functional.spatial import Sizes, floating, numbers, with_images, without_images
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor
from lucid.ops.index.selection import take_along
from lucid.ops.nn.max_pool import MaxPool
from lucid.ops.reduce.extrema import max as largest
from lucid.ops.shape.joining import take_axis
from lucid.ops.shape.movement import Broadcast, Transpose
from lucid.ops.shape.shaping import movedim
from lucid.tape.bind import bind
from lucid.tape.node import wrap


def wanted_size(name: str, output_size: Any, sizes: Sizes) -> Sizes:
    """The size of the result; None keeps that of an axis."""
    given = output_size if isinstance(output_size, (tuple, list)) else [output_size]
    given = list(given) * len(sizes) if len(given) == 1 else list(given)
    if len(given) == len(sizes):
        given = [n if size is None else size for size, n in zip(given, sizes)]
    if 0 in sizes:
        raise ShapeError(f"{name}: an input of size {sizes} has nothing to pool{at_line()}")
    return numbers(name, "output_size", given, len(sizes), 0)


def bounds(n: int, m: int) -> list[tuple[int, int]]:
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def average(name: str, axes: int, x: Any, output_size: Any) -> Any:
    x, had = with_images(name, floating(name, x), axes)
    size = wanted_size(name, output_size, x.shape[2:])
    if 0 not in size and all(n % m == 0 for n, m in zip(x.shape[2:], size)):
        split = [part for n, m in zip(x.shape[2:], size) for part in (m, n // m)]
        inside = tuple(range(3, 3 + 2 * axes, 2))
        return without_images(x.reshape(*x.shape[:2], *split).mean(inside), had)
    for axis, m in enumerate(size, 2):
        weights = np.zeros((x.shape[axis], m))
        for i, (start, stop) in enumerate(bounds(x.shape[axis], m)):
            weights[start:stop, i] = 1 / (stop - start)
        x = movedim(movedim(x, axis, -1) @ wrap(weights.astype(x.dtype)), -1, axis)
    return without_images(x, had)


def maximum(name: str, axes: int, x: Any, output_size: Any, return_indices: bool) -> Any:
    x, had = with_images(name, as_tensor(x), axes)
    if x.dtype.kind in "bc":
        raise DTypeError(f"{name}: an input of dtype {x.dtype} has no largest element{at_line()}")
    sizes = x.shape[2:]
    size = wanted_size(name, output_size, sizes)
    if 0 not in size and all(n % m == 0 for n, m in zip(sizes, size)):
        window = tuple(n // m for n, m in zip(sizes, size))
        none, one = (0,) * axes, (1,) * axes
        values, indices = bind(MaxPool(size, window, window, none, one), x)
    else:
        values, indices = largest_of(x, size)
    values = without_images(values, had)
    return (values, without_images(indices, had)) if return_indices else values


def largest_of(x: Any, size: Sizes) -> tuple[Any, Any]:
    """Windows written out, each as long as the longest: the last element stands more than once."""
    sizes, axes, reads = x.shape[2:], len(size), []
    for axis, (n, m) in enumerate(zip(sizes, size)):
        ends = bounds(n, m)
        width = max((stop - start for start, stop in ends), default=1)
        read = [[min(start + j, stop - 1) for j in range(width)] for start, stop in ends]
        reads.append(np.array(read, np.int64).reshape(m, width))
        x = take_axis(x, 2 + axis, reads[-1].reshape(-1))
    x = x.reshape(*x.shape[:2], *[n for read in reads for n in read.shape])
    places, inside = [2 + 2 * i for i in range(axes)], [3 + 2 * i for i in range(axes)]
    x = bind(Transpose((0, 1, *places, *inside)), x)
    x = x.reshape(*x.shape[:2], *size, math.prod(read.shape[1] for read in reads))
    values, chosen = largest(x, -1)
    index = bind(Broadcast(x.shape, tuple(range(2, x.ndim))), wrap(flat_places(reads, sizes)))
    kept = chosen.reshape(*chosen.shape, 1)
    return values, take_along(index, kept, x.ndim - 1).reshape(chosen.shape)


def flat_places(reads: list[np.ndarray], sizes: Sizes) -> np.ndarray:
    """For every place the row-major positions of the elements of its window."""
    axes = len(sizes)
    total: Any = 0
    for i, (read, n) in enumerate(zip(reads, sizes)):
        shape = [1] * (2 * axes)
        shape[i], shape[axes + i] = read.shape
        total = total * n + read.reshape(shape)
    return total.reshape(*total.shape[:axes], math.prod(total.shape[axes:]))


@explained
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """The averages of `output_size` windows along the last axis.

    >>> import lucid
    >>> lucid.nn.functional.adaptive_avg_pool1d(lucid.tensor([[1.0, 2.0, 6.0]]), 2)
    Tensor([[1.5, 4. ]])
    """
    return average("adaptive_avg_pool1d", 1, input, output_size)


@explained
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """The averages of windows of an image, of which there are `output_size`."""
    return average("adaptive_avg_pool2d", 2, input, output_size)


@explained
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """The averages of windows of a volume, of which there are `output_size`."""
    return average("adaptive_avg_pool3d", 3, input, output_size)


@explained
def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of `output_size` windows along the last axis."""
    return maximum("adaptive_max_pool1d", 1, input, output_size, return_indices)


@explained
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of windows of an image, of which there are `output_size`."""
    return maximum("adaptive_max_pool2d", 2, input, output_size, return_indices)


@explained
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of windows of a volume, of which there are `output_size`."""
    return maximum("adaptive_max_pool3d", 3, input, output_size, return_indices)
