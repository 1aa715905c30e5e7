"""Selection: results that are elements of the operand, with their indices along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.errors import DTypeError, IndexingError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.axes import axis_op, drop_axes, keepdims_shape
from lucid.ops.core.kinds import Linear
from lucid.ops.index.gather_scatter import (
    PutAlong,
    TakeAlong,
    check_indices,
    check_range,
    out_of_range_error,
)
from lucid.ops.shape.movement import Reshape, broadcast_unbatched
from lucid.tape.bind import bind
from lucid.tape.fast_bind import bind_pair

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor

INT64 = np.dtype("int64")


class Selected(NamedTuple):
    """Elements of a tensor, and their int64 indices along the axis they were chosen from."""

    values: Tensor
    indices: Tensor


class Selection(Primitive, abstract=True):
    """Two results: elements of the operand, and their indices along `axis`.

    The derivative follows the indices: tangents are gathered, cotangents are scattered.
    """

    saves = "y"
    axis: int

    def index_bound(self, *types: Type) -> int:
        return types[0].shape[self.axis]

    def jvp(self, ts: tuple[Any, ...], y: tuple[Any, ...], x: Any) -> tuple[Any, Any]:
        return take_along(ts[0], y[1], self.axis), None

    def vjp(self, ct: tuple[Any, ...], y: tuple[Any, ...], x: Any) -> tuple[Any]:
        if ct[0] is None:
            return (None,)
        return (bind(PutAlong(self.axis, x.shape[self.axis]), ct[0], y[1]),)


def take_along(x: Any, indices: Any, axis: int) -> Any:
    return bind(TakeAlong(axis), x, indices)


class TakeOne(Linear):
    """`y[i, k] = x[i, indices[i, k], k]` for axis 1: for every index one element along `axis`."""

    axis: int
    saves = "x"
    moves = True
    numpy_calls = 3
    decomposition = "lucid.compiler.passes.expand.decompose:take_one"
    check_error = TakeAlong.check_error

    def infer(self, x: Type, indices: Type) -> Type:
        check_indices(self.name, indices)
        if x.ndim == 0 or drop_axes(x.shape, (self.axis,)) != indices.shape:
            facts = f"{x.shape} without axis {self.axis} is not the shape {indices.shape}"
            raise ShapeError(f"take_one: {facts} of the indices")
        return Type(x.dtype, indices.shape)

    def eval(self, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        kept = indices.reshape(keepdims_shape(x.shape, (self.axis,)))
        try:
            return TakeAlong(self.axis).eval(x, kept).reshape(indices.shape)
        except IndexingError:
            raise out_of_range_error(self.name, indices, x.shape[self.axis], self.axis) from None

    def check_values(self, x: Any, indices: Any) -> None:
        check_range(self.name, indices, x.shape[self.axis], self.axis)

    def adjoint(self, ct: Any, x: Any, indices: Any) -> Any:
        op = Reshape(keepdims_shape(x.shape, (self.axis,)))
        put = PutAlong(self.axis, x.shape[self.axis])
        return bind(put, bind(op, ct), bind(op, indices))

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, indices: Any) -> Any:
        return bind(TakeOne(self.axis + 1), *broadcast_unbatched(n, batched, x, indices))


def take_one(x: Any, indices: Any, axis: int, keep: bool) -> Selected:
    """Take one element along `axis` for every index in `indices`, which lacks that axis."""
    if not keep:
        take = axis_op(TakeOne, "take_one", len(x.shape), axis, None)
        return Selected(bind_pair(take, x, indices, 3), indices)
    kept = bind(Reshape(keepdims_shape(x.shape, (axis,))), indices)
    return Selected(take_along(x, kept, axis), kept)


def reshape_to(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else bind(Reshape(shape), x)


def check_ordered(name: str, x: Type) -> None:
    """Raise for complex numbers, which have no order."""
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: {x.dtype} numbers have no order; take abs() or .real first")
