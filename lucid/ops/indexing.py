"""Indexing by integer tensors: reading (take_along, gather), and writing at places (put, scatter).

Indices run from -size to size - 1, negative ones counting from the end as in NumPy. What lies
outside raises IndexingError when the operation is evaluated, so traced indices are checked as well.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import AxisError, DTypeError, IndexingError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.tape import bind
from lucid.ir.types import Type
from lucid.ops.kinds import Linear
from lucid.ops.movement import both_batched, replaced


class TakeAlong(Linear):
    """`y[i, j, k] = x[i, indices[i, j, k], k]` for axis 1: x and indices agree in other axes."""

    axis: int
    saves = "x"

    def infer(self, x: Type, indices: Type) -> Type:
        check_indices(self.name, indices)
        check_along(self.name, self.axis, x.shape, indices.shape)
        return Type(x.dtype, indices.shape)

    def eval(self, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        indices = indices.astype(np.intp, copy=False)
        try:
            if x.ndim == 1:
                return x.take(indices)
            return x[along(indices, self.axis)]
        except IndexError:
            raise out_of_range(self.name, indices, x.shape[self.axis], self.axis) from None

    def adjoint(self, ct: Any, x: Any, indices: Any) -> Any:
        return bind(PutAlong(self.axis, x.shape[self.axis]), ct, indices)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, indices: Any) -> Any:
        return bind(TakeAlong(self.axis + 1), *both_batched(n, batched, x, indices))


class PutAlong(Linear):
    """The adjoint of take_along: zeros of `size` along `axis`, every value added at its index."""

    axis: int
    size: int
    saves = "x"

    def infer(self, values: Type, indices: Type) -> Type:
        check_indices(self.name, indices)
        if values.shape != indices.shape:
            raise ShapeError(f"{self.name}: values of {values.shape} at indices of {indices.shape}")
        check_along(self.name, self.axis, values.shape, indices.shape)
        shape = (*values.shape[: self.axis], self.size, *values.shape[self.axis + 1 :])
        return Type(values.dtype, shape)

    def eval(self, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
        axis, size = self.axis, self.size
        indices = wrapped(self.name, indices, size, axis).swapaxes(axis, -1)
        values = values.swapaxes(axis, -1)
        out = np.zeros((*values.shape[:-1], size), values.dtype)
        if values.ndim > 1:
            rows = np.arange(math.prod(values.shape[:-1])).reshape(*values.shape[:-1], 1)
            indices = indices + rows * size
        np.add.at(out.reshape(-1), indices.reshape(-1), values.reshape(-1))
        return out.swapaxes(axis, -1)

    def adjoint(self, ct: Any, values: Any, indices: Any) -> Any:
        return bind(TakeAlong(self.axis), ct, indices)

    def batch(self, n: int, batched: tuple[bool, ...], values: Any, indices: Any) -> Any:
        return bind(PutAlong(self.axis + 1, self.size), *both_batched(n, batched, values, indices))


def along(indices: np.ndarray, axis: int) -> tuple[Any, ...]:
    """The index tuple with which NumPy takes along one axis."""
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
            raise DTypeError(f"{name}: indices of dtype {i.dtype}; they are integers")


def check_along(name: str, axis: int, shape: tuple[int, ...], indices: tuple[int, ...]) -> None:
    if len(shape) != len(indices) or not 0 <= axis < max(len(shape), 1):
        raise AxisError(
            f"{name}: {shape} and indices of {indices} along axis {axis}: ranks differ"
        )
    if replaced(shape, axis, 0) != replaced(indices, axis, 0):
        raise ShapeError(f"{name}: {shape} and indices of {indices} differ outside of axis {axis}")


def wrapped(name: str, indices: np.ndarray, size: int, axis: int) -> np.ndarray:
    """Indices counted from the front, checked."""
    indices = indices.astype(np.intp, copy=False)
    if indices.size == 0:
        return indices
    least = indices.min()
    if least < -size or indices.max() >= size:
        raise out_of_range(name, indices, size, axis)
    return np.where(indices < 0, indices + size, indices) if least < 0 else indices


def out_of_range(name: str, indices: np.ndarray, size: int, axis: int) -> IndexingError:
    wrong = indices[(indices < -size) | (indices >= size)]
    first = wrong.flat[0] if wrong.size else "?"
    facts = f"index {first} is out of range for axis {axis} of size {size}"
    return IndexingError(f"{name}: {facts}{at_line()}")
