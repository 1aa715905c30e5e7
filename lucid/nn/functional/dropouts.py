"""Dropout: set random elements or channels to zero and rescale the others."""

from __future__ import annotations

import math
from typing import Any

from lucid.errors import ArgumentError, ShapeError
from lucid.nn.functional.activations import SELU_ALPHA, SELU_SCALE, maybe_inplace
from lucid.nn.functional.arguments import as_real, check_number
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import to_floating
from lucid.ops.elementwise.conditional import where
from lucid.random import rand

SELU_MINIMUM = -SELU_ALPHA * SELU_SCALE  # the limit of selu at -inf


def keep_mask(shape: tuple[int, ...], p: float) -> Any:
    """Return a mask that is True with probability 1 - p."""
    return rand(shape, dtype="float32") >= p


def check_probability(name: str, p: Any) -> float:
    """Return `p` as a float; raise ArgumentError unless it is in [0, 1]."""
    p = check_number(name, p, "p")
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: p={p}; it must be between 0 and 1")
    return p


def drop(x: Any, p: float, shape: tuple[int, ...]) -> Any:
    """Return x / (1 - p) or 0, drawn once per element of `shape`."""
    return where(keep_mask(shape, p), x if p == 1 else x * (1 / (1 - p)), 0.0)


def alpha_drop(x: Any, p: float, shape: tuple[int, ...]) -> Any:
    """Apply alpha dropout, which preserves mean and variance."""
    if p == 1:
        return where(keep_mask(shape, p), x, 0.0)
    scale = 1 / math.sqrt((1 - p) * (1 + p * SELU_MINIMUM**2))
    return where(keep_mask(shape, p), x, SELU_MINIMUM) * scale - scale * SELU_MINIMUM * p


@public_function("lucid", "nn.functional")
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set elements to zero with probability `p` and divide the others by 1 - p; x in evaluation.

    >>> import lucid
    >>> lucid.nn.functional.dropout(lucid.ones(3), 0.5, training=False)
    Tensor([1., 1., 1.])
    """
    x, p = as_real("dropout", input), check_probability("dropout", p)
    if not training or p == 0:
        return x
    return maybe_inplace("dropout", drop, x, inplace, p, x.shape)


@public_function("lucid", "nn.functional")
def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Set random elements to the lower bound of selu and rescale all: mean and variance stay."""
    x, p = to_floating(input), check_probability("alpha_dropout", p)
    if not training or p == 0:
        return x
    return maybe_inplace("alpha_dropout", alpha_drop, x, inplace, p, x.shape)


@public_function("lucid", "nn.functional")
def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """Apply `alpha_dropout` to entire channels (axis 1)."""
    x, p = to_floating(input), check_probability("feature_alpha_dropout", p)
    if x.ndim < 2:
        facts = f"input of shape {x.shape}; it must be (batch, channels, ...)"
        raise ShapeError(f"feature_alpha_dropout: {facts}")
    if not training or p == 0:
        return x
    return maybe_inplace(
        "feature_alpha_dropout", alpha_drop, x, inplace, p, channel_mask_shape(x, 1)
    )


@public_function("nn.functional")
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set random channels of (batch, channel, length) or (channel, length) to zero."""
    return drop_channels("dropout1d", input, p, training, inplace, {2: 0, 3: 1})


@public_function("nn.functional")
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set random channels of (batch, channel, height, width) or (batch, channel, length) to 0."""
    return drop_channels("dropout2d", input, p, training, inplace, {2: 1, 3: 1, 4: 1})


@public_function("nn.functional")
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set random channels of (batch, channel, d, h, w) or (channel, d, h, w) to zero."""
    return drop_channels("dropout3d", input, p, training, inplace, {4: 0, 5: 1})


def drop_channels(
    name: str, input: Any, p: Any, training: Any, inplace: Any, axes: dict[int, int]
) -> Any:
    """Apply dropout per channel; `axes` maps the rank of the input to its channel axis."""
    x, p = as_real(name, input), check_probability(name, p)
    if x.ndim not in axes:
        wanted = " or ".join(map(str, axes))
        raise ShapeError(f"{name}: input of shape {x.shape}; it must have {wanted} axes")
    if not training or p == 0:
        return x
    return maybe_inplace(name, drop, x, inplace, p, channel_mask_shape(x, axes[x.ndim]))


def channel_mask_shape(x: Any, axis: int) -> tuple[int, ...]:
    """Return the shape of `x` up to the channel axis, with 1 for all later axes."""
    return tuple(n if i <= axis else 1 for i, n in enumerate(x.shape))
