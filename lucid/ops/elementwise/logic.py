"""Comparisons, logical and bitwise operations, tests for nan and inf; none is differentiable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ops.core.apply import binary, cached_scalar, dtype_error, unary
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import as_operand, as_tensor, cast
from lucid.tape.bind import bind
from lucid.tape.node import Traced

ANY, REAL, BITS, INTEGER = "biufc", "biuf", "biu", "iu"


class Predicate(Elementwise, abstract=True):
    """A function with a boolean result; not differentiable."""

    differentiable = False
    result, saves = "bool", ""


class Eq(Predicate):
    numpy = np.equal
    scalar, accepts = "eq", ANY


class Ne(Predicate):
    numpy = np.not_equal
    scalar, accepts = "ne", ANY


class Lt(Predicate):
    numpy = np.less
    scalar, accepts = "lt", REAL


class Le(Predicate):
    numpy = np.less_equal
    scalar, accepts = "le", REAL


class Gt(Predicate):
    numpy = np.greater
    scalar, accepts = "gt", REAL


class Ge(Predicate):
    numpy = np.greater_equal
    scalar, accepts = "ge", REAL


class Isnan(Predicate):
    numpy = np.isnan
    scalar, accepts = "isnan", ANY


class Isinf(Predicate):
    numpy = np.isinf
    scalar, accepts = "isinf", ANY


class Isfinite(Predicate):
    numpy = np.isfinite
    scalar, accepts = "isfinite", ANY


class Bitwise(Elementwise, abstract=True):
    """A bitwise function of integers; on booleans it is logical."""

    differentiable = False
    accepts, saves = BITS, ""


class BitwiseAnd(Bitwise):
    numpy = np.bitwise_and
    scalar = "bitwise_and"


class BitwiseOr(Bitwise):
    numpy = np.bitwise_or
    scalar = "bitwise_or"


class BitwiseXor(Bitwise):
    numpy = np.bitwise_xor
    scalar = "bitwise_xor"


class BitwiseNot(Bitwise):
    numpy = np.invert
    scalar = "bitwise_not"


class LeftShift(Bitwise):
    """x * 2**n, truncated; 0 if n is negative or at least the number of bits."""

    numpy = np.left_shift
    scalar, accepts = "left_shift", INTEGER


class RightShift(Bitwise):
    """floor(x / 2**n); 0 (-1 for negative x) if n is negative or at least the number of bits."""

    numpy = np.right_shift
    scalar, accepts = "right_shift", INTEGER


EQ, NE, LT, LE, GT, GE = Eq(), Ne(), Lt(), Le(), Gt(), Ge()
ISNAN, ISINF, ISFINITE = Isnan(), Isinf(), Isfinite()
AND, OR, XOR, NOT = BitwiseAnd(), BitwiseOr(), BitwiseXor(), BitwiseNot()
LEFT_SHIFT, RIGHT_SHIFT = LeftShift(), RightShift()


def _compare(op: Elementwise, x: Any, y: Any) -> Any:
    x, y = as_operand(x), as_operand(y)
    if isinstance(x, Traced) and type(y) is int:
        x, y = _widen_for(x, y)
    elif isinstance(y, Traced) and type(x) is int:
        y, x = _widen_for(y, x)
    return binary(op, x, y)


def _widen_for(x: Any, y: int) -> tuple[Any, Any]:
    """Cast an integer tensor to a dtype that holds a Python integer: `uint8_tensor < 300`."""
    if x.dtype.kind not in "iu" or cached_scalar(y, x.dtype) is not None:
        return x, y
    if -(2**63) <= y < 2**63 and x.dtype != np.uint64:
        return cast(x, "int64"), y
    return cast(x, "float64"), float(max(-(2**64), min(y, 2**64)))


def eq(input: Any, other: Any) -> Any:
    """`input == other`, elementwise."""
    return _compare(EQ, input, other)


def ne(input: Any, other: Any) -> Any:
    """`input != other`, elementwise."""
    return _compare(NE, input, other)


def lt(input: Any, other: Any) -> Any:
    """`input < other`, elementwise."""
    return _compare(LT, input, other)


def le(input: Any, other: Any) -> Any:
    """`input <= other`, elementwise."""
    return _compare(LE, input, other)


def gt(input: Any, other: Any) -> Any:
    """`input > other`, elementwise."""
    return _compare(GT, input, other)


def ge(input: Any, other: Any) -> Any:
    """`input >= other`, elementwise."""
    return _compare(GE, input, other)


def isnan(input: Any) -> Any:
    """True where x is not a number, elementwise."""
    return unary(ISNAN, input)


def isinf(input: Any) -> Any:
    """True where x is inf or -inf, elementwise."""
    return unary(ISINF, input)


def isfinite(input: Any) -> Any:
    """True where x is neither infinite nor nan, elementwise."""
    return unary(ISFINITE, input)


def isposinf(input: Any) -> Any:
    """True where x is inf, elementwise."""
    return eq(_require_real("isposinf", input), math.inf)


def isneginf(input: Any) -> Any:
    """True where x is -inf, elementwise."""
    return eq(_require_real("isneginf", input), -math.inf)


def _require_real(name: str, x: Any) -> Any:
    x = as_tensor(x)
    if x.dtype.kind == "c":
        raise dtype_error(name, x.dtype, "it takes real dtypes")
    return x


def _to_bool(x: Any) -> Any:
    return cast(as_tensor(x), "bool")


def logical_and(input: Any, other: Any) -> Any:
    """True where both are nonzero, elementwise, for any dtype."""
    return bind(AND, _to_bool(input), _to_bool(other))


def logical_or(input: Any, other: Any) -> Any:
    """True where at least one is nonzero, elementwise, for any dtype."""
    return bind(OR, _to_bool(input), _to_bool(other))


def logical_xor(input: Any, other: Any) -> Any:
    """True where exactly one is nonzero, elementwise, for any dtype."""
    return bind(XOR, _to_bool(input), _to_bool(other))


def logical_not(input: Any) -> Any:
    """True where x is zero, elementwise, for any dtype.

    >>> import lucid
    >>> lucid.logical_not(lucid.tensor([0.0, 2.0]))
    Tensor([ True, False])
    """
    return unary(NOT, _to_bool(input))


def bitwise_and(input: Any, other: Any) -> Any:
    """The bits set in both, elementwise; `and` for booleans."""
    return binary(AND, input, other)


def bitwise_or(input: Any, other: Any) -> Any:
    """The bits set in at least one, elementwise; `or` for booleans."""
    return binary(OR, input, other)


def bitwise_xor(input: Any, other: Any) -> Any:
    """The bits set in exactly one, elementwise."""
    return binary(XOR, input, other)


def bitwise_not(input: Any) -> Any:
    """The bits of `input` inverted, elementwise; `not` for booleans."""
    return unary(NOT, input)


def left_shift(input: Any, other: Any) -> Any:
    """The bits of `input` shifted left by `other` places, elementwise."""
    return binary(LEFT_SHIFT, input, other)


def right_shift(input: Any, other: Any) -> Any:
    """The bits of `input` shifted right by `other` places, elementwise, keeping the sign."""
    return binary(RIGHT_SHIFT, input, other)


not_equal = ne
less, less_equal, greater, greater_equal = lt, le, gt, ge
invert = bitwise_not
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
