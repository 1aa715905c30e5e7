"""Joining and splitting tensors: stack, cat, split, roll, pad, meshgrid."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import (
    axis_op,
    canonicalize_axis,
    canonicalize_shape,
    resolve_alias,
)
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.index.gather_scatter import Gather
from lucid.ops.shape.concatenate import Concatenate, Stack
from lucid.ops.shape.copying import COPY, unshared
from lucid.ops.shape.creation import full
from lucid.ops.shape.movement import (
    Pad,
    Reshape,
    Transpose,
    broadcast_to,
    slice_axis,
    slice_op,
    with_size,
)
from lucid.ops.shape.shaping import atleast_1d, atleast_2d, expand_dims, movedim, ravel
from lucid.public.declare import public
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.fast_bind import bind_pair, bind_view
from lucid.tape.node import Traced, wrap

MAX_SECTIONS = 1 << 24  # a tensor for each of them


def promote_sequence(name: str, tensors: Any) -> list[Any]:
    """Return the tensors of a sequence, or the rows of one tensor, promoted to one dtype."""
    if tensors.__class__ is not list:
        tensors = list(as_tensor(tensors) if isinstance(tensors, np.ndarray) else tensors)
    if not tensors:
        raise ShapeError(f"{name}: the sequence is empty; give at least one tensor")
    dtype = None
    for x in tensors:
        if not isinstance(x, Traced) or (value := x.raw) is None:
            break
        if value.dtype is not dtype:
            if dtype is not None:
                break
            dtype = value.dtype
    else:
        return tensors
    return promote(*[as_tensor(x) for x in tensors])


@public_function(aliases=("concat",))
def cat(tensors: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """Concatenate tensors along an axis.

    >>> import lucid
    >>> lucid.cat([lucid.zeros(2), lucid.ones(1)])
    Tensor([0., 0., 1.])
    """
    xs = promote_sequence("cat", tensors)
    for x in xs:
        shape = x.shape if x.raw is None else x.raw.shape
        if shape == (0,):  # PyTorch lets an empty vector join anything
            xs = [x for x in xs if x.shape != (0,)] or xs[:1]
            shape = xs[0].shape
            break
    ndim = len(shape)
    if not ndim:
        remedy = "use stack, and pass several tensors as one list: cat([x, y])"
        raise ShapeError(f"cat: a 0-d tensor has no axis to join along; {remedy}")
    op = axis_op(Concatenate, "cat", ndim, dim, axis, 0)
    return bind_pair(op, xs[0], xs[1], 3) if len(xs) == 2 else bind(op, *xs)


@public_function()
def concatenate(tensors: Any, axis: Any = 0, *, dim: Any = None) -> Any:
    """`cat`; with axis None, of the flattened tensors."""
    if axis is None and dim is None:
        return cat([ravel(x) for x in promote_sequence("concatenate", tensors)])
    return cat(tensors, axis if dim is None else dim)


@public_function()
def stack(tensors: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """Stack tensors of one shape along a new axis.

    >>> import lucid
    >>> lucid.stack([lucid.zeros(2), lucid.ones(2)])
    Tensor([[0., 0.],
            [1., 1.]])
    """
    xs = promote_sequence("stack", tensors)
    shape = xs[0].shape
    for x in xs:
        if (x.shape if x.raw is None else x.raw.shape) != shape:
            raise ShapeError(f"stack: shapes {shape} and {x.shape} differ")
    op = axis_op(Stack, "stack", len(shape) + 1, dim, axis, 0)
    return bind_pair(op, xs[0], xs[1], 3) if len(xs) == 2 else bind(op, *xs)


@public_function()
def hstack(tensors: Any) -> Any:
    """Concatenate horizontally: along axis 1, vectors along axis 0."""
    xs = [atleast_1d(x) for x in promote_sequence("hstack", tensors)]
    return cat(xs, 0 if xs[0].ndim == 1 else 1)


@public_function(aliases=("row_stack",))
def vstack(tensors: Any) -> Any:
    """Concatenate vertically: along axis 0, vectors as rows."""
    return cat([atleast_2d(x) for x in promote_sequence("vstack", tensors)], 0)


@public_function()
def column_stack(tensors: Any) -> Any:
    """Concatenate along axis 1, vectors as columns."""
    xs = promote_sequence("column_stack", tensors)
    return cat([x if x.ndim > 1 else x.reshape(-1, 1) for x in xs], 1)


@public_function()
def dstack(tensors: Any) -> Any:
    """Concatenate depthwise: along axis 2."""
    xs = [atleast_2d(x) for x in promote_sequence("dstack", tensors)]
    return cat([x if x.ndim > 2 else expand_dims(x, 2) for x in xs], 2)


def slices_of_sizes(x: Any, axis: int, sizes: list[int]) -> tuple[Any, ...]:
    """Return consecutive slices of the given sizes along an axis."""
    ends = list(itertools.accumulate(sizes))
    return tuple(slice_axis(x, axis, end - n, end) for n, end in zip(sizes, ends))


@public_function("lucid", "Tensor", aliases=("unsafe_split",))
def split(
    tensor: Any,
    split_size_or_sections: Any = None,
    dim: Any = None,
    *,
    split_size: Any = None,
    axis: Any = None,
) -> tuple[Any, ...]:
    """Split into pieces of one size (the last may be smaller), or of the given sizes.

    >>> import lucid
    >>> [p.shape for p in lucid.split(lucid.zeros(5), 2)]
    [(2,), (2,), (1,)]
    """
    x = as_tensor(tensor)
    shape = x.shape
    at = axis_op(Concatenate, "split", len(shape), dim, axis, 0).axis
    n = shape[at]
    if split_size_or_sections.__class__ is int and split_size is None:
        ops = split_ops(shape, at, split_size_or_sections)
        return tuple([bind_view(op, x, 3) for op in ops])
    names = ("split_size_or_sections", split_size_or_sections), ("split_size", split_size)
    parts = resolve_alias("split", *names)
    if isinstance(parts, (list, tuple)):
        sizes = [operator.index(s) for s in parts]
        if sum(sizes) != n or min(sizes, default=0) < 0:
            raise ShapeError(f"split: sections {sizes} do not add up to size {n} of axis {at}")
        return slices_of_sizes(x, at, sizes)
    return tuple([bind_view(op, x, 3) for op in split_ops(shape, at, operator.index(parts))])


@memoize(maxsize=4096)
def split_ops(shape: tuple[int, ...], axis: int, size: int) -> tuple[Any, ...]:
    """Return the slices of one size, of which the last may be smaller, that make up a shape."""
    if size < 1:
        raise ShapeError(f"split: split_size {size}; it must be at least 1")
    n = shape[axis]
    starts = range(0, n, size) or (0,)
    return tuple([slice_op(shape, axis, start, min(start + size, n), 1) for start in starts])


@public_function("lucid", "Tensor", aliases=("unsafe_chunk",))
def chunk(input: Any, chunks: int, dim: Any = None, *, axis: Any = None) -> tuple[Any, ...]:
    """Split into at most `chunks` pieces of equal size; the last may be smaller."""
    x = as_tensor(input)
    at = canonicalize_axis("chunk", resolve_alias("chunk", ("dim", dim), ("axis", axis), 0), x.ndim)
    if chunks < 1:
        raise ShapeError(f"chunk: chunks={chunks}; it must be at least 1")
    return split(x, max(-(-x.shape[at] // chunks), 1), at)


@public(name="array_split")
@public_function("lucid", "Tensor")
@aliases(indices_or_sections=("sections", "indices", "tensor_indices_or_sections"))
def tensor_split(
    input: Any, indices_or_sections: Any, dim: Any = None, *, axis: Any = None
) -> tuple[Any, ...]:
    """Split into sections of nearly equal size, or at indices; NumPy's array_split."""
    x = as_tensor(input)
    at = canonicalize_axis(
        "tensor_split", resolve_alias("tensor_split", ("dim", dim), ("axis", axis), 0), x.ndim
    )
    n = x.shape[at]
    if isinstance(indices_or_sections, (np.ndarray, Traced)):
        indices_or_sections = as_tensor(indices_or_sections).tolist()
    if isinstance(indices_or_sections, (list, tuple)):
        cuts = [0, *[slice(c).indices(n)[1] for c in indices_or_sections], n]
        return tuple(slice_axis(x, at, a, max(a, b)) for a, b in itertools.pairwise(cuts))
    count = operator.index(indices_or_sections)
    if not 1 <= count <= MAX_SECTIONS:
        raise ShapeError(f"tensor_split: {count} sections; there must be 1 to {MAX_SECTIONS}")
    return slices_of_sizes(x, at, [n // count + (i < n % count) for i in range(count)])


@public_function("lucid", "Tensor")
def roll(input: Any, shifts: Any, dims: Any = None, *, axis: Any = None) -> Any:
    """Shift `input` along axes; elements that leave one end reenter at the other.

    >>> import lucid
    >>> lucid.roll(lucid.arange(4), 1)
    Tensor([3, 0, 1, 2])
    """
    x = as_tensor(input)
    axes = resolve_alias("roll", ("dims", dims), ("axis", axis))
    if axes is None:
        return roll(ravel(x), shifts, 0).reshape(x.shape)
    axes = axes if isinstance(axes, (tuple, list)) else (axes,)
    steps = shifts if isinstance(shifts, (tuple, list)) else (shifts,) * len(axes)
    if len(steps) != len(axes):
        raise ShapeError(f"roll: {len(steps)} shifts for {len(axes)} axes")
    for step, a in zip(steps, axes):
        at = canonicalize_axis("roll", a, x.ndim)
        n = x.shape[at] if x.ndim else 0
        cut = -step % n if n else 0
        if cut:
            x = bind(Concatenate(at), slice_axis(x, at, cut, n), slice_axis(x, at, 0, cut))
    return bind(COPY, x) if x is input or x.origin is not None else x


@public_function("lucid", "Tensor")
def repeat_interleave(
    input: Any, repeats: Any = None, dim: Any = None, *, output_size: Any = None, axis: Any = None
) -> Any:
    """Repeat every element (or slice along `dim`) `repeats` times; NumPy's repeat.

    With one argument, `input` gives the counts of 0, 1, 2, ... `output_size` is computed from the
    counts.

    >>> import lucid
    >>> lucid.repeat_interleave(lucid.tensor([1.0, 2.0]), lucid.tensor([2, 1]))
    Tensor([1., 1., 2.])
    >>> lucid.repeat_interleave(lucid.tensor([2, 1]))
    Tensor([0, 0, 1])
    """
    x = as_tensor(input)
    if repeats is None:
        x, repeats = wrap(np.arange(math.prod(x.shape))), x
    at = resolve_alias("repeat_interleave", ("dim", dim), ("axis", axis))
    if at is None:
        x, at = ravel(x), 0
    at = canonicalize_axis("repeat_interleave", at, x.ndim)
    x = x if x.ndim else ravel(x)
    n = x.shape[at]
    if isinstance(repeats, int):
        if repeats < 0:
            raise ArgumentError(f"repeat_interleave: {repeats} repeats; they must not be negative")
        repeated = broadcast_to(
            expand_dims(x, at + 1), (*x.shape[: at + 1], repeats, *x.shape[at + 1 :])
        )
        return unshared(bind(Reshape(with_size(x.shape, at, n * repeats)), repeated))
    counts = as_tensor(repeats).array("repeat_interleave")
    if counts.shape not in ((), (1,), (n,)):
        raise ShapeError(f"repeat_interleave: counts of shape {counts.shape} for {n} elements")
    return take_axis(x, at, np.repeat(np.arange(n), counts))


def take_axis(x: Any, axis: int, indices: np.ndarray) -> Any:
    """Gather `x` at constant indices along one axis, keeping its position."""
    y = bind(Gather((axis,)), x, wrap(indices))
    return y if axis == 0 else movedim(y, 0, axis)


_PAD_MODES = {"reflect": "reflect", "replicate": "edge", "edge": "edge", "circular": "wrap"}


@public()
def pad(x: Any, pad: Any, mode: str = "constant", value: Any = 0) -> Any:
    """Pad `x`: pairs of widths (before, after), the last axis first.

    Modes are "constant" (where negative widths crop), "reflect", "replicate" and "circular".

    >>> import lucid
    >>> lucid.pad(lucid.ones(2), (1, 2))
    Tensor([0., 1., 1., 0., 0.])
    """
    x = as_tensor(x)
    widths = canonicalize_shape("pad", (pad,))
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        facts = f"{len(widths)} widths for a tensor of {x.ndim} axes"
        raise ShapeError(f"pad: {facts}; give a pair for each of the last axes")
    low = (*[0] * (x.ndim - len(widths) // 2), *widths[0::2][::-1])
    high = (*[0] * (x.ndim - len(widths) // 2), *widths[1::2][::-1])
    if isinstance(mode, str) and mode in _PAD_MODES:
        return pad_by_gather(x, low, high, _PAD_MODES[mode])
    if mode != "constant":
        modes = ", ".join(("constant", *_PAD_MODES))
        raise ShapeError(f"pad: unknown mode {mode!r}; modes are {modes}")
    if isinstance(value, Traced) or value != 0:
        return pad_constant(x, low, high, value)
    return bind(Pad(low, high, (0,) * x.ndim), x)


def pad_by_gather(x: Any, low: tuple[int, ...], high: tuple[int, ...], mode: str) -> Any:
    for axis, (before, after) in enumerate(zip(low, high)):
        if before or after:
            try:
                indices = np.pad(np.arange(x.shape[axis]), (before, after), mode)  # type: ignore[call-overload]
            except ValueError:
                facts = f"widths {(before, after)} for axis {axis} of size {x.shape[axis]}"
                raise ShapeError(f"pad: {facts} in mode {mode}") from None
            x = take_axis(x, axis, indices)
    return x


def pad_constant(x: Any, low: tuple[int, ...], high: tuple[int, ...], value: Any) -> Any:
    for axis, (before, after) in enumerate(zip(low, high)):
        n = x.shape[axis]
        if before < 0 or after < 0:
            x = slice_axis(x, axis, max(-before, 0), n + min(after, 0))
        ends = [
            full(with_size(x.shape, axis, max(width, 0)), value, dtype=x.dtype)
            for width in (before, after)
        ]
        x = bind(Concatenate(axis), ends[0], x, ends[1])
    return x


@public()
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Coordinate tensors of the grid spanned by vectors, with indexing "ij" or "xy"."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    xs = [ravel(x) for x in tensors]
    shape = tuple(x.shape[0] for x in xs)
    grids = [
        broadcast_to(x.reshape([-1 if j == i else 1 for j in range(len(xs))]), shape)
        for i, x in enumerate(xs)
    ]
    if indexing in (None, "ij") or len(xs) < 2:
        return tuple(grids)
    if indexing != "xy":
        raise ShapeError(f"meshgrid: indexing must be 'ij' or 'xy', not {indexing!r}")
    return tuple(bind(Transpose((1, 0, *range(2, len(xs)))), grid) for grid in grids)
