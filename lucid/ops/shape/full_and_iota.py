"""Arrays of one number and of indices, as operations; `creation` has the functions of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import AxisError, DTypeError, ShapeError
from lucid.ir.facts import Box, Points
from lucid.ir.graph import Literal
from lucid.ir.types import DTYPES, Type
from lucid.ops.core.kinds import Constant, Linear
from lucid.ops.shape.movement import Broadcast, broadcast_leading
from lucid.tape.bind import bind


class Full(Linear):
    """An array filled with the 0-d operand."""

    shape: tuple[int, ...]
    dtype: str
    moves = fills = True
    complex_rule = "lucid.compiler.passes.expand.lower_complex:full"
    lowering = "lucid.compiler.lowering.index.concatenate_pad:FullLowering"

    def infer(self, value: Type) -> Type:
        if value.shape:
            raise ShapeError(f"full: the value has shape {value.shape}; it must be 0-d")
        if value.dtype != DTYPES[self.dtype]:
            raise DTypeError(f"full: the value has dtype {value.dtype}, the array {self.dtype}")
        return Type(value.dtype, self.shape)

    def eval(self, value: Any) -> np.ndarray:
        return np.full(self.shape, value, DTYPES[self.dtype])

    def loop(self, kernel: Any, eqn: Any, points: Points) -> int:
        return kernel.operand(eqn.inputs[0], points)

    def has_window(self, eqn: Any) -> bool:
        return eqn.inputs[0].__class__ is Literal

    def make_window(self, sinker: Any, eqn: Any, box: Box) -> Any:
        return sinker.make(Full(tuple([n for _, n in box]), self.dtype), eqn.inputs[0])

    def adjoint(self, ct: Any, value: Any) -> Any:
        return ct.sum()

    def batch(self, n: int, batched: tuple[bool, ...], value: Any) -> Any:
        return bind(Broadcast((n, *self.shape), (0,)), value)


class Iota(Constant):
    """0, 1, 2, ... along `axis`, repeated along all others."""

    shape: tuple[int, ...]
    axis: int
    dtype: str
    exact = True
    decomposition = "lucid.compiler.passes.expand.promote_float16:float16_indices"

    def infer(self) -> Type:
        if not 0 <= self.axis < len(self.shape):
            raise AxisError(f"iota: {self.shape} has no axis {self.axis}")
        return Type(DTYPES[self.dtype], self.shape)

    def eval(self) -> np.ndarray:
        numbers = np.arange(self.shape[self.axis], dtype=DTYPES[self.dtype])
        sizes = [n if i == self.axis else 1 for i, n in enumerate(self.shape)]
        return np.broadcast_to(numbers.reshape(sizes), self.shape).copy()

    def loop(self, kernel: Any, eqn: Any, points: Points) -> int:
        return kernel.index(points[self.axis], self.dtype)

    def has_window(self, eqn: Any) -> bool:
        return self.dtype in ("i32", "i64")

    def make_window(self, sinker: Any, eqn: Any, box: Box) -> Any:
        indices = sinker.make(Iota(tuple([n for _, n in box]), self.axis, self.dtype))
        return sinker.shift(indices, box[self.axis][0])

    def batch(self, n: int, batched: tuple[bool, ...]) -> Any:
        return broadcast_leading(n, bind(self))
