"""Normalization: subtract the mean and divide by the standard deviation.

Each function standardizes over some axes, then scales and shifts. Deviations are squared after
the mean is subtracted, so a large mean costs no accuracy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.autograd import no_grad
from lucid.errors import ArgumentError, DTypeError, GraphError, ShapeError
from lucid.nn.functional.arguments import as_real, check_integer, check_number
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_axes, canonicalize_shape, keepdims_shape
from lucid.ops.core.float16 import in_float32, upcast
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.elementwise.exponential import rsqrt
from lucid.ops.higher_order.expected_call import expect_calls
from lucid.ops.higher_order.region import compile_when_hot
from lucid.ops.reduce.reduction import Sum
from lucid.ops.reduce.statistics import norm, reduced_count
from lucid.ops.shape.joining import pad
from lucid.ops.shape.movement import Reshape, slice_axis
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tensors.inplace import overwrite

Axes = tuple[int, ...]


def moments(x: Any, axes: Axes) -> tuple[Any, Any, Any]:
    """Return x minus its mean, the mean and the (biased) variance, with reduced axes of size 1."""
    n = float(max(reduced_count(x.shape, axes), 1))
    total, keepdims = Sum(axes), Reshape(keepdims_shape(x.shape, axes))
    mean = bind(keepdims, bind(total, x) / n)
    centered = x - mean
    return centered, mean, bind(keepdims, bind(total, centered * centered) / n)


def affine(y: Any, weight: Any, bias: Any, shape: tuple[int, ...]) -> Any:
    """Return `y * weight + bias`, where either may be None, reshaped to broadcast."""
    if weight is not None:
        y = y * (weight if weight.shape == shape else weight.reshape(shape))
    return y if bias is None else y + (bias if bias.shape == shape else bias.reshape(shape))


def check_vector(name: str, what: str, x: Any, given: Any, shape: tuple[int, ...]) -> Any:
    """Return a parameter of a norm, None or a tensor of this shape and a floating dtype."""
    if given is None:
        return None
    given = as_tensor(given)
    if given.shape != shape:
        facts = f"{what} of shape {given.shape} for input of shape {x.shape}"
        raise ShapeError(f"{name}: {facts}; it must be {shape}")
    if given.dtype.kind != "f" and given.dtype != x.dtype:
        raise DTypeError(f"{name}: {what} of dtype {given.dtype}; it must be floating")
    return given


@memoize(1024)
def channel_shape(name: str, shape: Axes, least: int = 2) -> Axes:
    """Return (C,), the shape of per-channel values; channels are axis 1."""
    if len(shape) < least:
        facts = f"input of shape {shape}; it must be (batch, channels, ...)"
        raise ShapeError(f"{name}: {facts}, with at least {least} axes")
    return (shape[1],)


@memoize(1024)
def training_axes(name: str, shape: Axes) -> tuple[Axes, Axes]:
    """Return the axes that batch norm reduces, and the shape in which weights broadcast."""
    axes = (0, *range(2, len(shape)))
    if math.prod(shape) and reduced_count(shape, axes) < 2:
        facts = f"input of shape {shape} has one value per channel; training needs more"
        raise ShapeError(f"{name}: {facts}")
    return axes, (shape[1], *[1] * (len(shape) - 2))


@public_function("nn.functional")
@expect_calls()
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalize every channel (axis 1) over the batch and all other axes.

    In training the batch's own mean and variance are used, and the running ones move toward them by
    `momentum` (None: not at all), in place. In evaluation the running ones are used.

    >>> import lucid
    >>> x = lucid.tensor([[1.0], [3.0]])
    >>> lucid.nn.functional.batch_norm(x, None, None, training=True, eps=0.0)
    Tensor([[-1.],
            [ 1.]])
    """
    name, x = "batch_norm", as_real("batch_norm", input)
    shape, eps = channel_shape(name, x.shape), check_number(name, eps, "eps")
    mean = check_vector(name, "running_mean", x, running_mean, shape)
    var = check_vector(name, "running_var", x, running_var, shape)
    weight = check_vector(name, "weight", x, weight, shape)
    bias = check_vector(name, "bias", x, bias, shape)
    if not training:
        if mean is None or var is None:
            raise ArgumentError(f"{name}: running_mean and running_var are needed in evaluation")
        ones = (*shape, *[1] * (x.ndim - 2))
        return affine(normalize_with(x, mean, var, eps, ones), weight, bias, ones)
    axes, ones = training_axes(name, x.shape)
    if 0 not in x.shape:
        update_running_stats(name, x, mean, var, axes, shape, momentum)
    return standardize(x, axes, eps, weight, bias, ones)


@compile_when_hot
def normalize_with(x: Any, mean: Any, var: Any, eps: float, ones: tuple[int, ...]) -> Any:
    """Normalize `x` with a given mean and variance."""
    return (x - mean.reshape(ones)) * rsqrt(var + eps).reshape(ones)


@compile_when_hot
def standardize(x: Any, axes: Axes, eps: float, weight: Any, bias: Any, shape: Axes) -> Any:
    """Subtract the mean over some axes, divide by the standard deviation, scale and shift."""
    centered, _, var = moments(upcast(x), axes)
    return affine(cast(centered * rsqrt(var + eps), x.dtype), weight, bias, shape)


@compile_when_hot
def moved_statistics(
    x: Any, mean: Any, var: Any, axes: Axes, shape: Axes, momentum: Any
) -> tuple[Any, ...]:
    """Return those running statistics that are given after a step toward the ones of `x`.

    The variance is unbiased. Statistics per example (the first axis of `shape`) are averaged.
    """
    n = reduced_count(x.shape, axes)
    _, now_mean, now_var = moments(upcast(x), axes)
    found = []
    for running, now in ((mean, now_mean), (var, now_var * (n / (n - 1)))):
        if running is not None:
            now = now.reshape(shape)
            now = now.mean(0) if now.ndim > 1 else now
            found.append(cast(running + (now - running) * momentum, running.dtype))
    return tuple(found)


def update_running_stats(
    name: str, x: Any, mean: Any, var: Any, axes: Axes, shape: Axes, momentum: Any
) -> None:
    """Move running statistics toward the current ones, in place and unrecorded."""
    running = [s for s in (mean, var) if s is not None]
    if not running or momentum is None:
        return
    if local.maps and x.raw is None and any([s.raw is not None for s in running]):
        facts = "the running statistics are shared by the examples of vmap and cannot be updated"
        raise GraphError(f"{name}: {facts}; call eval() first, or pass None for them")
    if momentum.__class__ is not float and not hasattr(momentum, "shape"):
        momentum = check_number(name, momentum, "momentum")
    with no_grad():
        for s, new in zip(running, moved_statistics(x, mean, var, axes, shape, momentum)):
            overwrite(s, new, name)


@public_function("nn.functional")
@expect_calls()
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalize every channel of every example over all other axes.

    Running statistics, if given, follow the mean over the batch, and replace the statistics of the
    input if `use_input_stats` is false.
    """
    name, x = "instance_norm", as_real("instance_norm", input)
    shape, eps = channel_shape(name, x.shape), check_number(name, eps, "eps")
    mean = check_vector(name, "running_mean", x, running_mean, shape)
    var = check_vector(name, "running_var", x, running_var, shape)
    weight, bias = (
        check_vector(name, w, x, v, shape) for w, v in (("weight", weight), ("bias", bias))
    )
    ones = (*shape, *[1] * (x.ndim - 2))
    if not use_input_stats:
        if mean is None or var is None:
            facts = "running_mean and running_var are needed if use_input_stats is false"
            raise ArgumentError(f"{name}: {facts}")
        return affine(normalize_with(x, mean, var, eps, ones), weight, bias, ones)
    axes = tuple(range(2, x.ndim))
    n = reduced_count(x.shape, axes)
    if x.numel() and n < 2:
        facts = f"input of shape {x.shape} has one value per channel and example; more are needed"
        raise ShapeError(f"{name}: {facts}")
    if x.numel():
        update_running_stats(name, x, mean, var, axes, x.shape[:2], momentum)
    return standardize(x, axes, eps, weight, bias, ones)


def normalized_axes(
    name: str, x: Any, normalized_shape: Any
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return `normalized_shape`, checked, and the axes of `x` it covers."""
    given = normalized_shape if isinstance(normalized_shape, (tuple, list)) else [normalized_shape]
    shape = canonicalize_shape(name, (tuple(given),))
    if not shape or x.shape[max(x.ndim - len(shape), 0) :] != shape:
        facts = f"input of shape {x.shape} and normalized_shape {shape}"
        raise ShapeError(f"{name}: {facts}: they must agree in the last axes")
    return shape, tuple(range(x.ndim - len(shape), x.ndim))


@public_function("lucid", "nn.functional")
@in_float32
@compile_when_hot
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Normalize every example over the last axes, those of `normalized_shape`.

    >>> import lucid
    >>> lucid.nn.functional.layer_norm(lucid.tensor([[1.0, 5.0], [5.0, 5.0]]), (2,), eps=12.0)
    Tensor([[-0.5,  0.5],
            [ 0. ,  0. ]])
    """
    name, x = "layer_norm", as_real("layer_norm", input)
    shape, axes = normalized_axes(name, x, normalized_shape)
    weight, bias = (
        check_vector(name, w, x, v, shape) for w, v in (("weight", weight), ("bias", bias))
    )
    centered, _, var = moments(x, axes)
    return affine(centered * rsqrt(var + check_number(name, eps, "eps")), weight, bias, shape)


@public_function("lucid", "nn.functional")
@in_float32
@compile_when_hot
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """Divide x by its root mean square over the last axes; eps=None takes that of the dtype.

    >>> import lucid
    >>> lucid.nn.functional.rms_norm(lucid.tensor([3.0, 4.0, 0.0, 0.0]), (4,))
    Tensor([1.2, 1.6, 0. , 0. ])
    """
    name, x = "rms_norm", to_floating(input)
    shape, axes = normalized_axes(name, x, normalized_shape)
    weight = check_vector(name, "weight", x, weight, shape)
    eps = float(np.finfo(x.dtype).eps) if eps is None else check_number(name, eps, "eps")
    squared = (x * x).sum(axis=axes) / float(max(reduced_count(x.shape, axes), 1))
    root = rsqrt(squared + eps).reshape(keepdims_shape(x.shape, axes))
    return affine(x * root, weight, None, shape)


@public_function("lucid", "nn.functional")
@in_float32
@compile_when_hot
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Normalize groups of channels of every example over their channels and all other axes."""
    name, x = "group_norm", as_real("group_norm", input)
    shape, groups = (
        channel_shape(name, x.shape),
        check_integer("group_norm", num_groups, "num_groups", 1),
    )
    if shape[0] % groups:
        raise ShapeError(f"{name}: {shape[0]} channels are not divisible into {groups} groups")
    weight, bias = (
        check_vector(name, w, x, v, shape) for w, v in (("weight", weight), ("bias", bias))
    )
    each = shape[0] // groups
    parts = x.reshape(x.shape[0], groups, each, math.prod(x.shape[2:]))
    centered, _, var = moments(parts, (2, 3))
    y = affine(
        centered * rsqrt(var + check_number(name, eps, "eps")), weight, bias, (groups, each, 1)
    )
    return y.reshape(x.shape)


@public_function("nn.functional")
@in_float32
@compile_when_hot
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """x / (k + alpha m)**beta, with m the mean of x² over `size` neighboring channels."""
    name, x = "local_response_norm", as_real("local_response_norm", input)
    shape, size = channel_shape(name, x.shape, 3), check_integer(name, size, "size", 1)
    alpha, beta, k = (
        check_number(name, v, w) for v, w in ((alpha, "alpha"), (beta, "beta"), (k, "k"))
    )
    if not x.numel():
        return x + 0
    before, after = min(size // 2, shape[0]), min((size - 1) // 2, shape[0])
    squares = pad(x * x, [0, 0] * (x.ndim - 2) + [before, after])
    near = slice_axis(squares, 1, 0, shape[0])
    for i in range(1, before + after + 1):
        near = near + slice_axis(squares, 1, i, i + shape[0])
    return x / (near * (alpha / size) + k) ** beta


@public_function("nn.functional")
def normalize(
    input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, *, axis: Any = None
) -> Any:
    """Divide x by its p-norm along `dim`, or by `eps` where that is greater.

    >>> import lucid
    >>> lucid.nn.functional.normalize(lucid.tensor([3.0, 4.0]), dim=0)
    Tensor([0.6, 0.8])
    """
    x, at = as_tensor(input), dim if axis is None else axis
    axes = canonicalize_axes("normalize", at, x.ndim)
    length = norm(x, p, axis=axes, keepdim=True)
    return x / clamp(length, check_number("normalize", eps, "eps"))
