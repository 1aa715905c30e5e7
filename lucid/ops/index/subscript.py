"""Indexing `x[...]` and `x[...] = y` as primitives, with NumPy's exact semantics.

An index is a basic part (ints, slices, None, ellipsis: a view) and index tensors for axes of that
view. Reading is the view, then one gather, then a transpose if NumPy leaves the index axes in
place; writing does the same in reverse.
"""

from __future__ import annotations

import math
from operator import index as to_index
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import IndexingError, LucidError, ShapeError
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.axes import drop_axes
from lucid.ops.core.promote import as_tensor, cast, cast_like
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.gather_scatter import Gather
from lucid.ops.index.writing import ScatterSet, SliceSet
from lucid.ops.shape.movement import Flip, Reshape, Slice, Transpose, broadcast_to
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.fast_bind import bind_pair, bind_view
from lucid.tape.node import TRACE, Traced, wrap


class BasicIndex(NamedTuple):
    """A view: a slice in every axis, axes dropped, axes flipped, then a shape with new axes."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]
    drop: tuple[int, ...]
    flip: tuple[int, ...]  # among the axes left after the drop
    shape: tuple[int, ...]  # of the view

    def operations(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Return the primitives that make the view; none if it is the tensor itself."""
        region = Slice(self.starts, self.limits, self.strides, self.drop)
        ops: list[Any] = []
        if self.drop or region.sizes != shape:
            ops.append(region)
        if self.flip:
            ops.append(Flip(self.flip))
        if drop_axes(region.sizes, self.drop) != self.shape:
            ops.append(Reshape(self.shape))
        return tuple(ops)

    def read(self, x: Any) -> Any:
        for op in self.operations(x.shape):
            x = bind_view(op, x)
        return x

    def covers(self, x: Any) -> bool:
        """True if the view is all of `x`, perhaps with new axes."""
        return not self.flip and math.prod(self.shape) == math.prod(x.shape)

    def write(self, x: Any, part: Any) -> Any:
        """Return `x` with the view replaced by `part`, which has its shape or is 0-d."""
        region = Slice(self.starts, self.limits, self.strides)
        if part.ndim:
            kept = tuple(n for i, n in enumerate(region.sizes) if i not in self.drop)
            part = part if part.shape == kept else bind(Reshape(kept), part)
            part = bind(Flip(self.flip), part) if self.flip else part
            part = part if part.shape == region.sizes else bind(Reshape(region.sizes), part)
        return bind(SliceSet(self.starts, self.limits, self.strides), x, part)


class ParsedIndex(NamedTuple):
    """An index in normal form.

    basic      the view to take first
    axes       axes of the view that are indexed
    indices    the index tensor of each, all of one shape
    place      position of the index axes in the result
    """

    basic: BasicIndex
    axes: tuple[int, ...]
    indices: tuple[Any, ...]
    place: int


def getitem(x: Any, index: Any) -> Any:
    """Return `x[index]`, for every index that NumPy accepts."""
    kind = index.__class__
    x = x if isinstance(x, Traced) else as_tensor(x)
    value = x.raw
    shape = x.shape if value is None else value.shape
    if kind is int:
        return bind_view(select_operation(index, shape), x)
    key = slice_key(index) if kind is slice else basic_key(index if kind is tuple else (index,))
    if key is not None:
        for op in view_operations(key, shape):
            x = bind_view(op, x)
        return x
    value = None  # what follows may look whether anything else holds this array
    if isinstance(index, Traced) and index.dtype.kind == "i" and index.shape and shape:
        return bind_pair(_ROWS, x, index)
    basic, axes, indices, place = parse_index(shape, index)
    view = basic.read(x)
    if not axes:
        return bind(Slice(basic.starts, basic.limits, basic.strides), x) if view is x else view
    y = bind(Gather(axes), view, *indices)
    return move_index_axes(y, indices[0].ndim, place)


_PLAIN = (int, type(None))
_ROWS = Gather((0,))


def basic_key(items: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return a hashable form of an index of ints, slices, None and ellipsis; None for others."""
    key: list[Any] = []
    for item in items:
        kind = item.__class__
        if kind is slice:
            bounds = slice_key(item)
            if bounds is None:
                return None
            key += bounds
        elif kind is int or item is None or item is Ellipsis:
            key.append(item)
        else:
            return None
    return tuple(key)


def slice_key(item: slice) -> tuple[Any, ...] | None:
    """`basic_key` of one slice."""
    a, b, c = item.start, item.stop, item.step
    if a.__class__ in _PLAIN and b.__class__ in _PLAIN and c.__class__ in _PLAIN:
        return ((a, b, c),)
    return None


@memoize(maxsize=4096)
def view_operations(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the primitives of a basic index: at least one, so the result is a new tensor."""
    items = [slice(*item) if isinstance(item, tuple) else item for item in key]
    return parse_index(shape, tuple(items)).basic.operations(shape) or (
        Slice((0,) * len(shape), shape, (1,) * len(shape)),
    )


@memoize(maxsize=4096)
def select_operation(i: int, shape: tuple[int, ...]) -> Slice:
    """Return the primitive of `x[i]`, which slices and drops the axis."""
    if not shape:
        raise IndexingError("getitem: a 0-d tensor has no axis to index")
    start = normalize_int(i, shape[0], 0)
    ndim = len(shape)
    return Slice((start, *[0] * (ndim - 1)), (start + 1, *shape[1:]), (1,) * ndim, (0,))


def move_index_axes(y: Any, count: int, place: int) -> Any:
    """Move the first `count` axes of `y` to `place`."""
    if not place or not count:
        return y
    order = (*range(count, count + place), *range(count), *range(count + place, y.ndim))
    return bind(Transpose(order), y)


def setitem(x: Any, index: Any, value: Any) -> Any:
    """Return a copy of `x` with the elements at `index` replaced by `value`, which broadcasts."""
    x = as_tensor(x)
    value = cast_like(x, "setitem", value)
    mask = index if is_mask(index) else None
    if mask is not None and value.ndim <= x.ndim - mask.ndim:
        return set_masked(x, as_tensor(mask), value)
    basic, axes, indices, place = parse_index(x.shape, index)
    if not axes:
        return basic.write(x, broadcast_value(value, basic.shape))
    view = basic.read(x)
    rest = tuple(n for i, n in enumerate(view.shape) if i not in axes)
    shape = (*rest[:place], *indices[0].shape, *rest[place:])
    value = broadcast_value(value, shape)
    if value.ndim and place:
        count = indices[0].ndim
        order = (*range(place, place + count), *range(place), *range(place + count, value.ndim))
        value = bind(Transpose(order), value)
    view = bind(ScatterSet(axes), view, value, *indices)
    if basic.covers(x):
        return view if view.shape == x.shape else bind(Reshape(x.shape), view)
    return basic.write(x, view)


def broadcast_value(value: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast a value to the region it is stored in; a scalar stays a scalar."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    if not value.ndim:
        return value
    try:
        return broadcast_to(value, shape)
    except LucidError:
        facts = f"values of shape {value.shape} do not fit into a region of shape {shape}"
        raise ShapeError(f"setitem: {facts}") from None


def set_masked(x: Any, mask: Any, value: Any) -> Any:
    """Write a value that is the same for all masked positions, without reading the mask."""
    check_mask(mask.shape, x.shape, 0)
    broadcast_value(value, x.shape[mask.ndim :])
    if 0 in mask.shape:
        return x
    return where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), value, x)


def is_mask(index: Any) -> bool:
    return isinstance(index, (Traced, np.ndarray)) and index.dtype.kind == "b"


# From a user's index to a ParsedIndex


def parse_index(shape: tuple[int, ...], index: Any) -> ParsedIndex:
    """Parse an index of a tensor of this shape."""
    items = [normalize_item(item) for item in (index if isinstance(index, tuple) else (index,))]
    items = expand_ellipsis(items, shape)
    builder = IndexBuilder(shape)
    for item in items:
        builder.add(item)
    return builder.finish()


def normalize_item(item: Any) -> Any:
    """Return an int, a slice, None, Ellipsis, a boolean array, or an integer tensor."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, (list, tuple, range)):
        item = list(item) if isinstance(item, range) else item
        item = as_tensor(item) if len(item) else wrap(np.zeros(0, np.int64))
        if item.shape and 0 in item.shape and item.dtype.kind == "f":
            item = cast(item, "int64")
    elif isinstance(item, np.ndarray) or hasattr(item, "__array__"):
        item = as_tensor(item)
    if isinstance(item, Traced):
        return normalize_tensor_item(item)
    try:
        return to_index(item)
    except TypeError:
        raise invalid_index_error(type(item).__name__) from None


def normalize_tensor_item(item: Any) -> Any:
    if item.dtype.kind == "b":
        return item.array("boolean indexing")
    if item.dtype.kind not in "iu":
        raise invalid_index_error(f"a tensor of dtype {item.dtype}")
    known = item.raw is not None and not (item.node is not None and item.node.flags & TRACE)
    return int(item.value) if known and not item.ndim else item


def invalid_index_error(what: str) -> IndexingError:
    kinds = "integers, slices, None, ..., or integer or boolean tensors"
    return IndexingError(f"indexing: {what} is not an index; use {kinds}")


def axes_consumed(item: Any) -> int:
    """Return how many axes of the tensor an item indexes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) else 1


def expand_ellipsis(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Add full slices for axes left out; an ellipsis that stands for no axis is kept."""
    count = sum(map(axes_consumed, items))
    if count > len(shape):
        facts = f"{count} indices for a tensor with {len(shape)} axes"
        raise IndexingError(f"indexing: {facts}, shape {shape}")
    missing: list[Any] = [slice(None)] * (len(shape) - count)
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    if not ellipses:
        return items + missing
    if len(ellipses) > 1:
        raise IndexingError("indexing: an index has at most one ellipsis")
    i = ellipses[0]
    return [*items[:i], *(missing or [Ellipsis]), *items[i + 1 :]]


class IndexBuilder:
    """Builds a ParsedIndex, item by item."""

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
                start = normalize_int(item, self.shape[axis], axis)
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
        """NumPy keeps the index axes in place if all ints and index arrays are adjacent."""
        if self.group == 0:
            self.place = len(self.view) - len(self.axes)
        self.group = {0: 1, 2: 3}.get(self.group, self.group)

    def slice(self, item: slice) -> None:
        n = self.shape[len(self.bounds)]
        try:
            start, stop, step = item.indices(n)
        except (TypeError, ValueError) as error:
            raise IndexingError(f"indexing: slice {item}: {error}") from None
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

    def finish(self) -> ParsedIndex:
        starts, limits, strides = zip(*self.bounds) if self.bounds else ((), (), ())
        basic = BasicIndex(
            starts, limits, strides, tuple(self.drop), tuple(self.flip), tuple(self.view)
        )
        place = 0 if self.group == 3 else self.place
        return ParsedIndex(basic, tuple(self.axes), broadcast_indices(self.indices), place)


def normalize_int(i: int, n: int, axis: int) -> int:
    """Return a checked nonnegative index."""
    if not -n <= i < n:
        raise IndexingError(f"indexing: index {i} is out of range for axis {axis} of size {n}")
    return i + n if i < 0 else i


def check_mask(mask: tuple[int, ...], shape: tuple[int, ...], axis: int) -> None:
    """Raise an error for a mask that does not fit; an axis without elements fits, as in NumPy."""
    axes = shape[axis : axis + len(mask)]
    if len(mask) != len(axes) or any([m not in (n, 0) for m, n in zip(mask, axes)]):
        raise IndexingError(f"indexing: a boolean index of shape {mask} for axes of shape {axes}")


def broadcast_indices(indices: list[Any]) -> tuple[Any, ...]:
    """Broadcast index tensors to one shape."""
    if len(indices) < 2:
        return tuple(indices)
    try:
        shape = broadcast_shapes(*[i.shape for i in indices])
    except ShapeError:
        shapes = ", ".join(str(i.shape) for i in indices)
        raise IndexingError(f"indexing: indices of shapes {shapes} do not broadcast") from None
    return tuple([broadcast_to(i, shape) for i in indices])
