"""Cumulative operations: each result depends on the elements up to its position along one axis.

Their derivatives are made of one primitive, the linear recurrence `s[i] = a[i] * s[i-1] + b[i]`,
whose own derivatives are linear recurrences again. There are no quotients, so zeros are safe.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.axes import axis_op, canonicalize_axis, resolve_alias
from lucid.ops.core.errstate import quiet
from lucid.ops.core.float16 import in_float32, is_float16
from lucid.ops.core.kinds import Linear, conjugate, times
from lucid.ops.core.promote import as_tensor, to_floating
from lucid.ops.elementwise import complex_exponentials
from lucid.ops.index.selection import INT64, Selected, Selection, check_ordered, reshape_to
from lucid.ops.reduce.reduction import bind_checked, bind_reduction, promote_integers
from lucid.ops.shape.movement import broadcast_unbatched, pad_axis
from lucid.public.declare import public
from lucid.tape.bind import bind

SCALAR_LOOP_LIMIT = (
    32  # with fewer rows, a loop over Python numbers is faster than one over NumPy rows
)


class Recurrence(Primitive):
    """`s[i] = a[i] * s[i-1] + b[i]` along `axis`, from the end if `reverse`, starting from 0.

    A zero state times anything is zero, even inf and nan, as everywhere in derivatives.
    """

    axis: int
    reverse: bool = False
    lowering = "lucid.compiler.lowering.index.cumulative_kernel:CumulativeLowering"
    scan = "recurrence"

    def infer(self, a: Type, b: Type) -> Type:
        if a != b:
            raise ShapeError(f"recurrence: operands {a} and {b} differ")
        return b

    @quiet
    def eval(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = np.empty(b.shape, b.dtype)
        factors, terms, states = (axis_to_front(x, self.axis, self.reverse) for x in (a, b, out))
        n = b.shape[self.axis]
        if 0 < b.size < n * SCALAR_LOOP_LIMIT:
            recurrence_by_scalars(factors.reshape(n, -1), terms.reshape(n, -1), states)
        else:
            recurrence_by_rows(factors, terms, states)
        return out

    def jvp(self, ts: tuple[Any, ...], s: Any, a: Any, b: Any) -> Any:
        driven = ts[1]
        if ts[0] is not None:
            changed = times(ts[0], self.before(s))
            driven = changed if driven is None else driven + changed
        return bind(self, a, driven)

    def vjp(self, ct: Any, s: Any, a: Any, b: Any) -> tuple[Any, ...]:
        factors = shift(conjugate(a), self.axis, not self.reverse)
        pulled = bind(Recurrence(self.axis, not self.reverse), factors, ct)
        return times(pulled, conjugate(self.before(s))), pulled

    def before(self, s: Any) -> Any:
        return shift(s, self.axis, self.reverse)

    def batch(self, n: int, batched: tuple[bool, ...], a: Any, b: Any) -> Any:
        return bind(Recurrence(self.axis + 1, self.reverse), *broadcast_unbatched(n, batched, a, b))


def axis_to_front(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    """Return a view whose axis 0 is `axis`, reversed if `reverse`."""
    x = np.moveaxis(x, axis, 0)
    return x[::-1] if reverse else x


def recurrence_by_rows(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    out[:1] = b[:1]
    for i in range(1, len(out)):
        np.multiply(a[i], out[i - 1], out=out[i])
        out[i] += b[i]
    if np.isnan(out).any():  # perhaps 0 * inf
        for i in range(1, len(out)):
            out[i] = np.where(out[i - 1] == 0, 0, a[i] * out[i - 1]) + b[i]


def recurrence_by_scalars(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    columns = []
    for factors, terms in zip(a.T.tolist(), b.T.tolist()):
        column, state = [], 0.0
        for factor, term in zip(factors, terms):
            state = factor * state + term if state else term
            column.append(state)
        columns.append(column)
    out[...] = np.array(columns).T.reshape(out.shape)


def shift(x: Any, axis: int, reverse: bool) -> Any:
    """Shift elements by one along `axis`, or back if `reverse`, and fill with a zero."""
    if x.shape[axis] == 0:
        return x
    return pad_axis(x, axis, -1, 1) if reverse else pad_axis(x, axis, 1, -1)


class Cumsum(Linear):
    """The sum of the elements up to each position along `axis`, from the end if `reverse`."""

    axis: int
    reverse: bool = False
    lowering = "lucid.compiler.lowering.index.cumulative_kernel:CumulativeLowering"
    scan = "sum"
    partwise = True
    numpy_calls = 1

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return accumulate(np.add, x, self.axis, self.reverse)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(Cumsum(self.axis, not self.reverse), ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Cumsum(self.axis + 1, self.reverse), x)


class Cumprod(Primitive):
    """The product of the elements up to each position along `axis`, from the end if `reverse`.

    If `exclusive`, the element at the position itself is left out, and the first result is 1.
    """

    axis: int
    reverse: bool = False
    exclusive: bool = False
    saves = "x"
    lowering = "lucid.compiler.lowering.index.cumulative_kernel:CumulativeLowering"
    scan = "prod"
    complex_rule = "lucid.compiler.passes.expand.lower_complex:cumprod"

    def infer(self, x: Type) -> Type:
        return x

    @quiet
    def eval(self, x: np.ndarray) -> np.ndarray:
        if not self.exclusive:
            return accumulate(np.multiply, x, self.axis, self.reverse)
        out = np.ones(x.shape, x.dtype)
        source, target = (axis_to_front(part, self.axis, self.reverse) for part in (x, out))
        np.multiply.accumulate(source[:-1], 0, x.dtype, target[1:])
        return out

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        change = times(ts[0], self.product_before(x))
        if self.exclusive:
            x, change = (shift(part, self.axis, self.reverse) for part in (x, change))
        return bind(Recurrence(self.axis, self.reverse), x, change)

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        back = not self.reverse
        factors = conjugate(x)
        if not self.exclusive:
            factors = shift(factors, self.axis, back)
        pulled = bind(Recurrence(self.axis, back), factors, ct)
        if self.exclusive:
            pulled = shift(pulled, self.axis, back)
        return (times(pulled, conjugate(self.product_before(x))),)

    def product_before(self, x: Any) -> Any:
        return bind(Cumprod(self.axis, self.reverse, True), x)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Cumprod(self.axis + 1, self.reverse, self.exclusive), x)


@quiet
def accumulate(ufunc: np.ufunc, x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    if not reverse:
        return ufunc.accumulate(x, axis, x.dtype)
    out = np.empty(x.shape, x.dtype)
    ufunc.accumulate(np.flip(x, axis), axis, x.dtype, np.flip(out, axis))
    return out


class LogCumSumExp(Primitive):
    """`log(cumsum(exp(x)))` along `axis` without overflow. Results of -inf have derivative 0."""

    name = "logcumsumexp"
    axis: int
    lowering = "lucid.compiler.lowering.index.cumulative_kernel:CumulativeLowering"
    scan = "logsumexp"

    def infer(self, x: Type) -> Type:
        if x.dtype.kind not in "fc":
            raise DTypeError(f"logcumsumexp: operand of dtype {x.dtype}; it takes floating dtypes")
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        if x.dtype.kind == "c":
            rows = complex_exponentials.logcumsumexp(np.moveaxis(x, self.axis, 0))
            return np.moveaxis(rows, 0, self.axis)
        return accumulate(np.logaddexp, x, self.axis, False)

    def factors(self, y: Any, x: Any) -> tuple[Any, Any]:
        """Return the fractions of the sum at each position: of the sum before it, and its own."""
        from lucid.ops.elementwise.complexes import real
        from lucid.ops.elementwise.conditional import where

        finite = where(real(y) == -np.inf, 0.0, y)
        return (shift(y, self.axis, False) - finite).exp(), (x - finite).exp()

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        before, own = self.factors(y, x)
        return bind(Recurrence(self.axis), before, times(ts[0], own))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        before, own = map(conjugate, self.factors(y, x))
        pulled = bind(Recurrence(self.axis, True), shift(before, self.axis, True), ct)
        return (times(pulled, own),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(LogCumSumExp(self.axis + 1), x)


class RunningExtremum(Selection, abstract=True):
    """The extreme element up to each position along `axis`, and its index; the last of a tie.

    After a nan the values are nan, with the index of the latest nan.
    """

    ufunc: ClassVar[np.ufunc]

    def infer(self, x: Type) -> tuple[Type, Type]:
        check_ordered(self.name, x)
        return x, Type(INT64, x.shape)

    def eval(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = type(self).ufunc.accumulate(x, self.axis)
        positions = np.arange(x.shape[self.axis]).reshape([-1] + [1] * (x.ndim - 1 - self.axis))
        chosen = np.where((x == values) | (x != x), positions, 0)
        return values, np.maximum.accumulate(chosen, self.axis)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(type(self)(self.axis + 1), x)


class Cummax(RunningExtremum):
    ufunc = np.maximum
    lowering = "lucid.compiler.lowering.index.cumulative_kernel:CumulativeExtremumLowering"
    scan = "max"


class Cummin(RunningExtremum):
    ufunc = np.minimum
    lowering = "lucid.compiler.lowering.index.cumulative_kernel:CumulativeExtremumLowering"
    scan = "min"


def one_axis(name: str, x: Any, dim: Any, axis: Any) -> tuple[Any, int]:
    """Return the operand and its axis; a scalar becomes a vector of one element."""
    if axis is not None:
        dim = resolve_alias(name, ("dim", dim), ("axis", axis))
    if dim is None:
        raise ArgumentError(f"{name}: give dim (or axis)")
    ndim = len(x.shape)
    return (x if ndim else x.reshape(1)), canonicalize_axis(name, dim, ndim)


@public("lucid", "Tensor", inplace=True)
def cumsum(input: Any, dim: Any = None, *, axis: Any = None, dtype: Any = None) -> Any:
    """The cumulative sum along `dim`; integers give int64.

    >>> import lucid
    >>> lucid.cumsum(lucid.tensor([1.0, 2.0, 3.0]), dim=0)
    Tensor([1., 3., 6.])
    """
    x = promote_integers(input, dtype)
    ndim = len(x.shape)
    op = axis_op(Cumsum, "cumsum", ndim, dim, axis)
    row = x if ndim else x.reshape(1)
    y = bind_in_float32(row, op) if is_float16(x) else bind_reduction(op, row)
    return y if ndim else y.reshape(())


@public("lucid", "Tensor", inplace=True)
def cumprod(input: Any, dim: Any = None, *, axis: Any = None, dtype: Any = None) -> Any:
    """The cumulative product along `dim`; integers give int64.

    Gradients of any order are correct with any number of zeros among the elements.

    >>> import lucid
    >>> lucid.cumprod(lucid.tensor([1.0, 2.0, 3.0]), dim=0)
    Tensor([1., 2., 6.])
    """
    x = promote_integers(input, dtype)
    row, number = one_axis("cumprod", x, dim, axis)
    return reshape_to(bind_in_float32(row, Cumprod(number)), x.shape)


@in_float32
def bind_in_float32(x: Any, op: Any) -> Any:
    """Bind `op`; float16 is computed in float32 and rounded once, at the end."""
    return bind(op, x)


@public("lucid", "Tensor")
def logcumsumexp(input: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """`log(cumsum(exp(input)))` along `dim`, computed without overflow."""
    x = to_floating(input)
    row, number = one_axis("logcumsumexp", x, dim, axis)
    return reshape_to(bind_checked(LogCumSumExp(number), row), x.shape)


@public("lucid", "Tensor")
def cummax(input: Any, dim: Any = None, *, axis: Any = None) -> Selected:
    """The cumulative maximum along `dim`, and its indices.

    Of elements that tie, the last is chosen and gets the gradient.

    >>> import lucid
    >>> values, indices = lucid.cummax(lucid.tensor([1.0, 3.0, 2.0, 3.0]), dim=0)
    >>> indices
    Tensor([0, 1, 1, 3])
    """
    return cumulative_extremum("cummax", Cummax, input, dim, axis)


@public("lucid", "Tensor")
def cummin(input: Any, dim: Any = None, *, axis: Any = None) -> Selected:
    """The cumulative minimum along `dim`, and its indices; see `cummax`."""
    return cumulative_extremum("cummin", Cummin, input, dim, axis)


def cumulative_extremum(name: str, op: type[Any], x: Any, dim: Any, axis: Any) -> Selected:
    x = as_tensor(x)
    row, number = one_axis(name, x, dim, axis)
    return Selected(*[reshape_to(part, x.shape) for part in bind_checked(op(number), row)])
