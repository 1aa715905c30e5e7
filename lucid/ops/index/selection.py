"""Selection: results that are elements of the operand, with their indices along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.errors import DTypeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.axes import keepdims_shape
from lucid.ops.index.gather_scatter import PutAlong, TakeAlong
from lucid.ops.shape.movement import Reshape
from lucid.tape.bind import bind

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


def take_one(x: Any, indices: Any, axis: int, keep: bool) -> Selected:
    """Take one element along `axis` for every index in `indices`, which lacks that axis."""
    kept = bind(Reshape(keepdims_shape(x.shape, (axis,))), indices)
    values = take_along(x, kept, axis)
    return Selected(values, kept) if keep else Selected(reshape_to(values, indices.shape), indices)


def reshape_to(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else bind(Reshape(shape), x)


def check_ordered(name: str, x: Type) -> None:
    """Raise for complex numbers, which have no order."""
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: {x.dtype} numbers have no order; take abs() or .real first")
