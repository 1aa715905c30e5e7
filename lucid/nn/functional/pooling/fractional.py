"""Max pooling of windows that stand at random places, so that any smaller size can be had.

Of m windows of k elements in n, window i begins at ⌊(i + u) α⌋ - ⌊u α⌋ with α = (n - k) / (m - 1)
and u uniform in [0, 1), one number for every plane and axis; the last begins at n - k.
(Graham, Fractional max-pooling, 2014.)
"""

from __future__ import annotations

import math
from typing import Any

from lucid import random
from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.nn.functional.spatial import Sizes, floating, numbers, with_images, without_images
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.index.lookup import gather
from lucid.ops.reduce.extrema import max as largest
from lucid.ops.shape.creation import arange, full
from lucid.ops.shape.joining import cat


def wanted_size(name: str, sizes: Sizes, window: Sizes, size: Any, ratio: Any) -> Sizes:
    """The size of the result, given as such or as a part of the input's."""
    axes = len(sizes)
    if (size is None) == (ratio is None):
        raise ArgumentError(f"{name}: give output_size or output_ratio, one of them{at_line()}")
    if size is None:
        parts = ratio if isinstance(ratio, (tuple, list)) else (ratio,) * axes
        if len(parts) != axes or not all(0 < float(r) < 1 for r in parts):
            facts = f"output_ratio {ratio!r} for {axes} axes; ratios lie between 0 and 1"
            raise ArgumentError(f"{name}: {facts}{at_line()}")
        size = tuple([int(n * r) for n, r in zip(sizes, parts)])
    size = numbers(name, "output_size", size, axes, 1)
    if any(m + k - 1 > n for n, k, m in zip(sizes, window, size)):
        facts = f"{size} windows of {window} do not fit into {sizes}"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    return size


def random_samples(name: str, given: Any, x: Any, axes: int) -> Any:
    """A number in [0, 1) for every plane and axis."""
    shape = (*x.shape[:2], axes)
    if given is None:
        return random.rand(*shape, dtype=x.dtype)
    given = as_tensor(given)
    if given.shape != shape:
        facts = f"_random_samples of shape {given.shape}; for this input they are {shape}"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    if given.dtype != x.dtype:
        facts = f"_random_samples of dtype {given.dtype} for an input of {x.dtype}"
        raise DTypeError(f"{name}: {facts}{at_line()}")
    return given.detach()


def starts(sample: Any, n: int, k: int, m: int) -> Any:
    """Where the windows of every plane begin: (N, C) -> (N, C, m)."""
    last = full((*sample.shape, 1), n - k, dtype="int64")
    if m == 1:
        return last
    alpha, sample = (n - k) / (m - 1), sample.unsqueeze(-1)
    moved = ((sample + arange(m - 1).to(sample.dtype)) * alpha).trunc()
    return cat([cast(moved - (sample * alpha).trunc(), "int64"), last], -1)


def pooled(
    name: str, axes: int, x: Any, window: Any, size: Any, ratio: Any, samples: Any
) -> tuple[Any, Any]:
    """The largest element of every window, and where it stands in its plane."""
    x, had = with_images(name, floating(name, x), axes)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: an input of dtype {x.dtype} has no largest element{at_line()}")
    window, sizes = numbers(name, "kernel_size", window, axes, 1), x.shape[2:]
    size = wanted_size(name, sizes, window, size, ratio)
    samples = random_samples(name, samples, x, axes)
    order = (1, 0) if axes == 2 else (0, 1, 2)  # PyTorch draws for the columns of images first
    flat: Any = 0
    for i, (n, k, m) in enumerate(zip(sizes, window, size)):
        first = starts(samples[..., order[i]], n, k, m)
        along = first.unsqueeze(-1) + arange(k)
        shape = [1] * (2 * axes)
        shape[i], shape[axes + i] = m, k
        flat = flat * n + along.reshape(*x.shape[:2], *shape)
    flat = flat.reshape(*x.shape[:2], math.prod(size) * math.prod(window))
    planes = x.reshape(*x.shape[:2], math.prod(sizes))
    boxes = (*x.shape[:2], *size, math.prod(window))
    values, chosen = largest(gather(planes, 2, flat).reshape(boxes), -1)
    indices = gather(flat.reshape(boxes), -1, chosen.unsqueeze(-1)).squeeze(-1)
    return without_images(values, had), without_images(indices, had)


@explained
def fractional_max_pool2d_with_indices(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """The largest elements of `output_size` windows at random places, and where they stand."""
    more = (kernel_size, output_size, output_ratio, _random_samples)
    return pooled("fractional_max_pool2d", 2, input, *more)


@explained
def fractional_max_pool3d_with_indices(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """The largest elements of `output_size` windows at random places, and where they stand."""
    more = (kernel_size, output_size, output_ratio, _random_samples)
    return pooled("fractional_max_pool3d", 3, input, *more)


@explained
def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """The largest elements of windows of an image that stand at random places.

    >>> import lucid
    >>> lucid.nn.functional.fractional_max_pool2d(lucid.ones(1, 5, 7), 2, (3, 4)).shape
    (1, 3, 4)
    """
    more = (kernel_size, output_size, output_ratio, _random_samples)
    values, indices = pooled("fractional_max_pool2d", 2, input, *more)
    return (values, indices) if return_indices else values


@explained
def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """The largest elements of windows of a volume that stand at random places."""
    more = (kernel_size, output_size, output_ratio, _random_samples)
    values, indices = pooled("fractional_max_pool3d", 3, input, *more)
    return (values, indices) if return_indices else values
