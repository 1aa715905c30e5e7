"""Images at other places: interpolate along each axis in turn, grid_sample at any coordinates."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.nn.functional.pooling.adaptive import average
from lucid.nn.functional.spatial import Sizes, numbers
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.rounding import round as nearest
from lucid.ops.index.gather_scatter import Gather
from lucid.ops.nn.resample import Resample, cubic
from lucid.ops.shape.joining import take_axis
from lucid.ops.shape.movement import Transpose
from lucid.ops.shape.shaping import movedim
from lucid.tape.bind import bind
from lucid.tape.node import wrap

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
MODES = ("nearest", "nearest-exact", *LINEAR, "bicubic", "area")


@explained
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """(N, C, ...) at another size, by the nearest element or weights of those around.

    >>> import lucid
    >>> x = lucid.tensor([[[1.0, 3.0]]])
    >>> lucid.nn.functional.interpolate(x, 4, mode="linear")
    Tensor([[[1. , 1.5, 2.5, 3. ]]])
    """
    x = as_tensor(input)
    if mode not in MODES:
        facts = f"mode is one of {', '.join(MODES)}, not {mode!r}"
        raise ArgumentError(f"interpolate: {facts}{at_line()}")
    if x.ndim not in (3, 4, 5):
        raise ShapeError(f"interpolate: {x.shape} is not (N, C, ...) with 1 to 3 axes{at_line()}")
    axes = x.ndim - 2
    wanted = LINEAR.get(mode, 2 if mode == "bicubic" else axes)
    if wanted != axes:
        facts = f"mode {mode!r} is for {wanted} axes, {x.shape} has {axes}"
        raise ShapeError(f"interpolate: {facts}{at_line()}")
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        facts = f"align_corners is for linear modes and bicubic, not {mode!r}"
        raise ArgumentError(f"interpolate: {facts}{at_line()}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(f"interpolate: antialias is for bilinear and bicubic{at_line()}")
    sizes, scales = sizes_of(x.shape[2:], size, scale_factor, recompute_scale_factor)
    if 0 in x.shape[2:]:
        raise ShapeError(f"interpolate: an input of {x.shape} has no elements{at_line()}")
    if mode == "area":
        return average("interpolate", axes, x, sizes)
    if x.dtype.kind not in "fc" and mode not in ("nearest", "nearest-exact"):
        facts = f"mode {mode!r} for an input of dtype {x.dtype}; cast it to a floating one"
        raise DTypeError(f"interpolate: {facts}{at_line()}")
    return resampled(x, sizes, scales, mode, bool(align_corners), bool(antialias))


def sizes_of(old: Sizes, size: Any, scale_factor: Any, recompute: Any) -> tuple[Sizes, list[float]]:
    """The new size, and how many old elements there are for a new one, along each axis."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError(f"interpolate: give size or scale_factor, and not both{at_line()}")
    if size is not None:
        if recompute:
            raise ArgumentError(f"interpolate: recompute_scale_factor needs one{at_line()}")
        new = numbers("interpolate", "size", size, len(old), 1)
        return new, [n / m for n, m in zip(old, new)]
    given = scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * len(old)
    if len(given) != len(old) or not all(isinstance(f, (int, float)) and f > 0 for f in given):
        facts = f"scale_factor {scale_factor!r} for {len(old)} axes; it is positive numbers"
        raise ArgumentError(f"interpolate: {facts}{at_line()}")
    new = tuple(math.floor(n * f) for n, f in zip(old, given))
    if 0 in new:
        facts = f"scale_factor {scale_factor!r} makes {new} of {old}"
        raise ShapeError(f"interpolate: {facts}{at_line()}")
    return new, [n / m if recompute else 1 / f for n, m, f in zip(old, new, given)]


def resampled(
    x: Any, sizes: Sizes, scales: list[float], mode: str, corners: bool, antialias: bool
) -> Any:
    """Each axis in turn: those that shrink from the first, those that grow from the last.

    Reading along the last axis takes longest, so it is done where there are fewest elements.
    """
    kind = "linear" if mode in LINEAR else "cubic" if mode == "bicubic" else mode
    known = list(zip(range(2, x.ndim), sizes, scales))
    growing = [each for each in known if each[1] > x.shape[each[0]]]
    for axis, m, scale in [each for each in known if each not in growing] + growing[::-1]:
        op = Resample(axis, x.shape[axis], m, kind, scale, corners, antialias)
        floating = x.dtype.kind in "fc"
        x = bind(op, x) if floating else take_axis(x, axis, op.table.places)
    return x


@explained
def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """interpolate, by its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@explained
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate by the nearest element, by its older name."""
    return interpolate(input, size, scale_factor, "nearest")


@explained
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate with mode "bilinear" and aligned corners, by its older name."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


@explained
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """The coordinates, from -1 to 1, of an image of `size` under affine maps (N, 2, 3).

    For volumes of size (N, C, D, H, W) the maps are (N, 3, 4).
    """
    theta = as_tensor(theta)
    size = tuple(operator.index(n) for n in size)
    axes = len(size) - 2
    if axes not in (2, 3) or min(size) < 1:
        raise ShapeError(
            f"affine_grid: size {size} is not (N, C, H, W) or (N, C, D, H, W){at_line()}"
        )
    if theta.shape != (size[0], axes, axes + 1):
        facts = f"maps of {theta.shape} for size {size}; they must be {(size[0], axes, axes + 1)}"
        raise ShapeError(f"affine_grid: {facts}{at_line()}")
    if theta.dtype.kind != "f":
        raise DTypeError(f"affine_grid: maps of dtype {theta.dtype}; cast them{at_line()}")
    ends = [centres(n, bool(align_corners)) for n in size[2:]]
    grids = np.meshgrid(*ends, indexing="ij")
    base = np.stack([*grids[::-1], np.ones(size[2:])], -1).reshape(-1, axes + 1)
    y = wrap(base.astype(theta.dtype)) @ movedim(theta, 1, 2)
    return y.reshape(size[0], *size[2:], axes)


def centres(n: int, corners: bool) -> np.ndarray:
    """The coordinates of n elements: the ends are -1 and 1, or lie half an element further out."""
    if n == 1:
        return np.zeros(1)
    ends = np.linspace(-1, 1, n)
    return ends if corners else ends * (n - 1) / n


@explained
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """(N, C, H, W) read at coordinates (N, H', W', 2), which are x and y from -1 to 1.

    Volumes (N, C, D, H, W) are read at (N, D', H', W', 3).
    """
    x, grid = as_tensor(input), as_tensor(grid)
    check_sampling(x, grid, mode, padding_mode)
    sizes, axes = x.shape[2:], x.ndim - 2
    corners = bool(align_corners)
    at = [placed(grid[..., axes - 1 - i], n, corners) for i, n in enumerate(sizes)]
    if mode != "bicubic":
        at = [brought_in(c, n, padding_mode, corners) for c, n in zip(at, sizes)]
    pixels = bind(Transpose((0, *range(2, x.ndim), 1)), x)
    total = None
    for weight, places in neighbours(at, mode):
        term = read(pixels, places, sizes, padding_mode if mode == "bicubic" else "zeros", corners)
        term = term if weight is None else term * weight.reshape(*weight.shape, 1)
        total = term if total is None else total + term
    return bind(Transpose((0, x.ndim - 1, *range(1, x.ndim - 1))), total)


def check_sampling(x: Any, grid: Any, mode: Any, padding_mode: Any) -> None:
    if mode not in ("bilinear", "nearest", "bicubic"):
        facts = f"mode is bilinear, nearest or bicubic, not {mode!r}"
        raise ArgumentError(f"grid_sample: {facts}{at_line()}")
    if padding_mode not in ("zeros", "border", "reflection"):
        facts = f"padding_mode is zeros, border or reflection, not {padding_mode!r}"
        raise ArgumentError(f"grid_sample: {facts}{at_line()}")
    axes = x.ndim - 2
    fits = axes in (2, 3) and grid.ndim == x.ndim and grid.shape[-1] == axes
    if not fits or grid.shape[0] != x.shape[0] or 0 in x.shape[2:]:
        facts = f"an input of {x.shape} and a grid of {grid.shape}"
        remedy = "they are (N, C, H, W) and (N, H', W', 2), or of volumes"
        raise ShapeError(f"grid_sample: {facts}; {remedy}{at_line()}")
    if mode == "bicubic" and axes != 2:
        raise ShapeError(f"grid_sample: mode 'bicubic' is for images, not {x.shape}{at_line()}")
    if x.dtype != grid.dtype or x.dtype.kind != "f":
        facts = f"an input of {x.dtype} and a grid of {grid.dtype}"
        raise DTypeError(f"grid_sample: {facts}; both are of one floating dtype{at_line()}")


def placed(c: Any, n: int, corners: bool) -> Any:
    """A coordinate from -1 to 1 as a place among n elements."""
    return (c + 1) * ((n - 1) / 2) if corners else ((c + 1) * n - 1) / 2


def brought_in(c: Any, n: int, padding_mode: str, corners: bool) -> Any:
    """A place outside, moved to the border or reflected at it."""
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


def neighbours(at: list[Any], mode: str) -> list[tuple[Any, list[Any]]]:
    """Weights, and places along each axis, of the elements that are read."""
    if mode == "nearest":
        return [(None, [nearest(c) for c in at])]
    first = [floor(c) for c in at]
    parts = [c - f for c, f in zip(at, first)]
    if mode == "bicubic":
        along = [list(zip(cubic(t), (f - 1, f, f + 1, f + 2))) for t, f in zip(parts, first)]
    else:
        along = [[(1 - t, f), (t, f + 1)] for t, f in zip(parts, first)]
    found = []
    for chosen in itertools.product(*along):
        weight = chosen[0][0]
        for w, _ in chosen[1:]:
            weight = weight * w
        found.append((weight, [place for _, place in chosen]))
    return found


def read(pixels: Any, places: list[Any], sizes: Sizes, padding_mode: str, corners: bool) -> Any:
    """Elements (N, ..., C) at whole places; zeros outside."""
    inside, indices = None, []
    for c, n in zip(places, sizes):
        c = brought_in(c, n, padding_mode, corners)
        here = (c >= 0) & (c <= n - 1)
        inside = here if inside is None else inside & here
        indices.append(cast(where(here, c, 0.0), "int64"))
    found = bind(Gather(tuple(range(1, len(sizes) + 1)), 1), pixels, *indices)
    assert inside is not None
    return where(inside.reshape(*inside.shape, 1), found, 0.0)
