"""Pooling: the largest element, the average or the norm of windows, with PyTorch's arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.nn.functional.spatial import (
    Sizes,
    floating,
    numbers,
    window_sums,
    with_images,
    without_images,
)
from lucid.ops.core.arguments import explained
from lucid.ops.core.float16 import is_half, widened
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.index.writing import ScatterSet
from lucid.ops.nn.max_pool import MaxPool
from lucid.ops.shape.creation import zeros
from lucid.tape.bind import bind
from lucid.tape.node import wrap


def places(
    name: str,
    sizes: Sizes,
    window: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> Sizes:
    """How many windows there are along each axis; one that begins in the padding behind is none."""
    out = []
    for n, k, s, p, d in zip(sizes, window, stride, padding, dilation):
        extent = (k - 1) * d + 1
        if 2 * p > extent:
            facts = f"padding {p} for windows that reach over {extent}"
            raise ShapeError(f"{name}: {facts}; it is at most half of them{at_line()}")
        room = n + 2 * p - extent
        count = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        if count < 1 or n == 0:
            facts = f"windows of {window} do not fit into {sizes} with padding {padding}"
            raise ShapeError(f"{name}: {facts}{at_line()}")
        out.append(count)
    return tuple(out)


def max_windows(
    name: str,
    axes: int,
    x: Any,
    window: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    x = as_tensor(x)
    x, had = with_images(name, x, axes)
    if x.dtype.kind in "bc":
        raise DTypeError(f"{name}: an input of dtype {x.dtype} has no largest element{at_line()}")
    window = numbers(name, "kernel_size", window, axes, 1)
    stride = window if is_missing(stride) else numbers(name, "stride", stride, axes, 1)
    padding = numbers(name, "padding", padding, axes)
    dilation = numbers(name, "dilation", dilation, axes, 1)
    size = places(name, x.shape[2:], window, stride, padding, dilation, bool(ceil_mode))
    values, indices = bind(MaxPool(size, window, stride, padding, dilation), x)
    values = without_images(values, had)
    return (values, without_images(indices, had)) if return_indices else values


def is_missing(stride: Any) -> bool:
    return stride is None or (isinstance(stride, (tuple, list)) and len(stride) == 0)


@explained
def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window along the last axis.

    >>> import lucid
    >>> lucid.nn.functional.max_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    Tensor([[3., 2.]])
    """
    more = (dilation, ceil_mode, return_indices)
    return max_windows("max_pool1d", 1, input, kernel_size, stride, padding, *more)


@explained
def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of an image; indices count its elements row by row."""
    more = (dilation, ceil_mode, return_indices)
    return max_windows("max_pool2d", 2, input, kernel_size, stride, padding, *more)


@explained
def max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of a volume."""
    more = (dilation, ceil_mode, return_indices)
    return max_windows("max_pool3d", 3, input, kernel_size, stride, padding, *more)


def average(
    name: str,
    axes: int,
    x: Any,
    window: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: Any = None,
) -> Any:
    x, had = with_images(name, floating(name, x), axes)
    if is_half(x):
        more = (window, stride, padding, ceil_mode, count_include_pad, divisor)
        return without_images(cast(average(name, axes, widened(x), *more), x.dtype), had)
    window = numbers(name, "kernel_size", window, axes, 1)
    stride = window if is_missing(stride) else numbers(name, "stride", stride, axes, 1)
    padding = numbers(name, "padding", padding, axes)
    size = places(name, x.shape[2:], window, stride, padding, (1,) * axes, bool(ceil_mode))
    total = window_sums(x, size, window, stride, padding)
    if divisor is not None:
        if isinstance(divisor, bool) or not isinstance(divisor, int) or divisor == 0:
            facts = f"divisor_override is {divisor!r}; it is an integer other than 0"
            raise ArgumentError(f"{name}: {facts}{at_line()}")
        return without_images(total / divisor, had)
    counts = elements(x.shape[2:], size, window, stride, padding, bool(count_include_pad))
    least = int(counts.min())
    divided = total / least if least == counts.max() else total / wrap(counts.astype(x.dtype))
    return without_images(divided, had)


def elements(
    sizes: Sizes, size: Sizes, window: Sizes, stride: Sizes, padding: Sizes, with_padding: bool
) -> np.ndarray:
    """The number of elements in every window; padding counts where asked, but not beyond it."""
    total: Any = np.ones((), np.int64)
    for n, q, k, s, p in zip(sizes, size, window, stride, padding):
        start = np.arange(q) * s - p
        stop = np.minimum(start + k, n + p)
        if not with_padding:
            start, stop = np.maximum(start, 0), np.minimum(stop, n)
        total = total[..., None] * (stop - start)
    return total


@explained
def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The average of every window along the last axis.

    >>> import lucid
    >>> lucid.nn.functional.avg_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    Tensor([[2., 1.]])
    """
    more = (ceil_mode, count_include_pad)
    return average("avg_pool1d", 1, input, kernel_size, stride, padding, *more)


@explained
def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The average of every window of an image."""
    more = (ceil_mode, count_include_pad, divisor_override)
    return average("avg_pool2d", 2, input, kernel_size, stride, padding, *more)


@explained
def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The average of every window of a volume."""
    more = (ceil_mode, count_include_pad, divisor_override)
    return average("avg_pool3d", 3, input, kernel_size, stride, padding, *more)


def norm_of_windows(
    name: str, axes: int, x: Any, norm_type: Any, window: Any, stride: Any, ceil_mode: bool
) -> Any:
    """(sum of x**p) ** (1/p) over every window, with PyTorch's treatment of the sign."""
    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)) or norm_type == 0:
        facts = f"norm_type is {norm_type!r}; it is a number other than 0"
        raise ArgumentError(f"{name}: {facts}{at_line()}")
    x, had = with_images(name, floating(name, x), axes)
    window = numbers(name, "kernel_size", window, axes, 1)
    stride = window if is_missing(stride) else numbers(name, "stride", stride, axes, 1)
    none = (0,) * axes
    size = places(name, x.shape[2:], window, stride, none, (1,) * axes, bool(ceil_mode))
    p = float(norm_type)
    powers = window_sums(x if p == 1 else x**p, size, window, stride, none)
    counts = elements(x.shape[2:], size, window, stride, none, True)
    if counts.min() != counts.max():  # PyTorch averages, then multiplies by the whole window
        powers = powers * wrap((math.prod(window) / counts).astype(x.dtype))
    powers = powers.sign() * powers.abs().relu()
    return without_images(powers if p == 1 else powers ** (1.0 / p), had)


@explained
def lp_pool1d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """The norm (sum of xᵖ)^(1/p) of every window along the last axis.

    >>> import lucid
    >>> lucid.nn.functional.lp_pool1d(lucid.tensor([[3.0, 4.0]]), 2, 2)
    Tensor([[5.]])
    """
    return norm_of_windows("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@explained
def lp_pool2d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """The norm (sum of xᵖ)^(1/p) of every window of an image."""
    return norm_of_windows("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@explained
def lp_pool3d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """The norm (sum of xᵖ)^(1/p) of every window of a volume."""
    return norm_of_windows("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def unpool(
    name: str, axes: int, x: Any, indices: Any, window: Any, stride: Any, padding: Any, wanted: Any
) -> Any:
    x, had = with_images(name, x, axes)
    indices, _ = with_images(name, indices, axes)
    if indices.shape != x.shape:
        facts = f"an input of {x.shape} and indices of {indices.shape}; they have one shape"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"{name}: indices of dtype {indices.dtype}, not integers{at_line()}")
    window = numbers(name, "kernel_size", window, axes, 1)
    stride = window if is_missing(stride) else numbers(name, "stride", stride, axes, 1)
    padding = numbers(name, "padding", padding, axes)
    lengths = zip(x.shape[2:], window, stride, padding)
    size = tuple((n - 1) * s - 2 * p + k for n, k, s, p in lengths)
    if wanted is not None:
        given = tuple(wanted)
        given = given[2:] if len(given) == axes + 2 else given
        chosen = numbers(name, "output_size", given, axes, 1)
        if any(abs(a - b) >= s for a, b, s in zip(chosen, size, stride)):
            facts = f"output_size {wanted!r} is a stride or more from {size}"
            raise ShapeError(f"{name}: {facts}{at_line()}")
        size = chosen
    return without_images(put_at(x, indices, size), had)


def put_at(x: Any, indices: Any, size: Sizes) -> Any:
    """Zeros of `size` with every element at its index; of several with one index, the last."""
    outer, count = x.shape[0] * x.shape[1], math.prod(x.shape[2:])
    empty = zeros(outer, math.prod(size), dtype=x.dtype)
    y = bind(ScatterSet((1,), 1), empty, x.reshape(outer, count), indices.reshape(outer, count))
    return y.reshape(*x.shape[:2], *size)


@explained
def max_unpool1d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """What max_pool1d chose, where it stood, and zeros elsewhere."""
    more = (kernel_size, stride, padding, output_size)
    return unpool("max_unpool1d", 1, input, indices, *more)


@explained
def max_unpool2d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """What max_pool2d chose, where it stood, and zeros elsewhere."""
    more = (kernel_size, stride, padding, output_size)
    return unpool("max_unpool2d", 2, input, indices, *more)


@explained
def max_unpool3d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """What max_pool3d chose, where it stood, and zeros elsewhere."""
    more = (kernel_size, stride, padding, output_size)
    return unpool("max_unpool3d", 3, input, indices, *more)
