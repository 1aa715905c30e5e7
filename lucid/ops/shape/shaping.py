"""Public shape functions, composed of reshape, transpose, broadcast, flip and slice."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, AxisError, ShapeError
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import (
    canonicalize_axes,
    canonicalize_axis,
    canonicalize_shape,
    exclusive_keyword,
    resolve_alias,
    resolve_shape,
)
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.bitcast import bitcast
from lucid.ops.shape.copying import COPY, unshared
from lucid.ops.shape.movement import (
    Broadcast,
    Flip,
    Reshape,
    Slice,
    Transpose,
    broadcast_to,
    reshape,
)
from lucid.public.declare import Dynamic, public
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.fast_bind import bind_view
from lucid.tape.node import Traced


def swap_axes(name: str, x: Any, a: Any, b: Any) -> Any:
    return bind_view(_swap_axes_op(name, len(x.shape), a, b), x, 3)


@memoize(maxsize=1024)
def _swap_axes_op(name: str, ndim: int, a: Any, b: Any) -> Transpose:
    order = list(range(ndim))
    a, b = canonicalize_axis(name, a, ndim), canonicalize_axis(name, b, ndim)
    if order:
        order[a], order[b] = b, a
    return Transpose(tuple(order))


@public_function("lucid", "Tensor", inplace="view")
def transpose(input: Any, dim0: Any = None, dim1: Any = None, *, axes: Any = None) -> Any:
    """Swap two axes; with one sequence of axes, or none, NumPy's transpose.

    >>> import lucid
    >>> lucid.transpose(lucid.zeros(2, 3, 4), 0, 2).shape
    (4, 3, 2)
    """
    x: Any = input if isinstance(input, Traced) else as_tensor(input)
    if dim1 is not None:
        ndim = len(x.shape if x.raw is None else x.raw.shape)
        return bind_view(_swap_axes_op("transpose", ndim, dim0, dim1), x, 3)
    order = resolve_alias("transpose", ("dim0", dim0), ("axes", axes))
    order = (
        range(x.ndim)[::-1]
        if order is None
        else [canonicalize_axis("transpose", a, x.ndim) for a in order]
    )
    if sorted(order) != list(range(x.ndim)):
        raise AxisError(f"transpose: {tuple(order)} is not a permutation of {x.ndim} axes")
    return bind(Transpose(tuple(order)), x)


@public_function("lucid", "Tensor", inplace="view", numpy="swapaxes")
def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """Swap two axes."""
    return swap_axes("swapaxes", as_tensor(input), axis0, axis1)


@public_function("lucid", "Tensor", inplace="view")
def swapdims(input: Any, dim0: int, dim1: int) -> Any:
    """Swap two axes."""
    return swap_axes("swapdims", as_tensor(input), dim0, dim1)


def T(x: Any) -> Any:
    """Return `x` with its axes in reverse order."""
    x = x if isinstance(x, Traced) else as_tensor(x)
    return bind_view(_REVERSE[len(x.shape if x.raw is None else x.raw.shape)], x, 3)


_REVERSE = [Transpose(tuple(range(ndim))[::-1]) for ndim in range(65)]


def mT(x: Any) -> Any:
    """Transpose the matrices in the last two axes of `x`."""
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError(f"mT: a tensor of shape {x.shape} has fewer than two axes")
    return swap_axes("mT", x, -2, -1)


@public("lucid", "Tensor", inplace="view")
def t(input: Any) -> Any:
    """Transpose a matrix; vectors and 0-d tensors are returned unchanged."""
    x = as_tensor(input)
    if x.ndim > 2:
        raise ShapeError(f"t: {x.shape} has more than two axes; use mT or permute")
    return x if x.ndim < 2 else T(x)


@public_function("lucid", "Tensor", aliases=("moveaxis",), numpy="moveaxis")
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Move axes to other positions; the remaining axes keep their order.

    >>> import lucid
    >>> lucid.movedim(lucid.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor(input)
    source, destination = (
        [
            canonicalize_axis("movedim", a, x.ndim)
            for a in (axes if isinstance(axes, (tuple, list)) else (axes,))
        ]
        for axes in (source, destination)
    )
    repeated = len({*source}) < len(source) or len({*destination}) < len(destination)
    if len(source) != len(destination) or repeated:
        raise AxisError(f"movedim: axes {source} to {destination}; give equally many, each once")
    order = [axis for axis in range(x.ndim) if axis not in source]
    for position, axis in sorted(zip(destination, source)):
        order.insert(position, axis)
    return bind(Transpose(tuple(order)), x)


@public("lucid", "Tensor", inplace="view")
def squeeze(input: Any, dim: Any = None, *dims: Any, axis: Any = None) -> Any:
    """Remove all axes of size 1, or those among `dim`."""
    x = as_tensor(input)
    dim = (dim, *dims) if dims else dim
    axes = canonicalize_axes(
        "squeeze", resolve_alias("squeeze", ("dim", dim), ("axis", axis)), x.ndim
    )
    return reshape(x, tuple(n for i, n in enumerate(x.shape) if n != 1 or i not in axes))


@public("lucid", "Tensor", inplace="view")
def unsqueeze(input: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """Insert an axis of size 1 as axis `dim` of the result.

    >>> import lucid
    >>> lucid.unsqueeze(lucid.zeros(2, 3), 1).shape
    (2, 1, 3)
    """
    if axis is not None:
        dim = resolve_alias("unsqueeze", ("dim", dim), ("axis", axis))
    if dim.__class__ is int and isinstance(input, Traced) and input.raw is not None:
        return bind_view(expand_dims_op("unsqueeze", input.raw.shape, (dim,)), input)
    return _expand_dims("unsqueeze", input, dim)


@public(numpy="expand_dims")
def expand_dims(x: Any, axis: Any) -> Any:
    """Insert axes of size 1 at the positions `axis` of the result."""
    return _expand_dims("expand_dims", x, axis)


def _expand_dims(name: str, x: Any, axis: Any) -> Any:
    x = x if isinstance(x, Traced) else as_tensor(x)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    try:
        op = expand_dims_op(name, x.shape, axes)
    except TypeError:  # an unhashable argument is not an axis
        raise AxisError(f"{name}: axis {axis!r} is not an integer") from None
    return bind_view(op, x)


@memoize(maxsize=4096)
def expand_dims_op(name: str, shape: tuple[int, ...], axes: tuple[Any, ...]) -> Reshape:
    ndim = len(shape) + len(axes)
    new_axes = {canonicalize_axis(name, a, ndim) for a in axes}
    if len(new_axes) != len(axes):
        raise AxisError(f"{name}: an axis appears twice in {axes}")
    sizes = iter(shape)
    return Reshape(tuple(1 if i in new_axes else next(sizes) for i in range(ndim)))


@public("Tensor")
def expand(x: Any, *sizes: Any, size: Any = None) -> Any:
    """Broadcast `x` along axes of size 1 and new leading axes, without copying; -1 keeps a size."""
    x = as_tensor(x)
    sizes = sizes if size is None else exclusive_keyword("expand", "size", sizes, size)
    shape = canonicalize_shape("expand", sizes)
    extra = len(shape) - x.ndim
    if -1 in shape:
        kept = (1,) * extra + x.shape
        if extra < 0 or -1 in shape[:extra]:
            raise ShapeError(f"expand: -1 in {shape} does not correspond to an axis of {x.shape}")
        shape = tuple(old if n == -1 else n for n, old in zip(shape, kept))
    return broadcast_to(x, shape)


@public("Tensor")
def expand_as(x: Any, other: Any) -> Any:
    """Expand `x` to the shape of `other`."""
    return broadcast_to(x, as_tensor(other).shape)


@public(aliases=("broadcast_arrays",))
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Broadcast tensors to a common shape."""
    xs = [as_tensor(x) for x in tensors]
    try:
        shape = broadcast_shapes(*[x.shape for x in xs])
    except ShapeError as error:
        raise ShapeError(f"broadcast_tensors: {error}") from None
    return tuple(broadcast_to(x, shape) for x in xs)


@public("lucid", "Tensor")
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Merge the axes from `start_dim` to `end_dim` into one.

    >>> import lucid
    >>> lucid.flatten(lucid.zeros(2, 3, 4), 1).shape
    (2, 12)
    """
    x = as_tensor(input)
    if not x.ndim:
        return bind_view(Reshape((1,)), x)
    start, end = (canonicalize_axis("flatten", d, x.ndim) for d in (start_dim, end_dim))
    if start > end:
        raise AxisError(f"flatten: start_dim {start} comes after end_dim {end}")
    size = math.prod(x.shape[start : end + 1])
    return bind_view(Reshape((*x.shape[:start], size, *x.shape[end + 1 :])), x)


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """Split one axis into several; one size may be -1."""
    x = as_tensor(input)
    axis = canonicalize_axis("unflatten", dim, x.ndim)
    sizes = resolve_shape("unflatten", canonicalize_shape("unflatten", (sizes,)), x.shape[axis])
    return bind(Reshape((*x.shape[:axis], *sizes, *x.shape[axis + 1 :])), x)


@public("lucid", "Tensor")
def ravel(input: Any) -> Any:
    """Flatten `input` to a vector in row-major order."""
    x = as_tensor(input)
    return bind_view(Reshape((math.prod(x.shape),)), x)


@public("Tensor")
def view(input: Any, *shape: Any, dtype: Any = None, size: Any = None) -> Any:
    """View `input` in another shape or dtype, sharing memory if the layout allows it.

    >>> import lucid
    >>> lucid.tensor([1.0, -0.0]).view(lucid.int32)
    Tensor([ 1065353216, -2147483648], dtype=int32)
    """
    if dtype is None and len(shape) == 1 and isinstance(shape[0], (np.dtype, type, str)):
        dtype = shape[0]
    elif dtype is not None and shape:
        raise ArgumentError("view: give a shape or a dtype, not both")
    if dtype is not None:
        return bitcast(as_tensor(input), dtype)
    return reshape(
        input, *(shape if size is None else exclusive_keyword("view", "size", shape, size))
    )


@public_function("Tensor", aliases=("reshape_as",))
def view_as(x: Any, other: Any) -> Any:
    """Reshape `x` to the shape of `other`."""
    return reshape(x, other.shape)


@public()
def atleast_1d(*tensors: Any) -> Dynamic:
    """Give 0-d tensors one axis; several tensors give a tuple."""
    return map_tensors(tensors, lambda x: x if x.ndim else bind(Reshape((1,)), x))


@public()
def atleast_2d(*tensors: Any) -> Dynamic:
    """Make tensors with fewer than two axes a row; several tensors give a tuple."""
    return map_tensors(
        tensors, lambda x: x if x.ndim > 1 else bind(Reshape((1, math.prod(x.shape))), x)
    )


@public()
def atleast_3d(*tensors: Any) -> Dynamic:
    """Give tensors three axes: (m, n) becomes (m, n, 1) and (n,) becomes (1, n, 1)."""
    return map_tensors(tensors, lambda x: x if x.ndim > 2 else expand_dims(atleast_2d(x), 2))


def map_tensors(tensors: tuple[Any, ...], function: Any) -> Any:
    """Apply a function to one tensor, or to each of several."""
    if not tensors:
        raise ShapeError("atleast: give at least one tensor")
    if len(tensors) == 1:
        given = tensors[0]
        if not (isinstance(given, (list, tuple)) and all(isinstance(x, Traced) for x in given)):
            return function(as_tensor(given))
        tensors = tuple(given)
    return tuple([function(as_tensor(x)) for x in tensors])


@public("lucid", "Tensor")
def flip(input: Any, *axes: Any, dims: Any = None, axis: Any = None) -> Any:
    """A copy with the order of elements reversed along one axis, several, or all.

    >>> import lucid
    >>> lucid.flip(lucid.arange(3), 0)
    Tensor([2, 1, 0])
    """
    x = as_tensor(input)
    if axes:
        dims = axes if dims is None else exclusive_keyword("flip", "dims", axes, dims)
        dims = dims[0] if len(dims) == 1 else dims
    dims = resolve_alias("flip", ("dims", dims), ("axis", axis))
    return bind(COPY, bind(Flip(canonicalize_axes("flip", dims, x.ndim)), x))


@public("lucid", "Tensor", numpy="fliplr")
def fliplr(input: Any) -> Any:
    """Reverse the order of elements along axis 1."""
    return flip(input, 1)


@public("lucid", "Tensor", numpy="flipud")
def flipud(input: Any) -> Any:
    """Reverse the order of elements along axis 0."""
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError("flipud: a 0-d tensor has no axis to flip")
    return flip(x, 0)


@public_function("lucid", "Tensor")
def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Rotate by k times 90 degrees in the plane of two axes, from the first to the second."""
    x = as_tensor(input)
    a, b = (canonicalize_axis("rot90", d, x.ndim) for d in dims)
    if a == b:
        raise AxisError(f"rot90: axis {a} is given twice; give two different axes")
    turns = k % 4
    if turns == 0:
        return flip(x, ())
    if turns == 2:
        return flip(x, (a, b))
    return (
        flip(swap_axes("rot90", x, a, b), a) if turns == 1 else swap_axes("rot90", flip(x, a), a, b)
    )


@public("lucid", "Tensor")
def unbind(input: Any, dim: Any = None, *, axis: Any = None) -> tuple[Any, ...]:
    """Return the slices of `input` along one axis, with that axis removed."""
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError("unbind: a 0-d tensor has no axis to unbind")
    at = canonicalize_axis(
        "unbind", resolve_alias("unbind", ("dim", dim), ("axis", axis), 0), x.ndim
    )
    ones, before, after = (1,) * x.ndim, x.shape[:at], x.shape[at + 1 :]
    none = (0,) * len(before), (0,) * len(after)
    return tuple(
        bind(Slice((*none[0], i, *none[1]), (*before, i + 1, *after), ones, (at,)), x)
        for i in range(x.shape[at])
    )


@public("Tensor")
def repeat(x: Any, *sizes: Any, repeats: Any = None) -> Any:
    """Repeat `x` `sizes` times along its axes; additional sizes create leading axes.

    >>> import lucid
    >>> lucid.tensor([1, 2]).repeat(2, 2)
    Tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = as_tensor(x)
    sizes = sizes if repeats is None else exclusive_keyword("repeat", "repeats", sizes, repeats)
    counts = canonicalize_shape("repeat", sizes)
    extra = len(counts) - x.ndim
    if extra < 0 or min(counts, default=0) < 0:
        raise ShapeError(f"repeat: {counts} is not one count >= 0 for each axis of {x.shape}")
    shape = (1,) * extra + x.shape
    interleaved = tuple(n for pair in zip(counts, shape) for n in pair)
    spread = bind(Broadcast(interleaved, tuple(2 * (extra + i) + 1 for i in range(x.ndim))), x)
    return unshared(bind(Reshape(tuple(c * n for c, n in zip(counts, shape))), spread))


@public("lucid", "Tensor")
def tile(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """`repeat`, where missing leading counts are 1."""
    x = as_tensor(input)
    sizes = sizes if dims is None else exclusive_keyword("tile", "dims", sizes, dims)
    counts = canonicalize_shape("tile", sizes)
    return repeat(x, (1,) * builtins.max(x.ndim - len(counts), 0) + counts)
