"""as_strided: elements selected by a size and a stride for every axis.

Strides count elements of the underlying storage, as in PyTorch: a view is traced to its base, so
the elements around it can be selected too. The result is a view of that base; derivatives add up
where elements are selected more than once.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.index.lookup import index_copy
from lucid.ops.shape.copying import COPY
from lucid.ops.shape.movement import Reshape, Transpose
from lucid.ops.shape.strided import Strided
from lucid.tape.bind import bind
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.node import GRAD, wrap
from lucid.tape.views import can_view, layout, root_of


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
    root = root_of(x)
    rows = layout(root)
    view = replay_views(x, root, rows)
    if view.itemsize != rows.itemsize:
        facts = f"a view of {rows.dtype} as {view.dtype} does not have the elements of its storage"
        raise ArgumentError(f"{name}: {facts}; clone() it first")
    start = np.lib.array_utils.byte_bounds(rows)[0] if rows.size else address(rows)
    return StorageMap(root, offsets(view, start), offsets(rows, start), first_offset(view, start))


def replay_views(x: Any, root: Any, rows: np.ndarray) -> np.ndarray:
    """Apply the view operations between `root` and `x` to an array of the layout of `root`."""
    if x is root:
        return rows
    base, op, _ = x.origin
    return op.eval(replay_views(base, root, rows))


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


def strided_range(
    name: str, first: int, size: Any, stride: Any, offset: Any
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return sizes, strides and the first offset, checked."""
    sizes, strides = (tuple([operator.index(n) for n in part]) for part in (size, stride))
    first = first if offset is None else operator.index(offset)
    if len(sizes) != len(strides) or min([*sizes, *strides, first], default=0) < 0:
        facts = f"size {sizes}, stride {strides}, storage_offset {first}"
        raise ArgumentError(f"{name}: {facts}; give one stride for each size, all >= 0")
    return sizes, strides, first


def strided_offsets(name: str, first: int, size: Any, stride: Any, offset: Any) -> np.ndarray:
    """Return the storage offset of every element of the result."""
    sizes, strides, first = strided_range(name, first, size, stride, offset)
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
        raise IndexingError(f"{name}: {facts}")


@public_function("lucid", "Tensor")
def as_strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Select elements of a tensor's storage by sizes and strides.

    >>> import lucid
    >>> lucid.as_strided(lucid.arange(6), (3, 2), (1, 2))
    Tensor([[0, 2],
            [1, 3],
            [2, 4]])
    """
    x = as_tensor(input)
    base, detached = tracked_base(x)
    order = sorted(range(base.ndim), key=lambda axis: -layout(base).strides[axis])
    memory = base if order == list(range(base.ndim)) else bind(Transpose(tuple(order)), base)
    if not can_view(layout(memory), (math.prod(base.shape),)):
        facts = f"the memory of a tensor of shape {base.shape} and strides {base.stride()} has gaps"
        raise ArgumentError(f"as_strided: {facts}; clone() it first")
    flat = bind(Reshape((math.prod(base.shape),)), memory)
    first = offset_in(x, base)
    sizes, strides, first = strided_range("as_strided", first, size, stride, storage_offset)
    first, strides = elements_of(flat, sizes, strides, first)
    y = bind(Strided(sizes, (first,), tuple([(step,) for step in strides])), flat)
    return bind(STOP_GRADIENT, y) if detached else y


def elements_of(
    flat: Any, sizes: tuple[int, ...], strides: tuple[int, ...], first: int
) -> tuple[int, tuple[int, ...]]:
    """Return an offset and strides in memory as a position and steps in the vector `flat`."""
    n = flat.shape[0]
    gap = layout(flat).strides[0] // flat.dtype.itemsize if n > 1 else 1
    steps = [step if size > 1 else 0 for size, step in zip(sizes, strides)]
    last = first + sum([(size - 1) * step for size, step in zip(sizes, steps)])
    outside = [first + step for step in (0, *steps) if (first + step) % gap] + (
        [last] if last >= n * gap else []
    )
    if outside and 0 not in sizes:
        facts = f"offset {outside[0]} is not among the {n} elements in memory"
        raise IndexingError(f"as_strided: {facts}")
    return first // gap, tuple([step // gap for step in steps])


def tracked_base(x: Any) -> tuple[Any, bool]:
    """Return the tensor that `x` is a view of, and whether no gradient flows between them.

    A view that was detached and then made a leaf is a base of its own.
    """
    detached = False
    while x.origin is not None:
        base, _, severed = x.origin
        if severed and x.node is not None and x.node.flags & GRAD:
            break
        x, detached = base, detached or severed
    return x, detached


def offset_in(x: Any, base: Any) -> int:
    """Return the offset of the first element of a view from that of its base, in elements."""
    whole = layout(base)
    view = replay_views(x, base, whole)
    if view.itemsize != whole.itemsize:
        facts = f"a view of {whole.dtype} as {view.dtype} does not have the elements of its storage"
        raise ArgumentError(f"as_strided: {facts}; clone() it first")
    return (address(view) - address(whole)) // view.itemsize


@public_function()
def as_strided_copy(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """A copy of `as_strided`."""
    return bind(COPY, as_strided(input, size, stride, storage_offset))


@public_function("lucid", "Tensor")
def as_strided_scatter(
    input: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    """A copy of `input` with `src` written where `as_strided` would read."""
    x, src = as_tensor(input), as_tensor(src)
    storage = storage_map("as_strided_scatter", x)
    places = strided_offsets("as_strided_scatter", storage.first, size, stride, storage_offset)
    if src.shape != places.shape:
        facts = f"src has shape {src.shape}; it must be {places.shape}"
        raise ShapeError(f"as_strided_scatter: {facts}")
    if len(np.unique(places)) != places.size or len(np.unique(storage.own)) != storage.own.size:
        raise ArgumentError("as_strided_scatter: elements must not overlap in memory")
    at, own = find_elements(places.reshape(-1), storage.own)
    check_found("as_strided_scatter", places.reshape(-1), own, storage.own.size)
    flat = index_copy(x.reshape(-1), 0, wrap(at), cast(src, x.dtype).reshape(-1))
    return flat.reshape(x.shape)
