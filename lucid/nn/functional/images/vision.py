"""Image rearrangement: pad, unfold, fold, pixel and channel shuffles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.nn.functional.spatial import Sizes, add_batch_axis, drop_batch_axis, int_tuple
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_shape
from lucid.ops.core.promote import as_tensor
from lucid.ops.index.gather_scatter import ScatterAdd
from lucid.ops.shape.copying import unshared
from lucid.ops.shape.joining import pad as pad_ends
from lucid.ops.shape.joining import take_axis
from lucid.ops.shape.movement import Pad, Transpose
from lucid.ops.shape.shaping import movedim
from lucid.tape.bind import bind
from lucid.tape.node import wrap

PAD_MODES = ("constant", "reflect", "replicate", "circular")


@public_function("nn.functional")
def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Pad the last axes of `input`: pairs (before, after), last axis first.

    >>> import lucid
    >>> lucid.nn.functional.pad(lucid.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    Tensor([[3., 2., 1., 2., 3., 2.]])
    """
    x = as_tensor(input)
    if mode not in PAD_MODES:
        raise ArgumentError(f"pad: mode must be one of {', '.join(PAD_MODES)}, not {mode!r}")
    widths = canonicalize_shape("pad", (pad,))
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        facts = f"{len(widths)} widths for a tensor of {x.ndim} axes"
        raise ShapeError(f"pad: {facts}; give a pair for each of the last axes")
    if mode == "constant":
        sizes = x.shape[::-1]
        for i, n in zip(range(0, len(widths), 2), sizes):
            if n + widths[i] + widths[i + 1] < 0:
                raise ShapeError(f"pad: widths {widths[i : i + 2]} for an axis of size {n}")
        return pad_ends(x, widths, "constant", 0 if value is None else value)
    if value is not None and value != 0:
        raise ArgumentError(f"pad: mode {mode!r} takes no value, got {value!r}")
    for i in range(0, len(widths), 2):
        x = pad_axis(mode, x, x.ndim - 1 - i // 2, widths[i], widths[i + 1])
    return x


def pad_axis(mode: str, x: Any, axis: int, before: int, after: int) -> Any:
    """Pad one axis by gathering at the indices of the mode; negative widths crop."""
    n = x.shape[axis]
    most = {"reflect": n - 1, "circular": n}.get(mode, max(before, after) if n else 0)
    if max(before, after) > most or n + before + after < 0:
        facts = f"widths {(before, after)} for an axis of size {n}"
        raise ShapeError(f"pad: {facts} in mode {mode}; they must be at most {max(most, 0)}")
    places = np.arange(-before, n + after)
    if mode == "replicate":
        places = places.clip(0, max(n - 1, 0))
    elif mode == "circular":  # wraps around what negative widths leave
        left = np.arange(max(-before, 0), n + min(after, 0))
        places = left[np.arange(-max(before, 0), left.size + max(after, 0)) % max(left.size, 1)]
    else:
        places = n - 1 - abs(n - 1 - abs(places))
    return x if not (before or after) else take_axis(x, axis, places)


def window_indices(
    name: str, size: Sizes, window: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[np.ndarray, Sizes, Sizes]:
    """Return the flat index of every window element, the padding and the padded size."""
    window = int_tuple(name, "kernel_size", window, 2, 1)
    dilation = int_tuple(name, "dilation", dilation, 2, 1)
    padding = int_tuple(name, "padding", padding, 2)
    stride = int_tuple(name, "stride", stride, 2, 1)
    whole = tuple(n + 2 * p for n, p in zip(size, padding))
    along = []
    for n, k, d, s in zip(whole, window, dilation, stride):
        count = (n - (k - 1) * d - 1) // s + 1
        if count < 1:
            facts = f"windows of {window} do not fit into {size} with padding {padding}"
            raise ShapeError(f"{name}: {facts}")
        along.append(np.arange(k)[:, None] * d + np.arange(count) * s)
    rows, across = along
    places = rows[:, None, :, None] * whole[1] + across[None, :, None, :]
    return places.reshape(math.prod(window), -1), padding, whole


@public_function("nn.functional")
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Return the windows of images (N, C, H, W) as columns: (N, C KH KW, number of windows).

    >>> import lucid
    >>> lucid.nn.functional.unfold(lucid.arange(6.0).reshape(1, 1, 2, 3), 2)
    Tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    x, was_batched = add_batch_axis("unfold", input, 2)
    places, padding, whole = window_indices(
        "unfold", x.shape[2:], kernel_size, dilation, padding, stride
    )
    low = (0, 0, *padding)
    x = bind(Pad(low, low, (0, 0, 0, 0)), x) if any(padding) else x
    flat = x.reshape(*x.shape[:2], math.prod(whole))
    y = take_axis(flat, 2, places.reshape(-1))
    y = y.reshape(x.shape[0], x.shape[1] * places.shape[0], places.shape[1])
    return drop_batch_axis(y, was_batched)


@public_function("nn.functional")
def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """The adjoint of unfold: sum columns (N, C KH KW, windows) into images (N, C, H, W).

    >>> import lucid
    >>> lucid.nn.functional.fold(lucid.ones(1, 4, 2), (2, 3), 2).reshape(2, 3)
    Tensor([[1., 2., 1.],
            [1., 2., 1.]])
    """
    x, was_batched = add_batch_axis("fold", input, 1)
    if x.dtype.kind == "b":
        raise DTypeError("fold: booleans cannot be summed; cast them first")
    size = int_tuple("fold", "output_size", output_size, 2, 1)
    places, padding, whole = window_indices("fold", size, kernel_size, dilation, padding, stride)
    taps, count = places.shape
    if x.shape[1] % taps or x.shape[2] != count:
        facts = f"columns of {x.shape[1:]} for {count} windows of {taps} elements each"
        raise ShapeError(f"fold: {facts}")
    channels = x.shape[1] // taps
    updates = movedim(x.reshape(x.shape[0], channels, taps * count), 2, 0)
    scatter = ScatterAdd((x.shape[0], channels, math.prod(whole)), (2,))
    y = bind(scatter, updates, wrap(places.reshape(-1)))
    y = y.reshape(x.shape[0], channels, *whole)
    (a, b), (h, w) = padding, size
    return drop_batch_axis(y[:, :, a : a + h, b : b + w] if a or b else y, was_batched)


@public_function("lucid", "nn.functional")
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """Rearrange (..., C r², H, W) to (..., C, H r, W r): channels become r x r blocks of pixels."""
    x, r = check_image("pixel_shuffle", input), check_factor("pixel_shuffle", upscale_factor)
    *outer, c, h, w = x.shape
    if c % (r * r):
        raise ShapeError(f"pixel_shuffle: {c} channels are not a multiple of {r * r}")
    x = x.reshape(*outer, c // (r * r), r, r, h, w)
    n = len(outer)
    y = bind(Transpose((*range(n + 1), n + 3, n + 1, n + 4, n + 2)), x)
    return unshared(y.reshape(*outer, c // (r * r), h * r, w * r))


@public_function("lucid", "nn.functional")
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Rearrange (..., C, H r, W r) to (..., C r², H, W): r x r blocks of pixels become channels."""
    x, r = check_image("pixel_unshuffle", input), check_factor("pixel_unshuffle", downscale_factor)
    *outer, c, h, w = x.shape
    if h % r or w % r:
        facts = f"an image of {(h, w)} is not divisible into blocks of {(r, r)}"
        raise ShapeError(f"pixel_unshuffle: {facts}")
    x = x.reshape(*outer, c, h // r, r, w // r, r)
    n = len(outer)
    y = bind(Transpose((*range(n + 1), n + 2, n + 4, n + 1, n + 3)), x)
    return unshared(y.reshape(*outer, c * r * r, h // r, w // r))


@public_function("lucid", "nn.functional")
def channel_shuffle(input: Any, groups: int) -> Any:
    """Rearrange channels (N, g c, ...) to (N, c g, ...), interleaving the groups.

    >>> import lucid
    >>> lucid.nn.functional.channel_shuffle(lucid.arange(4.0).reshape(1, 4, 1), 2).reshape(4)
    Tensor([0., 2., 1., 3.])
    """
    x, g = as_tensor(input), check_factor("channel_shuffle", groups, "groups")
    if x.ndim < 3:
        raise ShapeError(f"channel_shuffle: {x.shape} has fewer than 3 axes")
    if x.shape[1] % g:
        facts = f"{x.shape[1]} channels are not divisible into {g} groups"
        raise ShapeError(f"channel_shuffle: {facts}")
    apart = x.reshape(x.shape[0], g, x.shape[1] // g, *x.shape[2:])
    y = bind(Transpose((0, 2, 1, *range(3, apart.ndim))), apart)
    return unshared(y.reshape(x.shape))


def check_image(name: str, x: Any) -> Any:
    """Return `x` as a tensor; raise ShapeError unless it has the axes (C, H, W)."""
    x = as_tensor(x)
    if x.ndim < 3:
        raise ShapeError(f"{name}: {x.shape} has fewer than the 3 axes (C, H, W)")
    return x


def check_factor(name: str, value: Any, what: str = "the factor") -> int:
    """Return a positive integer; raise ArgumentError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{name}: {what} is {value!r}; it must be a positive integer")
    return value
