"""Extrema: the largest and smallest elements, over axes or, with indices, along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, AxisError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.arguments import flag
from lucid.ops.core.axes import axis_op, canonicalize_axis, drop_axes, resolve_alias
from lucid.ops.core.kinds import SCALE, Constant
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.index.selection import INT64, Selected, check_ordered, take_one
from lucid.ops.reduce.reduction import (
    Sum,
    bind_checked,
    bind_reduction,
    expand_reduced,
    reduce,
    restore_axes,
    shift_axes,
)
from lucid.public.declare import Dynamic, public
from lucid.tape.bind import bind
from lucid.tape.node import Traced

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


class Extremum(Primitive, abstract=True):
    """The largest or smallest element over `axes`. Elements that tie share the derivative equally.

    A nan beats all numbers, and then the nans share the derivative. The derivative reads only `x`:
    the result may differ in its last bit from that of an `x` which other code has recomputed.
    """

    axes: tuple[int, ...]
    exact = True
    saves = "x"
    numpy_calls = 1
    reduce: ClassVar[Callable[..., Any]]

    def infer(self, x: Type) -> Type:
        check_ordered(self.name, x)
        check_nonempty(self.name, x.shape, self.axes)
        return Type(x.dtype, drop_axes(x.shape, self.axes))

    def eval(self, x: np.ndarray) -> Any:
        return type(self).reduce(x, self.axes)

    def tie_weights(self, x: Any) -> Any:
        y = expand_reduced(bind(self, x), x, self.axes)
        chosen = cast((x == y) | (x != x), x.dtype)
        return chosen / expand_reduced(bind(Sum(self.axes), chosen), x, self.axes)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return bind(Sum(self.axes), bind(SCALE, self.tie_weights(x), ts[0]))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (bind(SCALE, self.tie_weights(x), expand_reduced(ct, x, self.axes)),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(type(self)(shift_axes(self.axes)), x)


class Max(Extremum):
    reduce = np.maximum.reduce
    monoid = "max"


class Min(Extremum):
    reduce = np.minimum.reduce
    monoid = "min"


class ArgExtremum(Constant, abstract=True):
    """The int64 index along `axis` of the first extreme element, or of the first nan."""

    axis: int
    numpy_calls = 2
    find: ClassVar[Callable[..., Any]]

    def infer(self, x: Type) -> Type:
        check_ordered(self.name, x)
        check_nonempty(self.name, x.shape, (self.axis,))
        return Type(INT64, drop_axes(x.shape, (self.axis,)))

    def eval(self, x: np.ndarray) -> Any:
        return np.asarray(type(self).find(x, self.axis), INT64)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(type(self)(self.axis + 1), x)


class Argmax(ArgExtremum):
    find = np.argmax
    decomposition = "lucid.compiler.passes.expand.decompose:argmax"


class Argmin(ArgExtremum):
    find = np.argmin
    decomposition = "lucid.compiler.passes.expand.decompose:argmin"


def check_nonempty(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    for axis in axes:
        if shape[axis] == 0:
            raise ShapeError(f"{name}: axis {axis} of shape {shape} is empty: it has no {name}")


class MinMax(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


@public("lucid", "Tensor")
def max(
    input: Any,
    dim: Dynamic = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Dynamic:
    """The largest elements, with the signature of PyTorch or NumPy.

    - `max(input)` is the largest of all elements.
    - `max(input, dim=1)` gives `(values, indices)` along one axis; the first of a tie is chosen
      and gets the gradient.
    - `max(input, axis=1)`, with one axis or several, gives values; a tie shares the gradient.
    - `max(input, other)` for a tensor `other` is `maximum(input, other)`.

    >>> import lucid
    >>> values, indices = lucid.max(lucid.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=1)
    >>> indices
    Tensor([1, 0])
    """
    if dim.__class__ is int and other is axis is keepdims is None:
        return extremum_along("max", Argmax, input, dim, keepdim)
    return extremum("max", Argmax, amax, input, dim, keepdim, other, axis, keepdims)


@public("lucid", "Tensor")
def min(
    input: Any,
    dim: Dynamic = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Dynamic:
    """The smallest elements, with the signature of PyTorch or NumPy.

    - `min(input)` is the smallest of all elements.
    - `min(input, dim=1)` gives `(values, indices)` along one axis; the first of a tie is chosen
      and gets the gradient.
    - `min(input, axis=1)`, with one axis or several, gives values; a tie shares the gradient.
    - `min(input, other)` for a tensor `other` is `minimum(input, other)`.

    >>> import lucid
    >>> lucid.min(lucid.tensor([[1.0, 3.0], [4.0, 2.0]]), axis=1)
    Tensor([1., 2.])
    """
    if dim.__class__ is int and other is axis is keepdims is None:
        return extremum_along("min", Argmin, input, dim, keepdim)
    return extremum("min", Argmin, amin, input, dim, keepdim, other, axis, keepdims)


def extremum(name: str, op: type[Any], over_axes: Any, x: Any, *options: Any) -> Any:
    """Return what `max` and `min` return for other arguments than one axis."""
    from lucid.ops.elementwise import conditional

    dim, keepdim, other, axis, keepdims = options
    if other is not None or isinstance(dim, (Traced, np.ndarray)):
        pairwise = getattr(conditional, f"{name}imum")
        return pairwise(x, resolve_alias(name, ("dim", dim), ("other", other)))
    if dim is None:
        return over_axes(x, None, keepdim, axis=axis, keepdims=keepdims)
    keep = keepdim if keepdims is None else keepdims
    return extremum_along(name, op, x, one_axis(name, dim, axis), keep)


def one_axis(name: str, dim: Any, axis: Any) -> Any:
    if axis is not None:
        raise ArgumentError(f"{name}: give dim or axis, not both")
    if isinstance(dim, (tuple, list)):
        raise AxisError(f"{name}: dim={dim!r} must be one axis; a{name} takes several")
    return dim


def extremum_along(name: str, op: type[Any], x: Any, dim: Any, keep: bool) -> Selected:
    """Return the values and indices of the extreme elements along one axis."""
    x = as_tensor(x)
    ndim = len(x.shape)
    choose = axis_op(op, name, ndim, dim, None)
    row = x if ndim else x.reshape(1)
    keep = keep is not False and flag(name, "keepdim", keep)
    found = take_one(row, bind_reduction(choose, row, 4), choose.axis, keep)
    return found if ndim else Selected(*[part.reshape(()) for part in found])


@public("lucid", "Tensor")
def amax(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The largest elements over `dim` (all axes by default); a tie shares the gradient.

    >>> import lucid
    >>> lucid.amax(lucid.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=(0, 1))
    Tensor(4.)
    """
    return reduce(Max, "max", as_tensor(input), dim, keepdim, axis, keepdims)


@public("lucid", "Tensor")
def amin(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The smallest elements over `dim` (all axes by default); a tie shares the gradient."""
    return reduce(Min, "min", as_tensor(input), dim, keepdim, axis, keepdims)


@public("lucid", "Tensor")
def aminmax(
    input: Any, *, dim: Any = None, keepdim: bool = False, axis: Any = None, keepdims: Any = None
) -> MinMax:
    """The smallest and the largest elements over `dim` (all axes by default)."""
    x = as_tensor(input)
    return MinMax(
        amin(x, dim, keepdim, axis=axis, keepdims=keepdims),
        amax(x, dim, keepdim, axis=axis, keepdims=keepdims),
    )


@public("lucid", "Tensor")
def argmax(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The index of the first largest element along `dim`, or in the flattened tensor.

    >>> import lucid
    >>> lucid.argmax(lucid.tensor([1.0, 5.0, 5.0]))
    Tensor(1)
    """
    return arg_extremum("argmax", Argmax, input, dim, keepdim, axis, keepdims)


@public("lucid", "Tensor")
def argmin(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The index of the first smallest element along `dim`, or in the flattened tensor."""
    return arg_extremum("argmin", Argmin, input, dim, keepdim, axis, keepdims)


def arg_extremum(
    name: str, op: type[Any], x: Any, dim: Any, keepdim: Any, axis: Any, keepdims: Any
) -> Any:
    x = as_tensor(x)
    dim = axis if dim is None else one_axis(name, dim, axis)
    keep = flag(name, "keepdim", keepdim if keepdims is None else keepdims)
    if dim is None or x.ndim == 0:
        if dim is not None:
            canonicalize_axis(name, dim, 0)
        y = bind_checked(op(0), x.reshape(-1))
        return y.reshape([1] * x.ndim) if keep else y
    number = canonicalize_axis(name, dim, x.ndim)
    y = bind_checked(op(number), x)
    return restore_axes(y, x, (number,)) if keep else y
