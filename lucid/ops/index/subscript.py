"""Subscripts: `x[...]` of every kind, read and written, as primitives with NumPy's exact layout.

A subscript is a basic part (ints, slices, None, ellipsis: a view) and index tensors for axes of
that view. Reading is the view, then one gather, then a transpose where NumPy leaves the index axes
in place; writing goes the same way back.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import index as to_index
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import IndexingError, LucidError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.axes import without
from lucid.ops.core.promote import as_tensor, cast, to_dtype_of
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.gather_scatter import Gather
from lucid.ops.index.writing import ScatterSet, SliceSet
from lucid.ops.shape.movement import Flip, Reshape, Slice, Transpose, broadcast_to
from lucid.tape.bind import bind
from lucid.tape.node import TRACE, Traced, wrap


class Basic(NamedTuple):
    """A view: a slice in every axis, axes dropped, axes flipped, then a shape with new axes."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]
    drop: tuple[int, ...]
    flip: tuple[int, ...]  # among the axes that are left after the drop
    shape: tuple[int, ...]  # of the view

    def operations(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """What makes the view of a tensor of this shape: none where it is the tensor itself."""
        region = Slice(self.starts, self.limits, self.strides, self.drop)
        ops: list[Any] = []
        if self.drop or region.sizes != shape:
            ops.append(region)
        if self.flip:
            ops.append(Flip(self.flip))
        if without(region.sizes, self.drop) != self.shape:
            ops.append(Reshape(self.shape))
        return tuple(ops)

    def read(self, x: Any) -> Any:
        for op in self.operations(x.shape):
            x = bind(op, x)
        return x

    def whole(self, x: Any) -> bool:
        """True where the view is all of `x`, perhaps with new axes."""
        return not self.flip and math.prod(self.shape) == math.prod(x.shape)

    def write(self, x: Any, part: Any) -> Any:
        """`x` with the view replaced by `part`, which has its shape or none."""
        region = Slice(self.starts, self.limits, self.strides)
        if part.ndim:
            kept = tuple(n for i, n in enumerate(region.sizes) if i not in self.drop)
            part = part if part.shape == kept else bind(Reshape(kept), part)
            part = bind(Flip(self.flip), part) if self.flip else part
            part = part if part.shape == region.sizes else bind(Reshape(region.sizes), part)
        return bind(SliceSet(self.starts, self.limits, self.strides), x, part)


class Subscript(NamedTuple):
    """A subscript made plain.

    basic      the view to take first
    axes       axes of the view that are indexed
    indices    the index tensor of each, all of one shape
    place      where in the result the axes of the indices stand
    """

    basic: Basic
    axes: tuple[int, ...]
    indices: tuple[Any, ...]
    place: int


def getitem(x: Any, index: Any) -> Any:
    """`x[index]`, for every index that NumPy takes."""
    if index.__class__ is int:
        return bind(select(index, x.shape), x)
    x = as_tensor(x)
    key = basic_key(index if index.__class__ is tuple else (index,))
    if key is not None:
        for op in views(key, x.shape):
            x = bind(op, x)
        return x
    if isinstance(index, Traced) and index.dtype.kind == "i" and index.shape and x.shape:
        return bind(Gather((0,)), x, index)
    basic, axes, indices, place = plain(x.shape, index)
    view = basic.read(x)
    if not axes:
        return bind(Slice(basic.starts, basic.limits, basic.strides), x) if view is x else view
    y = bind(Gather(axes), view, *indices)
    return moved(y, indices[0].ndim, place)


_PLAIN = (int, type(None))


def basic_key(items: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A hashable form of an index of ints, slices, None and ellipsis; None for all others."""
    key: list[Any] = []
    for item in items:
        kind = item.__class__
        if kind is slice:
            bounds = (item.start, item.stop, item.step)
            if not all([bound.__class__ in _PLAIN for bound in bounds]):
                return None
            key.append(bounds)
        elif kind is int or item is None or item is Ellipsis:
            key.append(item)
        else:
            return None
    return tuple(key)


@lru_cache(maxsize=4096)
def views(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The operations of a basic subscript: at least one, so the result is a tensor of its own."""
    items = [slice(*item) if isinstance(item, tuple) else item for item in key]
    return plain(shape, tuple(items)).basic.operations(shape) or (
        Slice((0,) * len(shape), shape, (1,) * len(shape)),
    )


@lru_cache(maxsize=4096)
def select(i: int, shape: tuple[int, ...]) -> Slice:
    """The operation of `x[i]`: the axis is dropped in the same step."""
    if not shape:
        raise IndexingError(f"getitem: a 0-d tensor has no axis to index{at_line()}")
    start = counted(i, shape[0], 0)
    ndim = len(shape)
    return Slice((start, *[0] * (ndim - 1)), (start + 1, *shape[1:]), (1,) * ndim, (0,))


def moved(y: Any, count: int, place: int) -> Any:
    """`y` with its first `count` axes moved to `place`."""
    if not place or not count:
        return y
    order = (*range(count, count + place), *range(count), *range(count + place, y.ndim))
    return bind(Transpose(order), y)


def setitem(x: Any, index: Any, value: Any) -> Any:
    """`x` with the elements at `index` replaced by `value`, which broadcasts; `x` itself stays."""
    x = as_tensor(x)
    value = to_dtype_of(x, "setitem", value)
    mask = index if is_mask(index) else None
    if mask is not None and value.ndim <= x.ndim - mask.ndim:
        return set_masked(x, as_tensor(mask), value)
    basic, axes, indices, place = plain(x.shape, index)
    if not axes:
        return basic.write(x, fitted(value, basic.shape))
    view = basic.read(x)
    rest = tuple(n for i, n in enumerate(view.shape) if i not in axes)
    shape = (*rest[:place], *indices[0].shape, *rest[place:])
    value = fitted(value, shape)
    if value.ndim and place:
        count = indices[0].ndim
        order = (*range(place, place + count), *range(place), *range(place + count, value.ndim))
        value = bind(Transpose(order), value)
    view = bind(ScatterSet(axes), view, value, *indices)
    if basic.whole(x):
        return view if view.shape == x.shape else bind(Reshape(x.shape), view)
    return basic.write(x, view)


def fitted(value: Any, shape: tuple[int, ...]) -> Any:
    """A value broadcast to the region it is stored in; one number stays one number."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    if not value.ndim:
        return value
    try:
        return broadcast_to(value, shape)
    except LucidError:
        facts = f"values of shape {value.shape} do not fit into a region of shape {shape}"
        raise ShapeError(f"setitem: {facts}{at_line()}") from None


def set_masked(x: Any, mask: Any, value: Any) -> Any:
    """A mask and a value that does not depend on its place: needs no value of the mask."""
    check_mask(mask.shape, x.shape, 0)
    fitted(value, x.shape[mask.ndim :])
    return where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), value, x)


def is_mask(index: Any) -> bool:
    return isinstance(index, (Traced, np.ndarray)) and index.dtype.kind == "b"


# From what the user wrote to a Subscript


def plain(shape: tuple[int, ...], index: Any) -> Subscript:
    """The Subscript that an index stands for on a tensor of this shape."""
    items = [item_of(item) for item in (index if isinstance(index, tuple) else (index,))]
    items = with_ellipsis(items, shape)
    builder = Builder(shape)
    for item in items:
        builder.add(item)
    return builder.finish()


def item_of(item: Any) -> Any:
    """An int, a slice, None, Ellipsis, a boolean array, or an integer tensor."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, (list, tuple)):
        item = as_tensor(item) if len(item) else wrap(np.zeros(0, np.int64))
        if item.shape and 0 in item.shape and item.dtype.kind == "f":
            item = cast(item, "int64")
    elif isinstance(item, np.ndarray) or hasattr(item, "__array__"):
        item = as_tensor(item)
    if isinstance(item, Traced):
        return tensor_item(item)
    try:
        return to_index(item)
    except TypeError:
        raise wrong_kind(type(item).__name__) from None


def tensor_item(item: Any) -> Any:
    if item.dtype.kind == "b":
        return item.array("boolean indexing")
    if item.dtype.kind not in "iu":
        raise wrong_kind(f"a tensor of dtype {item.dtype}")
    known = item.value is not None and not (item.node is not None and item.node.flags & TRACE)
    return int(item.value) if known and not item.ndim else item


def wrong_kind(what: str) -> IndexingError:
    kinds = "integers, slices, None, ..., and integer or boolean tensors"
    return IndexingError(f"indexing: {what} is not an index; {kinds} are{at_line()}")


def consumed(item: Any) -> int:
    """How many axes of the tensor an item stands for."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) else 1


def with_ellipsis(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The items with full slices for axes left out; an ellipsis that stands for none is kept."""
    count = sum(map(consumed, items))
    if count > len(shape):
        facts = f"{count} indices for a tensor with {len(shape)} axes"
        raise IndexingError(f"indexing: {facts}, shape {shape}{at_line()}")
    missing: list[Any] = [slice(None)] * (len(shape) - count)
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    if not ellipses:
        return items + missing
    if len(ellipses) > 1:
        raise IndexingError(f"indexing: an index has at most one ellipsis{at_line()}")
    i = ellipses[0]
    return [*items[:i], *(missing or [Ellipsis]), *items[i + 1 :]]


class Builder:
    """Collects a Subscript, item by item."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.bounds: list[tuple[int, int, int]] = []
        self.drop: list[int] = []
        self.flip: list[int] = []
        self.view: list[int] = []  # the shape of the view
        self.left = 0  # axes left after the drop
        self.axes: list[int] = []
        self.indices: list[Any] = []
        self.group = 0  # 0: before the first advanced item, 1: among them, 2: after, 3: after a gap
        self.place = 0

    def add(self, item: Any) -> None:
        if item is None:
            self.view.append(1)
            self.basic()
        elif item is Ellipsis:
            self.basic()
        elif isinstance(item, slice):
            self.slice(item)
            self.basic()
        else:
            self.advanced()
            if isinstance(item, int):
                axis = len(self.bounds)
                start = counted(item, self.shape[axis], axis)
                self.drop.append(axis)
                self.bounds.append((start, start + 1, 1))
            elif isinstance(item, np.ndarray):
                self.mask(item)
            else:
                self.index(item)

    def basic(self) -> None:
        if self.group == 1:
            self.group = 2

    def advanced(self) -> None:
        """NumPy keeps the index axes in place where all ints and index arrays stand together."""
        if self.group == 0:
            self.place = len(self.view) - len(self.axes)
        self.group = {0: 1, 2: 3}.get(self.group, self.group)

    def slice(self, item: slice) -> None:
        n = self.shape[len(self.bounds)]
        try:
            start, stop, step = item.indices(n)
        except (TypeError, ValueError) as error:
            raise IndexingError(f"indexing: slice {item}: {error}{at_line()}") from None
        size = len(range(start, stop, step))
        if step < 0:
            start = start + (size - 1) * step if size else 0
            self.flip.append(self.left)
        start = start if size else 0
        self.full_axis((start, start + (size - 1) * abs(step) + 1 if size else start, abs(step)))
        self.view.append(size)

    def full_axis(self, bounds: tuple[int, int, int]) -> None:
        self.bounds.append(bounds)
        self.left += 1

    def index(self, item: Any) -> None:
        n = self.shape[len(self.bounds)]
        self.axes.append(len(self.view))
        self.indices.append(item)
        self.full_axis((0, n, 1))
        self.view.append(n)

    def mask(self, item: np.ndarray) -> None:
        axis = len(self.bounds)
        check_mask(item.shape, self.shape, axis)
        if item.ndim:
            for where_true in item.nonzero():
                self.index(wrap(where_true))
        else:  # True is a new axis of one element, False one of none
            self.axes.append(len(self.view))
            self.indices.append(wrap(np.zeros(int(item), np.intp)))
            self.view.append(1)

    def finish(self) -> Subscript:
        starts, limits, strides = zip(*self.bounds) if self.bounds else ((), (), ())
        basic = Basic(starts, limits, strides, tuple(self.drop), tuple(self.flip), tuple(self.view))
        place = 0 if self.group == 3 else self.place
        return Subscript(basic, tuple(self.axes), together(self.indices), place)


def counted(i: int, n: int, axis: int) -> int:
    """An index counted from the front, checked."""
    if not -n <= i < n:
        facts = f"index {i} is out of range for axis {axis} of size {n}"
        raise IndexingError(f"indexing: {facts}{at_line()}")
    return i + n if i < 0 else i


def check_mask(mask: tuple[int, ...], shape: tuple[int, ...], axis: int) -> None:
    if mask != shape[axis : axis + len(mask)]:
        facts = (
            f"a boolean index of shape {mask} for axes of shape {shape[axis : axis + len(mask)]}"
        )
        raise IndexingError(f"indexing: {facts}{at_line()}")


def together(indices: list[Any]) -> tuple[Any, ...]:
    """Index tensors broadcast to one shape."""
    if len(indices) < 2:
        return tuple(indices)
    try:
        shape = broadcast_shapes(*[i.shape for i in indices])
    except ShapeError:
        shapes = ", ".join(str(i.shape) for i in indices)
        raise IndexingError(
            f"indexing: indices of shapes {shapes} do not broadcast{at_line()}"
        ) from None
    return tuple([broadcast_to(i, shape) for i in indices])
