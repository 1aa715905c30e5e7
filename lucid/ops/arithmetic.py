"""Arithmetic on elements: +, -, *, /, powers, absolute value, extrema, remainder, and casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError
from lucid.ir.tape import bind
from lucid.ir.types import DTYPES, Type, is_differentiable
from lucid.ops.kinds import Elementwise, Linear
from lucid.ops.promote import cast, promote, to_floating

NUMERIC = "iufc"
ANY = "biufc"


class Add(Elementwise):
    numpy = np.add
    scalar, accepts, saves = "add", ANY, ""

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return 1, 1


class Sub(Elementwise):
    numpy = np.subtract
    scalar, accepts, saves = "sub", NUMERIC, ""

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return 1, -1


class Mul(Elementwise):
    numpy = np.multiply
    scalar, accepts, saves = "mul", ANY, "x"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return b, a


class Div(Elementwise):
    """True division of floating operands."""

    numpy = np.divide
    scalar, saves = "div", "xy"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return 1 / b, -y / b


class Neg(Elementwise):
    numpy = np.negative
    scalar, accepts, saves = "neg", NUMERIC, ""

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-1,)


class Cast(Linear):
    """Conversion to another dtype. Between floating dtypes it is linear; complex to real takes the real part."""

    dtype: str

    def infer(self, x: Type) -> Type:
        return Type(DTYPES[self.dtype], x.shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        if x.dtype.kind == "c" and DTYPES[self.dtype].kind not in "cb":
            x = x.real
        return x.astype(DTYPES[self.dtype])

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        if ts[0] is None or not is_differentiable(y.dtype):
            return None
        return bind(self, ts[0])

    def adjoint(self, ct: Any, x: Any) -> Any:
        return cast(ct, x.dtype) if is_differentiable(x.dtype) else None

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


ADD, SUB, MUL, DIV, NEG = Add(), Sub(), Mul(), Div(), Neg()


def add(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`x + alpha * other`, elementwise with broadcasting."""
    return bind(ADD, *promote(x, other if alpha == 1 else multiply(other, alpha)))


def subtract(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`x - alpha * other`, elementwise with broadcasting."""
    x, other = promote(x, other if alpha == 1 else multiply(other, alpha))
    if x.dtype.kind == "b":
        raise DTypeError("sub: the difference of booleans is not defined; use logical_xor, or cast first")
    return bind(SUB, x, other)


def multiply(x: Any, other: Any) -> Any:
    """`x * other`, elementwise with broadcasting."""
    return bind(MUL, *promote(x, other))


def divide(x: Any, other: Any) -> Any:
    """`x / other`, elementwise; integers become the default float."""
    return bind(DIV, *promote(x, other, floating=True))


def negative(x: Any) -> Any:
    """`-x`, elementwise."""
    return bind(NEG, to_floating(x) if False else x)
