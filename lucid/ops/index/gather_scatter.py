"""Indexing by integer tensors: reading (take_along, gather) and adding (put_along, scatter_add).

Indices run from -size to size - 1; negative ones count from the end, as in NumPy. An index out of
range raises IndexingError when the primitive is evaluated, so traced indices are checked as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from lucid.errors import AxisError, DTypeError, IndexingError, ShapeError
from lucid.ir.facts import Points
from lucid.ir.types import Type
from lucid.ops.core.arguments import flag
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Linear
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.movement import Transpose, broadcast_leading, broadcast_unbatched, with_size
from lucid.public.declare import Dynamic, public
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.node import wrap


class TakeAlong(Linear):
    """`y[i, j, k] = x[i, indices[i, j, k], k]` for axis 1; the other axes of both are equal."""

    axis: int
    saves = "x"
    moves = True
    reads_memory = True
    numpy_calls = 3

    def infer(self, x: Type, indices: Type) -> Type:
        check_indices(self.name, indices)
        check_along(self.name, self.axis, x.shape, indices.shape)
        return Type(x.dtype, indices.shape)

    def eval(self, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        indices = indices.astype(np.intp, copy=False)
        try:
            if x.ndim == 1:
                return x.take(indices)
            return x[along_axis_index(indices, self.axis)]
        except IndexError:
            raise out_of_range_error(self.name, indices, x.shape[self.axis], self.axis) from None

    def check_values(self, x: Any, indices: Any) -> None:
        check_range(self.name, indices, x.shape[self.axis], self.axis)

    def can_loop(self, eqn: Any) -> bool:
        return eqn.inputs[0].type.size > 0

    def loop(self, kernel: Any, eqn: Any, points: Points) -> int:
        coords = [None if i == self.axis else point for i, point in enumerate(points)]
        return kernel.read_at(eqn, points, (self.axis,), coords)

    def adjoint(self, ct: Any, x: Any, indices: Any) -> Any:
        return bind(PutAlong(self.axis, x.shape[self.axis]), ct, indices)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, indices: Any) -> Any:
        return bind(TakeAlong(self.axis + 1), *broadcast_unbatched(n, batched, x, indices))


class PutAlong(Linear):
    """The adjoint of take_along: zeros of `size` along `axis`, each value added at its index."""

    axis: int
    size: int
    saves = "x"
    lowering = "lucid.compiler.lowering.index.scatter_kernel:PutAlongLowering"
    partwise = True

    def infer(self, values: Type, indices: Type) -> Type:
        check_indices(self.name, indices)
        if values.shape != indices.shape:
            facts = f"values of shape {values.shape} and indices of shape {indices.shape} differ"
            raise ShapeError(f"{self.name}: {facts}")
        check_along(self.name, self.axis, values.shape, indices.shape)
        shape = (*values.shape[: self.axis], self.size, *values.shape[self.axis + 1 :])
        return Type(values.dtype, shape)

    @quiet
    def eval(self, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
        axis, size = self.axis, self.size
        indices = normalize_indices(self.name, indices, size, axis).swapaxes(axis, -1)
        values = values.swapaxes(axis, -1)
        out = np.zeros((*values.shape[:-1], size), values.dtype)
        if values.ndim > 1:
            rows = np.arange(math.prod(values.shape[:-1])).reshape(*values.shape[:-1], 1)
            indices = indices + rows * size
        np.add.at(out.reshape(-1), indices.reshape(-1), values.reshape(-1))
        return out.swapaxes(axis, -1)

    def check_values(self, values: Any, indices: Any) -> None:
        check_range(self.name, indices, self.size, self.axis)

    def can_loop(self, eqn: Any) -> bool:
        """True for one value per row, which is selected where its index equals the point."""
        return eqn.inputs[0].type.shape[self.axis] == 1 and eqn.outputs[0].type.size > 0

    def loop(self, kernel: Any, eqn: Any, points: Points) -> int:
        return kernel.write_at(eqn, points, self.axis, self.size)

    def adjoint(self, ct: Any, values: Any, indices: Any) -> Any:
        return bind(TakeAlong(self.axis), ct, indices)

    def batch(self, n: int, batched: tuple[bool, ...], values: Any, indices: Any) -> Any:
        return bind(
            PutAlong(self.axis + 1, self.size), *broadcast_unbatched(n, batched, values, indices)
        )


class Gather(Linear):
    """`x` read at index tensors of one shape, one for each of `axes`.

    The first `batch_dims` axes are shared by x and the indices. The result has the axes of the
    indices, then the remaining axes of x, in order.
    """

    axes: tuple[int, ...]
    batch_dims: int = 0
    saves = "x"
    moves = True
    reads_memory = True

    def infer(self, x: Type, *indices: Type) -> Type:
        check_gather(self, x.shape, indices)
        return Type(x.dtype, indices[0].shape + unindexed_shape(self, x.shape))

    def eval(self, x: np.ndarray, *indices: np.ndarray) -> np.ndarray:
        axis = self.axes[0]
        try:
            if len(self.axes) == 1 and not self.batch_dims and x.flags.c_contiguous:
                if not x.size:  # NumPy's take checks no index if nothing is taken
                    normalize_indices(self.name, indices[0], x.shape[axis], axis)
                y = x.take(indices[0].astype(np.intp, copy=False), axis)
                return y if axis == 0 else move_axes_to_front(y, axis, indices[0].ndim)
            return x.transpose(indexed_axes_first(self, x.ndim))[index_grid(self, indices)]
        except IndexError:
            for axis, i in zip(self.axes, indices):
                normalize_indices(self.name, i, x.shape[axis], axis - self.batch_dims)
            raise

    def check_values(self, x: Any, *indices: Any) -> None:
        check_gather_range(self, x.shape, indices)

    def can_loop(self, eqn: Any) -> bool:
        return eqn.inputs[0].type.size > 0

    def loop(self, kernel: Any, eqn: Any, points: Points) -> int:
        after = iter(points[eqn.inputs[1].type.ndim :])
        coords = [
            points[i] if i < self.batch_dims else None if i in self.axes else next(after)
            for i in range(eqn.inputs[0].type.ndim)
        ]
        return kernel.read_at(eqn, points, self.axes, coords)

    def adjoint(self, ct: Any, x: Any, *indices: Any) -> Any:
        return bind(ScatterAdd(x.shape, self.axes, self.batch_dims), ct, *indices)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, *indices: Any) -> Any:
        axes = tuple(axis + 1 for axis in self.axes)
        if batched[0] and not any(batched[1:]) and not self.batch_dims:
            return move_axis_to_front(bind(Gather(axes), x, *indices), indices[0].ndim)
        indices = tuple(broadcast_unbatched(n, batched[1:], *indices))
        if not batched[0] and not self.batch_dims:
            return bind(self, x, *indices)
        x = x if batched[0] else broadcast_leading(n, x)
        return bind(Gather(axes, self.batch_dims + 1), x, *indices)


class ScatterAdd(Linear):
    """The adjoint of gather: zeros of `shape`, with each update added at its index."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    batch_dims: int = 0
    saves = "x"
    lowering = "lucid.compiler.lowering.index.scatter_kernel:ScatterAddLowering"
    partwise = True

    def infer(self, updates: Type, *indices: Type) -> Type:
        check_gather(self, self.shape, indices)
        wanted = indices[0].shape + unindexed_shape(self, self.shape)
        if updates.shape != wanted:
            raise ShapeError(f"scatter_add: updates of shape {updates.shape}, not {wanted}")
        return Type(updates.dtype, self.shape)

    @quiet
    def eval(self, updates: np.ndarray, *indices: np.ndarray) -> np.ndarray:
        order = indexed_axes_first(self, len(self.shape))
        moved = tuple(self.shape[axis] for axis in order)
        flat = flat_indices(self, self.shape, indices)
        width = math.prod(updates.shape[indices[0].ndim :])
        height = math.prod(moved[: self.batch_dims + len(self.axes)])
        out = scatter_add_rows(flat, updates.reshape(flat.size, width), height).reshape(moved)
        return out.transpose(np.argsort(order))

    def check_values(self, updates: Any, *indices: Any) -> None:
        check_gather_range(self, self.shape, indices)

    def adjoint(self, ct: Any, updates: Any, *indices: Any) -> Any:
        return bind(Gather(self.axes, self.batch_dims), ct, *indices)

    def batch(self, n: int, batched: tuple[bool, ...], updates: Any, *indices: Any) -> Any:
        shape, axes = (n, *self.shape), tuple(axis + 1 for axis in self.axes)
        if not any(batched[1:]) and not self.batch_dims:
            behind = (*range(1, indices[0].ndim + 1), 0, *range(indices[0].ndim + 1, updates.ndim))
            return bind(ScatterAdd(shape, axes), bind(Transpose(behind), updates), *indices)
        operands = broadcast_unbatched(n, batched, updates, *indices)
        return bind(ScatterAdd(shape, axes, self.batch_dims + 1), *operands)


def scatter_add_rows(positions: np.ndarray, rows: np.ndarray, height: int) -> np.ndarray:
    """A matrix of `height` rows, zero except for `rows` added at `positions`, in order."""
    n, width = rows.shape
    if rows.size > 4096 and width > 1 and rows.dtype.char in "fdFD":
        from scipy.sparse import csc_array  # 6 times faster than np.add.at

        shape = (height, n)
        return csc_array((np.ones(n, rows.dtype), positions, np.arange(n + 1)), shape=shape) @ rows
    out = np.zeros(height * width, rows.dtype)
    if width != 1:  # np.add.at is fast only for flat arrays
        positions = (positions[:, None] * width + np.arange(width)).reshape(-1)
    np.add.at(out, positions, rows.reshape(-1))
    return out.reshape(height, width)


def check_gather(op: Any, shape: tuple[int, ...], indices: tuple[Type, ...]) -> None:
    """Raise if indices of these types cannot index `op.axes` of `shape`."""
    check_indices(op.name, *indices)
    b, axes = op.batch_dims, op.axes
    if (
        not indices
        or len(indices) != len(axes)
        or any(i.shape != indices[0].shape for i in indices)
    ):
        raise ShapeError(
            f"{op.name}: indices {indices} for axes {axes}; give one for each, all of one shape"
        )
    if list(axes) != sorted(set(axes)) or axes[0] < b or axes[-1] >= len(shape):
        raise AxisError(f"{op.name}: {shape} does not have the axes {axes} after {b} batch axes")
    if indices[0].shape[:b] != shape[:b]:
        raise ShapeError(f"{op.name}: {shape} and indices {indices[0]} differ in {b} leading axes")


def unindexed_shape(op: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i >= op.batch_dims and i not in op.axes)


@memoize(maxsize=4096)
def indexed_axes_first(op: Any, ndim: int) -> tuple[int, ...]:
    """Return the permutation that puts the indexed axes right after the batch axes."""
    rest = [i for i in range(op.batch_dims, ndim) if i not in op.axes]
    return (*range(op.batch_dims), *op.axes, *rest)


def index_grid(op: Any, indices: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return index arrays for the leading axes, including the batch axes."""
    ndim = indices[0].ndim
    grids = [
        np.arange(n).reshape((1,) * i + (n,) + (1,) * (ndim - i - 1))
        for i, n in enumerate(indices[0].shape[: op.batch_dims])
    ]
    return (*grids, *[i.astype(np.intp, copy=False) for i in indices])


def flat_indices(op: Any, shape: tuple[int, ...], indices: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the checked row-major positions of the indices in the leading axes."""
    sizes = [*shape[: op.batch_dims], *[shape[axis] for axis in op.axes]]
    checked = [
        normalize_indices(op.name, i, shape[axis], axis - op.batch_dims)
        for axis, i in zip(op.axes, indices)
    ]
    flat: Any = 0
    for n, i in zip(sizes, index_grid(op, tuple(checked))):
        flat = flat * n + i
    return np.broadcast_to(flat, indices[0].shape).reshape(-1)


def move_axes_to_front(y: np.ndarray, axis: int, count: int) -> np.ndarray:
    """Move `count` axes starting at `axis` to the front."""
    moved = range(axis, axis + count)
    return y.transpose(*moved, *[i for i in range(y.ndim) if i not in moved])


def move_axis_to_front(x: Any, axis: int) -> Any:
    return bind(Transpose((axis, *[i for i in range(x.ndim) if i != axis])), x)


def along_axis_index(indices: np.ndarray, axis: int) -> tuple[Any, ...]:
    """Return the index tuple with which NumPy takes along one axis."""
    ndim = indices.ndim
    grid: list[Any] = [
        np.arange(n).reshape((1,) * i + (n,) + (1,) * (ndim - i - 1))
        for i, n in enumerate(indices.shape)
    ]
    grid[axis] = indices
    return tuple(grid)


def check_indices(name: str, *indices: Type) -> None:
    for i in indices:
        if i.dtype.kind not in "iu":
            raise DTypeError(f"{name}: indices of dtype {i.dtype}; they must be integers")


def check_along(name: str, axis: int, shape: tuple[int, ...], indices: tuple[int, ...]) -> None:
    if len(shape) != len(indices) or not 0 <= axis < max(len(shape), 1):
        facts = f"shapes {shape} and {indices} of the indices for axis {axis}"
        raise AxisError(f"{name}: {facts}: the numbers of axes differ")
    if with_size(shape, axis, 0) != with_size(indices, axis, 0):
        facts = f"shapes {shape} and {indices} of the indices"
        raise ShapeError(f"{name}: {facts} differ outside axis {axis}")


def check_range(name: str, indices: Any, size: int, axis: int) -> None:
    """Raise an error if an index is out of range; indices that are not computed yet may be any."""
    if isinstance(indices, np.ndarray):
        normalize_indices(name, indices, size, axis)


def check_gather_range(op: Any, shape: tuple[int, ...], indices: Iterable[Any]) -> None:
    for axis, i in zip(op.axes, indices):
        check_range(op.name, i, shape[axis], axis - op.batch_dims)


def normalize_indices(name: str, indices: np.ndarray, size: int, axis: int) -> np.ndarray:
    """Return checked nonnegative indices."""
    indices = indices.astype(np.intp, copy=False)
    if indices.size == 0:
        return indices
    least = indices.min()
    if least < -size or indices.max() >= size:
        raise out_of_range_error(name, indices, size, axis)
    return np.where(indices < 0, indices + size, indices) if least < 0 else indices


def out_of_range_error(name: str, indices: np.ndarray, size: int, axis: int) -> IndexingError:
    wrong = indices[(indices < -size) | (indices >= size)]
    first = wrong.flat[0] if wrong.size else "?"
    facts = f"index {first} is out of range for axis {axis} of size {size}"
    return IndexingError(f"{name}: {facts}")


@public("lucid", "Tensor")
def nonzero(input: Any, *, as_tuple: bool = False) -> Dynamic:
    """The indices of nonzero elements: one row for each, or one vector per axis if `as_tuple`.

    >>> import lucid
    >>> lucid.nonzero(lucid.tensor([0.0, 2.0, 3.0]))
    Tensor([[1],
            [2]])
    """
    array, as_tuple = as_tensor(input).array("nonzero"), flag("nonzero", "as_tuple", as_tuple)
    found = np.nonzero(array) if array.ndim else np.nonzero(array.reshape(1))[: int(as_tuple)]
    if as_tuple:
        return tuple(wrap(i) for i in found)
    return wrap(np.stack(found, 1) if found else np.zeros((int(array != 0), 0), np.int64))
