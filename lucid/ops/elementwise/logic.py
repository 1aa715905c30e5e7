"""Comparisons, logical and bitwise operations, tests for nan and inf; none is differentiable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ops.core.apply import binary, cached_scalar, dtype_error, unary
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import as_operand, as_tensor, cast
from lucid.public.declare import public
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
    complex_rule = "lucid.compiler.passes.expand.lower_complex:both_parts"


class Ne(Predicate):
    numpy = np.not_equal
    scalar, accepts = "ne", ANY
    complex_rule = "lucid.compiler.passes.expand.lower_complex:either_part"


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
    decomposition = "lucid.compiler.passes.expand.decompose:never_true"
    complex_rule = "lucid.compiler.passes.expand.lower_complex:either_part"


class Isinf(Predicate):
    numpy = np.isinf
    scalar, accepts = "isinf", ANY
    decomposition = "lucid.compiler.passes.expand.decompose:never_true"
    complex_rule = "lucid.compiler.passes.expand.lower_complex:either_part"


class Isfinite(Predicate):
    numpy = np.isfinite
    scalar, accepts = "isfinite", ANY
    decomposition = "lucid.compiler.passes.expand.decompose:always_true"
    complex_rule = "lucid.compiler.passes.expand.lower_complex:both_parts"


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
    elif isinstance(x, Traced) and isinstance(y, Traced) and x.dtype != y.dtype:
        if x.dtype.kind in "iu" and y.dtype.kind in "iu":  # neither may wrap around
            dtype = np.promote_types(x.dtype, y.dtype)
            x, y = cast(x, dtype), cast(y, dtype)
    return binary(op, x, y)


def _widen_for(x: Any, y: int) -> tuple[Any, Any]:
    """Cast an integer tensor to a dtype that holds a Python integer: `uint8_tensor < 300`."""
    if x.dtype.kind not in "iu" or cached_scalar(y, x.dtype) is not None:
        return x, y
    if -(2**63) <= y < 2**63 and x.dtype != np.uint64:
        return cast(x, "int64"), y
    return cast(x, "float64"), float(max(-(2**64), min(y, 2**64)))


@public("lucid", "Tensor", inplace=True, numpy="equal")
def eq(input: Any, other: Any) -> Any:
    """`input == other`, elementwise."""
    return _compare(EQ, input, other)


@public("lucid", "Tensor", aliases=("not_equal",), inplace=True, numpy="not_equal")
def ne(input: Any, other: Any) -> Any:
    """`input != other`, elementwise."""
    return _compare(NE, input, other)


@public("lucid", "Tensor", aliases=("less",), inplace=True, numpy="less")
def lt(input: Any, other: Any) -> Any:
    """`input < other`, elementwise."""
    return _compare(LT, input, other)


@public("lucid", "Tensor", aliases=("less_equal",), inplace=True, numpy="less_equal")
def le(input: Any, other: Any) -> Any:
    """`input <= other`, elementwise."""
    return _compare(LE, input, other)


@public("lucid", "Tensor", aliases=("greater",), inplace=True, numpy="greater")
def gt(input: Any, other: Any) -> Any:
    """`input > other`, elementwise."""
    return _compare(GT, input, other)


@public("lucid", "Tensor", aliases=("greater_equal",), inplace=True, numpy="greater_equal")
def ge(input: Any, other: Any) -> Any:
    """`input >= other`, elementwise."""
    return _compare(GE, input, other)


@public("lucid", "Tensor", numpy="isnan")
def isnan(input: Any) -> Any:
    """True where x is not a number, elementwise."""
    return unary(ISNAN, input)


@public("lucid", "Tensor", numpy="isinf")
def isinf(input: Any) -> Any:
    """True where x is inf or -inf, elementwise."""
    return unary(ISINF, input)


@public("lucid", "Tensor", numpy="isfinite")
def isfinite(input: Any) -> Any:
    """True where x is neither infinite nor nan, elementwise."""
    return unary(ISFINITE, input)


@public("lucid", "Tensor", numpy="isposinf")
def isposinf(input: Any) -> Any:
    """True where x is inf, elementwise."""
    return eq(_require_real("isposinf", input), math.inf)


@public("lucid", "Tensor", numpy="isneginf")
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


@public("lucid", "Tensor", inplace=True, numpy="logical_and")
def logical_and(input: Any, other: Any) -> Any:
    """True where both are nonzero, elementwise, for any dtype."""
    return bind(AND, _to_bool(input), _to_bool(other))


@public("lucid", "Tensor", inplace=True, numpy="logical_or")
def logical_or(input: Any, other: Any) -> Any:
    """True where at least one is nonzero, elementwise, for any dtype."""
    return bind(OR, _to_bool(input), _to_bool(other))


@public("lucid", "Tensor", inplace=True, numpy="logical_xor")
def logical_xor(input: Any, other: Any) -> Any:
    """True where exactly one is nonzero, elementwise, for any dtype."""
    return bind(XOR, _to_bool(input), _to_bool(other))


@public("lucid", "Tensor", inplace=True, numpy="logical_not")
def logical_not(input: Any) -> Any:
    """True where x is zero, elementwise, for any dtype.

    >>> import lucid
    >>> lucid.logical_not(lucid.tensor([0.0, 2.0]))
    Tensor([ True, False])
    """
    return unary(NOT, _to_bool(input))


@public("lucid", "Tensor", inplace="ufunc", numpy="bitwise_and")
def bitwise_and(input: Any, other: Any) -> Any:
    """The bits set in both, elementwise; `and` for booleans."""
    return binary(AND, input, other)


@public("lucid", "Tensor", inplace="ufunc", numpy="bitwise_or")
def bitwise_or(input: Any, other: Any) -> Any:
    """The bits set in at least one, elementwise; `or` for booleans."""
    return binary(OR, input, other)


@public("lucid", "Tensor", inplace="ufunc", numpy="bitwise_xor")
def bitwise_xor(input: Any, other: Any) -> Any:
    """The bits set in exactly one, elementwise."""
    return binary(XOR, input, other)


@public(name="invert")
@public("lucid", "Tensor", inplace=True, numpy="invert")
def bitwise_not(input: Any) -> Any:
    """The bits of `input` inverted, elementwise; `not` for booleans."""
    return unary(NOT, input)


@public("lucid", "Tensor", name="bitwise_left_shift", inplace=True)
@public(numpy="left_shift")
def left_shift(input: Any, other: Any) -> Any:
    """The bits of `input` shifted left by `other` places, elementwise."""
    return binary(LEFT_SHIFT, input, other)


@public("lucid", "Tensor", name="bitwise_right_shift", inplace=True)
@public(numpy="right_shift")
def right_shift(input: Any, other: Any) -> Any:
    """The bits of `input` shifted right by `other` places, elementwise, keeping the sign."""
    return binary(RIGHT_SHIFT, input, other)
