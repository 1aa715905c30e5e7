"""Shape manipulation, joining, splitting and sorting with NumPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.numpy.reductions import ndarray_of, widened
from lucid.ops.core.axes import canonicalize_axes, canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast, default_dtype, promote, result_type
from lucid.ops.index import gather_scatter as indexing
from lucid.ops.index import lookup, searching
from lucid.ops.reduce import reduction, sorting
from lucid.ops.shape import arranging, copying, creation, diagonals, joining, movement, shaping
from lucid.tape.node import Traced
from lucid.tensors import inplace as in_place


def reshape(a: Any, shape: Any, order: str = "C", *, copy: Any = None) -> Any:
    if order != "C":
        raise ShapeError(f"np.reshape: order={order!r} is not supported for tensors; use 'C'")
    return movement.reshape(a, shape if isinstance(shape, (tuple, list)) else (shape,))


def ravel(a: Any, order: str = "C") -> Any:
    return reshape(a, (-1,), order)


def transpose(a: Any, axes: Any = None) -> Any:
    return shaping.transpose(a) if axes is None else movement.permute(a, tuple(axes))


def squeeze(a: Any, axis: Any = None) -> Any:
    if axis is None:
        return shaping.squeeze(a)
    a = as_tensor(a)
    places = canonicalize_axes("squeeze", axis, a.ndim)
    if any(a.shape[i] != 1 for i in places):
        raise ShapeError(f"np.squeeze: not all of the axes {places} of {a.shape} have size 1")
    return shaping.squeeze(a, axis=axis)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    return movement.broadcast_to(array, shape if isinstance(shape, (tuple, list)) else (shape,))


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    a = as_tensor(a)
    place = canonicalize_axis("rollaxis", axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return shaping.movedim(a, place, start - 1 if place < start else start)


def flip(m: Any, axis: Any = None) -> Any:
    m = as_tensor(m)
    return shaping.flip(m, canonicalize_axes("flip", axis, m.ndim))


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    return shaping.rot90(m, k, axes)


def map_arrays(function: Any) -> Any:
    """Apply a function to one array, or to several, which gives a tuple."""

    def run(*arys: Any) -> Any:
        results = tuple(function(as_tensor(x)) for x in arys)
        return results[0] if len(results) == 1 else results

    return run


def atleast_3d(x: Any) -> Any:
    x = shaping.atleast_2d(x) if x.ndim < 2 else x
    return x.reshape(*x.shape, 1) if x.ndim == 2 else x


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    array = as_tensor(array)
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    names = {"edge": "replicate", "reflect": "reflect", "wrap": "circular"}
    if mode in names:
        return joining.pad(array, [n for pair in reversed(widths) for n in pair], names[mode])
    if mode != "constant":
        raise ShapeError(
            f"np.pad: mode {mode!r} is not supported for tensors; use 'constant', 'edge', "
            "'reflect' or 'wrap'"
        )
    values = movement.broadcast_to(as_tensor(constant_values, array.dtype), (array.ndim, 2))
    for axis, (low, high) in enumerate(widths):
        rows = [_filled_end(array, axis, low, values[axis, 0]), array]
        array = joining.concatenate([*rows, _filled_end(array, axis, high, values[axis, 1])], axis)
    return array


def _filled_end(array: Any, axis: int, width: int, value: Any) -> Any:
    """Return `width` slices of one value that can be joined to `array` along an axis."""
    shape = [width if i == axis else n for i, n in enumerate(array.shape)]
    return movement.broadcast_to(value, shape)


def block(arrays: Any) -> Any:
    """Join nested lists of arrays: the innermost along the last axis, and so on."""
    depth = _depth(arrays)
    parts = _map_nested(as_tensor, arrays)
    ndim = max([depth, *[x.ndim for x in _leaves(parts)]])
    parts = _map_nested(lambda x: x.reshape((1,) * (ndim - x.ndim) + x.shape), parts)
    return _block(parts, ndim - depth)


def _block(parts: Any, axis: int) -> Any:
    if not isinstance(parts, list):
        return parts
    return joining.concatenate([_block(part, axis + 1) for part in parts], axis)


def _depth(arrays: Any) -> int:
    return 1 + max([_depth(part) for part in arrays], default=0) if isinstance(arrays, list) else 0


def _map_nested(function: Any, arrays: Any) -> Any:
    if isinstance(arrays, list):
        return [_map_nested(function, part) for part in arrays]
    return function(arrays)


def _leaves(arrays: Any) -> list[Any]:
    return [x for a in arrays for x in _leaves(a)] if isinstance(arrays, list) else [arrays]


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, *, dtype: Any = None, axis: int = 0
) -> Any:
    """np.linspace of numbers or arrays, in float64 unless the ends have a narrower dtype."""
    dtype = _floating_type(start, stop) if dtype is None else dtype
    ends = [x for x in (start, stop) if getattr(x, "ndim", 0) or isinstance(x, (list, tuple))]
    if not ends:
        return creation.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    low, high = promote(as_tensor(start), as_tensor(stop))
    weights = creation.linspace(0.0, 1.0, num, endpoint=endpoint, dtype=_floating_type(low, high))
    weights = weights.reshape((-1, *[1] * max(low.ndim, high.ndim)))
    return cast(shaping.movedim(low + (high - low) * weights, 0, axis), dtype)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None
) -> Any:
    exponents = linspace(start, stop, num, endpoint, dtype=_floating_type(start, stop, base))
    powers = as_tensor(base, exponents.dtype) ** exponents
    return powers if dtype is None else cast(powers, dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None
) -> Any:
    start, stop = (as_tensor(x, _floating_type(start, stop)) for x in (start, stop))
    steps = (stop / start) ** linspace(0.0, 1.0, num, endpoint, dtype=start.dtype)
    return start * steps if dtype is None else cast(start * steps, dtype)


def _floating_type(*numbers: Any) -> Any:
    dtype = result_type(*numbers)
    if dtype.kind in "fc":
        return dtype
    arrays = [x for x in numbers if isinstance(x, (Traced, np.ndarray))]
    return np.dtype("float64") if arrays else default_dtype(1.0)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return joining.roll(a, shift, axis)


def tile(A: Any, reps: Any) -> Any:
    A = as_tensor(A)
    counts = tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)
    return shaping.tile(A, counts)


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    return joining.repeat_interleave(a, repeats, axis)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        arr, values, axis = shaping.ravel(as_tensor(arr)), shaping.ravel(as_tensor(values)), 0
    return joining.concatenate([arr, values], axis)


def concatenate(arrays: Any, axis: Any = 0, out: None = None, *, dtype: Any = None) -> Any:
    arrays = [as_tensor(x) for x in arrays]
    if axis is None:
        arrays, axis = [shaping.ravel(x) for x in arrays], 0
    y = joining.concatenate(arrays, axis)
    return y if dtype is None else cast(y, dtype)


def stack(arrays: Any, axis: int = 0, out: None = None, *, dtype: Any = None) -> Any:
    y = joining.stack(list(arrays), axis)
    return y if dtype is None else cast(y, dtype)


def from_sequence(function: Any) -> Any:
    def run(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
        y = function(list(tup))
        return y if dtype is None else cast(y, dtype)

    return run


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    cuts = ndarray_of(indices_or_sections)
    cuts = cuts.tolist() if isinstance(cuts, np.ndarray) else cuts
    return list(joining.tensor_split(ary, cuts, axis))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    n = as_tensor(ary).shape[axis]
    if isinstance(indices_or_sections, int) and n % indices_or_sections:
        raise ShapeError(
            f"np.split: axis {axis} of size {n} does not split into {indices_or_sections} equal "
            "parts; np.array_split allows unequal parts"
        )
    return array_split(ary, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    return split(ary, indices_or_sections, 0 if as_tensor(ary).ndim == 1 else 1)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    arrays = [shaping.ravel(as_tensor(x)) for x in xi]
    if not sparse:
        return list(joining.meshgrid(*arrays, indexing=indexing))
    axes = list(range(len(arrays)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    return [
        x.reshape([-1 if k == i else 1 for k in range(len(axes))]) for x, i in zip(arrays, axes)
    ]


def ix_(*args: Any) -> tuple[Any, ...]:
    found = []
    for i, x in enumerate(args):
        x = as_tensor(x)
        x = flatnonzero(x) if x.dtype.kind == "b" else x
        found.append(x.reshape([-1 if k == i else 1 for k in range(len(args))]))
    return tuple(found)


def like(function: Any) -> Any:
    """zeros_like, ones_like, empty_like: (a, dtype, order, subok, shape)."""

    def make(
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        a = as_tensor(a)
        size = a.shape if shape is None else shape
        return function(size, dtype=dtype or a.dtype)

    return make


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
) -> Any:
    a = as_tensor(a)
    return creation.full(a.shape if shape is None else shape, fill_value, dtype=dtype or a.dtype)


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return copying.clone(a)


def copyto(dst: Any, src: Any, casting: str = "same_kind") -> None:
    if not isinstance(dst, Traced):
        raise TypeError(
            "np.copyto: copying a tensor to an ndarray would drop its gradient; copy "
            "t.detach().numpy(), or make the target a tensor"
        )
    in_place.copy_(dst, src)


def sort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: None = None,
    *,
    stable: Any = True,
    descending: bool = False,
) -> Any:
    a = as_tensor(a)
    a, axis = (shaping.ravel(a), 0) if axis is None else (a, axis)
    return sorting.sort(a, axis, stable=True, descending=descending).values


def argsort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: None = None,
    *,
    stable: Any = True,
    descending: bool = False,
) -> Any:
    a = shaping.atleast_1d(as_tensor(a))
    a, axis = (shaping.ravel(a), 0) if axis is None else (a, axis)
    return sorting.argsort(a, axis, stable=True, descending=descending)


def take(a: Any, indices: Any, axis: Any = None, out: None = None, mode: str = "raise") -> Any:
    if mode != "raise":
        raise ShapeError(f"np.take: mode {mode!r} is not supported for tensors; use 'raise'")
    return lookup.take(a, indices, axis=axis)


def compress(condition: Any, a: Any, axis: Any = None, out: None = None) -> Any:
    return lookup.take(a, np.flatnonzero(ndarray_of(condition)), axis=axis)


def extract(condition: Any, arr: Any) -> Any:
    return compress(shaping.ravel(as_tensor(condition)), arr)


def nonzero(a: Any) -> Any:
    if not as_tensor(a).ndim:
        facts = "a tensor without axes has no indices; use np.atleast_1d"
        raise ShapeError(f"np.nonzero: {facts}")
    return indexing.nonzero(a, as_tuple=True)


def flatnonzero(a: Any) -> Any:
    return nonzero(shaping.ravel(as_tensor(a)))[0]


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    return searching.searchsorted(a, v, side=side, sorter=sorter)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False
) -> Any:
    return searching.isin(element, test_elements, invert=invert)


def diag(v: Any, k: int = 0) -> Any:
    return diagonals.diag(v, k)


def diagflat(v: Any, k: int = 0) -> Any:
    return arranging.diagflat(v, k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return diagonals.diagonal(a, offset, axis1, axis2)


def last_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return diagonals.diagonal(x, offset, -2, -1)


def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
) -> Any:
    a = as_tensor(a)
    return reduction.sum(diagonals.diagonal(a, offset, axis1, axis2), -1, dtype=dtype or widened(a))


def last_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


def triangular(function: Any) -> Any:
    def run(m: Any, k: int = 0) -> Any:
        return function(m, k)

    return run
