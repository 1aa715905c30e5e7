"""Extrema: the largest and smallest elements, over axes or, with indices, along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, AxisError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.source import at_line
from lucid.ir.types import Type
from lucid.ops.core.axes import axis_of, either, without
from lucid.ops.core.kinds import SCALE, Constant
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.index.selection import INT64, Selected, check_ordered, pick
from lucid.ops.reduce.reduction import Sum, after_examples, checked, kept, reduce, spread
from lucid.tape.bind import bind
from lucid.tape.node import Traced


class Extremum(Primitive, abstract=True):
    """The largest or smallest element over `axes`. Elements that tie share the derivative equally.

    A nan wins over all numbers, and then the nans share the derivative.
    """

    axes: tuple[int, ...]
    reduce: ClassVar[Callable[..., Any]]

    def infer(self, x: Type) -> Type:
        check_ordered(self.name, x)
        refuse_empty(self.name, x.shape, self.axes)
        return Type(x.dtype, without(x.shape, self.axes))

    def eval(self, x: np.ndarray) -> Any:
        return type(self).reduce(x, self.axes)

    def shares(self, y: Any, x: Any) -> Any:
        chosen = cast((x == spread(y, x, self.axes)) | (x != x), x.dtype)
        return chosen / spread(bind(Sum(self.axes), chosen), x, self.axes)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return bind(Sum(self.axes), bind(SCALE, self.shares(y, x), ts[0]))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (bind(SCALE, self.shares(y, x), spread(ct, x, self.axes)),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(type(self)(after_examples(self.axes)), x)


class Max(Extremum):
    reduce = np.maximum.reduce


class Min(Extremum):
    reduce = np.minimum.reduce


class IndexOf(Constant, abstract=True):
    """The int64 index along `axis` of the first element that is extreme, or of the first nan."""

    axis: int
    find: ClassVar[Callable[..., Any]]

    def infer(self, x: Type) -> Type:
        check_ordered(self.name, x)
        refuse_empty(self.name, x.shape, (self.axis,))
        return Type(INT64, without(x.shape, (self.axis,)))

    def eval(self, x: np.ndarray) -> Any:
        return np.asarray(type(self).find(x, self.axis), INT64)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(type(self)(self.axis + 1), x)


class Argmax(IndexOf):
    find = np.argmax


class Argmin(IndexOf):
    find = np.argmin


def refuse_empty(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    for axis in axes:
        if shape[axis] == 0:
            raise ShapeError(f"{name}: axis {axis} of shape {shape} is empty: it has no {name}")


class MinMax(NamedTuple):
    """The smallest and the largest elements."""

    min: Any
    max: Any


def max(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The largest elements, in the spelling of PyTorch or NumPy.

    - `max(input)` is the largest of all elements.
    - `max(input, dim=1)` gives `(values, indices)` along one axis; of a tie, the first is chosen
      and it alone gets the gradient.
    - `max(input, axis=1)`, with one axis or several, gives values; a tie shares the gradient.
    - `max(input, other)` for a tensor `other` is `maximum(input, other)`.

    >>> import lucid
    >>> values, indices = lucid.max(lucid.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=1)
    >>> indices
    Tensor([1, 0])
    """
    if other is not None or isinstance(dim, (Traced, np.ndarray)):
        from lucid.ops.elementwise.conditional import maximum

        return maximum(input, either("max", ("dim", dim), ("other", other)))
    if dim is None:
        return amax(input, None, keepdim, axis=axis, keepdims=keepdims)
    return along(
        "max", Argmax, input, one_axis("max", dim, axis), keepdim if keepdims is None else keepdims
    )


def min(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The smallest elements, in the spelling of PyTorch or NumPy.

    - `min(input)` is the smallest of all elements.
    - `min(input, dim=1)` gives `(values, indices)` along one axis; of a tie, the first is chosen
      and it alone gets the gradient.
    - `min(input, axis=1)`, with one axis or several, gives values; a tie shares the gradient.
    - `min(input, other)` for a tensor `other` is `minimum(input, other)`.

    >>> import lucid
    >>> lucid.min(lucid.tensor([[1.0, 3.0], [4.0, 2.0]]), axis=1)
    Tensor([1., 2.])
    """
    if other is not None or isinstance(dim, (Traced, np.ndarray)):
        from lucid.ops.elementwise.conditional import minimum

        return minimum(input, either("min", ("dim", dim), ("other", other)))
    if dim is None:
        return amin(input, None, keepdim, axis=axis, keepdims=keepdims)
    return along(
        "min", Argmin, input, one_axis("min", dim, axis), keepdim if keepdims is None else keepdims
    )


def one_axis(name: str, dim: Any, axis: Any) -> Any:
    if axis is not None:
        raise ArgumentError(f"{name}: give dim or axis, not both{at_line()}")
    if isinstance(dim, (tuple, list)):
        raise AxisError(
            f"{name}: dim={dim!r}, but indices are along one axis; a{name} takes several{at_line()}"
        )
    return dim


def along(name: str, op: type[Any], x: Any, dim: Any, keep: bool) -> Selected:
    """Values and indices of the extreme elements along one axis."""
    x = as_tensor(x)
    axis = axis_of(name, dim, x.ndim)
    row = x.reshape(1) if x.ndim == 0 else x
    found = pick(row, checked(op(axis), row), axis, keep)
    return Selected(*[part.reshape(()) for part in found]) if x.ndim == 0 else found


def amax(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The largest elements over `dim` (all axes by default); a tie shares the gradient.

    >>> import lucid
    >>> lucid.amax(lucid.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=(0, 1))
    Tensor(4.)
    """
    return reduce(Max, "max", as_tensor(input), dim, keepdim, axis, keepdims)


def amin(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The smallest elements over `dim` (all axes by default); a tie shares the gradient."""
    return reduce(Min, "min", as_tensor(input), dim, keepdim, axis, keepdims)


def aminmax(
    input: Any, *, dim: Any = None, keepdim: bool = False, axis: Any = None, keepdims: Any = None
) -> MinMax:
    """The smallest and the largest elements over `dim` (all axes by default)."""
    x = as_tensor(input)
    return MinMax(
        amin(x, dim, keepdim, axis=axis, keepdims=keepdims),
        amax(x, dim, keepdim, axis=axis, keepdims=keepdims),
    )


def argmax(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The index of the first largest element along `dim`, or in the flattened tensor.

    >>> import lucid
    >>> lucid.argmax(lucid.tensor([1.0, 5.0, 5.0]))
    Tensor(1)
    """
    return index_of("argmax", Argmax, input, dim, keepdim, axis, keepdims)


def argmin(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Any:
    """The index of the first smallest element along `dim`, or in the flattened tensor."""
    return index_of("argmin", Argmin, input, dim, keepdim, axis, keepdims)


def index_of(
    name: str, op: type[Any], x: Any, dim: Any, keepdim: Any, axis: Any, keepdims: Any
) -> Any:
    x = as_tensor(x)
    dim = axis if dim is None else one_axis(name, dim, axis)
    keep = keepdim if keepdims is None else keepdims
    if dim is None or x.ndim == 0:
        if dim is not None:
            axis_of(name, dim, 0)
        y = checked(op(0), x.reshape(-1))
        return y.reshape([1] * x.ndim) if keep else y
    number = axis_of(name, dim, x.ndim)
    y = checked(op(number), x)
    return kept(y, x, (number,)) if keep else y
