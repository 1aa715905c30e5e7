"""Python's operators on tensors, with fast paths for equal dtypes and for Python numbers."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.ops.core.apply import cached_scalar
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import holds_tensors
from lucid.ops.elementwise import arithmetic, logic, power, rounding
from lucid.ops.linalg import contraction
from lucid.tape.fast_bind import bind_one, bind_pair, bind_scalar
from lucid.tape.node import ONE, PAIR, REFLECTED, SCALAR, Traced, followers

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor

Method = Callable[[Any, Any], "Tensor"]


def _binary(op: Elementwise, general: Method, integers: str = "iu") -> Method:
    """Return the method `self op other`; `general` promotes dtypes and converts other operands.

    integers    kinds of integer dtype for which a Python integer takes the fast path
    """
    accepts = op.accepts

    def method(self: Any, other: Any) -> Any:
        cls = other.__class__
        if cls is self.__class__:
            if followers and (follower := followers.get(get_ident())) is not None:
                found = follower.quick(op, PAIR, self, other)
                if found is not None:
                    return found
            a, b = self.raw, other.raw
            if a is not None and b is not None and a.dtype is b.dtype and a.dtype.kind in accepts:
                return bind_pair(op, self, other)
        elif cls is float or cls is int:
            if followers and self.node is not None and (follower := followers.get(get_ident())):
                found = follower.quick(op, SCALAR, self, other)
                if found is not None:
                    return found
            a = self.raw
            if a is not None:
                kind = a.dtype.kind
                if (kind == "f" and "f" in accepts) or (cls is int and kind in integers):
                    found = cached_scalar(other, a.dtype)
                    if found is not None:
                        return bind_scalar(op, self, *found, False)
        elif not _operand(other):
            return NotImplemented
        return general(self, other)

    return method


def _reflected(op: Elementwise, general: Method, integers: str = "iu") -> Method:
    """Return the method `other op self`."""

    def method(self: Any, other: Any) -> Any:
        cls = other.__class__
        if cls is float or cls is int:
            if followers and self.node is not None and (follower := followers.get(get_ident())):
                found = follower.quick(op, REFLECTED, self, other)
                if found is not None:
                    return found
            a = self.raw
            if a is not None:
                kind = a.dtype.kind
                if (kind == "f" and "f" in op.accepts) or (cls is int and kind in integers):
                    found = cached_scalar(other, a.dtype)
                    if found is not None:
                        return bind_scalar(op, self, *found, True)
        elif not _operand(other):
            return NotImplemented
        return general(other, self)

    return method


def _operand(x: Any) -> bool:
    """True if `x` is a valid operand; other classes may implement the reflected operator."""
    if isinstance(x, (Traced, int, float, complex, list, tuple)):
        return True
    return hasattr(x, "__array__") and not holds_tensors(x)


def _multiply(x: Any, y: Any) -> Any:
    """Return x * y, which is the matrix product if one of them is a np.matrix."""
    if isinstance(x, np.matrix) or isinstance(y, np.matrix):
        if len(x.shape) and len(y.shape):
            return contraction.matmul(x, y)
    return arithmetic.multiply(x, y)


class Operators(Traced):
    """Operators of Tensor."""

    __slots__ = ()

    __add__ = _binary(arithmetic.ADD, arithmetic.add)
    __radd__ = _reflected(arithmetic.ADD, arithmetic.add)
    __sub__ = _binary(arithmetic.SUB, arithmetic.subtract)
    __rsub__ = _reflected(arithmetic.SUB, arithmetic.subtract)
    __mul__ = _binary(arithmetic.MUL, _multiply)
    __rmul__ = _reflected(arithmetic.MUL, _multiply)
    __truediv__ = _binary(arithmetic.DIV, arithmetic.divide, integers="")
    __rtruediv__ = _reflected(arithmetic.DIV, arithmetic.divide, integers="")
    __floordiv__ = _binary(rounding.FLOOR_DIVIDE, rounding.floor_divide)
    __rfloordiv__ = _reflected(rounding.FLOOR_DIVIDE, rounding.floor_divide)
    __mod__ = _binary(rounding.REMAINDER, rounding.remainder)
    __rmod__ = _reflected(rounding.REMAINDER, rounding.remainder)
    __pow__ = _binary(power.POW, power.pow, integers="")
    __rpow__ = _reflected(power.POW, power.pow)

    __and__ = _binary(logic.AND, logic.bitwise_and)
    __rand__ = _reflected(logic.AND, logic.bitwise_and)
    __or__ = _binary(logic.OR, logic.bitwise_or)
    __ror__ = _reflected(logic.OR, logic.bitwise_or)
    __xor__ = _binary(logic.XOR, logic.bitwise_xor)
    __rxor__ = _reflected(logic.XOR, logic.bitwise_xor)
    __lshift__ = _binary(logic.LEFT_SHIFT, logic.left_shift)
    __rlshift__ = _reflected(logic.LEFT_SHIFT, logic.left_shift)
    __rshift__ = _binary(logic.RIGHT_SHIFT, logic.right_shift)
    __rrshift__ = _reflected(logic.RIGHT_SHIFT, logic.right_shift)

    __eq__ = _binary(logic.EQ, logic.eq)  # type: ignore[assignment]
    __ne__ = _binary(logic.NE, logic.ne)  # type: ignore[assignment]
    __lt__ = _binary(logic.LT, logic.lt)
    __le__ = _binary(logic.LE, logic.le)
    __gt__ = _binary(logic.GT, logic.gt)
    __ge__ = _binary(logic.GE, logic.ge)
    __hash__ = object.__hash__

    def __matmul__(self, other: Any) -> Tensor:
        if other.__class__ is self.__class__:
            if followers and (follower := followers.get(get_ident())) is not None:
                found = follower.quick(contraction.MATMUL, PAIR, self, other)
                if found is not None:
                    return found
            a, b = self.raw, other.raw
            if a is not None and b is not None and a.dtype is b.dtype:
                return bind_pair(contraction.MATMUL, self, other)
        return contraction.matmul(self, other) if _operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Tensor:
        return contraction.matmul(other, self) if _operand(other) else NotImplemented

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return (self // other, self % other) if _operand(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return (other // self, other % self) if _operand(other) else NotImplemented

    def __neg__(self) -> Tensor:
        if followers and (follower := followers.get(get_ident())) is not None:
            found = follower.quick(arithmetic.NEG, ONE, self)
            if found is not None:
                return found
        value = self.raw
        if value is not None and value.dtype.kind in "fc":
            return bind_one(arithmetic.NEG, self)
        return arithmetic.negative(self)

    def __pos__(self) -> Tensor:
        return self  # type: ignore[return-value]

    def __abs__(self) -> Tensor:
        return arithmetic.abs(self)

    def __invert__(self) -> Tensor:
        return logic.bitwise_not(self)

    def __round__(self, ndigits: int = 0) -> Tensor:
        return rounding.round(self, ndigits or 0)
