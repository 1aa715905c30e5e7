"""bitcast: the bits of a tensor read as another dtype, in the same memory.

Where the sizes of the two dtypes differ, the last axis becomes longer or shorter. Nothing can be
differentiated through it: numbers whose bits are alike are not alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.types import DTYPES, SHORT_NAMES, Type
from lucid.ops.core.kinds import Constant
from lucid.ops.core.promote import wanted_dtype
from lucid.tape.bind import bind
from lucid.tape.views import layout


class Bitcast(Constant):
    """The same bytes at another dtype, which divide or join the elements of the last axis."""

    dtype: str
    is_view = True

    def infer(self, x: Type) -> Type:
        dtype = DTYPES[self.dtype]
        old, new = x.dtype.itemsize, dtype.itemsize
        if old == new:
            return Type(dtype, x.shape)
        if not x.ndim:
            facts = f"a 0-d tensor of {x.dtype} as {dtype}, of another size"
            raise ShapeError(f"view: {facts}; reshape(1) it first")
        if x.shape[-1] * old % new:
            facts = f"the last axis of {x.shape} has {x.shape[-1] * old} bytes"
            raise ShapeError(f"view: {facts}, no multiple of the {new} of a {dtype}")
        return Type(dtype, (*x.shape[:-1], x.shape[-1] * old // new))

    def eval(self, x: np.ndarray) -> np.ndarray:
        dtype = DTYPES[self.dtype]
        return (x if joinable(x, dtype) else np.ascontiguousarray(x)).view(dtype)

    def adjoint(self, part: Any, x: Any) -> Any:
        """What is written to the view, as the tensor below it sees it."""
        return bind(Bitcast(SHORT_NAMES[x.dtype]), part)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


def joinable(x: np.ndarray, dtype: np.dtype) -> bool:
    """Whether elements that are read together, or in parts, are adjacent in memory."""
    return x.itemsize == dtype.itemsize or (x.ndim > 0 and x.strides[-1] == x.itemsize)


def bitcast(x: Any, dtype: Any) -> Any:
    """The bits of a tensor as another dtype: its own memory, or a copy where that has gaps."""
    dtype = wanted_dtype(dtype)
    if dtype not in SHORT_NAMES:
        raise DTypeError(f"view: {dtype} is no dtype of tensors")
    if dtype == x.dtype:
        return x.view(x.shape)
    if x.ndim and not joinable(layout(x) if x.value is None else x.value, dtype):
        x = x.contiguous()
    return bind(Bitcast(SHORT_NAMES[dtype]), x)
