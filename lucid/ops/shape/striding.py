"""as_strided: elements selected by a size and a stride for every axis.

Strides count elements of the underlying storage, as in PyTorch: a view is traced to its base, so
the elements around it can be selected too. The result is a copy; derivatives add up where elements
are selected more than once.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.ir.source import at_line
from lucid.ops.core.arguments import clear_errors
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.lookup import index_copy
from lucid.ops.shape.joining import take_axis
from lucid.public.declare import public
from lucid.tape.node import is_recording, wrap
from lucid.tape.views import layout


class StorageMap(NamedTuple):
    """Storage offsets of the elements of a tensor and of its base, in elements.

    own, whole    the offset of every element of the tensor and of its base, in row-major order
    first         the offset of the tensor's first element
    """

    root: Any
    own: np.ndarray
    whole: np.ndarray
    first: int


def storage_map(name: str, x: Any) -> StorageMap:
    root = x
    while root.origin is not None:
        root = root.origin[0]
    if x.value is None or is_recording():
        rows = layout(root)
        view = rows if root is x else replay_views(x, root, rows)
        if x.value is not None and strides_of(x.value) != strides_of(view):
            facts = "the result depends on memory layout, and this tensor is not row-major"
            raise ArgumentError(f"{name}: {facts}; call contiguous() before jit{at_line()}")
    else:
        rows, view = root.value, x.value
    if view.itemsize != rows.itemsize:
        facts = f"a view of {rows.dtype} as {view.dtype} does not have the elements of its storage"
        raise ArgumentError(f"{name}: {facts}; clone() it first{at_line()}")
    start = np.lib.array_utils.byte_bounds(rows)[0] if rows.size else address(rows)
    return StorageMap(root, offsets(view, start), offsets(rows, start), first_offset(view, start))


def replay_views(x: Any, root: Any, rows: np.ndarray) -> np.ndarray:
    """Apply the view operations between `root` and `x` to an array of the layout of `root`."""
    if x is root:
        return rows
    base, op, _ = x.origin
    return op.eval(replay_views(base, root, rows))


def strides_of(x: np.ndarray) -> list[int]:
    """Return the strides of axes with more than one element, in elements."""
    return [s // x.itemsize for s, n in zip(x.strides, x.shape) if n > 1] if x.size else []


def address(x: np.ndarray) -> int:
    """Return the memory address of the first element."""
    return int(x.__array_interface__["data"][0])


def first_offset(x: np.ndarray, start: int) -> int:
    """Return the offset of the first element from the address `start`, in elements."""
    return (address(x) - start) // x.itemsize


def offsets(x: np.ndarray, start: int) -> np.ndarray:
    """Return the offset of every element, in row-major order."""
    places: Any = np.asarray(first_offset(x, start))
    for n, stride in zip(x.shape, x.strides):
        places = places[..., None] + np.arange(n) * (stride // x.itemsize)
    return places.reshape(-1)


def strided_offsets(name: str, first: int, size: Any, stride: Any, offset: Any) -> np.ndarray:
    """Return the storage offset of every element of the result."""
    sizes, strides = ([operator.index(n) for n in part] for part in (size, stride))
    first = first if offset is None else operator.index(offset)
    if len(sizes) != len(strides) or min([*sizes, *strides, first], default=0) < 0:
        facts = f"size {tuple(sizes)}, stride {tuple(strides)}, storage_offset {first}"
        raise ArgumentError(f"{name}: {facts}; give one stride for each size, all >= 0{at_line()}")
    places: Any = np.asarray(first)
    for n, step in zip(sizes, strides):
        places = places[..., None] + np.arange(n) * step
    return places


def find_elements(offsets: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of the element at each offset, and whether there is one."""
    if not stored.size:
        return np.zeros(offsets.shape, "int64"), np.zeros(offsets.shape, "bool")
    order = np.argsort(stored, kind="stable")
    at = order[np.minimum(np.searchsorted(stored[order], offsets), stored.size - 1)]
    return at, stored[at] == offsets


def check_found(name: str, places: np.ndarray, there: np.ndarray, count: int) -> None:
    if not there.all():
        facts = f"offset {places[~there].max()} is not among the {count} elements in memory"
        raise IndexingError(f"{name}: {facts}{at_line()}")


@public(name="as_strided_copy")
@public("lucid", "Tensor")
@clear_errors
def as_strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Select elements of a tensor's storage by sizes and strides.

    >>> import lucid
    >>> lucid.as_strided(lucid.arange(6), (3, 2), (1, 2))
    Tensor([[0, 2],
            [1, 3],
            [2, 4]])
    """
    x = as_tensor(input)
    storage = storage_map("as_strided", x)
    places = strided_offsets("as_strided", storage.first, size, stride, storage_offset)
    flat = places.reshape(-1)
    at, own = find_elements(flat, storage.own)
    if own.all():
        return take_axis(x.reshape(-1), 0, at).reshape(places.shape)
    around, there = find_elements(flat, storage.whole)
    check_found("as_strided", flat, there, storage.whole.size)
    y = take_axis(storage.root.reshape(-1), 0, around)
    if own.any():
        y = where(wrap(own), take_axis(x.reshape(-1), 0, np.where(own, at, 0)), y)
    return y.reshape(places.shape)


@public("lucid", "Tensor")
@clear_errors
def as_strided_scatter(
    input: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    """A copy of `input` with `src` written where `as_strided` would read."""
    x, src = as_tensor(input), as_tensor(src)
    storage = storage_map("as_strided_scatter", x)
    places = strided_offsets("as_strided_scatter", storage.first, size, stride, storage_offset)
    if src.shape != places.shape:
        facts = f"src has shape {src.shape}; it must be {places.shape}"
        raise ShapeError(f"as_strided_scatter: {facts}{at_line()}")
    if len(np.unique(places)) != places.size or len(np.unique(storage.own)) != storage.own.size:
        raise ArgumentError(f"as_strided_scatter: elements must not overlap in memory{at_line()}")
    at, own = find_elements(places.reshape(-1), storage.own)
    check_found("as_strided_scatter", places.reshape(-1), own, storage.own.size)
    flat = index_copy(x.reshape(-1), 0, wrap(at), cast(src, x.dtype).reshape(-1))
    return flat.reshape(x.shape)
