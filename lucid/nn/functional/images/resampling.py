"""Resampling of images: interpolate to a new size, grid_sample at given coordinates."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.nn.functional.pooling.adaptive import adaptive_avg_pool
from lucid.nn.functional.spatial import Sizes, int_tuple
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.rounding import round as nearest
from lucid.ops.higher_order.expected_call import expect_calls
from lucid.ops.index.gather_scatter import Gather
from lucid.ops.nn.resample import Resample, cubic_weights
from lucid.ops.shape.joining import take_axis
from lucid.ops.shape.movement import Transpose
from lucid.ops.shape.shaping import movedim
from lucid.tape.bind import bind
from lucid.tape.node import wrap

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
MODES = ("nearest", "nearest-exact", *LINEAR, "bicubic", "area")


@public_function("nn.functional")
@expect_calls()
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Resize (N, C, ...) by the nearest element or by interpolation between neighbors.

    >>> import lucid
    >>> x = lucid.tensor([[[1.0, 3.0]]])
    >>> lucid.nn.functional.interpolate(x, 4, mode="linear")
    Tensor([[[1. , 1.5, 2.5, 3. ]]])
    """
    x = as_tensor(input)
    if mode not in MODES:
        raise ArgumentError(f"interpolate: mode must be one of {', '.join(MODES)}, not {mode!r}")
    if x.ndim not in (3, 4, 5):
        raise ShapeError(f"interpolate: {x.shape} is not (N, C, ...) with 1 to 3 spatial axes")
    axes = x.ndim - 2
    wanted = LINEAR.get(mode, 2 if mode == "bicubic" else axes)
    if wanted != axes:
        facts = f"mode {mode!r} needs {wanted} spatial axes, {x.shape} has {axes}"
        raise ShapeError(f"interpolate: {facts}")
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        facts = f"align_corners applies to linear modes and bicubic, not to {mode!r}"
        raise ArgumentError(f"interpolate: {facts}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError("interpolate: antialias applies only to bilinear and bicubic")
    sizes, scales = resolve_sizes(x.shape[2:], size, scale_factor, recompute_scale_factor)
    if 0 in x.shape[2:]:
        raise ShapeError(f"interpolate: an input of {x.shape} has no elements")
    if mode == "area":
        return adaptive_avg_pool("interpolate", axes, x, sizes)
    if x.dtype.kind not in "fc" and mode not in ("nearest", "nearest-exact"):
        facts = f"mode {mode!r} for an input of dtype {x.dtype}; cast it to a floating dtype"
        raise DTypeError(f"interpolate: {facts}")
    return resample_axes(x, sizes, scales, mode, bool(align_corners), bool(antialias))


def resolve_sizes(
    old: Sizes, size: Any, scale_factor: Any, recompute: Any
) -> tuple[Sizes, list[float]]:
    """Return the new size, and the number of old elements per new one, along each axis."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: give exactly one of size and scale_factor")
    if size is not None:
        if recompute:
            raise ArgumentError("interpolate: recompute_scale_factor needs a scale_factor")
        new = int_tuple("interpolate", "size", size, len(old), 1)
        return new, [n / m for n, m in zip(old, new)]
    given = scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * len(old)
    if len(given) != len(old) or not all(isinstance(f, (int, float)) and f > 0 for f in given):
        facts = f"scale_factor {scale_factor!r} for {len(old)} axes; give positive numbers"
        raise ArgumentError(f"interpolate: {facts}")
    new = tuple(math.floor(n * f) for n, f in zip(old, given))
    if 0 in new:
        raise ShapeError(f"interpolate: scale_factor {scale_factor!r} resizes {old} to {new}")
    return new, [n / m if recompute else 1 / f for n, m, f in zip(old, new, given)]


def resample_axes(
    x: Any, sizes: Sizes, scales: list[float], mode: str, corners: bool, antialias: bool
) -> Any:
    """Resample each axis in turn: shrinking axes from the first, growing axes from the last.

    Reading along the last axis is slowest, so it happens when there are fewest elements.
    """
    kind = "linear" if mode in LINEAR else "cubic" if mode == "bicubic" else mode
    known = list(zip(range(2, x.ndim), sizes, scales))
    growing = [each for each in known if each[1] > x.shape[each[0]]]
    for axis, m, scale in [each for each in known if each not in growing] + growing[::-1]:
        op = Resample(axis, x.shape[axis], m, kind, scale, corners, antialias)
        is_floating = x.dtype.kind in "fc"
        x = bind(op, x) if is_floating else take_axis(x, axis, op.table.indices)
    return x


@public_function("nn.functional")
def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """Call `interpolate`, under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@public_function("nn.functional")
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Call `interpolate` with mode "nearest", under its older name."""
    return interpolate(input, size, scale_factor, "nearest")


@public_function("nn.functional")
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Call `interpolate` with mode "bilinear" and aligned corners, under its older name."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


@public_function("nn.functional")
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Return the coordinates, from -1 to 1, of an image of `size` under affine maps (N, 2, 3).

    For volumes of size (N, C, D, H, W) the maps are (N, 3, 4).
    """
    theta = as_tensor(theta)
    size = tuple(operator.index(n) for n in size)
    axes = len(size) - 2
    if axes not in (2, 3) or min(size) < 1:
        raise ShapeError(f"affine_grid: size {size} is not (N, C, H, W) or (N, C, D, H, W)")
    if theta.shape != (size[0], axes, axes + 1):
        facts = (
            f"theta of shape {theta.shape} for size {size}; it must be {(size[0], axes, axes + 1)}"
        )
        raise ShapeError(f"affine_grid: {facts}")
    if theta.dtype.kind != "f":
        raise DTypeError(f"affine_grid: theta of dtype {theta.dtype}; cast it to a floating dtype")
    ends = [grid_coordinates(n, bool(align_corners)) for n in size[2:]]
    grids = np.meshgrid(*ends, indexing="ij")
    base = np.stack([*grids[::-1], np.ones(size[2:])], -1).reshape(-1, axes + 1)
    y = wrap(base.astype(theta.dtype)) @ movedim(theta, 1, 2)
    return y.reshape(size[0], *size[2:], axes)


def grid_coordinates(n: int, corners: bool) -> np.ndarray:
    """Return the coordinates of n elements; -1 and 1 are the outer centers or the edges."""
    if n == 1:
        return np.zeros(1)
    ends = np.linspace(-1, 1, n)
    return ends if corners else ends * (n - 1) / n


@public_function("nn.functional")
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """Sample (N, C, H, W) at coordinates (N, H', W', 2), which are x and y from -1 to 1.

    Volumes (N, C, D, H, W) are sampled at (N, D', H', W', 3).
    """
    x, grid = as_tensor(input), as_tensor(grid)
    check_grid_sample(x, grid, mode, padding_mode)
    sizes, axes = x.shape[2:], x.ndim - 2
    corners = bool(align_corners)
    at = [unnormalize(grid[..., axes - 1 - i], n, corners) for i, n in enumerate(sizes)]
    if mode != "bicubic":
        at = [apply_padding_mode(c, n, padding_mode, corners) for c, n in zip(at, sizes)]
    pixels = bind(Transpose((0, *range(2, x.ndim), 1)), x)
    total = None
    for weight, places in neighbors(at, mode):
        term = gather_pixels(
            pixels, places, sizes, padding_mode if mode == "bicubic" else "zeros", corners
        )
        term = term if weight is None else term * weight.reshape(*weight.shape, 1)
        total = term if total is None else total + term
    return bind(Transpose((0, x.ndim - 1, *range(1, x.ndim - 1))), total)


def check_grid_sample(x: Any, grid: Any, mode: Any, padding_mode: Any) -> None:
    """Check the arguments of `grid_sample`."""
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentError(f"grid_sample: mode must be bilinear, nearest or bicubic, not {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        facts = f"padding_mode must be zeros, border or reflection, not {padding_mode!r}"
        raise ArgumentError(f"grid_sample: {facts}")
    axes = x.ndim - 2
    fits = axes in (2, 3) and grid.ndim == x.ndim and grid.shape[-1] == axes
    if not fits or grid.shape[0] != x.shape[0] or 0 in x.shape[2:]:
        facts = f"an input of {x.shape} and a grid of {grid.shape}"
        shapes = "(N, C, H, W) and (N, H', W', 2), or (N, C, D, H, W) and (N, D', H', W', 3)"
        raise ShapeError(f"grid_sample: {facts}; they must be {shapes}")
    if mode == "bicubic" and axes != 2:
        raise ShapeError(f"grid_sample: mode 'bicubic' supports images only, got {x.shape}")
    if x.dtype != grid.dtype or x.dtype.kind != "f":
        facts = f"an input of {x.dtype} and a grid of {grid.dtype}"
        raise DTypeError(f"grid_sample: {facts}; they must have the same floating dtype")


def unnormalize(c: Any, n: int, corners: bool) -> Any:
    """Map a coordinate in [-1, 1] to a position among n elements."""
    return (c + 1) * ((n - 1) / 2) if corners else ((c + 1) * n - 1) / 2


def apply_padding_mode(c: Any, n: int, padding_mode: str, corners: bool) -> Any:
    """Clamp positions outside to the border, or reflect them at it."""
    if padding_mode == "zeros":
        return c
    if padding_mode == "reflection":
        low, span = (0.0, float(n - 1)) if corners else (-0.5, float(n))
        if span == 0:
            c = c * 0.0
        else:
            c = (c - low).abs()
            turns = floor(c / span)
            rest = c - turns * span
            odd = turns - 2.0 * floor(turns / 2.0)
            c = where(odd == 0, rest, span - rest) + low
    c = where(c == c, c, 0.0)
    return clamp(c, 0.0, float(n - 1))


def neighbors(at: list[Any], mode: str) -> list[tuple[Any, list[Any]]]:
    """Return the weights, and the positions along each axis, of the elements to read."""
    if mode == "nearest":
        return [(None, [nearest(c) for c in at])]
    first = [floor(c) for c in at]
    parts = [c - f for c, f in zip(at, first)]
    if mode == "bicubic":
        along = [
            list(zip(cubic_weights(t), (f - 1, f, f + 1, f + 2))) for t, f in zip(parts, first)
        ]
    else:
        along = [[(1 - t, f), (t, f + 1)] for t, f in zip(parts, first)]
    found = []
    for chosen in itertools.product(*along):
        weight = chosen[0][0]
        for w, _ in chosen[1:]:
            weight = weight * w
        found.append((weight, [place for _, place in chosen]))
    return found


def gather_pixels(
    pixels: Any, places: list[Any], sizes: Sizes, padding_mode: str, corners: bool
) -> Any:
    """Gather elements (N, ..., C) at integral positions; zeros outside."""
    inside, indices = None, []
    for c, n in zip(places, sizes):
        c = apply_padding_mode(c, n, padding_mode, corners)
        here = (c >= 0) & (c <= n - 1)
        inside = here if inside is None else inside & here
        indices.append(cast(where(here, c, 0.0), "int64"))
    found = bind(Gather(tuple(range(1, len(sizes) + 1)), 1), pixels, *indices)
    assert inside is not None
    return where(inside.reshape(*inside.shape, 1), found, 0.0)
