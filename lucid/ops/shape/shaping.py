"""Shapes and orders of axes, all made of reshape, transpose, broadcast, flip and slice."""

from __future__ import annotations

import builtins
import math
from functools import lru_cache
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, AxisError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.arguments import also, explained
from lucid.ops.core.axes import axes_of, axis_of, by_word, either, resolve_shape, shape_of
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.bitcast import bitcast
from lucid.ops.shape.movement import (
    Broadcast,
    Flip,
    Reshape,
    Slice,
    Transpose,
    broadcast_to,
    reshape,
)
from lucid.tape.bind import bind
from lucid.tape.node import Traced


def swap(name: str, x: Any, a: Any, b: Any) -> Any:
    return bind(swap_op(name, x.ndim, a, b), x)


@lru_cache(maxsize=1024)
def swap_op(name: str, ndim: int, a: Any, b: Any) -> Transpose:
    order = list(range(ndim))
    a, b = axis_of(name, a, ndim), axis_of(name, b, ndim)
    if order:
        order[a], order[b] = b, a
    return Transpose(tuple(order))


@explained
def transpose(input: Any, dim0: Any = None, dim1: Any = None, *, axes: Any = None) -> Any:
    """`input` with two axes swapped; with one sequence of axes, or none, NumPy's transpose.

    >>> import lucid
    >>> lucid.transpose(lucid.zeros(2, 3, 4), 0, 2).shape
    (4, 3, 2)
    """
    x = as_tensor(input)
    if dim1 is not None:
        return swap("transpose", x, dim0, dim1)
    order = either("transpose", ("dim0", dim0), ("axes", axes))
    order = (
        range(x.ndim)[::-1] if order is None else [axis_of("transpose", a, x.ndim) for a in order]
    )
    if sorted(order) != list(range(x.ndim)):
        facts = f"{tuple(order)} is not a permutation of {x.ndim} axes"
        raise AxisError(f"transpose: {facts}{at_line()}")
    return bind(Transpose(tuple(order)), x)


@explained
def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """`input` with two axes swapped."""
    return swap("swapaxes", as_tensor(input), axis0, axis1)


@explained
def swapdims(input: Any, dim0: int, dim1: int) -> Any:
    """`input` with two axes swapped."""
    return swap("swapdims", as_tensor(input), dim0, dim1)


def T(x: Any) -> Any:
    """`x` with its axes in reverse order."""
    x = as_tensor(x)
    return bind(Transpose(tuple(range(x.ndim))[::-1]), x)


def mT(x: Any) -> Any:
    """Every matrix in the last two axes of `x` transposed."""
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError(f"mT: a tensor of shape {x.shape} holds no matrices{at_line()}")
    return swap("mT", x, -2, -1)


def t(input: Any) -> Any:
    """The transpose of a matrix; vectors and numbers stay."""
    x = as_tensor(input)
    if x.ndim > 2:
        raise ShapeError(f"t: {x.shape} has more than two axes; use mT or permute{at_line()}")
    return x if x.ndim < 2 else T(x)


@explained
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """`input` with axes moved to other places; those not named keep their order.

    >>> import lucid
    >>> lucid.movedim(lucid.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor(input)
    source, destination = (
        [
            axis_of("movedim", a, x.ndim)
            for a in (axes if isinstance(axes, (tuple, list)) else (axes,))
        ]
        for axes in (source, destination)
    )
    twice = len({*source}) < len(source) or len({*destination}) < len(destination)
    if len(source) != len(destination) or twice:
        facts = f"axes {source} to {destination}: as many there as here, each once"
        raise AxisError(f"movedim: {facts}{at_line()}")
    order = [axis for axis in range(x.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return bind(Transpose(tuple(order)), x)


moveaxis = movedim


def squeeze(input: Any, dim: Any = None, *dims: Any, axis: Any = None) -> Any:
    """`input` without its axes of size 1, or without those of them that are named."""
    x = as_tensor(input)
    dim = (dim, *dims) if dims else dim
    axes = axes_of("squeeze", either("squeeze", ("dim", dim), ("axis", axis)), x.ndim)
    return reshape(x, tuple(n for i, n in enumerate(x.shape) if n != 1 or i not in axes))


def unsqueeze(input: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """`input` with a new axis of size 1 that becomes axis `dim` of the result.

    >>> import lucid
    >>> lucid.unsqueeze(lucid.zeros(2, 3), 1).shape
    (2, 1, 3)
    """
    return _expand_dims("unsqueeze", input, either("unsqueeze", ("dim", dim), ("axis", axis)))


def expand_dims(x: Any, axis: Any) -> Any:
    """`x` with new axes of size 1 at the places `axis` of the result."""
    return _expand_dims("expand_dims", x, axis)


def _expand_dims(name: str, x: Any, axis: Any) -> Any:
    x = as_tensor(x)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    try:
        op = expand_dims_op(name, x.shape, axes)
    except TypeError:  # what cannot be hashed is no axis
        raise AxisError(f"{name}: axis {axis!r} is not an integer{at_line()}") from None
    return bind(op, x)


@lru_cache(maxsize=4096)
def expand_dims_op(name: str, shape: tuple[int, ...], axes: tuple[Any, ...]) -> Reshape:
    ndim = len(shape) + len(axes)
    places = {axis_of(name, a, ndim) for a in axes}
    if len(places) != len(axes):
        raise AxisError(f"{name}: an axis appears twice in {axes}{at_line()}")
    sizes = iter(shape)
    return Reshape(tuple(1 if i in places else next(sizes) for i in range(ndim)))


def expand(x: Any, *sizes: Any, size: Any = None) -> Any:
    """`x` repeated along axes of size 1 and new axes in front, without copying; -1 keeps a size."""
    x = as_tensor(x)
    sizes = sizes if size is None else by_word("expand", "size", sizes, size)
    shape = shape_of("expand", sizes)
    extra = len(shape) - x.ndim
    if -1 in shape:
        kept = (1,) * extra + x.shape
        if extra < 0 or -1 in shape[:extra]:
            facts = f"-1 in {shape} does not stand for an axis of {x.shape}"
            raise ShapeError(f"expand: {facts}{at_line()}")
        shape = tuple(old if n == -1 else n for n, old in zip(shape, kept))
    return broadcast_to(x, shape)


def expand_as(x: Any, other: Any) -> Any:
    """`x` expanded to the shape of `other`."""
    return broadcast_to(x, as_tensor(other).shape)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """The tensors expanded to the one shape that they broadcast to."""
    xs = [as_tensor(x) for x in tensors]
    try:
        shape = broadcast_shapes(*[x.shape for x in xs])
    except ShapeError as error:
        raise ShapeError(f"broadcast_tensors: {error}{at_line()}") from None
    return tuple(broadcast_to(x, shape) for x in xs)


broadcast_arrays = broadcast_tensors


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """`input` with the axes from `start_dim` to `end_dim` made into one.

    >>> import lucid
    >>> lucid.flatten(lucid.zeros(2, 3, 4), 1).shape
    (2, 12)
    """
    x = as_tensor(input)
    if not x.ndim:
        return bind(Reshape((1,)), x)
    start, end = (axis_of("flatten", d, x.ndim) for d in (start_dim, end_dim))
    if start > end:
        raise AxisError(f"flatten: start_dim {start} comes after end_dim {end}{at_line()}")
    size = math.prod(x.shape[start : end + 1])
    return bind(Reshape((*x.shape[:start], size, *x.shape[end + 1 :])), x)


@explained
@also(dim="axis")
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """`input` with one axis made into several; one size may be -1."""
    x = as_tensor(input)
    axis = axis_of("unflatten", dim, x.ndim)
    sizes = resolve_shape("unflatten", shape_of("unflatten", (sizes,)), x.shape[axis])
    return bind(Reshape((*x.shape[:axis], *sizes, *x.shape[axis + 1 :])), x)


def ravel(input: Any) -> Any:
    """The elements of `input` in row-major order."""
    x = as_tensor(input)
    return bind(Reshape((math.prod(x.shape),)), x)


def view(input: Any, *shape: Any, dtype: Any = None, size: Any = None) -> Any:
    """Another shape, or the bits as another dtype: the same memory where the layout allows it.

    >>> import lucid
    >>> lucid.tensor([1.0, -0.0]).view(lucid.int32)
    Tensor([ 1065353216, -2147483648], dtype=int32)
    """
    if dtype is None and len(shape) == 1 and isinstance(shape[0], (np.dtype, type, str)):
        dtype = shape[0]
    elif dtype is not None and shape:
        raise ArgumentError(f"view: give a shape or a dtype, not both{at_line()}")
    if dtype is not None:
        return bitcast(as_tensor(input), dtype)
    return reshape(input, *(shape if size is None else by_word("view", "size", shape, size)))


@explained
def view_as(x: Any, other: Any) -> Any:
    """`x` in the shape of `other`."""
    return reshape(x, other.shape)


reshape_as = view_as


def atleast_1d(*tensors: Any) -> Any:
    """`x`, with one axis where it has none; of several tensors a tuple."""
    return each(tensors, lambda x: x if x.ndim else bind(Reshape((1,)), x))


def atleast_2d(*tensors: Any) -> Any:
    """`x`, as a row where it has fewer than two axes; of several tensors a tuple."""
    return each(tensors, lambda x: x if x.ndim > 1 else bind(Reshape((1, math.prod(x.shape))), x))


def atleast_3d(*tensors: Any) -> Any:
    """`x` with three axes or more: new ones behind a matrix, around a vector."""
    return each(tensors, lambda x: x if x.ndim > 2 else expand_dims(atleast_2d(x), 2))


def each(tensors: tuple[Any, ...], function: Any) -> Any:
    """A function of one tensor, or of each of several."""
    if not tensors:
        raise ShapeError(f"atleast: give at least one tensor{at_line()}")
    if len(tensors) == 1:
        given = tensors[0]
        if not (isinstance(given, (list, tuple)) and all(isinstance(x, Traced) for x in given)):
            return function(as_tensor(given))
        tensors = tuple(given)
    return tuple([function(as_tensor(x)) for x in tensors])


def flip(input: Any, *axes: Any, dims: Any = None, axis: Any = None) -> Any:
    """`input` in reverse order along `dims`: one axis, several, or all.

    >>> import lucid
    >>> lucid.flip(lucid.arange(3), 0)
    Tensor([2, 1, 0])
    """
    x = as_tensor(input)
    dims = either("flip", ("dims", dims), ("axis", axis))
    if axes:
        dims = either("flip", ("dims", axes[0] if len(axes) == 1 else axes), ("dims", dims))
    return bind(Flip(axes_of("flip", dims, x.ndim)), x)


def fliplr(input: Any) -> Any:
    """`input` in reverse order along axis 1."""
    return flip(input, 1)


def flipud(input: Any) -> Any:
    """`input` in reverse order along axis 0."""
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError(f"flipud: a 0-d tensor has no order{at_line()}")
    return flip(x, 0)


@explained
def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """`input` turned by k quarter turns in the plane of two axes, from the first to the second."""
    x = as_tensor(input)
    a, b = (axis_of("rot90", d, x.ndim) for d in dims)
    if a == b:
        raise AxisError(f"rot90: axis {a} twice; a plane has two axes{at_line()}")
    turns = k % 4
    if turns == 0:
        return flip(x, ())
    if turns == 2:
        return flip(x, (a, b))
    return flip(swap("rot90", x, a, b), a) if turns == 1 else swap("rot90", flip(x, a), a, b)


def unbind(input: Any, dim: Any = None, *, axis: Any = None) -> tuple[Any, ...]:
    """The slices of `input` along one axis, which they lack."""
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError(f"unbind: a 0-d tensor has no slices{at_line()}")
    at = axis_of("unbind", either("unbind", ("dim", dim), ("axis", axis), 0), x.ndim)
    ones, before, after = (1,) * x.ndim, x.shape[:at], x.shape[at + 1 :]
    none = (0,) * len(before), (0,) * len(after)
    return tuple(
        bind(Slice((*none[0], i, *none[1]), (*before, i + 1, *after), ones, (at,)), x)
        for i in range(x.shape[at])
    )


def repeat(x: Any, *sizes: Any, repeats: Any = None) -> Any:
    """`x` laid out `sizes` times along its axes; further sizes are for new axes in front.

    >>> import lucid
    >>> lucid.tensor([1, 2]).repeat(2, 2)
    Tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = as_tensor(x)
    sizes = sizes if repeats is None else by_word("repeat", "repeats", sizes, repeats)
    counts = shape_of("repeat", sizes)
    extra = len(counts) - x.ndim
    if extra < 0 or min(counts, default=0) < 0:
        facts = f"{counts} does not give a count for each axis of {x.shape}"
        raise ShapeError(f"repeat: {facts}{at_line()}")
    shape = (1,) * extra + x.shape
    interleaved = tuple(n for pair in zip(counts, shape) for n in pair)
    spread = bind(Broadcast(interleaved, tuple(2 * (extra + i) + 1 for i in range(x.ndim))), x)
    return bind(Reshape(tuple(c * n for c, n in zip(counts, shape))), spread)


def tile(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """`repeat`, where missing counts in front are 1."""
    x = as_tensor(input)
    sizes = sizes if dims is None else by_word("tile", "dims", sizes, dims)
    counts = shape_of("tile", sizes)
    return repeat(x, (1,) * builtins.max(x.ndim - len(counts), 0) + counts)
