"""Powers of elements: x**y, whatever is a tensor and whatever a Python number."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np

from lucid.errors import DTypeError
from lucid.ir.source import at_line
from lucid.ir.tape import Traced
from lucid.ops.apply import binary
from lucid.ops.complexes import real
from lucid.ops.conditional import where
from lucid.ops.exponential import log
from lucid.ops.kinds import Elementwise
from lucid.ops.promote import as_tensor, cast, operand, to_floating
from lucid.ops.quiet import quiet

NUMBER = (int, float, complex)


class Pow(Elementwise):
    """a**b. Where the formulas of the derivative give nan, the limit stands instead if there is one:

    of a    b * a**(b - 1): 0 everywhere where b is 0; 1 at a = 0 where b is 1, and inf where b < 1
    of b    a**b * log(a): 0 at a = 0 where b >= 0; nan where a < 0, for near b the power is not real
    """

    scalar, accepts, saves = "pow", "iufc", "xy"

    def eval(self, a: Any, b: Any) -> Any:
        return power_of(a, b)

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        if isinstance(b, NUMBER):
            return None if b == 0 else b * raised(a, b - 1), None
        if isinstance(a, NUMBER):
            return None, y * log_of(a) if a else where(real(b) >= 0, 0.0, -y)
        base_zero = (a == 0) & (real(b) >= 0)
        return where(b == 0, 0.0, b * a ** (b - 1)), where(base_zero, 0.0, y * log(a))


def raised(x: Any, n: Any) -> Any:
    """x**n for a Python number n, without an operation where it needs none."""
    return 1 if n == 0 else x if n == 1 else x**n


def log_of(a: Any) -> Any:
    """The logarithm of a Python number that is not 0; nan for a negative one, as for tensors."""
    if isinstance(a, complex):
        return cmath.log(a)
    return cmath.log(a).real if a > 0 else cmath.nan


@quiet
def power_of(a: Any, b: Any) -> Any:
    """np.power, by multiplication for the exponents 2 and 3: 0.1 to 0.2 ns an element against 1 to 3."""
    if a.__class__ not in NUMBER:
        n = b if b.__class__ in NUMBER else b.item() if b.ndim == 0 else None
        if n == 2:
            return np.square(a)
        if n == 3:
            return np.multiply(np.square(a), a)
    kind = np.result_type(a, b).kind
    return integer_power(a, b) if kind == "i" else np.power(a, b)


def integer_power(a: Any, b: Any) -> Any:
    """Powers of integers; a negative exponent gives the integer part of 1 / a**-b, and 0 for 0."""
    negative = np.less(b, 0)
    if not negative.any():
        return np.power(a, b)
    odd = np.bitwise_and(b, 1)
    power = np.power(a, np.where(negative, odd, b))
    return np.where(negative & (np.abs(a) != 1), 0, power).astype(power.dtype)


POW = Pow()


def pow(x: Any, exponent: Any) -> Any:
    """`x ** exponent`, elementwise; integers stay integers, so their exponents must not be negative.

    >>> import lucid
    >>> x = lucid.tensor([0.0, 3.0], requires_grad=True)
    >>> (x**2).sum().backward()
    >>> x.grad
    Tensor([0., 6.])
    """
    x, exponent = operand(x), operand(exponent)
    if not isinstance(exponent, Traced) and isinstance(exponent, int) and exponent < 0:
        if as_tensor(x).dtype.kind in "biu":
            raise DTypeError(
                f"pow: integers to the power {exponent} are not integers; "
                f"cast to a floating dtype first, or use the exponent {float(exponent)}{at_line()}"
            )
    return binary(POW, x, exponent)


def square(x: Any) -> Any:
    """x * x, elementwise."""
    return pow(x, 2)


def float_power(x: Any, exponent: Any) -> Any:
    """`x ** exponent` computed in float64 (complex128), elementwise."""
    x, exponent = as_tensor(x), as_tensor(exponent)
    wide = "complex128" if "c" in (x.dtype.kind, exponent.dtype.kind) else "float64"
    return pow(cast(x, wide), cast(exponent, wide))


def reciprocal(x: Any) -> Any:
    """1 / x, elementwise; integers become the default float."""
    return 1 / to_floating(x)


power = pow
