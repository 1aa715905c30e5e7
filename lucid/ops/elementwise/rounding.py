"""Rounding to integers, signs, and division with remainder.

Rounding is piecewise constant: its derivative is zero everywhere, including at the steps. Zero, not
missing: a loss through `round` has a gradient of zeros, as in PyTorch. Integers are unchanged.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lucid.errors import DTypeError
from lucid.ops.core.apply import binary, unary
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import SLOW, Elementwise
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public

REAL = "biuf"


class Floor(Elementwise):
    numpy = quiet(np.floor)
    scalar, accepts, saves = "floor", REAL, ""
    jumps = True
    decomposition = "lucid.compiler.passes.expand.decompose:round_integers"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (None,)


class Ceil(Elementwise):
    numpy = quiet(np.ceil)
    scalar, accepts, saves = "ceil", REAL, ""
    jumps = True
    decomposition = "lucid.compiler.passes.expand.decompose:round_integers"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (None,)


class Trunc(Elementwise):
    """Round toward zero."""

    numpy = quiet(np.trunc)
    scalar, accepts, saves = "trunc", REAL, ""
    jumps = True
    decomposition = "lucid.compiler.passes.expand.decompose:round_integers"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (None,)


class Round(Elementwise):
    """Round to `decimals` decimal places (powers of ten if negative), halves to even."""

    decimals: int = 0
    accepts, saves = "iuf", ""
    jumps = True
    decomposition = "lucid.compiler.passes.expand.decompose:round_decimals"

    @property
    def scalar(self) -> str:  # type: ignore[override]
        return "" if self.decimals else "round"

    def eval(self, x: np.ndarray) -> Any:
        return _round(x, self.decimals)

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (None,)


@quiet
def _round(x: np.ndarray, decimals: int) -> Any:
    if x.dtype.kind == "f" and decimals == 0:
        return np.rint(x)
    return np.round(x, decimals)


class Sign(Elementwise):
    """-1, 0 or 1; nan for nan."""

    numpy = quiet(np.sign)
    scalar, accepts, saves = "sign", "iuf", ""
    jumps = True

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (None,)


class FloorDivide(Elementwise):
    """floor(a / b). An integer divided by 0 gives 0."""

    numpy = quiet(np.floor_divide)
    scalar, accepts, saves = "floor_divide", "iuf", ""
    jumps = True
    native_from = SLOW

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return None, None


class Remainder(Elementwise):
    """a - b * floor(a / b), with the sign of b: Python's %. An integer's remainder by 0 is 0."""

    numpy = quiet(np.remainder)
    scalar, accepts, saves = "remainder", "iuf", "x"
    jumps = True
    native_from = SLOW

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return 1, -floor_divide(a, b)


class Fmod(Elementwise):
    """a - b * trunc(a / b), with the sign of a: C's fmod. An integer's remainder by 0 is 0."""

    numpy = quiet(np.fmod)
    scalar, accepts, saves = "fmod", "iuf", "x"
    jumps = True
    native_from = SLOW

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return 1, -round((a - fmod(a, b)) / b)


FLOOR, CEIL, TRUNC, ROUND, SIGN = Floor(), Ceil(), Trunc(), Round(0), Sign()
FLOOR_DIVIDE, REMAINDER, FMOD = FloorDivide(), Remainder(), Fmod()


@public("lucid", "Tensor", inplace_function=True, numpy="floor")
def floor(input: Any) -> Any:
    """The largest integer <= x, elementwise, in the same dtype."""
    return unary(FLOOR, input)


@public("lucid", "Tensor", inplace_function=True, numpy="ceil")
def ceil(input: Any) -> Any:
    """The smallest integer >= x, elementwise, in the same dtype."""
    return unary(CEIL, input)


@public("lucid", "Tensor", aliases=("fix",), inplace_function=True, numpy=("trunc", "fix"))
def trunc(input: Any) -> Any:
    """The integer part, elementwise: rounding toward zero."""
    return unary(TRUNC, input)


@public("lucid", "Tensor", "special", inplace_function=True)
def round(input: Any, decimals: int = 0) -> Any:
    """Round to `decimals` decimal places, elementwise; halves go to the even neighbor.

    >>> import lucid
    >>> lucid.round(lucid.tensor([0.5, 1.5, 2.5]))
    Tensor([0., 2., 2.])
    """
    try:
        decimals = operator.index(decimals)
    except TypeError:
        raise DTypeError(f"round: decimals {decimals!r} is not an integer") from None
    x = as_tensor(input)
    if decimals == 0 or x.dtype.kind != "f":
        return unary(Round(decimals), x)
    from lucid.ops.elementwise.conditional import where

    most = int(np.log10(np.finfo(x.dtype).max))  # the largest power of ten of the dtype
    y = unary(Round(min(decimals, most)), x) if decimals >= -most else x.detach() * 0
    return where(
        abs(y) < np.inf, y, x.detach()
    )  # elements that overflow in between have no decimals


@public("lucid", "Tensor", inplace_function=True)
def frac(input: Any) -> Any:
    """The fractional part `input - trunc(input)`, elementwise, with the sign of `input`."""
    return input - trunc(input)


@public("lucid", "Tensor", inplace=True)
def sign(input: Any) -> Any:
    """-1, 0 or 1, elementwise. The derivative is 0 everywhere. For complex numbers see `sgn`."""
    x = as_tensor(input)
    return x if x.dtype.kind == "b" else unary(SIGN, x)


@public("lucid", "Tensor", inplace="ufunc", numpy="floor_divide")
def floor_divide(input: Any, other: Any) -> Any:
    """`floor(input / other)`, elementwise; an integer divided by 0 gives 0.

    >>> import lucid
    >>> lucid.floor_divide(lucid.tensor([7, -7]), 2)
    Tensor([ 3, -4])
    """
    return binary(FLOOR_DIVIDE, input, other)


@public(name="mod")
@public("lucid", "Tensor", inplace="ufunc", numpy="remainder")
def remainder(input: Any, other: Any) -> Any:
    """`input - other * floor(input / other)`, elementwise, with the sign of `other`: Python's %.

    >>> import lucid
    >>> lucid.remainder(lucid.tensor([7, -7]), 3)
    Tensor([1, 2])
    """
    return binary(REMAINDER, input, other)


@public("lucid", "Tensor", inplace=True, numpy="fmod")
def fmod(input: Any, other: Any) -> Any:
    """`input - other * trunc(input / other)`, elementwise, with the sign of `input`.

    >>> import lucid
    >>> lucid.fmod(lucid.tensor([7, -7]), 3)
    Tensor([ 1, -1])
    """
    return binary(FMOD, input, other)
