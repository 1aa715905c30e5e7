"""Array: the memory of a value while a plan is laid out: address, shape and strides.

The `view` of an operation applies to it without touching an element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.plan.instructions import Ref
from lucid.ir.graph import Equation, Var
from lucid.ir.types import SHORT_NAMES, Type


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
        """Return a view of this memory, None if no strides describe it."""
        return op.view(self)

    def over(self, shape: tuple[int, ...], strides: tuple[int, ...], first: int = 0) -> Array:
        """Return other strides over the same memory, from element `first` on."""
        return Array(self.ref, Type(self.type.dtype, shape), strides, self.offset + first)

    def reshaped(self, shape: tuple[int, ...]) -> Array | None:
        """Return the elements in another shape, None if no strides describe it."""
        strides = reshaped(self.shape, self.strides, shape)
        return None if strides is None else self.over(shape, strides)

    def parts(self) -> tuple[Array, Array]:
        """Return the real and the imaginary parts of complex numbers."""
        part = Type(np.empty(0, self.type.dtype).real.dtype, self.shape)
        strides, first = tuple(2 * s for s in self.strides), 2 * self.offset
        return Array(self.ref, part, strides, first), Array(self.ref, part, strides, first + 1)


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


def array_of(x: Var, arrays: Mapping[Var, Array], producer: Mapping[Var, Equation]) -> Array:
    """Return the array of a value, or of a view of one; `producer` gives the view's equation."""
    if x in arrays:
        return arrays[x]
    eqn = producer[x]
    found = array_of(eqn.inputs[0], arrays, producer).view(eqn.op)  # type: ignore[arg-type]
    assert found is not None, "insert_copies leaves only views that strides can express"
    return found
