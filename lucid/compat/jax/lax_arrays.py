"""Array operations of jax.lax: slices, padding, sorting, contractions, convolutions, windows."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import lucid
from lucid.errors import ArgumentError
from lucid.func import axis_index, axis_size, pmax, pmin
from lucid.nn import functional as F


def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """Return a block with constant bounds."""
    steps = strides or [1] * len(start_indices)
    bounds = zip(start_indices, limit_indices, steps, strict=True)
    return lucid.as_tensor(operand)[tuple([builtins.slice(*bound) for bound in bounds])]


def slice_in_dim(operand: Any, start: Any, limit: Any, stride: int = 1, axis: int = 0) -> Any:
    """Return a block along one axis."""
    x = lucid.as_tensor(operand)
    return x.movedim(axis, 0)[builtins.slice(start, limit, stride)].movedim(0, axis)


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Any:
    """Return a copy with the elements at an index of one axis replaced."""
    x, new = lucid.as_tensor(operand), lucid.as_tensor(update)
    new = new.unsqueeze(axis) if new.ndim < x.ndim else new
    place = lucid.as_tensor(index)
    place = lucid.clamp(lucid.where(place < 0, place + x.shape[axis], place), 0, x.shape[axis] - 1)
    hit = lucid.arange(x.shape[axis]) == place
    axis %= x.ndim
    return lucid.where(hit.reshape([-1 if i == axis else 1 for i in range(x.ndim)]), new, x)


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """Return the elements in reverse order along some axes."""
    return lucid.flip(lucid.as_tensor(operand), tuple(dimensions))


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Join arrays along an axis."""
    return lucid.cat([lucid.as_tensor(x) for x in operands], dimension)


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """Pad each axis with (low, high, interior) elements; negative numbers remove elements."""
    x = lucid.as_tensor(operand)
    for axis, (low, high, interior) in enumerate(padding_config):
        n = x.shape[axis] + max(x.shape[axis] - 1, 0) * interior
        places = lucid.arange(x.shape[axis]) * (interior + 1) + max(low, 0)
        shape = [n + max(low, 0) + max(high, 0) if i == axis else s for i, s in enumerate(x.shape)]
        wide = lucid.as_tensor(padding_value).to(x.dtype).expand(shape)
        if (low, high, interior) != (0, 0, 0):
            x = wide.at[(*[builtins.slice(None)] * axis, places)].set(x)
        start, stop = max(-low, 0), x.shape[axis] - max(-high, 0)
        x = slice_in_dim(x, start, max(stop, start), 1, axis)
    return x


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort an array, or several by the first `num_keys` of them."""
    if not isinstance(operand, (tuple, list)):
        return lucid.sort(lucid.as_tensor(operand), dimension).values
    xs = [lucid.as_tensor(x) for x in operand]
    for key in reversed(range(num_keys)):  # each sort is stable
        order = lucid.argsort(xs[key], dimension, stable=True)
        xs = [lucid.take_along_dim(x, order, dimension) for x in xs]
    return tuple(xs)


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Any, Any]:
    """Sort keys, and values in the order of their keys."""
    return sort((keys, values), dimension)


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    """Contract and batch axes: ((lhs, rhs) contracting axes, (lhs, rhs) batch axes)."""
    (left, right), (batch_left, batch_right) = dimension_numbers
    a, b = lucid.as_tensor(lhs), lucid.as_tensor(rhs)
    names_a = list(range(a.ndim))
    names_b = [a.ndim + i for i in range(b.ndim)]
    for i, j in (*zip(left, right), *zip(batch_left, batch_right)):
        names_b[j] = names_a[i]
    free_a = [i for i in range(a.ndim) if i not in (*left, *batch_left)]
    free_b = [names_b[j] for j in range(b.ndim) if j not in (*right, *batch_right)]
    out = lucid.einsum(a, names_a, b, names_b, [*batch_left, *free_a, *free_b])
    return out if preferred_element_type is None else out.to(preferred_element_type)


def dot(lhs: Any, rhs: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Return the product of vectors and matrices."""
    return lucid.as_tensor(lhs) @ lucid.as_tensor(rhs)


batch_matmul = dot


class ConvDimensionNumbers(NamedTuple):
    """Which axis is what, as letters: ("NCHW", "OIHW", "NCHW")."""

    lhs_spec: str
    rhs_spec: str
    out_spec: str


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Return the letters of the axes of a convolution; the default is ("NCHW", "OIHW", "NCHW")."""
    if dimension_numbers is None:
        letters = "".join([chr(ord("a") + i) for i in range(len(lhs_shape) - 2)])
        dimension_numbers = (f"NC{letters}", f"OI{letters}", f"NC{letters}")
    return ConvDimensionNumbers(*dimension_numbers)


def padtype_to_pads(sizes: Any, windows: Any, strides: Any, padding: Any) -> list[tuple[int, int]]:
    """Return (low, high) for each axis, from pairs or from "VALID", "SAME" or "SAME_LOWER"."""
    if not isinstance(padding, str):
        return [(int(low), int(high)) for low, high in padding]
    if padding.upper() == "VALID":
        return [(0, 0) for _ in sizes]
    if padding.upper() not in ("SAME", "SAME_LOWER"):
        raise ArgumentError(f"padding is {padding!r}, not pairs, 'SAME', 'SAME_LOWER' or 'VALID'")
    found = []
    for n, window, stride in zip(sizes, windows, strides):
        total = max((-(-n // stride) - 1) * stride + window - n, 0)
        few = total // 2
        found.append((few, total - few) if padding.upper() == "SAME" else (total - few, few))
    return found


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Return the convolution of `lhs` with the windows `rhs`, for one to three axes."""
    if batch_group_count != 1:
        raise ArgumentError("conv_general_dilated: batch_group_count other than 1 is not supported")
    x, w = lucid.as_tensor(lhs), lucid.as_tensor(rhs)
    left, right, out = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    space = [letter for letter in right if letter not in "OI"]
    x = x.permute([left.index(letter) for letter in ("N", "C", *space)])
    w = w.permute([right.index(letter) for letter in ("O", "I", *space)])
    holes = list(rhs_dilation or [1] * len(space))
    spread = list(lhs_dilation or [1] * len(space))
    windows = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], holes)]
    sizes = [(n - 1) * d + 1 for n, d in zip(x.shape[2:], spread)]
    pads = padtype_to_pads(sizes, windows, window_strides, padding)
    config = [(low, high, d - 1) for (low, high), d in zip(pads, spread)]
    x = pad(x, 0, [(0, 0, 0), (0, 0, 0), *config])
    function = (F.conv1d, F.conv2d, F.conv3d)[len(space) - 1]
    y = function(x, w, None, tuple(window_strides), 0, tuple(holes), feature_group_count)
    return y.permute(["NC".find(i) if i in "NC" else 2 + space.index(i) for i in out])


def conv(lhs: Any, rhs: Any, window_strides: Any, padding: Any, precision: Any = None) -> Any:
    """Return a convolution of NCHW arrays with OIHW windows."""
    return conv_general_dilated(lhs, rhs, window_strides, padding)


def conv_with_general_padding(
    lhs: Any, rhs: Any, window_strides: Any, padding: Any, lhs_dilation: Any = None,
    rhs_dilation: Any = None, precision: Any = None,
) -> Any:  # fmt: skip
    """Return a convolution of NCHW arrays with OIHW windows, padded and dilated."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation)


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
) -> Any:
    """Reduce windows by `lax.add`, `mul`, `max` or `min`."""
    x = lucid.as_tensor(operand)
    reduce = {
        lucid.add: lucid.sum, lucid.maximum: lucid.amax, lucid.minimum: lucid.amin,
        lucid.mul: lambda v, dim: v.flatten(-len(dim)).prod(-1),
    }.get(computation)  # fmt: skip
    if reduce is None:
        raise ArgumentError("reduce_window: computation is not lax.add, mul, max or min")
    strides = window_strides or [1] * x.ndim
    pads = padtype_to_pads(x.shape, window_dimensions, strides, padding)
    x = pad(x, init_value, [(*pair, 0) for pair in pads])
    for axis, (size, step) in enumerate(zip(window_dimensions, strides, strict=True)):
        x = x.unfold(axis, size, step)
    n = len(window_dimensions)
    return computation(
        reduce(x, dim=tuple(range(n, 2 * n))), lucid.as_tensor(init_value).to(x.dtype)
    )


class GatherDimensionNumbers(NamedTuple):
    """How `gather` reads its operands, as in JAX."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    **_: Any,
) -> Any:
    """Return blocks of `slice_sizes` that begin at indices; starts that are too large are clamped.

    JAX fills blocks out of range with nan unless it is told to clamp.
    """
    numbers, x, starts = dimension_numbers, lucid.as_tensor(operand), lucid.as_tensor(start_indices)
    if numbers.operand_batching_dims:
        raise ArgumentError("gather: operand_batching_dims is not supported; use vmap")
    n_batch = starts.ndim - 1
    index = []
    for axis, size in enumerate(slice_sizes):
        place = lucid.arange(size).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        if axis in numbers.start_index_map:
            first = starts[..., numbers.start_index_map.index(axis)]
            first = lucid.clamp(first, 0, x.shape[axis] - size)
            place = first.reshape((*first.shape, *[1] * x.ndim)) + place
        index.append(place)
    found = x[tuple(lucid.broadcast_tensors(*index))]
    found = found.reshape((*[1] * (n_batch + x.ndim - found.ndim), *found.shape))
    kept = [i for i in range(x.ndim) if i not in numbers.collapsed_slice_dims]
    found = found.reshape((*found.shape[:n_batch], *[slice_sizes[i] for i in kept]))
    found = found.expand((*starts.shape[:-1], *found.shape[n_batch:]))
    return found.movedim(tuple(range(n_batch, found.ndim)), numbers.offset_dims)


def pargmax(x: Any, axis_name: Any) -> Any:
    """Return where along a named axis `x` is greatest."""
    return _first(x, pmax(x, axis_name), axis_name)


def pargmin(x: Any, axis_name: Any) -> Any:
    """Return where along a named axis `x` is least."""
    return _first(x, pmin(x, axis_name), axis_name)


def _first(x: Any, value: Any, axis_name: Any) -> Any:
    here = lucid.where(x == value, axis_index(axis_name), axis_size(axis_name))
    return pmin(here, axis_name)


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """Add leading axes of these sizes."""
    x = lucid.as_tensor(operand)
    return x.expand((*sizes, *x.shape))


def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Any:
    """Broadcast to a shape, in which these are the axes of `operand`."""
    x = lucid.as_tensor(operand)
    sizes = [1] * len(shape)
    for axis, n in zip(broadcast_dimensions, x.shape, strict=True):
        sizes[axis] = n
    return x.reshape(sizes).expand(tuple(shape))


def iota(dtype: Any, size: int) -> Any:
    """Return the numbers from 0 to `size`, without it."""
    return lucid.arange(size).to(dtype)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """Return an array of this shape whose elements are their indices along an axis."""
    return broadcast_in_dim(iota(dtype, shape[dimension]), shape, (dimension,))


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Any = None) -> Any:
    """Return the elements in another shape."""
    x = lucid.as_tensor(operand)
    x = x if dimensions is None else x.permute(tuple(dimensions))
    if prod(new_sizes) != x.numel():
        raise ArgumentError(f"lax.reshape: {x.shape} has {x.numel()} elements, not {new_sizes}")
    return x.reshape(tuple(new_sizes))


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """Reorder the axes."""
    return lucid.as_tensor(operand).permute(tuple(permutation))
