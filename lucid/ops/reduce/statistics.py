"""Statistics: means, variances, norms, medians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import flag, public_function
from lucid.ops.core.axes import canonicalize_axis, drop_axes, keepdims_shape
from lucid.ops.core.errstate import quiet
from lucid.ops.core.float16 import in_float32, is_float16
from lucid.ops.core.kinds import times
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.reduce.reduction import (
    Sum,
    bind_reduction,
    expand_reduced,
    reduced_axes,
    reduction_op,
    restore_axes,
    shift_axes,
    sum,
)
from lucid.public.declare import Dynamic, public
from lucid.public.lazy import LazyModule
from lucid.support.caches import memoize
from lucid.tape.bind import bind

extrema: Any = LazyModule("lucid.ops.reduce.extrema")
selection: Any = LazyModule("lucid.ops.index.selection")
sorting: Any = LazyModule("lucid.ops.reduce.sorting")


class Variance(Primitive):
    """The sum over `axes` of squared deviations from the mean, over `n - correction`."""

    name = "var"
    axes: tuple[int, ...]
    correction: float = 1.0
    saves = "x"
    numpy_calls = 5
    decomposition = "lucid.compiler.passes.expand.decompose:var"

    def infer(self, x: Type) -> Type:
        if x.dtype.kind != "f":
            raise DTypeError(f"var: operand of dtype {x.dtype}; it takes floating dtypes")
        return Type(x.dtype, drop_axes(x.shape, self.axes))

    def counts(self, shape: tuple[int, ...]) -> tuple[float, float]:
        """Return the number of elements of each result, and what their sum is divided by."""
        n = reduced_count(shape, self.axes)
        return float(n), float(max(n - self.correction, 0))

    @quiet
    def eval(self, x: np.ndarray) -> Any:
        n, divisor = self.counts(x.shape)
        kind = x.dtype.type
        apart = x - np.add.reduce(x, self.axes, keepdims=True) / kind(n)
        return np.add.reduce(apart * apart, self.axes) / kind(divisor)

    def slope(self, x: Any) -> Any:
        """Return half of the derivative in each element, times the divisor."""
        mean = bind(Sum(self.axes), x) / self.counts(x.shape)[0]
        return x - expand_reduced(mean, x, self.axes)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        divisor = self.counts(x.shape)[1]
        return bind(Sum(self.axes), times(ts[0], self.slope(x))) * 2.0 / divisor

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        scaled = ct * 2.0 / self.counts(x.shape)[1]
        return (times(expand_reduced(scaled, x, self.axes), self.slope(x)),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Variance(shift_axes(self.axes), self.correction), x)


@public("lucid", "Tensor")
def mean(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = None,
) -> Any:
    """The mean over `dim` (all axes by default); integers and booleans become the default float.

    >>> import lucid
    >>> lucid.mean(lucid.tensor([1.0, 2.0, 6.0]))
    Tensor(3.)
    """
    x = to_floating(input) if dtype is None else cast(as_tensor(input), dtype)
    if x.dtype.kind not in "fc":
        raise DTypeError(f"mean: dtype={x.dtype}; give a floating or complex dtype")
    shape = x.shape
    op = reduction_op(Sum, "mean", len(shape), dim, axis)
    keep = keepdim if keepdims is None else keepdims
    if is_float16(x):
        return cast(mean(cast(x, "float32"), op.axes, keep), x.dtype)
    total = bind_reduction(op, x) / float(reduced_count(shape, op.axes))
    if keep is False or not flag("mean", "keepdim", keep):
        return total
    return restore_axes(total, x, op.axes)


@memoize(maxsize=1024)
def reduced_count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """Return the number of elements reduced to one result."""
    return math.prod([shape[i] for i in axes])


@public_function("lucid", "Tensor")
def var(
    input: Any,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
    ddof: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The variance over `dim`: the sum of squared deviations from the mean over `n - correction`.

    The correction is 1 by default (`unbiased=False` means 0; NumPy calls it `ddof`).

    >>> import lucid
    >>> lucid.var(lucid.tensor([1.0, 2.0, 3.0])), lucid.var(lucid.tensor([1.0, 3.0]), ddof=0)
    (Tensor(1.), Tensor(1.))
    """
    return variance(input, "var", dim, unbiased, keepdim, correction, ddof, axis, keepdims)


@public_function("lucid", "Tensor")
def std(
    input: Any,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
    ddof: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The standard deviation over `dim`, the square root of `var`; at 0 its gradient is 0.

    >>> import lucid
    >>> lucid.std(lucid.tensor([1.0, 2.0, 3.0]))
    Tensor(1.)
    """
    return std_of(input, "std", dim, unbiased, keepdim, correction, ddof, axis, keepdims)


@public_function()
def var_mean(
    input: Any,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
    ddof: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> tuple[Any, Any]:
    """The variance and the mean over `dim`; see `var`."""
    return moments(input, "var_mean", dim, unbiased, keepdim, correction, ddof, axis, keepdims)


@public_function()
def std_mean(
    input: Any,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
    ddof: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> tuple[Any, Any]:
    """The standard deviation and the mean over `dim`; see `std`."""
    return deviation(input, "std_mean", dim, unbiased, keepdim, correction, ddof, axis, keepdims)


@in_float32
def variance(x: Any, name: str, *options: Any) -> Any:
    """Return the variance; `var(x, False)` is PyTorch's `var(x, unbiased=False)`."""
    x = to_floating(x)
    if x.dtype.kind == "c":
        return moments(x, name, *options)[0]
    dim, unbiased, keepdim, correction, ddof, axis, keepdims = options
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    op = reduction_op(Variance, name, len(x.shape), dim, axis)
    minus = float(correction_of(name, unbiased, correction, ddof))
    if minus != op.correction:
        op = Variance(op.axes, minus)
    y = bind_reduction(op, x)
    keep = keepdim if keepdims is None else keepdims
    return restore_axes(y, x, op.axes) if keep else y


@in_float32
def std_of(x: Any, name: str, *options: Any) -> Any:
    """Return the standard deviation."""
    return safe_sqrt(variance(x, name, *options))


@in_float32
def deviation(x: Any, name: str, *options: Any) -> tuple[Any, Any]:
    """Return the standard deviation and the mean."""
    squared, middle = moments(x, name, *options)
    return safe_sqrt(squared), middle


@in_float32
def moments(x: Any, name: str, *options: Any) -> tuple[Any, Any]:
    """Return the variance and the mean; `var(x, False)` is PyTorch's `var(x, unbiased=False)`."""
    x = to_floating(x)
    dim, unbiased, keepdim, correction, ddof, axis, keepdims = options
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    axes = reduced_axes(name, x.ndim, dim, axis)
    n, ones = reduced_count(x.shape, axes), keepdims_shape(x.shape, axes)
    divisor = float(max(n - correction_of(name, unbiased, correction, ddof), 0))
    middle = (bind(Sum(axes), x) / float(n)).reshape(ones)
    squared = bind(Sum(axes), abs_square(x - middle)) / divisor
    keep = keepdim if keepdims is None else keepdims
    return (squared.reshape(ones), middle) if keep else (squared, middle.reshape(squared.shape))


def correction_of(name: str, unbiased: Any, correction: Any, ddof: Any) -> float:
    """Return the correction, given by any of its three names."""
    if unbiased is correction is ddof is None:
        return 1
    spellings = (None if unbiased is None else int(unbiased), correction, ddof)
    given = [c for c in spellings if c is not None]
    if len(given) > 1:
        raise ArgumentError(f"{name}: give one of unbiased, correction and ddof")
    return given[0] if given else 1


def abs_square(x: Any) -> Any:
    """Return `|x|²`, which is real and smooth for complex numbers too."""
    return (x * x.conj()).real if x.dtype.kind == "c" else x * x


def safe_sqrt(x: Any) -> Any:
    """Return `sqrt(x)` whose derivatives of every order are 0 at 0."""
    from lucid.ops.elementwise.conditional import where

    return where(x == 0, 0.0, where(x == 0, 1.0, x).sqrt())


@public_function("lucid", "Tensor")
def norm(
    input: Any,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    *,
    ord: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The p-norm of the elements over `dim` (all axes by default): `sum(|input|**p) ** (1/p)`.

    p is any number, "fro" is 2; inf and -inf give the largest and smallest |x|, 0 the number of
    nonzero elements. At x = 0, where a norm is not differentiable, its gradients of every order
    are 0.

    >>> import lucid
    >>> lucid.norm(lucid.tensor([3.0, 4.0]))
    Tensor(5.)
    """
    x = norm_operand("norm", input, dtype)
    if isinstance(p, str) and p == "nuc":
        from lucid.linalg import matrix_norm

        both = (-2, -1) if dim is None and axis is None else dim
        return matrix_norm(x, p, both, keepdim, axis=axis, keepdims=keepdims)
    p = order_of("norm", p if ord is None else ord)
    axes = reduced_axes("norm", x.ndim, dim, axis)
    y = p_norm(x, p, axes)
    keep = keepdim if keepdims is None else keepdims
    return restore_axes(y, x, axes) if keep else y


def norm_operand(name: str, x: Any, dtype: Any) -> Any:
    """Return the operand of a norm in its dtype; one that drops imaginary parts is refused."""
    x = to_floating(x)
    y = x if dtype is None else cast(x, dtype)
    if x.dtype.kind == "c" and y.dtype.kind != "c":
        facts = f"dtype={y.dtype} of complex numbers would drop their imaginary parts"
        raise DTypeError(f"{name}: {facts}; give a complex dtype")
    return y


def order_of(name: str, p: Any) -> float:
    if p == "fro":
        return 2.0
    try:
        return float(p)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}: p={p!r} is not a number; linalg.matrix_norm has matrix norms"
        ) from None


@in_float32
def p_norm(x: Any, p: float, axes: tuple[int, ...]) -> Any:
    from lucid.ops.elementwise.conditional import where

    if p == 2:
        return safe_sqrt(bind(Sum(axes), abs_square(x)))
    size = x.abs()
    if p == math.inf:
        return extrema.amax(size, axis=axes)
    if p == -math.inf:
        return extrema.amin(size, axis=axes)
    if p == 1:
        return bind(Sum(axes), size)
    zero = size == 0
    if p == 0:
        return bind(Sum(axes), cast(~zero, size.dtype))
    powers = where(zero, 0.0 if p > 0 else math.inf, where(zero, 1.0, size) ** p)
    total = bind(Sum(axes), powers)
    edge = (total == 0) | (total == math.inf)
    return where(edge, total ** (1 / p), where(edge, 1.0, total) ** (1 / p))


@public_function("lucid", "Tensor")
def nansum(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = None,
) -> Any:
    """The sum over `dim` with nan as 0, in value and gradient."""
    x = nan_to_zero(as_tensor(input))
    keep = flag("nansum", "keepdim", keepdim if keepdims is None else keepdims)
    return sum(x, dim, keep, axis=axis, dtype=dtype)


@public_function("lucid", "Tensor")
def nanmean(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = None,
) -> Any:
    """The mean over `dim` of the elements that are not nan."""
    x = to_floating(input) if dtype is None else cast(as_tensor(input), dtype)
    keep = flag("nanmean", "keepdim", keepdim if keepdims is None else keepdims)
    total = nansum(x, dim, keep, axis=axis)
    return total / cast(sum(x == x, dim, keep, axis=axis), total.dtype)


def nan_to_zero(x: Any) -> Any:
    from lucid.ops.elementwise.conditional import where

    return where(x == x, x, 0) if x.dtype.kind in "fc" else x


@public_function("lucid", "Tensor")
def median(
    input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None
) -> Dynamic:
    """The median; of an even number of elements the lower of the middle two, as in PyTorch.

    - `median(input)` is the median of all elements.
    - `median(input, dim=1)` gives `(values, indices)` along one axis.
    - `median(input, axis=1)` gives values only.

    The gradient goes to the chosen element. If there is a nan, the first nan is the median.

    >>> import lucid
    >>> lucid.median(lucid.tensor([3.0, 1.0, 2.0, 4.0]))
    Tensor(2.)
    """
    x = as_tensor(input)
    keep = keepdim if keepdims is None else keepdims
    if x.dtype.kind == "c":
        raise dtype_error("median", x.dtype, "complex numbers have no order")
    if dim is not None and axis is not None:
        raise ArgumentError("median: give dim or axis, not both")
    if dim is None and axis is None:
        values = middle_element(x.reshape(-1), 0, False).values
        return values.reshape([1] * x.ndim) if keep else values
    number = canonicalize_axis("median", axis if dim is None else dim, x.ndim)
    found = middle_element(x.reshape(1) if x.ndim == 0 else x, number, keep)
    if x.ndim == 0:
        found = selection.Selected(*[part.reshape(()) for part in found])
    return found.values if dim is None else found


def middle_element(x: Any, axis: int, keep: bool) -> Any:
    from lucid.ops.elementwise.conditional import where

    n = x.shape[axis]
    if n == 0:
        raise ShapeError(f"median: axis {axis} of shape {x.shape} is empty: it has no median")
    indices = bind(sorting.Sort(axis, stable=True), x)[1]
    numbers = sum(x == x, axis=axis)
    place = where(numbers == n, (n - 1) // 2, numbers)
    order = selection.take_one(indices, place, axis, False).values
    return selection.take_one(x, order, axis, keep)
