"""Inserting, deleting, choosing and writing elements, with NumPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.numpy.reductions import ndarray_of
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise import conditional
from lucid.ops.index import lookup
from lucid.ops.shape import creation, joining, shaping
from lucid.tape.node import Traced, wrap
from lucid.tensors import inplace as in_place


def rearranged(function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a NumPy function that only moves elements, by applying it to their positions."""
    tensors = [as_tensor(x) for x in arrays]
    start, positions = 0, []
    for x in tensors:
        size = int(np.prod(x.shape))
        positions.append(np.arange(start, start + size).reshape(x.shape))
        start += size
    moved = function(*positions)
    flat = [shaping.ravel(cast(x, tensors[0].dtype)) for x in tensors]
    elements = flat[0] if len(flat) == 1 else joining.concatenate(flat, 0)
    return lookup.take(elements, wrap(np.asarray(moved, "int64")))


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    obj = ndarray_of(obj)
    return rearranged(lambda a, v: np.insert(a, obj, v, axis), arr, values)


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    obj = ndarray_of(obj)
    return rearranged(lambda a: np.delete(a, obj, axis), arr)


def resize(a: Any, new_shape: Any) -> Any:
    if as_tensor(a).numel() == 0:
        return creation.zeros(new_shape, dtype=as_tensor(a).dtype)
    return rearranged(lambda a: np.resize(a, new_shape), a)


def trim_zeros(filt: Any, trim: Any = "fb", axis: Any = None) -> Any:
    filt = as_tensor(filt)
    kept = np.trim_zeros(np.where(filt.array("trim_zeros") != 0, 1, 0), trim, axis)
    if filt.ndim != 1:
        raise ShapeError("np.trim_zeros: only 1-d tensors are supported")
    front = 0
    if "f" in trim.lower() and kept.size:
        front = int(np.flatnonzero(filt.array())[0])
    return filt[front : front + kept.size]


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    choices = [as_tensor(x) for x in choices]
    index = cast(as_tensor(a), "int64")
    if mode == "wrap":
        index = index % len(choices)
    elif mode == "clip":
        index = conditional.clamp(index, 0, len(choices) - 1)
    index, *choices = shaping.broadcast_tensors(index, *choices)
    return lookup.take_along_dim(joining.stack(choices, 0), index[None], 0)[0]


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    x = as_tensor(x)
    if not isinstance(condlist, (list, tuple)) or not np.ndim(ndarray_of(condlist[0])):
        single = not isinstance(condlist, (list, tuple)) and as_tensor(condlist).ndim == x.ndim
        condlist = [condlist] if single else list(condlist)
    conditions = [cast(as_tensor(c), "bool").expand(x.shape) for c in condlist]
    if len(funclist) == len(conditions) + 1:
        conditions.append(~sum(cast(c, "int64") for c in conditions).bool())  # type: ignore
    if len(funclist) != len(conditions):
        facts = f"{len(conditions)} conditions and {len(funclist)} functions"
        raise ArgumentError(f"np.piecewise: {facts}; one more function is allowed")
    y = creation.zeros_like(x)
    for condition, function in zip(conditions, funclist):
        if callable(function):
            y = y.masked_scatter(
                condition, cast(as_tensor(function(x[condition], *args, **kw)), y.dtype)
            )
        else:
            y = conditional.where(condition, cast(as_tensor(function), y.dtype), y)
    return y


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    arr = as_tensor(arr)
    place = canonicalize_axis("apply_along_axis", axis, arr.ndim)
    rows = shaping.movedim(arr, place, -1)
    outer = rows.shape[:-1]
    parts = [as_tensor(func1d(row, *args, **kwargs)) for row in rows.reshape(-1, rows.shape[-1])]
    y = joining.stack(parts, 0)
    y = y.reshape(*outer, *y.shape[1:])
    inner = y.ndim - len(outer)
    return shaping.movedim(y, tuple(range(len(outer), y.ndim)), tuple(range(place, place + inner)))


def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    a = as_tensor(a)
    for axis in np.atleast_1d(axes).tolist():
        y = as_tensor(func(a, axis))
        a = y if y.ndim == a.ndim else shaping.unsqueeze(y, axis if axis >= 0 else axis + a.ndim)
    return a


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    views = np.lib.stride_tricks.sliding_window_view
    return rearranged(lambda x: views(x, window_shape, axis), x)


# Writes


def written(name: str, target: Any) -> Any:
    if not isinstance(target, Traced):
        facts = "an ndarray cannot store a tensor; make it a tensor"
        raise ArgumentError(f"np.{name}: {facts}")
    return target


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    a = written("fill_diagonal", a)
    size = int(np.prod(a.shape))
    positions = np.arange(size).reshape(a.shape)
    marked = np.full(a.shape, -1)
    np.fill_diagonal(marked, np.arange(size), wrap)
    places = np.flatnonzero(marked.ravel() >= 0)
    values = resize(shaping.ravel(as_tensor(val)), (places.size,))
    a[np.unravel_index(positions.ravel()[places], a.shape)] = values


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any, mode: str = "raise") -> None:
    arr = written("put_along_axis", arr)
    if axis is None:
        put(arr, indices, values)
        return
    place = canonicalize_axis("put_along_axis", axis, arr.ndim)
    indices = cast(as_tensor(indices), "int64")
    grid = []
    for i, n in enumerate(arr.shape):
        shape = [1] * arr.ndim
        shape[i] = n
        grid.append(indices if i == place else wrap(np.arange(n).reshape(shape)))
    arr[tuple(grid)] = values


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    a = written("put", a)
    places = shaping.ravel(cast(as_tensor(ind), "int64"))
    values = resize(shaping.ravel(as_tensor(v)), (places.shape[0],))
    in_place.copy_(a, a.put(places, cast(values, a.dtype)))


def place(arr: Any, mask: Any, vals: Any) -> None:
    arr = written("place", arr)
    chosen = np.asarray(ndarray_of(mask), bool)
    arr[chosen] = resize(shaping.ravel(as_tensor(vals)), (int(chosen.sum()),))


def putmask(a: Any, mask: Any, values: Any) -> None:
    a = written("putmask", a)
    in_place.copy_(a, conditional.where(mask, cast(resize(values, a.shape), a.dtype), a))


def indices_from(function: Any) -> Any:
    """tril_indices_from, triu_indices_from, diag_indices_from: of a tensor's shape."""

    def run(arr: Any, k: int = 0) -> Any:
        like = np.empty(as_tensor(arr).shape, bool)
        found = function(like) if function is np.diag_indices_from else function(like, k)
        return tuple(wrap(x) for x in found)

    return run


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.apply_along_axis: apply_along_axis,
    np.apply_over_axes: apply_over_axes,
    np.choose: choose,
    np.delete: delete,
    np.diag_indices_from: indices_from(np.diag_indices_from),
    np.fill_diagonal: fill_diagonal,
    np.insert: insert,
    np.lib.stride_tricks.sliding_window_view: sliding_window_view,
    np.piecewise: piecewise,
    np.place: place,
    np.put: put,
    np.put_along_axis: put_along_axis,
    np.putmask: putmask,
    np.resize: resize,
    np.tril_indices_from: indices_from(np.tril_indices_from),
    np.trim_zeros: trim_zeros,
    np.triu_indices_from: indices_from(np.triu_indices_from),
}
