"""Reductions: many elements to one, over chosen axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from lucid.errors import ArgumentError, AxisError, DTypeError
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive
from lucid.ir.source import at_line
from lucid.ir.types import Type
from lucid.ops.core.axes import axes_of, with_ones, without
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Constant, Linear, conjugate, times
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise import complex_exponentials
from lucid.ops.shape.movement import Broadcast, Reshape
from lucid.tape.bind import bind, bind_one
from lucid.tape.node import Traced

BOOL, INT64 = np.dtype("bool"), np.dtype("int64")
_add = quiet(np.add.reduce)


class Sum(Linear):
    """The sum over `axes`, which disappear. An empty sum is 0."""

    axes: tuple[int, ...]

    def infer(self, x: Type) -> Type:
        return Type(x.dtype, without(x.shape, self.axes))

    def eval(self, x: np.ndarray) -> Any:
        return _add(x, self.axes, x.dtype)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return spread(ct, x, self.axes)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Sum(after_examples(self.axes)), x)


class Prod(Primitive):
    """The product over `axes`, which disappear. An empty product is 1.

    The derivative for one element is the product of the others, not a quotient: zeros do no harm.
    """

    axes: tuple[int, ...]
    saves = "x"

    def infer(self, x: Type) -> Type:
        return Type(x.dtype, without(x.shape, self.axes))

    @quiet
    def eval(self, x: np.ndarray) -> Any:
        return np.multiply.reduce(x, self.axes, x.dtype)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return bind(Sum(self.axes), times(ts[0], product_of_others(x, self.axes)))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        others = conjugate(product_of_others(x, self.axes))
        return (times(spread(ct, x, self.axes), others),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Prod(after_examples(self.axes)), x)


def product_of_others(x: Any, axes: tuple[int, ...]) -> Any:
    """For every element the product of all others over `axes`: those before times those after."""
    from lucid.ops.reduce.cumulative import Cumprod

    if len(axes) == 1:
        before = bind(Cumprod(axes[0], exclusive=True), x)
        return before * bind(Cumprod(axes[0], reverse=True, exclusive=True), x)
    kept = [i for i in range(x.ndim) if i not in axes]
    order = (*kept, *axes)
    front = x.permute(order)
    flat = front.reshape([x.shape[i] for i in kept] + [int(np.prod([x.shape[i] for i in axes]))])
    others = product_of_others(flat, (len(kept),)).reshape(front.shape)
    return others.permute(tuple(order.index(i) for i in range(x.ndim)))


class Truth(Constant, abstract=True):
    """Whether elements are true (not zero), taken together over `axes`."""

    axes: tuple[int, ...]
    reduce: ClassVar[Callable[..., Any]]

    def infer(self, x: Type) -> Type:
        return Type(BOOL, without(x.shape, self.axes))

    def eval(self, x: np.ndarray) -> Any:
        return type(self).reduce(x, self.axes)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(type(self)(after_examples(self.axes)), x)


class AnyTrue(Truth):
    name = "any"
    reduce = np.logical_or.reduce


class AllTrue(Truth):
    name = "all"
    reduce = np.logical_and.reduce


class LogSumExp(Primitive):
    """`log(sum(exp(x)))` over `axes` without overflow. The derivative is the softmax.

    Where every element is -inf the result is -inf and the derivative 0, so that a row which is
    masked out entirely does no harm. An element +inf gives +inf, and nan as the derivative, which
    is what softmax gives there.
    """

    name = "logsumexp"
    axes: tuple[int, ...]

    def infer(self, x: Type) -> Type:
        if x.dtype.kind != "f":
            raise DTypeError(f"logsumexp: operand of dtype {x.dtype}; it takes floating dtypes")
        return Type(x.dtype, without(x.shape, self.axes))

    @quiet
    def eval(self, x: np.ndarray) -> Any:
        if x.size == 0:
            return np.full(without(x.shape, self.axes), -np.inf, x.dtype)
        top = np.maximum.reduce(x, self.axes, keepdims=True)
        finite = np.isfinite(top)
        if not finite.all():  # an infinite maximum is the result already: shift such rows by 0
            top = np.where(finite, top, x.dtype.type(0))
        powers = np.asarray(x - top)
        total = _add(np.exp(powers, out=powers), self.axes, x.dtype)
        return np.log(total) + top.reshape(total.shape)

    def weights(self, y: Any, x: Any) -> Any:
        from lucid.ops.elementwise.conditional import where

        y = where(y == -np.inf, 0.0, y)
        return (x - spread(y, x, self.axes)).exp()

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return bind(Sum(self.axes), times(ts[0], self.weights(y, x)))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (times(spread(ct, x, self.axes), self.weights(y, x)),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(LogSumExp(after_examples(self.axes)), x)


def spread(y: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """A reduced value repeated over the axes that the reduction of `x` took away."""
    if not axes:
        return y
    return bind(Broadcast(x.shape, tuple(i for i in range(x.ndim) if i not in axes)), y)


def after_examples(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of one example as axes of the batch, which has the examples in axis 0."""
    return tuple(i + 1 for i in axes)


def reduced_axes(name: str, ndim: int, dim: Any, axis: Any) -> tuple[int, ...]:
    """The axes named by `dim` (PyTorch's: `()` means all) or `axis` (NumPy's: `()` means none)."""
    if dim.__class__ is list or axis.__class__ is list:
        dim, axis = (tuple(d) if d.__class__ is list else d for d in (dim, axis))
    try:
        return _reduced_axes(name, ndim, dim, axis)
    except TypeError as error:
        if isinstance(error, ArgumentError):
            raise
        wrong = dim if axis is None else axis
        raise AxisError(f"{name}: axis {wrong!r} is not an integer{at_line()}") from None


@lru_cache(maxsize=1024, typed=True)
def _reduced_axes(name: str, ndim: int, dim: Any, axis: Any) -> tuple[int, ...]:
    if axis is not None:
        if dim is not None:
            raise ArgumentError(f"{name}: give dim or axis, not both{at_line()}")
        return axes_of(name, axis, ndim)
    return tuple(range(ndim)) if dim is None or dim == () else axes_of(name, dim, ndim)


def reduce(
    op: type[Any], name: str, x: Any, dim: Any, keepdim: Any, axis: Any, keepdims: Any
) -> Any:
    """Bind the primitive `op` over the axes that the user names in either spelling."""
    axes = reduced_axes(name, len(x.shape), dim, axis)
    y = reduced(op(axes), x)
    keep = keepdim if keepdims is None else keepdims
    return kept(y, x, axes) if keep else y


def kept(y: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """A reduced value with the axes that its reduction took from `x` back, of size 1."""
    return bind(Reshape(with_ones(x.shape, axes)), y)


def reduced(op: Primitive, x: Any) -> Any:
    """`checked`, the short way where there is nothing to ask about."""
    value = x.value
    if value is not None and value.size and value.dtype.kind != "c":
        return bind_one(op, x)
    return checked(op, x)


def checked(op: Primitive, x: Any) -> Any:
    """`bind` that first asks the type rule about what NumPy lets pass: complex, empty operands."""
    if x.dtype.kind == "c" or 0 in x.shape:
        infer(op, (x.type,))
    return bind(op, x)


def accumulated(x: Any, dtype: Any) -> Any:
    """The operand of a sum or product: integers and booleans are taken as int64."""
    x = as_tensor(x)
    if dtype is not None:
        return cast(x, dtype)
    return cast(x, INT64) if x.dtype.kind in "biu" else x


_SUM_OF_ALL = [Sum(tuple(range(ndim))) for ndim in range(65)]


def sum(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = None,
) -> Any:
    """The sum over `dim` (all axes by default); integers and booleans are summed as int64.

    >>> import lucid
    >>> lucid.sum(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    Tensor([4., 6.])
    """
    if dim is None and axis is None and dtype is None and not (keepdim or keepdims):
        value = input.value if isinstance(input, Traced) else None
        if value is not None and value.dtype.kind in "fc":
            return bind_one(_SUM_OF_ALL[value.ndim], input)
    return reduce(Sum, "sum", accumulated(input, dtype), dim, keepdim, axis, keepdims)


def prod(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = None,
) -> Any:
    """The product over `dim` (all axes by default); integers and booleans are multiplied as int64.

    The gradient is right with any number of zeros among the elements, to any order.

    >>> import lucid
    >>> lucid.prod(lucid.tensor([2.0, 3.0, 4.0]))
    Tensor(24.)
    """
    return reduce(Prod, "prod", accumulated(input, dtype), dim, keepdim, axis, keepdims)


def any(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """Whether any element over `dim` is true (not zero, so nan is); False where there is none."""
    return reduce(AnyTrue, "any", as_tensor(input), dim, keepdim, axis, keepdims)


def all(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """Whether all elements over `dim` are true (not zero, so nan is); True where there is none."""
    return reduce(AllTrue, "all", as_tensor(input), dim, keepdim, axis, keepdims)


def count_nonzero(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """How many elements over `dim` are not zero."""
    return sum(as_tensor(input) != 0, dim, keepdim, axis=axis, keepdims=keepdims)


def logsumexp(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """`log(sum(exp(input)))` over `dim` (all axes by default), without overflow.

    The gradient is softmax. Where all elements are -inf the result is -inf with gradient 0.

    >>> import lucid
    >>> lucid.logsumexp(lucid.tensor([1000.0, 0.0]))
    Tensor(1000.)
    """
    x = to_floating(input)
    if x.dtype.kind != "c":
        return reduce(LogSumExp, "logsumexp", x, dim, keepdim, axis, keepdims)
    axes = reduced_axes("logsumexp", x.ndim, dim, axis)
    y = complex_exponentials.logsumexp(x, axes)
    keep = keepdim if keepdims is None else keepdims
    return y if keep else y.reshape(without(x.shape, axes))
