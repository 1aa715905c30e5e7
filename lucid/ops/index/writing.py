"""Functional writes: the result is the operand with some elements replaced.

If an element is written twice, the last update in row-major order wins, and the derivative of the
others is zero. `last_write` tells which updates win, so that the rule is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.graph import Literal
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.kinds import Constant
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.gather_scatter import (
    Gather,
    ScatterAdd,
    check_gather,
    check_gather_range,
    check_indices,
    flat_indices,
    indexed_axes_first,
    unindexed_shape,
)
from lucid.ops.shape.movement import Broadcast, Slice, broadcast_leading, broadcast_unbatched
from lucid.tape.bind import bind


class SliceSet(Primitive):
    """`x` with `x[start:limit:stride]` in every axis replaced by the updates or one number."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]
    saves = ""
    lowering = "lucid.compiler.lowering.index.concatenate_pad:SliceSetLowering"
    moves = True
    updates = True

    @property
    def region(self) -> Slice:
        return Slice(self.starts, self.limits, self.strides)

    def infer(self, x: Type, updates: Type) -> Type:
        check_updates(self.name, x, updates, self.region.infer(x).shape)
        return x

    def eval(self, x: np.ndarray, updates: Any) -> np.ndarray:
        y = np.array(x)
        y[self.region.subscript] = updates
        return y

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any, updates: Any) -> Any:
        if ts[0] is None:
            t = ts[1] if ts[1].shape == self.region.sizes else ts[1].expand(self.region.sizes)
            return self.region.adjoint(t, x)
        return bind(self, ts[0], zero(x) if ts[1] is None else ts[1])

    def vjp(self, ct: Any, y: Any, x: Any, updates: Any) -> tuple[Any, Any]:
        part = bind(self.region, ct)
        return bind(self, ct, zero(x)), part if updates.shape == part.shape else part.sum()

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, updates: Any) -> Any:
        x = x if batched[0] else broadcast_leading(n, x)
        if updates.ndim:
            updates = batched_updates(n, batched[1], updates, self.region.sizes)
        op = SliceSet((0, *self.starts), (n, *self.limits), (1, *self.strides))
        return bind(op, x, updates)


class ScatterSet(Primitive):
    """`x` with the elements at index tensors, one for each of `axes`, replaced by the updates.

    Indices are as in gather; updates have the shape of gather's result, or are one number.
    """

    axes: tuple[int, ...]
    batch_dims: int = 0
    saves = "x"
    lowering = "lucid.compiler.lowering.index.scatter_kernel:ScatterSetLowering"
    moves = True
    updates = True

    def infer(self, x: Type, updates: Type, *indices: Type) -> Type:
        check_gather(self, x.shape, indices)
        check_updates(self.name, x, updates, indices[0].shape + unindexed_shape(self, x.shape))
        return x

    def check_values(self, x: Any, updates: Any, *indices: Any) -> None:
        check_gather_range(self, x.shape, indices)

    def eval(self, x: np.ndarray, updates: Any, *indices: np.ndarray) -> np.ndarray:
        order = indexed_axes_first(self, x.ndim)
        flat = flat_indices(self, x.shape, indices)
        count = self.batch_dims + len(self.axes)
        y = x.transpose(order).copy()
        rows = y.reshape(int(np.prod(y.shape[:count])), *y.shape[count:])
        if np.ndim(updates):
            updates = updates.reshape(flat.size, *y.shape[count:])
        rows[flat] = updates
        return y.transpose(np.argsort(order))

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any, updates: Any, *indices: Any) -> Any:
        tx, t = ts[:2]
        if tx is not None:
            return bind(self, tx, zero(x) if t is None else t, *indices)
        shape = indices[0].shape + unindexed_shape(self, x.shape)
        last = self.last_writes(x, indices, shape)
        t = where(last, t, 0)
        return bind(ScatterAdd(x.shape, self.axes, self.batch_dims), t, *indices)

    def vjp(self, ct: Any, y: Any, x: Any, updates: Any, *indices: Any) -> tuple[Any, ...]:
        part = bind(Gather(self.axes, self.batch_dims), ct, *indices)
        part = where(self.last_writes(x, indices, part.shape), part, 0)
        part = part if updates.shape == part.shape else part.sum()
        return bind(self, ct, zero(x), *indices), part, *[None] * len(indices)

    def last_writes(self, x: Any, indices: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
        """True for the updates that are not overwritten by a later one."""
        sizes = tuple(x.shape[axis] for axis in self.axes)
        last = bind(LastWrite(sizes, self.batch_dims), *indices)
        return bind(Broadcast(shape, tuple(range(last.ndim))), last)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, updates: Any, *indices: Any) -> Any:
        shape = indices[0].shape[batched[2] :] + unindexed_shape(self, x.shape[batched[0] :])
        if updates.ndim:
            updates = batched_updates(n, batched[1], updates, shape)
        x, *indices = broadcast_unbatched(n, (batched[0], *batched[2:]), x, *indices)  # type: ignore[assignment]
        axes = tuple(axis + 1 for axis in self.axes)
        return bind(ScatterSet(axes, self.batch_dims + 1), x, updates, *indices)


class LastWrite(Constant):
    """For index tensors of one shape, True where no later element has the same index."""

    sizes: tuple[int, ...]
    batch_dims: int = 0
    lowering = "lucid.compiler.lowering.index.scatter_kernel:LastWriteLowering"

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(self.batch_dims, self.batch_dims + len(self.sizes)))

    def infer(self, *indices: Type) -> Type:
        check_indices(self.name, *indices)
        check_gather(self, indices[0].shape[: self.batch_dims] + self.sizes, indices)
        return Type(np.dtype("bool"), indices[0].shape)

    def eval(self, *indices: np.ndarray) -> np.ndarray:
        shape = indices[0].shape
        outer = shape[: self.batch_dims]
        flat = flat_indices(self, outer + self.sizes, indices)
        number = np.arange(flat.size)
        last = np.empty(int(np.prod(outer + self.sizes)), np.intp)
        last[flat] = number
        return np.equal(last[flat], number).reshape(shape)

    def batch(self, n: int, batched: tuple[bool, ...], *indices: Any) -> Any:
        op = LastWrite(self.sizes, self.batch_dims + 1)
        return bind(op, *broadcast_unbatched(n, batched, *indices))


def zero(x: Any) -> Literal:
    return Literal(0j if x.dtype.kind == "c" else 0.0, x.dtype)


def check_updates(name: str, x: Type, updates: Type, shape: tuple[int, ...]) -> None:
    if updates.dtype != x.dtype:
        raise DTypeError(f"{name}: updates of {updates.dtype} for {x.dtype}; cast them first")
    if updates.shape not in ((), shape):
        raise ShapeError(f"{name}: updates of {updates.shape} for a region of {shape}")


def batched_updates(n: int, batched: bool, updates: Any, shape: tuple[int, ...]) -> Any:
    """Return updates with the batch in axis 0; one number per example is broadcast."""
    if not batched:
        return broadcast_leading(n, updates)
    if updates.ndim == 1 and shape:
        return bind(Broadcast((n, *shape), (0,)), updates)
    return updates
