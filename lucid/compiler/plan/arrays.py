"""Array: the memory of a value while a plan is laid out: address, shape and strides.

View ops apply to it without touching an element.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.plan.instructions import Ref
from lucid.ir.types import SHORT_NAMES, Type
from lucid.ops.elementwise.complexes import Imag, Real
from lucid.ops.higher_order.checkpoint_op import OptimizationBarrier
from lucid.ops.shape.movement import Broadcast, Flip, Reshape, Slice, Transpose


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of row-major order."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


@dataclass(frozen=True)
class Array:
    """Strided memory at `ref` (an address in a plan, or None while only the layout matters)."""

    ref: Any
    type: Type
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def of(ref: Any, type: Type) -> Array:
        return Array(ref, type, dense(type.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> str:
        return SHORT_NAMES[self.type.dtype]

    @property
    def address(self) -> Ref | int:
        """The address of the first element."""
        nbytes = self.offset * self.type.dtype.itemsize
        return self.ref.at(nbytes) if isinstance(self.ref, Ref) else self.ref + nbytes

    @property
    def is_dense(self) -> bool:
        return all(n == 1 or a == b for n, a, b in zip(self.shape, self.strides, dense(self.shape)))

    def view(self, op: Any) -> Array | None:
        """Apply a view op, or return None if strides cannot express its result."""
        dtype = self.type.dtype
        match op:
            case Transpose(permutation):
                shape = tuple(self.shape[i] for i in permutation)
                return Array(
                    self.ref,
                    Type(dtype, shape),
                    tuple(self.strides[i] for i in permutation),
                    self.offset,
                )
            case Broadcast(shape, axes):
                apart = [0] * len(shape)
                for n, stride, axis in zip(self.shape, self.strides, axes):
                    apart[axis] = stride if n == shape[axis] else 0
                return Array(self.ref, Type(dtype, shape), tuple(apart), self.offset)
            case Real() | Imag():
                part = Type(np.empty(0, dtype).real.dtype, self.shape)
                first = 2 * self.offset + isinstance(op, Imag)
                return Array(self.ref, part, tuple(2 * s for s in self.strides), first)
            case OptimizationBarrier():
                return self
            case Flip(axes):
                strides = tuple(-s if i in axes else s for i, s in enumerate(self.strides))
                offset = sum((self.shape[i] - 1) * self.strides[i] for i in axes)
                return Array(self.ref, self.type, strides, self.offset + offset)
            case Slice():
                kept = [i for i in range(len(self.shape)) if i not in op.drop]
                offset = sum(a * s for a, s in zip(op.starts, self.strides))
                shape = tuple(op.sizes[i] for i in kept)
                strides = tuple(self.strides[i] * op.strides[i] for i in kept)
                return Array(self.ref, Type(dtype, shape), strides, self.offset + offset)
            case Reshape(shape):
                found = reshaped(self.shape, self.strides, shape)
                return (
                    None
                    if found is None
                    else Array(self.ref, Type(dtype, shape), found, self.offset)
                )
        raise TypeError(f"{op!r} is not a view")


def reshaped(
    old: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The strides of the same elements in another shape, None if strides cannot express it."""
    if math.prod(old) == 0:
        return dense(new)
    axes = [(n, s) for n, s in zip(old, strides) if n != 1]
    out = [0] * len(new)
    position = len(new) - 1
    while axes:
        n, stride = axes.pop()
        while axes and axes[-1][1] == n * stride:  # merges with its neighbor
            n *= axes.pop()[0]
        while n > 1:
            while position >= 0 and new[position] == 1:
                position -= 1
            if position < 0 or n % new[position]:
                return None
            out[position] = stride
            stride *= new[position]
            n //= new[position]
            position -= 1
    return tuple(out)


def view_types(array: np.ndarray) -> Type:
    return Type(array.dtype, array.shape)
