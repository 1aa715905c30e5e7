"""bitcast: reinterpret the bits of a tensor as another dtype, in the same memory.

If the sizes of the two dtypes differ, the last axis becomes longer or shorter. It is not
differentiable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.types import DTYPES, SHORT_NAMES, Type
from lucid.ops.core.kinds import Constant
from lucid.ops.core.promote import parse_dtype
from lucid.tape.bind import bind
from lucid.tape.views import layout


class Bitcast(Constant):
    """The same bytes as another dtype, which splits or joins the elements of the last axis."""

    dtype: str
    is_view = True

    def infer(self, x: Type) -> Type:
        dtype = DTYPES[self.dtype]
        old, new = x.dtype.itemsize, dtype.itemsize
        if old == new:
            return Type(dtype, x.shape)
        if not x.ndim:
            facts = f"a 0-d tensor of {x.dtype} cannot be viewed as {dtype}, of another size"
            raise ShapeError(f"view: {facts}; reshape(1) it first")
        if x.shape[-1] * old % new:
            facts = f"the last axis of {x.shape} has {x.shape[-1] * old} bytes"
            raise ShapeError(f"view: {facts}, not a multiple of the {new} of {dtype}")
        return Type(dtype, (*x.shape[:-1], x.shape[-1] * old // new))

    def eval(self, x: np.ndarray) -> np.ndarray:
        dtype = DTYPES[self.dtype]
        return (x if is_bitcastable(x, dtype) else np.ascontiguousarray(x)).view(dtype)

    def insert(self, base: Any, part: Any) -> Any:
        return bind(Bitcast(SHORT_NAMES[base.dtype]), part)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


def is_bitcastable(x: np.ndarray, dtype: np.dtype) -> bool:
    """True if the elements that are joined or split are adjacent in memory."""
    return x.itemsize == dtype.itemsize or (x.ndim > 0 and x.strides[-1] == x.itemsize)


def bitcast(x: Any, dtype: Any) -> Any:
    """View the bits of a tensor as another dtype, copying only if they are not adjacent."""
    dtype = parse_dtype(dtype)
    if dtype not in SHORT_NAMES:
        raise DTypeError(f"view: dtype {dtype} is not supported")
    if dtype == x.dtype:
        return x.view(x.shape)
    if x.ndim and not is_bitcastable(layout(x), dtype):
        x = x.contiguous()
    return bind(Bitcast(SHORT_NAMES[dtype]), x)
