"""Fractional max pooling: windows at random positions, for any smaller output size.

Of m windows of k elements in n, window i begins at ⌊(i + u) α⌋ - ⌊u α⌋ with α = (n - k) / (m - 1)
and u uniform in [0, 1), one number for every plane and axis; the last begins at n - k.
(Graham, Fractional max-pooling, 2014.)
"""

from __future__ import annotations

import math
from typing import Any

from lucid import random
from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.nn.functional.spatial import (
    Sizes,
    add_batch_axis,
    as_floating,
    drop_batch_axis,
    int_tuple,
    over_axes,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.index.lookup import gather
from lucid.ops.reduce.extrema import max as largest
from lucid.ops.shape.creation import arange, full
from lucid.ops.shape.joining import cat
from lucid.public.declare import Dynamic


def resolve_output_size(name: str, sizes: Sizes, window: Sizes, size: Any, ratio: Any) -> Sizes:
    """Return the output size, given directly or as a ratio of the input size."""
    axes = len(sizes)
    if (size is None) == (ratio is None):
        raise ArgumentError(f"{name}: give exactly one of output_size and output_ratio")
    if size is None:
        parts = ratio if isinstance(ratio, (tuple, list)) else (ratio,) * axes
        if len(parts) != axes or not all(0 < float(r) < 1 for r in parts):
            facts = f"output_ratio {ratio!r} for {axes} axes; ratios must be between 0 and 1"
            raise ArgumentError(f"{name}: {facts}")
        size = tuple([int(n * r) for n, r in zip(sizes, parts)])
    size = int_tuple(name, "output_size", size, axes, 1)
    if any(m + k - 1 > n for n, k, m in zip(sizes, window, size)):
        raise ShapeError(f"{name}: {size} windows of {window} do not fit into {sizes}")
    return size


def random_samples(name: str, given: Any, x: Any, axes: int) -> Any:
    """Return a number in [0, 1) for every plane and axis."""
    shape = (*x.shape[:2], axes)
    if given is None:
        return random.rand(*shape, dtype=x.dtype)
    given = as_tensor(given)
    if given.shape != shape:
        facts = f"_random_samples of shape {given.shape}; this input needs {shape}"
        raise ShapeError(f"{name}: {facts}")
    if given.dtype != x.dtype:
        facts = f"_random_samples of dtype {given.dtype} for an input of {x.dtype}"
        raise DTypeError(f"{name}: {facts}")
    return given.detach()


def window_starts(sample: Any, n: int, k: int, m: int) -> Any:
    """Return where the windows of every plane begin: (N, C) -> (N, C, m)."""
    last = full((*sample.shape, 1), n - k, dtype="int64")
    if m == 1:
        return last
    alpha, sample = (n - k) / (m - 1), sample.unsqueeze(-1)
    moved = ((sample + arange(m - 1).to(sample.dtype)) * alpha).trunc()
    return cat([cast(moved - (sample * alpha).trunc(), "int64"), last], -1)


def fractional_max_pool_with_indices(
    name: str,
    axes: int,
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> tuple[Any, Any]:
    """Return the maximum of every window, and its index in its plane."""
    name = name.removesuffix("_with_indices")
    x, was_batched = add_batch_axis(name, as_floating(name, input), axes)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: maxima of dtype {x.dtype} are not defined")
    window, sizes = int_tuple(name, "kernel_size", kernel_size, axes, 1), x.shape[2:]
    size = resolve_output_size(name, sizes, window, output_size, output_ratio)
    samples = random_samples(name, _random_samples, x, axes)
    order = (1, 0) if axes == 2 else (0, 1, 2)  # PyTorch draws for the columns of images first
    flat: Any = 0
    for i, (n, k, m) in enumerate(zip(sizes, window, size)):
        first = window_starts(samples[..., order[i]], n, k, m)
        along = first.unsqueeze(-1) + arange(k)
        shape = [1] * (2 * axes)
        shape[i], shape[axes + i] = m, k
        flat = flat * n + along.reshape(*x.shape[:2], *shape)
    flat = flat.reshape(*x.shape[:2], math.prod(size) * math.prod(window))
    planes = x.reshape(*x.shape[:2], math.prod(sizes))
    boxes = (*x.shape[:2], *size, math.prod(window))
    values, chosen = largest(gather(planes, 2, flat).reshape(boxes), -1)
    indices = gather(flat.reshape(boxes), -1, chosen.unsqueeze(-1)).squeeze(-1)
    return drop_batch_axis(values, was_batched), drop_batch_axis(indices, was_batched)


def fractional_max_pool(
    name: str,
    axes: int,
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Dynamic:
    """Return the maximum of every window, with its index in its plane if `return_indices`."""
    more = (kernel_size, output_size, output_ratio, True, _random_samples)
    values, indices = fractional_max_pool_with_indices(name, axes, input, *more)
    return (values, indices) if return_indices else values


@public_function("nn.functional")
@over_axes(2, fractional_max_pool_with_indices)
def fractional_max_pool2d_with_indices() -> None:
    """Take the maximum of `output_size` randomly placed windows of an image, with indices."""


@public_function("nn.functional")
@over_axes(3, fractional_max_pool_with_indices)
def fractional_max_pool3d_with_indices() -> None:
    """Take the maximum of `output_size` randomly placed windows of a volume, with indices."""


@public_function("nn.functional")
@over_axes(2, fractional_max_pool)
def fractional_max_pool2d() -> None:
    """Take the maximum of randomly placed windows of an image.

    >>> import lucid
    >>> lucid.nn.functional.fractional_max_pool2d(lucid.ones(1, 5, 7), 2, (3, 4)).shape
    (1, 3, 4)
    """


@public_function("nn.functional")
@over_axes(3, fractional_max_pool)
def fractional_max_pool3d() -> None:
    """Take the maximum of randomly placed windows of a volume."""
