"""as_strided: elements picked by a size and a stride for every axis.

Strides count the elements of the memory in which a tensor lies, as in PyTorch: a view is followed
to the tensor whose memory it shows, and the elements around it are there to be picked too. The
result is a copy; derivatives add up where elements are picked more than once.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.ir.source import at_line
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.lookup import index_copy
from lucid.ops.shape.joining import take_axis
from lucid.tape.node import is_recording, wrap
from lucid.tape.views import layout


class Memory(NamedTuple):
    """Where the elements of a tensor and of what it is a view of lie, counted in elements.

    own, whole    a place in memory for every element in row-major order
    first         the place of the tensor's first element
    """

    root: Any
    own: np.ndarray
    whole: np.ndarray
    first: int


def memory_of(name: str, x: Any) -> Memory:
    root = x
    while root.origin is not None:
        root = root.origin[0]
    if x.value is None or is_recording():
        rows = layout(root)
        seen = rows if root is x else seen_through(x, root, rows)
        if x.value is not None and strides_of(x.value) != strides_of(seen):
            facts = "this tensor does not lie row by row in memory, and a jitted function may be"
            raise ArgumentError(
                f"{name}: {facts} called with others; contiguous() makes it so{at_line()}"
            )
    else:
        rows, seen = root.value, x.value
    if seen.itemsize != rows.itemsize:
        facts = f"a view of {rows.dtype} as {seen.dtype} has other elements than its memory"
        raise ArgumentError(f"{name}: {facts}; clone() it first{at_line()}")
    start = np.lib.array_utils.byte_bounds(rows)[0] if rows.size else address(rows)
    return Memory(root, offsets(seen, start), offsets(rows, start), first_of(seen, start))


def seen_through(x: Any, root: Any, rows: np.ndarray) -> np.ndarray:
    """`rows`, the memory of `root`, as its view `x` shows it."""
    if x is root:
        return rows
    base, op, _ = x.origin
    return op.eval(seen_through(base, root, rows))


def strides_of(x: np.ndarray) -> list[int]:
    """The strides that matter: of axes with several elements."""
    return [s // x.itemsize for s, n in zip(x.strides, x.shape) if n > 1] if x.size else []


def address(x: np.ndarray) -> int:
    return int(x.__array_interface__["data"][0])


def first_of(x: np.ndarray, start: int) -> int:
    return (address(x) - start) // x.itemsize


def offsets(x: np.ndarray, start: int) -> np.ndarray:
    """The place of every element, in row-major order."""
    places: Any = np.asarray(first_of(x, start))
    for n, stride in zip(x.shape, x.strides):
        places = places[..., None] + np.arange(n) * (stride // x.itemsize)
    return places.reshape(-1)


def positions(name: str, first: int, size: Any, stride: Any, offset: Any) -> np.ndarray:
    """The place in memory of every element of the result."""
    sizes, strides = ([operator.index(n) for n in part] for part in (size, stride))
    first = first if offset is None else operator.index(offset)
    if len(sizes) != len(strides) or min([*sizes, *strides, first], default=0) < 0:
        facts = f"size {tuple(sizes)}, stride {tuple(strides)}, storage_offset {first}"
        raise ArgumentError(f"{name}: {facts}; one stride for every size, none negative{at_line()}")
    places: Any = np.asarray(first)
    for n, step in zip(sizes, strides):
        places = places[..., None] + np.arange(n) * step
    return places


def found(places: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which element lies in each place, and whether there is one."""
    if not held.size:
        return np.zeros(places.shape, "int64"), np.zeros(places.shape, "bool")
    order = np.argsort(held, kind="stable")
    at = order[np.minimum(np.searchsorted(held[order], places), held.size - 1)]
    return at, held[at] == places


def check_found(name: str, places: np.ndarray, there: np.ndarray, count: int) -> None:
    if not there.all():
        facts = f"element {places[~there].max()} is wanted of {count}"
        raise IndexingError(f"{name}: {facts}{at_line()}")


@explained
def as_strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """The elements of a tensor's memory by sizes and strides.

    >>> import lucid
    >>> lucid.as_strided(lucid.arange(6), (3, 2), (1, 2))
    Tensor([[0, 2],
            [1, 3],
            [2, 4]])
    """
    x = as_tensor(input)
    memory = memory_of("as_strided", x)
    places = positions("as_strided", memory.first, size, stride, storage_offset)
    flat = places.reshape(-1)
    at, own = found(flat, memory.own)
    if own.all():
        return take_axis(x.reshape(-1), 0, at).reshape(places.shape)
    around, there = found(flat, memory.whole)
    check_found("as_strided", flat, there, memory.whole.size)
    y = take_axis(memory.root.reshape(-1), 0, around)
    if own.any():
        y = where(wrap(own), take_axis(x.reshape(-1), 0, np.where(own, at, 0)), y)
    return y.reshape(places.shape)


as_strided_copy = as_strided


@explained
def as_strided_scatter(
    input: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    """A copy of `input` with `src` in the places that `as_strided` would read."""
    x, src = as_tensor(input), as_tensor(src)
    memory = memory_of("as_strided_scatter", x)
    places = positions("as_strided_scatter", memory.first, size, stride, storage_offset)
    if src.shape != places.shape:
        facts = f"a source of shape {src.shape} for {places.shape}"
        raise ShapeError(f"as_strided_scatter: {facts}{at_line()}")
    if len(np.unique(places)) != places.size or len(np.unique(memory.own)) != memory.own.size:
        raise ArgumentError(f"as_strided_scatter: places that overlap have no one value{at_line()}")
    at, own = found(places.reshape(-1), memory.own)
    check_found("as_strided_scatter", places.reshape(-1), own, memory.own.size)
    flat = index_copy(x.reshape(-1), 0, wrap(at), cast(src, x.dtype).reshape(-1))
    return flat.reshape(x.shape)
