"""Reductions: many elements to one, over chosen axes."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, ClassVar

import numpy as np

from lucid.errors import ArgumentError, DTypeError
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.arguments import flag
from lucid.ops.core.axes import as_index, canonicalize_axes, drop_axes, keepdims_shape
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Constant, Linear, conjugate, times
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.shape.movement import Broadcast, Reshape
from lucid.public.declare import public
from lucid.support.caches import new_cache
from lucid.tape.bind import bind
from lucid.tape.fast_bind import bind_one, bind_view
from lucid.tape.node import ONE, Traced, followers

BOOL, INT64 = np.dtype("bool"), np.dtype("int64")
_add = quiet(np.add.reduce)


class Sum(Linear):
    """The sum over `axes`, which are removed. An empty sum is 0."""

    axes: tuple[int, ...]
    monoid, empty = "sum", 0
    partwise = True
    numpy_calls = 1

    def infer(self, x: Type) -> Type:
        return Type(x.dtype, drop_axes(x.shape, self.axes))

    def eval(self, x: np.ndarray) -> Any:
        return _add(x, self.axes, x.dtype)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return expand_reduced(ct, x, self.axes)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Sum(shift_axes(self.axes)), x)


class Prod(Primitive):
    """The product over `axes`, which are removed. An empty product is 1.

    The derivative in one element is the product of the others, not a quotient, so zeros are safe.
    """

    axes: tuple[int, ...]
    saves = "x"
    monoid, empty = "prod", 1
    complex_rule = "lucid.compiler.passes.expand.lower_complex:prod"

    def infer(self, x: Type) -> Type:
        return Type(x.dtype, drop_axes(x.shape, self.axes))

    @quiet
    def eval(self, x: np.ndarray) -> Any:
        return np.multiply.reduce(x, self.axes, x.dtype)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return bind(Sum(self.axes), times(ts[0], product_of_others(x, self.axes)))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        others = conjugate(product_of_others(x, self.axes))
        return (times(expand_reduced(ct, x, self.axes), others),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Prod(shift_axes(self.axes)), x)


def product_of_others(x: Any, axes: tuple[int, ...]) -> Any:
    """Return for every element the product of all others over `axes`: those before and after."""
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
    """`any` or `all` of elements (nonzero is true) over `axes`."""

    axes: tuple[int, ...]
    reduce: ClassVar[Callable[..., Any]]

    def infer(self, x: Type) -> Type:
        return Type(BOOL, drop_axes(x.shape, self.axes))

    def eval(self, x: np.ndarray) -> Any:
        return type(self).reduce(x, self.axes)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(type(self)(shift_axes(self.axes)), x)


class AnyTrue(Truth):
    name = "any"
    reduce = np.logical_or.reduce
    monoid, empty = "any", False
    complex_rule = "lucid.compiler.passes.expand.lower_complex:any_all"


class AllTrue(Truth):
    name = "all"
    reduce = np.logical_and.reduce
    monoid, empty = "all", True
    complex_rule = "lucid.compiler.passes.expand.lower_complex:any_all"


class LogSumExp(Primitive):
    """`log(sum(exp(x)))` over `axes` without overflow. The derivative is the softmax.

    If every element is -inf, the result is -inf and the derivative 0, so a fully masked row is
    safe. An element +inf gives +inf, and nan as the derivative, as softmax does.
    """

    name = "logsumexp"
    axes: tuple[int, ...]
    empty = -np.inf
    numpy_calls = 6
    decomposition = "lucid.compiler.passes.expand.decompose:logsumexp"

    def infer(self, x: Type) -> Type:
        if x.dtype.kind != "f":
            raise DTypeError(f"logsumexp: operand of dtype {x.dtype}; it takes floating dtypes")
        return Type(x.dtype, drop_axes(x.shape, self.axes))

    @quiet
    def eval(self, x: np.ndarray) -> Any:
        if x.size == 0:
            return np.full(drop_axes(x.shape, self.axes), -np.inf, x.dtype)
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
        return (x - expand_reduced(y, x, self.axes)).exp()

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return bind(Sum(self.axes), times(ts[0], self.weights(y, x)))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (times(expand_reduced(ct, x, self.axes), self.weights(y, x)),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(LogSumExp(shift_axes(self.axes)), x)


def expand_reduced(y: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Broadcast a reduced value over the axes that the reduction of `x` removed."""
    if not axes:
        return y
    return bind(Broadcast(x.shape, tuple(i for i in range(x.ndim) if i not in axes)), y)


def shift_axes(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return axes of one example as axes of the batch, which has the examples in axis 0."""
    return tuple(i + 1 for i in axes)


def reduced_axes(name: str, ndim: int, dim: Any, axis: Any) -> tuple[int, ...]:
    """Return the axes in `dim` (PyTorch: `()` means all) or `axis` (NumPy: `()` means none)."""
    return reduction_op(Sum, name, ndim, dim, axis).axes


_ops: dict[tuple[Any, ...], Any] = new_cache(f"{__name__}._ops", {})
PLAIN_AXES = frozenset({int, type(None)})  # what a key of `_ops` may have


def plain_axes(name: str, dim: Any) -> Any:
    """Return axes as Python integers: a tensor is another axis after it was written."""
    if dim.__class__ in PLAIN_AXES:
        return dim
    if isinstance(dim, (tuple, list)):
        return tuple([d if d.__class__ is int else as_index(name, d) for d in dim])
    return as_index(name, dim)


def reduction_op(op: type[Any], name: str, ndim: int, dim: Any, axis: Any) -> Any:
    """Return the primitive `op` over the axes that `reduced_axes` describes."""
    if dim.__class__ not in PLAIN_AXES or axis.__class__ not in PLAIN_AXES:
        dim, axis = plain_axes(name, dim), plain_axes(name, axis)
    key = (op, ndim, dim, axis)
    found = _ops.get(key)
    if found is None:
        found = _ops[key] = _reduction_op(op, name, ndim, dim, axis)
    return found


def _reduction_op(op: type[Any], name: str, ndim: int, dim: Any, axis: Any) -> Any:
    if axis is not None:
        if dim is not None:
            raise ArgumentError(f"{name}: give dim or axis, not both")
        return op(canonicalize_axes(name, axis, ndim))
    every = dim is None or dim == ()
    return op(tuple(range(ndim)) if every else canonicalize_axes(name, dim, ndim))


def reduce(
    op: type[Any], name: str, x: Any, dim: Any, keepdim: Any, axis: Any, keepdims: Any
) -> Any:
    """Bind the primitive `op` over the axes given by `dim` or `axis`."""
    reduction = reduction_op(op, name, len(x.shape), dim, axis)
    y = bind_reduction(reduction, x, 4)
    keep = keepdim if keepdims is None else keepdims
    if keep is False or not flag(name, "keepdim", keep):
        return y
    return restore_axes(y, x, reduction.axes)


def restore_axes(y: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Restore the axes that a reduction of `x` removed, with size 1."""
    return bind_view(Reshape(keepdims_shape(x.shape, axes)), y)


def bind_reduction(op: Primitive, x: Any, depth: int = 3) -> Any:
    """`bind_checked`, with a fast path for values that need no check."""
    if followers and (follower := followers.get(get_ident())) is not None:
        found = follower.quick(op, ONE, x)
        if found is not None:
            return found
    value = x.raw
    if value is not None and value.dtype.kind != "c" and 0 not in value.shape:
        return bind_one(op, x, depth)
    return bind_checked(op, x)


def bind_checked(op: Primitive, x: Any) -> Any:
    """`bind` that first runs the type rule for operands NumPy accepts anyway: complex, empty."""
    if x.dtype.kind == "c" or 0 in x.shape:
        infer(op, (x.type,))
    return bind(op, x)


def promote_integers(x: Any, dtype: Any) -> Any:
    """Return the operand of a sum or product: integers and booleans become int64."""
    x = as_tensor(x)
    if dtype is not None:
        return cast(x, dtype)
    return cast(x, INT64) if x.dtype.kind in "biu" else x


_SUM_OF_ALL = [Sum(tuple(range(ndim))) for ndim in range(65)]


@public("lucid", "Tensor")
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
    if dim is None and axis is None and dtype is None and keepdim is False and keepdims is None:
        value = input.raw if isinstance(input, Traced) else None
        if value is not None and value.dtype.kind in "fc":
            return bind_one(_SUM_OF_ALL[value.ndim], input)
    return reduce(Sum, "sum", promote_integers(input, dtype), dim, keepdim, axis, keepdims)


@public("lucid", "Tensor")
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

    Gradients of any order are correct with any number of zeros among the elements.

    >>> import lucid
    >>> lucid.prod(lucid.tensor([2.0, 3.0, 4.0]))
    Tensor(24.)
    """
    return reduce(Prod, "prod", promote_integers(input, dtype), dim, keepdim, axis, keepdims)


@public("lucid", "Tensor")
def any(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """True if any element over `dim` is nonzero (nan is); False if there are none."""
    return reduce(AnyTrue, "any", as_tensor(input), dim, keepdim, axis, keepdims)


@public("lucid", "Tensor")
def all(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """True if all elements over `dim` are nonzero (nan is); True if there are none."""
    return reduce(AllTrue, "all", as_tensor(input), dim, keepdim, axis, keepdims)


@public("lucid", "Tensor")
def count_nonzero(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The number of nonzero elements over `dim`."""
    return sum(as_tensor(input) != 0, dim, keepdim, axis=axis, keepdims=keepdims)


@public("lucid", "Tensor", "special")
def logsumexp(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """`log(sum(exp(input)))` over `dim` (all axes by default), without overflow.

    The gradient is softmax. If all elements are -inf, the result is -inf with gradient 0.

    >>> import lucid
    >>> lucid.logsumexp(lucid.tensor([1000.0, 0.0]))
    Tensor(1000.)
    """
    x = to_floating(input)
    if x.dtype.kind != "c":
        return reduce(LogSumExp, "logsumexp", x, dim, keepdim, axis, keepdims)
    axes = reduced_axes("logsumexp", x.ndim, dim, axis)
    from lucid.ops.elementwise import complex_exponentials

    y = complex_exponentials.logsumexp(x, axes)
    keep = keepdim if keepdims is None else keepdims
    return y if keep else y.reshape(drop_axes(x.shape, axes))
