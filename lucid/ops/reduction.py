"""Reductions: many elements to one, over chosen axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ir.tape import bind
from lucid.ir.types import Type
from lucid.ops.axes import axes_of, either, with_ones, without
from lucid.ops.kinds import Linear
from lucid.ops.promote import as_tensor, cast


class Sum(Linear):
    """The sum over `axes`, which disappear. An empty sum is 0."""

    axes: tuple[int, ...]

    def infer(self, x: Type) -> Type:
        return Type(x.dtype, without(x.shape, self.axes))

    def eval(self, x: np.ndarray) -> Any:
        return np.add.reduce(x, axis=self.axes, dtype=x.dtype)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return ct.reshape(with_ones(x.shape, self.axes)).expand(x.shape)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Sum(tuple(i + 1 for i in self.axes)), x)


def sum(
    x: Any, dim: Any = None, keepdim: Any = None, *, axis: Any = None, keepdims: Any = None, dtype: Any = None
) -> Any:
    """The sum over `dim` (all axes by default); integers and booleans are summed as int64.

    >>> import lucid
    >>> lucid.sum(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    Tensor([4., 6.])
    """
    x = as_tensor(x)
    if dtype is not None or x.dtype.kind in "biu":
        x = cast(x, dtype or "int64")
    axes = axes_of("sum", either("sum", ("dim", dim), ("axis", axis)), x.ndim)
    keep = either("sum", ("keepdim", keepdim), ("keepdims", keepdims), False)
    y = bind(Sum(axes), x)
    return y.reshape(with_ones(x.shape, axes)) if keep else y
