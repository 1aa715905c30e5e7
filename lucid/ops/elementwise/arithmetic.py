"""Elementwise arithmetic: +, -, *, /, absolute values, and casts between dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import DTypeError
from lucid.ir.types import DTYPES, Type, is_differentiable
from lucid.ops.core.apply import binary, floating_binary, unary
from lucid.ops.core.arguments import is_one
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import SCALE, Elementwise, Linear
from lucid.ops.core.promote import as_tensor, cast, promote
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.node import Traced

NUMERIC = "iufc"
ANY = "biufc"


class Add(Elementwise):
    numpy = quiet(np.add)
    scalar, accepts, saves = "add", ANY, ""
    exact = True
    partwise = True

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return 1, 1


class Sub(Elementwise):
    numpy = quiet(np.subtract)
    scalar, accepts, saves = "sub", NUMERIC, ""
    exact = True
    partwise = True

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return 1, -1


class Mul(Elementwise):
    numpy = quiet(np.multiply)
    scalar, accepts, saves = "mul", ANY, "x"
    exact = True
    complex_rule = "lucid.compiler.passes.expand.lower_complex:product"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return b, a


class Div(Elementwise):
    """True division of floating operands."""

    numpy = quiet(np.divide)
    scalar, saves = "div", "xy"
    exact = True
    complex_rule = "lucid.compiler.passes.expand.lower_complex:quotient"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return inverse(b), -y / b


@quiet
def inverse(b: Any) -> Any:
    """Return 1 / b, where b may be a Python number and may be 0."""
    return np.divide(1, b).item() if isinstance(b, (int, float, complex)) else 1 / b


class Neg(Elementwise):
    numpy = np.negative
    scalar, accepts, saves = "neg", NUMERIC, ""
    exact = True
    partwise = True

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-1,)


class Abs(Elementwise):
    """The absolute value, real for complex numbers too. The derivative at 0 is 0."""

    numpy = quiet(np.absolute)
    scalar, accepts, result, saves = "abs", NUMERIC, "real", "x"
    exact = True
    complex_rule = "lucid.compiler.passes.expand.lower_complex:absolute"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (sgn(x),)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        if x.dtype.kind != "c" or ts[0] is None:
            return super().jvp(ts, y, x)
        from lucid.ops.elementwise.complexes import conj, real

        return real(bind(SCALE, ts[0], conj(sgn(x))))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        if x.dtype.kind != "c":
            return super().vjp(ct, y, x)
        return (bind(SCALE, cast(ct, x.dtype), sgn(x)),)


class Copysign(Elementwise):
    """|a| with the sign of b. The derivative in a is 0 at 0, that in b is always 0."""

    numpy = np.copysign
    scalar, accepts, saves = "copysign", "f", "x"
    jumps = True

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        from lucid.ops.elementwise.rounding import sign

        if isinstance(b, float):
            return math.copysign(1.0, b) * sign(a), None
        return copysign(1.0, b) * sign(a), None


class Cast(Linear):
    """Conversion to another dtype; complex to real drops the imaginary part."""

    dtype: str
    scalar = "cast"
    exact = True
    keeps_float16 = True
    complex_rule = "lucid.compiler.passes.expand.lower_complex:cast"

    def infer(self, x: Type) -> Type:
        return Type(DTYPES[self.dtype], x.shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        return convert(x, DTYPES[self.dtype])

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        if ts[0] is None or not is_differentiable(y.dtype):
            return None
        return bind(self, ts[0])

    def adjoint(self, ct: Any, x: Any) -> Any:
        return cast(ct, x.dtype) if is_differentiable(x.dtype) else None

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


@quiet
def convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert an array to a dtype; complex to real drops the imaginary part."""
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    return x.astype(dtype)


ADD, SUB, MUL, DIV, NEG, ABS, COPYSIGN = Add(), Sub(), Mul(), Div(), Neg(), Abs(), Copysign()


@public("lucid", "Tensor", inplace="ufunc", numpy="add")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`input + alpha * other`, elementwise with broadcasting.

    >>> import lucid
    >>> lucid.add(lucid.tensor([1.0, 2.0]), 10, alpha=2)
    Tensor([21., 22.])
    """
    return binary(ADD, input, other if is_one(alpha) else multiply(other, alpha))


@public("lucid", "Tensor", aliases=("sub",), inplace="ufunc", numpy="subtract")
def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`input - alpha * other`, elementwise with broadcasting."""
    other = other if is_one(alpha) else multiply(other, alpha)
    if isinstance(input, Traced) and input.dtype.kind != "b":
        return binary(SUB, input, other)
    x, other = promote(input, other)
    if x.dtype.kind == "b":
        raise DTypeError(
            "sub: subtracting booleans is not defined; "
            "use logical_xor, or cast to an integer dtype first"
        )
    return bind(SUB, x, other)


@public("lucid", "Tensor", aliases=("mul",), inplace="ufunc", numpy="multiply")
def multiply(input: Any, other: Any) -> Any:
    """`input * other`, elementwise with broadcasting."""
    return binary(MUL, input, other)


@public("lucid", "Tensor", aliases=("div", "true_divide"), inplace="ufunc", numpy="divide")
def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """`input / other`, elementwise; integers become the default float dtype.

    With `rounding_mode` "floor" or "trunc" the quotient is rounded, and integers stay integers.

    >>> import lucid
    >>> x = lucid.tensor([7, -7])
    >>> lucid.divide(x, 2), lucid.divide(x, 2, rounding_mode="trunc")
    (Tensor([ 3.5, -3.5]), Tensor([ 3, -3]))
    """
    if rounding_mode is None:
        return floating_binary(DIV, input, other)

    from lucid.ops.elementwise import rounding

    if rounding_mode == "floor":
        return rounding.floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ValueError(f"divide: rounding_mode {rounding_mode!r} is not None, 'floor' or 'trunc'")
    a, b = promote(input, other)
    if a.dtype.kind in "fc":
        return rounding.trunc(bind(DIV, a, b))
    return rounding.floor_divide(subtract(input, rounding.fmod(input, other)), other)


@public(
    "lucid", "Tensor", aliases=("neg",), inplace="ufunc", inplace_function=True, numpy="negative"
)
def negative(input: Any) -> Any:
    """`-input`, elementwise."""
    return unary(NEG, input)


@public("lucid", "Tensor", numpy="positive")
def positive(input: Any) -> Any:
    """Return `input` itself."""
    return as_tensor(input)


@public(
    "lucid",
    "Tensor",
    aliases=("absolute",),
    inplace="ufunc",
    inplace_function=True,
    numpy="absolute",
)
def abs(input: Any) -> Any:
    """The absolute value, elementwise; real for complex numbers. The derivative at 0 is 0.

    >>> import lucid
    >>> lucid.abs(lucid.tensor([3 + 4j])), lucid.abs(lucid.tensor([-2, 2]))
    (Tensor([5.]), Tensor([2, 2]))
    """
    return unary(ABS, input)


@public("lucid", "Tensor", inplace=True, numpy="sign")
def sgn(input: Any) -> Any:
    """x / |x|, elementwise, and 0 at 0: the sign of real numbers, the direction of complex ones."""
    from lucid.ops.elementwise.conditional import where
    from lucid.ops.elementwise.rounding import sign

    x = as_tensor(input)
    if x.dtype.kind != "c":
        return sign(x)
    size = cast(abs(x), x.dtype)
    return where(size == 0, 0.0, x / size)


@public("lucid", "Tensor", inplace=True, numpy="copysign")
def copysign(input: Any, other: Any) -> Any:
    """`|input|` with the sign of `other`, elementwise; integers become floats."""
    return floating_binary(COPYSIGN, input, other)
