"""Concatenate and stack: tensors one after another along an axis, an old or a new one."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import AxisError, DTypeError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.shape.movement import (
    Reshape,
    Slice,
    broadcast_unbatched,
    pad_axis,
    slice_axis,
    with_size,
)
from lucid.tape.bind import bind


class Concatenate(Primitive):
    """The operands concatenated along `axis`; all other axes must agree."""

    axis: int
    saves = ""
    moves = True
    numpy_calls = 1
    lowering = "lucid.compiler.lowering.index.concatenate_pad:ConcatenateLowering"

    def infer(self, *xs: Type) -> Type:
        first, axis = xs[0], self.axis
        if not 0 <= axis < first.ndim:
            raise AxisError(f"concatenate: {first.shape} has no axis {axis}")
        for x in xs:
            if x.dtype != first.dtype:
                raise DTypeError(f"concatenate: dtypes {first.dtype} and {x.dtype}; cast one first")
            if x.ndim != first.ndim or with_size(x.shape, axis, 0) != with_size(
                first.shape, axis, 0
            ):
                raise ShapeError(
                    f"concatenate: {first.shape} and {x.shape} differ in an axis other than {axis}"
                )
        return Type(first.dtype, with_size(first.shape, axis, sum(x.shape[axis] for x in xs)))

    def eval(self, *xs: np.ndarray) -> np.ndarray:
        return np.concatenate(xs, self.axis)

    def jvp(self, ts: tuple[Any, ...], y: Any, *xs: Any) -> Any:
        """Pad the neighbors of zero tangents, so that no zeros are materialized."""
        parts: list[list[Any]] = []
        low = 0
        for t, x in zip(ts, xs):
            if t is not None:
                parts.append([low, t, 0])
                low = 0
            elif parts:
                parts[-1][2] += x.shape[self.axis]
            else:
                low += x.shape[self.axis]
        padded = [pad_axis(t, self.axis, before, after) for before, t, after in parts]
        return padded[0] if len(padded) == 1 else bind(self, *padded)

    def vjp(self, ct: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        out, start = [], 0
        for x in xs:
            limit = start + x.shape[self.axis]
            out.append(slice_axis(ct, self.axis, start, limit))
            start = limit
        return tuple(out)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        return bind(Concatenate(self.axis + 1), *broadcast_unbatched(n, batched, *xs))


class Stack(Primitive):
    """Operands of one shape, joined along a new axis `axis` of the result."""

    axis: int
    saves = ""
    moves = True
    numpy_calls = 2
    decomposition = "lucid.compiler.passes.expand.decompose:stack"

    def infer(self, *xs: Type) -> Type:
        first, axis = xs[0], self.axis
        if not 0 <= axis <= first.ndim:
            raise AxisError(f"stack: axis {axis} is out of range for results of {first.ndim + 1}")
        for x in xs:
            if x.dtype != first.dtype:
                raise DTypeError(f"stack: dtypes {first.dtype} and {x.dtype}; cast one first")
            if x.shape != first.shape:
                raise ShapeError(f"stack: shapes {first.shape} and {x.shape} differ")
        return Type(first.dtype, (*first.shape[:axis], len(xs), *first.shape[axis:]))

    def eval(self, *xs: np.ndarray) -> np.ndarray:
        shape, axis = xs[0].shape, self.axis
        part = (*shape[:axis], 1, *shape[axis:])
        return np.concatenate([x.reshape(part) for x in xs], axis)

    def joined(self, x: Any) -> Any:
        """Return an operand as the part of the result that it is."""
        return bind(Reshape((*x.shape[: self.axis], 1, *x.shape[self.axis :])), x)

    def jvp(self, ts: tuple[Any, ...], y: Any, *xs: Any) -> Any:
        if all([t is not None for t in ts]):
            return bind(self, *ts)
        tangents = tuple([None if t is None else self.joined(t) for t in ts])
        return Concatenate(self.axis).jvp(tangents, y, *[self.joined(x) for x in xs])

    def vjp(self, ct: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        axis, shape = self.axis, ct.shape
        first, strides = (0,) * len(shape), (1,) * len(shape)
        parts = []
        for i in range(len(xs)):
            starts, limits = with_size(first, axis, i), with_size(shape, axis, i + 1)
            parts.append(bind(Slice(starts, limits, strides, (axis,)), ct))
        return tuple(parts)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        return bind(Stack(self.axis + 1), *broadcast_unbatched(n, batched, *xs))
