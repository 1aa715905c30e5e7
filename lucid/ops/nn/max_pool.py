"""max_pool: the largest element of every window along the last axes, and its index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.primitive import HEAVY, Primitive
from lucid.ir.types import Type
from lucid.ops.index.gather_scatter import PutAlong, TakeAlong
from lucid.ops.index.selection import INT64, check_ordered
from lucid.ops.shape.movement import Reshape
from lucid.tape.bind import bind

Sizes = tuple[int, ...]


class MaxPool(Primitive):
    """The largest x[stride q + dilation k - padding] over k for every output q, and its index.

    Windows run along the last len(size) axes of x; `size` is the output shape along them. The index
    is the row-major position in those axes; the first of equal elements is chosen, and a nan is
    larger than everything. Padding is never chosen.
    """

    size: Sizes
    window: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    saves = "y"
    native_from = HEAVY
    lowering = "lucid.compiler.lowering.conv.pool_kernel:MaxPoolLowering"

    def infer(self, x: Type) -> tuple[Type, Type]:
        check_ordered(self.name, x)
        if x.ndim < len(self.size):
            raise ShapeError(f"{self.name}: {x.shape} has fewer than {len(self.size)} axes")
        if 0 in x.shape[self.outer(x) :] and 0 not in self.size:
            raise ShapeError(f"{self.name}: {x.shape} has no elements to choose from")
        shape = (*x.shape[: self.outer(x)], *self.size)
        return Type(x.dtype, shape), Type(INT64, shape)

    def index_bound(self, *types: Type) -> int:
        (x,) = types
        return math.prod(x.shape[self.outer(x) :])

    def outer(self, x: Any) -> int:
        return x.ndim - len(self.size)

    def eval(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        outer = x.shape[: self.outer(x)]
        sizes = x.shape[self.outer(x) :]
        first = [first_valid_index(*axis) for axis in zip(*self.axes(), sizes)]
        index = np.broadcast_to(flat_index(first, sizes), (*outer, *self.size)).copy()
        best = np.full((*outer, *self.size), lowest_value(x.dtype))
        if best.size == 0:
            return best, index
        for k in np.ndindex(self.window):
            found = [valid_outputs(*axis) for axis in zip(*self.axes(), sizes, k)]
            target: Any = (..., *[outputs for outputs, _ in found])
            source: Any = (..., *[read for _, read in found])
            value = x[source]
            at = flat_index([np.arange(s.start, s.stop, s.step) for _, s in found], sizes)
            larger = value > best[target]
            if x.dtype.kind == "f":
                larger |= np.isnan(value)
            best[target] = np.where(larger, value, best[target])
            index[target] = np.where(larger, at, index[target])
        return best, index

    def axes(self) -> tuple[Sizes, ...]:
        return self.size, self.stride, self.padding, self.dilation

    def jvp(self, ts: tuple[Any, ...], y: tuple[Any, ...], x: Any) -> tuple[Any, Any]:
        outer = x.shape[: self.outer(x)]
        flat = bind(Reshape((*outer, math.prod(x.shape[len(outer) :]))), ts[0])
        index = bind(Reshape((*outer, math.prod(self.size))), y[1])
        return bind(TakeAlong(len(outer)), flat, index).reshape(y[1].shape), None

    def vjp(self, ct: tuple[Any, ...], y: tuple[Any, ...], x: Any) -> tuple[Any]:
        if ct[0] is None:
            return (None,)
        outer = x.shape[: self.outer(x)]
        rows = Reshape((*outer, math.prod(self.size)))
        put = PutAlong(len(outer), math.prod(x.shape[len(outer) :]))
        return (bind(put, bind(rows, ct[0]), bind(rows, y[1])).reshape(x.shape),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


def lowest_value(dtype: np.dtype) -> Any:
    """Return a lower bound of all elements."""
    if dtype.kind == "f":
        return dtype.type(-np.inf)
    return dtype.type(False) if dtype.kind == "b" else dtype.type(np.iinfo(dtype).min)


def first_valid_index(outputs: int, stride: int, padding: int, dilation: int, n: int) -> np.ndarray:
    """Return for every output the first index of its window that is not padding."""
    start = np.arange(outputs) * stride - padding
    start = np.where(start < 0, start + -(start // dilation) * dilation, start)
    return np.minimum(start, max(n - 1, 0))


def valid_outputs(
    outputs: int, stride: int, padding: int, dilation: int, n: int, k: int
) -> tuple[slice, slice]:
    """Return the outputs whose window element k is within bounds, and those elements."""
    shift = k * dilation - padding
    first = max(0, -(shift // stride))
    last = max(first, min(outputs, (n - 1 - shift) // stride + 1))
    start = first * stride + shift
    return slice(first, last), slice(start, start + max(0, (last - first) * stride), stride)


def flat_index(along: list[np.ndarray], sizes: Sizes) -> np.ndarray:
    """Return the row-major positions of the elements at these indices along each axis."""
    total: Any = np.zeros((1,) * len(sizes), np.int64)
    for axis, (i, n) in enumerate(zip(along, sizes)):
        total = total * n + i.reshape([-1 if a == axis else 1 for a in range(len(sizes))])
    return total
