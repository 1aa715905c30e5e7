"""Pooling over fixed windows: maximum, average, norm, and the inverse of max pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.nn.functional.spatial import (
    Sizes,
    add_batch_axis,
    as_floating,
    drop_batch_axis,
    int_tuple,
    over_axes,
    window_sums,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.core.float16 import is_float16, upcast
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.index.writing import ScatterSet
from lucid.ops.nn.max_pool import MaxPool
from lucid.ops.shape.creation import zeros
from lucid.public.declare import Dynamic
from lucid.tape.bind import bind
from lucid.tape.node import wrap


def window_counts(
    name: str,
    sizes: Sizes,
    window: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> Sizes:
    """Return the number of windows along each axis, without those that begin in the end padding."""
    out = []
    for n, k, s, p, d in zip(sizes, window, stride, padding, dilation):
        extent = (k - 1) * d + 1
        if 2 * p > extent:
            facts = f"padding {p} for windows of extent {extent}"
            raise ShapeError(f"{name}: {facts}; it must be at most half of that")
        room = n + 2 * p - extent
        count = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        if count < 1 or n == 0:
            facts = f"windows of {window} do not fit into {sizes} with padding {padding}"
            raise ShapeError(f"{name}: {facts}")
        out.append(count)
    return tuple(out)


def max_pool(
    name: str,
    axes: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Dynamic:
    """Check the arguments and take the maximum of every window."""
    x, was_batched = add_batch_axis(name, input, axes)
    if x.dtype.kind in "bc":
        raise DTypeError(f"{name}: maxima of dtype {x.dtype} are not defined")
    window = int_tuple(name, "kernel_size", kernel_size, axes, 1)
    stride = window if is_default_stride(stride) else int_tuple(name, "stride", stride, axes, 1)
    padding = int_tuple(name, "padding", padding, axes)
    dilation = int_tuple(name, "dilation", dilation, axes, 1)
    size = window_counts(name, x.shape[2:], window, stride, padding, dilation, bool(ceil_mode))
    values, indices = bind(MaxPool(size, window, stride, padding, dilation), x)
    values = drop_batch_axis(values, was_batched)
    return (values, drop_batch_axis(indices, was_batched)) if return_indices else values


def is_default_stride(stride: Any) -> bool:
    """True if no stride is given, so that it equals the window."""
    return stride is None or (isinstance(stride, (tuple, list)) and len(stride) == 0)


def avg_pool(
    name: str,
    axes: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """Check the arguments and average every window; averages of int64 are truncated."""
    if getattr(input, "dtype", None) == "int64":
        more = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return cast(avg_pool(name, axes, cast(as_tensor(input), "float64"), *more), "int64")
    x, was_batched = add_batch_axis(name, as_floating(name, input), axes)
    divisor = divisor_override
    if is_float16(x):
        more = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor)
        return drop_batch_axis(cast(avg_pool(name, axes, upcast(x), *more), x.dtype), was_batched)
    window = int_tuple(name, "kernel_size", kernel_size, axes, 1)
    stride = window if is_default_stride(stride) else int_tuple(name, "stride", stride, axes, 1)
    padding = int_tuple(name, "padding", padding, axes)
    size = window_counts(name, x.shape[2:], window, stride, padding, (1,) * axes, bool(ceil_mode))
    total = window_sums(x, size, window, stride, padding)
    if divisor is not None:
        if isinstance(divisor, bool) or not isinstance(divisor, int) or divisor == 0:
            facts = f"divisor_override is {divisor!r}; it must be an integer other than 0"
            raise ArgumentError(f"{name}: {facts}")
        return drop_batch_axis(total / divisor, was_batched)
    counts = window_sizes(x.shape[2:], size, window, stride, padding, bool(count_include_pad))
    least = int(counts.min())
    divided = total / least if least == counts.max() else total / wrap(counts.astype(x.dtype))
    return drop_batch_axis(divided, was_batched)


def window_sizes(
    sizes: Sizes, size: Sizes, window: Sizes, stride: Sizes, padding: Sizes, with_padding: bool
) -> np.ndarray:
    """Return the number of elements in every window, with the padding if `with_padding`."""
    total: Any = np.ones((), np.int64)
    for n, q, k, s, p in zip(sizes, size, window, stride, padding):
        start = np.arange(q) * s - p
        stop = np.minimum(start + k, n + p)
        if not with_padding:
            start, stop = np.maximum(start, 0), np.minimum(stop, n)
        total = total[..., None] * (stop - start)
    return total


@public_function("lucid", "nn.functional")
def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """Average every window along the last axis.

    >>> import lucid
    >>> lucid.nn.functional.avg_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    Tensor([[2., 1.]])
    """
    more = (ceil_mode, count_include_pad)
    return avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, *more)


def lp_pool(
    name: str,
    axes: int,
    input: Any,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Any:
    """Return (sum of x**p) ** (1/p) of every window, with PyTorch's treatment of the sign."""
    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)) or norm_type == 0:
        raise ArgumentError(f"{name}: norm_type is {norm_type!r}; it must be a number other than 0")
    x, was_batched = add_batch_axis(name, as_floating(name, input), axes)
    window = int_tuple(name, "kernel_size", kernel_size, axes, 1)
    stride = window if is_default_stride(stride) else int_tuple(name, "stride", stride, axes, 1)
    none = (0,) * axes
    size = window_counts(name, x.shape[2:], window, stride, none, (1,) * axes, bool(ceil_mode))
    p = float(norm_type)
    powers = window_sums(x if p == 1 else x**p, size, window, stride, none)
    counts = window_sizes(x.shape[2:], size, window, stride, none, True)
    if counts.min() != counts.max():  # PyTorch averages, then multiplies by the whole window
        powers = powers * wrap((math.prod(window) / counts).astype(x.dtype))
    powers = powers.sign() * powers.abs().relu()
    return drop_batch_axis(powers if p == 1 else powers ** (1.0 / p), was_batched)


def max_unpool(
    name: str,
    axes: int,
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """Check the arguments and invert max pooling."""
    x, was_batched = add_batch_axis(name, input, axes)
    indices, _ = add_batch_axis(name, indices, axes)
    if indices.shape != x.shape:
        facts = (
            f"an input of {x.shape} and indices of {indices.shape}; they must have the same shape"
        )
        raise ShapeError(f"{name}: {facts}")
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"{name}: indices must be integers, got {indices.dtype}")
    window = int_tuple(name, "kernel_size", kernel_size, axes, 1)
    stride = window if is_default_stride(stride) else int_tuple(name, "stride", stride, axes, 1)
    padding = int_tuple(name, "padding", padding, axes)
    lengths = zip(x.shape[2:], window, stride, padding)
    size = tuple((n - 1) * s - 2 * p + k for n, k, s, p in lengths)
    if output_size is not None:
        given = tuple(output_size)
        given = given[2:] if len(given) == axes + 2 else given
        chosen = int_tuple(name, "output_size", given, axes, 1)
        if any(abs(a - b) >= s for a, b, s in zip(chosen, size, stride)):
            facts = f"output_size {output_size!r} differs from {size} by a stride or more"
            raise ShapeError(f"{name}: {facts}")
        size = chosen
    return drop_batch_axis(scatter_at(x, indices, size), was_batched)


def scatter_at(x: Any, indices: Any, size: Sizes) -> Any:
    """Return zeros of `size` with every element at its index; the last of duplicates wins."""
    outer, count = x.shape[0] * x.shape[1], math.prod(x.shape[2:])
    empty = zeros(outer, math.prod(size), dtype=x.dtype)
    y = bind(ScatterSet((1,), 1), empty, x.reshape(outer, count), indices.reshape(outer, count))
    return y.reshape(*x.shape[:2], *size)


def max_pool_with_indices(
    name: str,
    axes: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Any, Any]:
    """`max_pool` that returns indices, whatever `return_indices` says."""
    name = name.removesuffix("_with_indices")
    return max_pool(name, axes, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@public_function("lucid", "nn.functional")
@over_axes(1, max_pool)
def max_pool1d() -> None:
    """Take the maximum of every window along the last axis.

    >>> import lucid
    >>> lucid.nn.functional.max_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    Tensor([[3., 2.]])
    """


@public_function("lucid", "nn.functional")
@over_axes(2, max_pool)
def max_pool2d() -> None:
    """Take the maximum of every window of an image; indices are row-major."""


@public_function("lucid", "nn.functional")
@over_axes(3, max_pool)
def max_pool3d() -> None:
    """Take the maximum of every window of a volume."""


@public_function("nn.functional")
@over_axes(1, max_pool_with_indices)
def max_pool1d_with_indices() -> None:
    """`max_pool1d` with `return_indices=True`."""


@public_function("nn.functional")
@over_axes(2, max_pool_with_indices)
def max_pool2d_with_indices() -> None:
    """`max_pool2d` with `return_indices=True`."""


@public_function("nn.functional")
@over_axes(3, max_pool_with_indices)
def max_pool3d_with_indices() -> None:
    """`max_pool3d` with `return_indices=True`."""


@public_function("nn.functional")
@over_axes(2, avg_pool)
def avg_pool2d() -> None:
    """Average every window of an image."""


@public_function("nn.functional")
@over_axes(3, avg_pool)
def avg_pool3d() -> None:
    """Average every window of a volume."""


@public_function("nn.functional")
@over_axes(1, lp_pool)
def lp_pool1d() -> None:
    """Take the p-norm, (sum of xᵖ)^(1/p), of every window along the last axis.

    >>> import lucid
    >>> lucid.nn.functional.lp_pool1d(lucid.tensor([[3.0, 4.0]]), 2, 2)
    Tensor([[5.]])
    """


@public_function("nn.functional")
@over_axes(2, lp_pool)
def lp_pool2d() -> None:
    """Take the p-norm, (sum of xᵖ)^(1/p), of every window of an image."""


@public_function("nn.functional")
@over_axes(3, lp_pool)
def lp_pool3d() -> None:
    """Take the p-norm, (sum of xᵖ)^(1/p), of every window of a volume."""


@public_function("nn.functional")
@over_axes(1, max_unpool)
def max_unpool1d() -> None:
    """Invert max_pool1d: maxima at their indices, zeros elsewhere."""


@public_function("nn.functional")
@over_axes(2, max_unpool)
def max_unpool2d() -> None:
    """Invert max_pool2d: maxima at their indices, zeros elsewhere."""


@public_function("nn.functional")
@over_axes(3, max_unpool)
def max_unpool3d() -> None:
    """Invert max_pool3d: maxima at their indices, zeros elsewhere."""
