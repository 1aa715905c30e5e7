"""Elementwise powers x**y, of tensors and Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError
from lucid.ops.core.apply import binary
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import SCALE, Elementwise
from lucid.ops.core.promote import as_operand, as_tensor, result_type, to_floating
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.node import Traced

NUMBER = (int, float, complex)


_square, _cube, _power = quiet(np.square), quiet(lambda x: x * x * x), quiet(np.power)


def eval_power(a: Any, b: Any) -> Any:
    """np.power; exponents 2 and 3 by multiplication, 0.2 ns per element where powf takes 1."""
    if a.__class__ not in NUMBER:
        n = b if b.__class__ in NUMBER else b.item() if b.ndim == 0 else None
        if n == 2:
            return _square(a)
        if n == 3:
            return _cube(a)
        if a.dtype.kind in "fc":
            return _power(a, b)
    return integer_power(a, b) if np.result_type(a, b).kind == "i" else _power(a, b)


def integer_power(a: Any, b: Any) -> Any:
    """Integer powers; a negative exponent gives the integer part of 1 / a**-b, and 0 if a is 0."""
    negative = np.less(b, 0)
    if not negative.any():
        return np.power(a, b)
    power = np.power(a, np.where(negative, np.bitwise_and(b, 1), b))
    return np.where(negative & (np.abs(a) != 1), np.zeros_like(power), power)


class Pow(Elementwise):
    """a**b. Where the formula of a derivative gives nan, its limit is used if there is one:

    in a    b * a**(b - 1): 0 everywhere if b is 0; at a = 0 it is 1 for b = 1 and inf for b < 1
    in b    a**b * log(a): 0 at a = 0 if b >= 0; nan for a < 0, as a**(b + h) is not real
    """

    numpy = eval_power
    scalar, accepts, saves = "pow", "iufc", "xy"
    literals_are_static = True
    ufunc = np.power

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        if isinstance(b, NUMBER):
            return None if b == 0 else b * _scalar_power(a, b - 1), None
        from lucid.ops.elementwise.complexes import real
        from lucid.ops.elementwise.conditional import where
        from lucid.ops.elementwise.exponential import log

        if isinstance(a, NUMBER):
            return None, y * _scalar_log(a) if a else where(real(b) >= 0, 0.0, -y)
        base_zero = (a == 0) & (real(b) >= 0)
        # zero times inf is zero; the product depends on b, of which it is differentiated too
        in_a = where((a == 0) & (b == 0), 0.0, bind(SCALE, b, a ** (b - 1)))
        return in_a, where(base_zero, 0.0, y * log(a))


def _scalar_power(x: Any, n: Any) -> Any:
    """Return x**n for a Python number n, without recording an op for n = 0 and n = 1."""
    return 1 if n == 0 else x if n == 1 else x**n


def _scalar_log(a: Any) -> Any:
    """Return the logarithm of a nonzero Python number; nan if it is negative, as for tensors."""
    import cmath

    if isinstance(a, complex):
        return cmath.log(a)
    return cmath.log(a).real if a > 0 else cmath.nan


POW = Pow()


@public(name="power")
@public("lucid", "Tensor", inplace="ufunc", numpy="power")
def pow(input: Any, exponent: Any) -> Any:
    """`input ** exponent`, elementwise; integers stay integers, with exponents >= 0.

    >>> import lucid
    >>> x = lucid.tensor([0.0, 3.0], requires_grad=True)
    >>> (x**2).sum().backward()
    >>> x.grad
    Tensor([0., 6.])
    """
    x, exponent = as_operand(input), as_operand(exponent)
    if not isinstance(exponent, Traced) and isinstance(exponent, int) and exponent < 0:
        if as_tensor(x).dtype.kind in "biu":
            raise DTypeError(
                f"pow: integers cannot be raised to the negative power {exponent}; "
                f"cast to a floating dtype first, or use the exponent {float(exponent)}"
            )
    return binary(POW, x, exponent)


@public("lucid", "Tensor", inplace="ufunc", inplace_function=True, numpy="square")
def square(input: Any) -> Any:
    """x * x, elementwise."""
    return pow(input, 2)


@public("lucid", "Tensor", inplace=True, numpy="float_power")
def float_power(input: Any, exponent: Any) -> Any:
    """`input ** exponent` computed in float64 (complex128), elementwise."""
    wide = "complex128" if result_type(input, exponent).kind == "c" else "float64"
    return pow(as_tensor(input, wide), as_tensor(exponent, wide))


@public("lucid", "Tensor", inplace_function=True, numpy="reciprocal")
def reciprocal(input: Any) -> Any:
    """1 / x, elementwise; integers become the default float dtype."""
    return 1 / to_floating(input)
