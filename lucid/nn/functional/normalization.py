"""Normalisation: x less its mean, over its standard deviation, over a batch, a layer or a group.

All are `normalised` over some axes, then a scale and a shift. The deviations are squared after the
mean is taken away, so that a large mean costs no accuracy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.autograd import no_grad
from lucid.errors import ArgumentError, DTypeError, GraphError, ShapeError
from lucid.ir.source import at_line
from lucid.nn.functional.arguments import number, real, whole
from lucid.ops.core.arguments import explained
from lucid.ops.core.axes import axes_of, shape_of, with_ones
from lucid.ops.core.float16 import in_float32, widened
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.elementwise.exponential import rsqrt
from lucid.ops.higher_order.region import fused_when_hot
from lucid.ops.reduce.reduction import Sum
from lucid.ops.reduce.statistics import count, norm
from lucid.ops.shape.joining import pad
from lucid.ops.shape.movement import Reshape, slice_axis
from lucid.tape.bind import bind
from lucid.tape.modes import local

Axes = tuple[int, ...]


def moments(x: Any, axes: Axes) -> tuple[Any, Any, Any]:
    """x less its mean, the mean and the variance (of all, not of a sample), with axes of size 1."""
    n = float(max(count(x.shape, axes), 1))
    total, widened = Sum(axes), Reshape(with_ones(x.shape, axes))
    mean = bind(widened, bind(total, x) / n)
    centred = x - mean
    return centred, mean, bind(widened, bind(total, centred * centred) / n)


def affine(y: Any, weight: Any, bias: Any, shape: tuple[int, ...]) -> Any:
    """`y * weight + bias`, where either may be None, brought to a shape that broadcasts."""
    if weight is not None:
        y = y * (weight if weight.shape == shape else weight.reshape(shape))
    return y if bias is None else y + (bias if bias.shape == shape else bias.reshape(shape))


def vector(name: str, what: str, x: Any, given: Any, shape: tuple[int, ...]) -> Any:
    """A parameter of a norm: None, or a tensor of this shape and of the input's dtype."""
    if given is None:
        return None
    given = as_tensor(given)
    if given.shape != shape:
        facts = f"{what} of shape {given.shape} for input of shape {x.shape}"
        raise ShapeError(f"{name}: {facts}; {shape} fits{at_line()}")
    if given.dtype.kind != "f" and given.dtype != x.dtype:
        facts = f"{what} of dtype {given.dtype}; it holds floating numbers"
        raise DTypeError(f"{name}: {facts}{at_line()}")
    return given


def channels(name: str, x: Any, least: int = 2) -> tuple[int, ...]:
    """The shape (C,) of what belongs to the channels, which are axis 1."""
    if x.ndim < least:
        facts = f"input of shape {x.shape}; it is (batch, channels, ...)"
        raise ShapeError(f"{name}: {facts}, of at least {least} axes{at_line()}")
    return (x.shape[1],)


@explained
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
    """Every channel (axis 1) normalised over the batch and all other axes.

    When training, the batch's own mean and variance are used, and the running ones move towards
    them by `momentum` (None: not at all), in place; else the running ones are used.

    >>> import lucid
    >>> x = lucid.tensor([[1.0], [3.0]])
    >>> lucid.nn.functional.batch_norm(x, None, None, training=True, eps=0.0)
    Tensor([[-1.],
            [ 1.]])
    """
    name, x = "batch_norm", real("batch_norm", input)
    shape, eps = channels(name, x), number(name, eps, "eps")
    mean = vector(name, "running_mean", x, running_mean, shape)
    var = vector(name, "running_var", x, running_var, shape)
    weight, bias = (vector(name, w, x, v, shape) for w, v in (("weight", weight), ("bias", bias)))
    ones = (*shape, *[1] * (x.ndim - 2))
    if not training:
        if mean is None or var is None:
            facts = "running_mean and running_var are needed when not training"
            raise ArgumentError(f"{name}: {facts}{at_line()}")
        return affine(scaled(x, mean, var, eps, ones), weight, bias, ones)
    axes = (0, *range(2, x.ndim))
    if x.numel() and count(x.shape, axes) < 2:
        facts = f"input of shape {x.shape} has one value a channel; training takes more"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    if x.numel():
        n = count(x.shape, axes)
        follow(name, mean, mean_of, x, axes, shape, momentum)
        follow(name, var, variance_of, x, axes, shape, momentum, n / (n - 1))
    return standardised(x, axes, eps, weight, bias, ones)


@fused_when_hot
def scaled(x: Any, mean: Any, var: Any, eps: float, ones: tuple[int, ...]) -> Any:
    """`x` normalised by a mean and a variance that are given."""
    return (x - mean.reshape(ones)) * rsqrt(var + eps).reshape(ones)


@fused_when_hot
def standardised(x: Any, axes: Axes, eps: float, weight: Any, bias: Any, shape: Axes) -> Any:
    """`x` less its mean over its standard deviation, along some axes, scaled and shifted."""
    centred, _, var = moments(widened(x), axes)
    return affine(cast(centred * rsqrt(var + eps), x.dtype), weight, bias, shape)


@fused_when_hot
def mean_of(x: Any, axes: Axes, shape: Axes) -> Any:
    return moments(widened(x), axes)[1].reshape(shape)


@fused_when_hot
def variance_of(x: Any, axes: Axes, shape: Axes) -> Any:
    return moments(widened(x), axes)[2].reshape(shape)


def follow(
    name: str, running: Any, statistic: Any, x: Any, axes: Axes, shape: Axes, momentum: Any,
    factor: float = 1.0,
) -> None:  # fmt: skip
    """Move a running statistic towards what it is now, in place and unrecorded.

    Of statistics of several examples (the first axis of `shape`) the mean counts.
    """
    if running is None or momentum is None:
        return
    if local.maps and x.value is None and running.value is not None:
        facts = "the running statistics are shared by the examples of vmap, and cannot follow each"
        raise GraphError(f"{name}: {facts}; call eval() first, or give none{at_line()}")
    if not hasattr(momentum, "shape"):
        momentum = number(name, momentum, "momentum")
    with no_grad():
        now = statistic(x, axes, shape)
        if now.ndim > 1:
            now = now.mean(0)
        running.add_(((now if factor == 1 else now * factor) - running) * momentum)


@explained
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
    """Every channel of every example normalised over all other axes.

    Running statistics, where given, follow the mean over the batch, and are used instead where
    `use_input_stats` is false.
    """
    name, x = "instance_norm", real("instance_norm", input)
    shape, eps = channels(name, x), number(name, eps, "eps")
    mean = vector(name, "running_mean", x, running_mean, shape)
    var = vector(name, "running_var", x, running_var, shape)
    weight, bias = (vector(name, w, x, v, shape) for w, v in (("weight", weight), ("bias", bias)))
    ones = (*shape, *[1] * (x.ndim - 2))
    if not use_input_stats:
        if mean is None or var is None:
            facts = "running_mean and running_var are needed where use_input_stats is false"
            raise ArgumentError(f"{name}: {facts}{at_line()}")
        return affine(scaled(x, mean, var, eps, ones), weight, bias, ones)
    axes = tuple(range(2, x.ndim))
    n = count(x.shape, axes)
    if x.numel() and n < 2:
        facts = f"input of shape {x.shape} has one value a channel and example; it takes more"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    if x.numel():
        follow(name, mean, mean_of, x, axes, x.shape[:2], momentum)
        follow(name, var, variance_of, x, axes, x.shape[:2], momentum, n / (n - 1))
    return standardised(x, axes, eps, weight, bias, ones)


def last_axes(name: str, x: Any, normalized_shape: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape that a layer is normalised over, checked, and its axes of `x`."""
    given = normalized_shape if isinstance(normalized_shape, (tuple, list)) else [normalized_shape]
    shape = shape_of(name, (tuple(given),))
    if not shape or x.shape[max(x.ndim - len(shape), 0) :] != shape:
        facts = f"input of shape {x.shape} and normalized_shape {shape}"
        raise ShapeError(f"{name}: {facts}: they must agree in the last axes{at_line()}")
    return shape, tuple(range(x.ndim - len(shape), x.ndim))


@explained
@in_float32
@fused_when_hot
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Every example normalised over the last axes, those of `normalized_shape`.

    >>> import lucid
    >>> lucid.nn.functional.layer_norm(lucid.tensor([[1.0, 5.0], [5.0, 5.0]]), (2,), eps=12.0)
    Tensor([[-0.5,  0.5],
            [ 0. ,  0. ]])
    """
    name, x = "layer_norm", real("layer_norm", input)
    shape, axes = last_axes(name, x, normalized_shape)
    weight, bias = (vector(name, w, x, v, shape) for w, v in (("weight", weight), ("bias", bias)))
    centred, _, var = moments(x, axes)
    return affine(centred * rsqrt(var + number(name, eps, "eps")), weight, bias, shape)


@explained
@in_float32
@fused_when_hot
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """x over the root of the mean of its squares, over the last axes; eps None: that of the dtype.

    >>> import lucid
    >>> lucid.nn.functional.rms_norm(lucid.tensor([3.0, 4.0, 0.0, 0.0]), (4,))
    Tensor([1.2, 1.6, 0. , 0. ])
    """
    name, x = "rms_norm", to_floating(input)
    shape, axes = last_axes(name, x, normalized_shape)
    weight = vector(name, "weight", x, weight, shape)
    eps = float(np.finfo(x.dtype).eps) if eps is None else number(name, eps, "eps")
    squared = (x * x).sum(axis=axes) / float(max(count(x.shape, axes), 1))
    root = rsqrt(squared + eps).reshape(with_ones(x.shape, axes))
    return affine(x * root, weight, None, shape)


@explained
@in_float32
@fused_when_hot
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Groups of channels of every example normalised over their channels and all other axes."""
    name, x = "group_norm", real("group_norm", input)
    shape, groups = channels(name, x), whole("group_norm", num_groups, "num_groups", 1)
    if shape[0] % groups:
        facts = f"{shape[0]} channels are not {groups} groups of one size"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    weight, bias = (vector(name, w, x, v, shape) for w, v in (("weight", weight), ("bias", bias)))
    each = shape[0] // groups
    parts = x.reshape(x.shape[0], groups, each, math.prod(x.shape[2:]))
    centred, _, var = moments(parts, (2, 3))
    y = affine(centred * rsqrt(var + number(name, eps, "eps")), weight, bias, (groups, each, 1))
    return y.reshape(x.shape)


@explained
@in_float32
@fused_when_hot
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """x / (k + alpha m)**beta, where m is the mean of x² over `size` neighbouring channels."""
    name, x = "local_response_norm", real("local_response_norm", input)
    shape, size = channels(name, x, 3), whole(name, size, "size", 1)
    alpha, beta, k = (number(name, v, w) for v, w in ((alpha, "alpha"), (beta, "beta"), (k, "k")))
    if not x.numel():
        return x + 0
    widths = [0, 0] * (x.ndim - 2) + [size // 2, (size - 1) // 2]
    squares = pad(x * x, widths)
    near = slice_axis(squares, 1, 0, shape[0])
    for i in range(1, size):
        near = near + slice_axis(squares, 1, i, i + shape[0])
    return x / (near * (alpha / size) + k) ** beta


@explained
def normalize(
    input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, *, axis: Any = None
) -> Any:
    """x over its p-norm along `dim`, or over `eps` where that is greater.

    >>> import lucid
    >>> lucid.nn.functional.normalize(lucid.tensor([3.0, 4.0]), dim=0)
    Tensor([0.6, 0.8])
    """
    x, at = as_tensor(input), dim if axis is None else axis
    axes = axes_of("normalize", at, x.ndim)
    length = norm(x, p, axis=axes, keepdim=True)
    return x / clamp(length, number("normalize", eps, "eps"))
