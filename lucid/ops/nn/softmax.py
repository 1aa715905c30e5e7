"""softmax and log_softmax, computed in three passes without overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError
from lucid.ir.primitive import HEAVY, Primitive
from lucid.ir.types import Type
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import times
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise.exponential import exp
from lucid.ops.index.gather_scatter import (
    PutAlong,
    TakeAlong,
    along_axis_index,
    check_along,
    check_indices,
    check_range,
    out_of_range_error,
)
from lucid.ops.reduce.reduction import Sum, bind_reduction, expand_reduced, reduction_op, shift_axes
from lucid.ops.shape.movement import broadcast_unbatched
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.node import Traced


class SoftmaxBase(Primitive, abstract=True):
    """Base of softmax and log_softmax over `axes`; the result has the operand's shape."""

    axes: tuple[int, ...]
    saves = "y"
    native_from = HEAVY
    numpy_calls = 5

    def infer(self, x: Type) -> Type:
        if x.dtype.kind != "f":
            raise DTypeError(f"{self.name}: operand of dtype {x.dtype}; it takes floating dtypes")
        return x

    def total(self, x: Any) -> Any:
        """Return the sum over the axes, broadcast along them."""
        return expand_reduced(bind(Sum(self.axes), x), x, self.axes)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(type(self)(shift_axes(self.axes)), x)


_max: Any = np.maximum.reduce
_sum: Any = np.add.reduce


def _subtract_max(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return `x` minus the largest element of each row."""
    return np.asarray(x - _max(x, axes, None, None, True))


class Softmax(SoftmaxBase):
    """`y = exp(x) / sum(exp(x))`. Its Jacobian, diag(y) - y yᵀ, is its own adjoint."""

    decomposition = "lucid.compiler.passes.expand.decompose:softmax"

    @quiet
    def eval(self, x: np.ndarray) -> np.ndarray:
        if x.size == 0:
            return x.copy()
        y = _subtract_max(x, self.axes)
        np.exp(y, out=y)
        y /= _sum(y, self.axes, None, None, True)
        return y

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return times(ts[0] - self.total(times(ts[0], y)), y)

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (times(ct - self.total(times(ct, y)), y),)


class LogSoftmax(SoftmaxBase):
    """`y = x - log(sum(exp(x)))`, accurate even if x is far from 0."""

    decomposition = "lucid.compiler.passes.expand.decompose:log_softmax"

    @quiet
    def eval(self, x: np.ndarray) -> np.ndarray:
        if x.size == 0:
            return x.copy()
        y = _subtract_max(x, self.axes)
        y -= np.log(_sum(np.exp(y), self.axes, None, None, True))
        return y

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return ts[0] - self.total(times(ts[0], exp(y)))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (ct - times(self.total(ct), exp(y)),)


class LogSoftmaxAt(Primitive):
    """`log_softmax(x)` gathered along `axis` at indices, as in cross entropy.

    The derivative is one-hot minus softmax(x), which is recomputed when needed.
    """

    axis: int
    saves = "x"
    native_from = HEAVY
    numpy_calls = 5
    decomposition = "lucid.compiler.passes.expand.decompose:log_softmax_at"

    def infer(self, x: Type, indices: Type) -> Type:
        if x.dtype.kind != "f":
            raise DTypeError(f"{self.name}: operand of dtype {x.dtype}; it takes floating dtypes")
        check_indices(self.name, indices)
        check_along(self.name, self.axis, x.shape, indices.shape)
        return Type(x.dtype, indices.shape)

    @quiet
    def eval(self, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        if not indices.size:
            return np.zeros(indices.shape, x.dtype)
        y = _subtract_max(x, (self.axis,))
        try:
            chosen = y[along_axis_index(indices, self.axis)]
        except IndexError:
            raise out_of_range_error(self.name, indices, x.shape[self.axis], self.axis) from None
        np.exp(y, out=y)
        chosen -= np.log(np.add.reduce(y, self.axis, keepdims=True))
        return chosen

    def check_values(self, x: Any, indices: Any) -> None:
        check_range(self.name, indices, x.shape[self.axis], self.axis)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any, indices: Any) -> Any:
        mean = bind(Sum((self.axis,)), times(ts[0], bind(Softmax((self.axis,)), x)))
        return bind(TakeAlong(self.axis), ts[0], indices) - expand_reduced(mean, y, (self.axis,))

    def vjp(self, ct: Any, y: Any, x: Any, indices: Any) -> tuple[Any, ...]:
        at = bind(PutAlong(self.axis, x.shape[self.axis]), ct, indices)
        total = expand_reduced(bind(Sum((self.axis,)), ct), x, (self.axis,))
        return at - times(total, bind(Softmax((self.axis,)), x)), None

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, indices: Any) -> Any:
        return bind(LogSoftmaxAt(self.axis + 1), *broadcast_unbatched(n, batched, x, indices))


@public("lucid", "Tensor", "special", "nn.functional")
def softmax(input: Any, dim: Any = None, dtype: Any = None, *, axis: Any = None) -> Any:
    """`exp(input) / sum(exp(input))` along `dim`, computed without overflow.

    >>> import lucid
    >>> lucid.softmax(lucid.tensor([1.0, 1.0]), dim=0)
    Tensor([0.5, 0.5])
    """
    return _softmax(Softmax, input, dim, axis, dtype)


@public("lucid", "Tensor", "special", "nn.functional")
def log_softmax(input: Any, dim: Any = None, dtype: Any = None, *, axis: Any = None) -> Any:
    """`log(softmax(input))` along `dim`: `input - logsumexp(input)`, accurate far from 0 too."""
    return _softmax(LogSoftmax, input, dim, axis, dtype)


def _softmax(op: type[SoftmaxBase], x: Any, dim: Any, axis: Any, dtype: Any) -> Any:
    if dtype is not None:
        x = cast(as_tensor(x), dtype)
    elif not isinstance(x, Traced) or (value := x.raw) is None or value.dtype.kind != "f":
        x = to_floating(x)
    if dim is None and axis is None:
        raise ArgumentError(f"{op.name}: give dim (or axis), the axis that sums to 1")
    if (value := x.raw) is not None and value.dtype.kind == "f":
        return bind_reduction(reduction_op(op, op.name, value.ndim, dim, axis), x, 4)
    if x.dtype.kind == "c":
        raise DTypeError(f"{op.name}: operand of dtype {x.dtype}; it takes floating dtypes")
    return bind_reduction(reduction_op(op, op.name, len(x.shape), dim, axis), x, 4)
