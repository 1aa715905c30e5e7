"""Python's operators on tensors: +, -, *, ... with a short way for two tensors of one dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid.ir.primitive import Primitive
from lucid.ir.tape import Traced, bind_pair
from lucid.ops import arithmetic


def _binary(op: Primitive, general: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method `self op other`; `general` promotes dtypes and converts what is no tensor."""

    def method(self: Any, other: Any) -> Any:
        if other.__class__ is self.__class__:
            a, b = self.value, other.value
            if a is not None and b is not None and a.dtype is b.dtype:
                return bind_pair(op, self, other)
        elif not _operand(other):
            return NotImplemented
        return general(self, other)

    return method


def _reflected(general: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method `other op self`."""

    def method(self: Any, other: Any) -> Any:
        return general(other, self) if _operand(other) else NotImplemented

    return method


def _operand(x: Any) -> bool:
    """True for what arithmetic with a tensor makes sense of; other classes may know better themselves."""
    return isinstance(x, (Traced, int, float, complex, list, tuple)) or hasattr(x, "__array__")


class Operators(Traced):
    """The operators of Tensor."""

    __slots__ = ()

    __add__ = _binary(arithmetic.ADD, arithmetic.add)
    __radd__ = _reflected(arithmetic.add)
    __sub__ = _binary(arithmetic.SUB, arithmetic.subtract)
    __rsub__ = _reflected(arithmetic.subtract)
    __mul__ = _binary(arithmetic.MUL, arithmetic.multiply)
    __rmul__ = _reflected(arithmetic.multiply)
    __truediv__ = _reflected(lambda other, self: arithmetic.divide(self, other))
    __rtruediv__ = _reflected(arithmetic.divide)

    def __neg__(self) -> Any:
        return arithmetic.negative(self)
