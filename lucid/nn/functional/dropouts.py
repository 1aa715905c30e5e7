"""Dropout: elements or channels set to zero at random, the others scaled to make up for it."""

from __future__ import annotations

import math
from typing import Any

from lucid.errors import ArgumentError, ShapeError
from lucid.ir.source import at_line
from lucid.nn.functional.activations import SELU_ALPHA, SELU_SCALE, run
from lucid.nn.functional.arguments import number, real
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import to_floating
from lucid.ops.elementwise.conditional import where
from lucid.random import rand

FLOOR = -SELU_ALPHA * SELU_SCALE  # what selu tends to far below zero


def kept(shape: tuple[int, ...], p: float) -> Any:
    """True with probability 1 - p."""
    return rand(shape, dtype="float32") >= p


def chance(name: str, p: Any) -> float:
    p = number(name, p, "p")
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: p={p}; a probability lies between 0 and 1{at_line()}")
    return p


def dropped(x: Any, p: float, shape: tuple[int, ...]) -> Any:
    """x / (1 - p) or 0, with one decision for each element of `shape`."""
    return where(kept(shape, p), x if p == 1 else x * (1 / (1 - p)), 0.0)


def bent(x: Any, p: float, shape: tuple[int, ...]) -> Any:
    """What alpha dropout makes of `x`: mean and variance stay what they were."""
    if p == 1:
        return where(kept(shape, p), x, 0.0)
    scale = 1 / math.sqrt((1 - p) * (1 + p * FLOOR**2))
    return where(kept(shape, p), x, FLOOR) * scale - scale * FLOOR * p


@explained
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Elements set to zero with probability `p`, the others divided by 1 - p; x if not training.

    >>> import lucid
    >>> lucid.nn.functional.dropout(lucid.ones(3), 0.5, training=False)
    Tensor([1., 1., 1.])
    """
    x, p = real("dropout", input), chance("dropout", p)
    if not training or p == 0:
        return x
    return run("dropout", dropped, x, inplace, p, x.shape)


@explained
def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Elements set to selu's lower bound at random, and all rescaled: mean and variance stay."""
    x, p = to_floating(input), chance("alpha_dropout", p)
    if not training or p == 0:
        return x
    return run("alpha_dropout", bent, x, inplace, p, x.shape)


@explained
def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """`alpha_dropout` of whole channels (axis 1)."""
    x, p = to_floating(input), chance("feature_alpha_dropout", p)
    if x.ndim < 2:
        facts = f"input of shape {x.shape}; it is (batch, channels, ...)"
        raise ShapeError(f"feature_alpha_dropout: {facts}{at_line()}")
    if not training or p == 0:
        return x
    return run("feature_alpha_dropout", bent, x, inplace, p, whole_channels(x, 1))


@explained
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Channels of (batch, channel, length) or (channel, length) set to zero at random."""
    return of_channels("dropout1d", input, p, training, inplace, {2: 0, 3: 1})


@explained
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Channels of (batch, channel, height, width) or (batch, channel, length) set to zero."""
    return of_channels("dropout2d", input, p, training, inplace, {3: 1, 4: 1})


@explained
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Channels of (batch, channel, d, h, w) or (channel, d, h, w) set to zero at random."""
    return of_channels("dropout3d", input, p, training, inplace, {4: 0, 5: 1})


def of_channels(
    name: str, input: Any, p: Any, training: Any, inplace: Any, axes: dict[int, int]
) -> Any:
    """Dropout with one decision a channel; `axes` gives its axis by the number of axes."""
    x, p = real(name, input), chance(name, p)
    if x.ndim not in axes:
        wanted = " or ".join(map(str, axes))
        raise ShapeError(f"{name}: input of shape {x.shape}; it has {wanted} axes{at_line()}")
    if not training or p == 0:
        return x
    return run(name, dropped, x, inplace, p, whole_channels(x, axes[x.ndim]))


def whole_channels(x: Any, axis: int) -> tuple[int, ...]:
    """The shape of `x` up to the axis of channels, with 1 for all axes behind it."""
    return tuple(n if i <= axis else 1 for i, n in enumerate(x.shape))
