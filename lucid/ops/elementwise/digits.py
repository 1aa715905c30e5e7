"""The representation of numbers: mantissa and exponent, neighbors, sign bits; gcd and lcm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.errors import DTypeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import public_function
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Elementwise, times
from lucid.ops.core.promote import as_tensor, cast, promote_tensors
from lucid.ops.elementwise.arithmetic import abs, copysign
from lucid.ops.elementwise.blending import promote_real_floating
from lucid.ops.elementwise.conditional import maximum
from lucid.ops.elementwise.exponential import exp2
from lucid.ops.elementwise.rounding import floor_divide
from lucid.tape.bind import bind

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor

INT32 = np.dtype("int32")


class Parts(NamedTuple):
    """A number as mantissa * 2**exponent."""

    mantissa: Tensor
    exponent: Tensor


class Frexp(Primitive):
    """The mantissa, in [0.5, 1) or 0, and the int32 exponent of a number."""

    saves = "y"
    lowering = "lucid.compiler.lowering.external.ufunc_calls:FrexpLowering"

    def infer(self, x: Type) -> tuple[Type, Type]:
        if x.dtype.kind != "f":
            raise DTypeError(f"frexp: operand of dtype {x.dtype}; it takes floating dtypes")
        return x, Type(INT32, x.shape)

    def eval(self, x: np.ndarray) -> tuple[Any, Any]:
        mantissa, exponent = np.frexp(x)
        return np.asarray(mantissa, x.dtype), np.asarray(exponent, INT32)

    def jvp(self, ts: tuple[Any, ...], y: tuple[Any, ...], x: Any) -> tuple[Any, Any]:
        return times(ts[0], inverse_power_of_two(y[1], x.dtype)), None

    def vjp(self, ct: tuple[Any, ...], y: tuple[Any, ...], x: Any) -> tuple[Any]:
        return (None if ct[0] is None else times(ct[0], inverse_power_of_two(y[1], x.dtype)),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


def inverse_power_of_two(exponent: Any, dtype: np.dtype) -> Any:
    """Return 2**-exponent."""
    return exp2(cast(-exponent, dtype))


class Nextafter(Elementwise):
    """The next number after a toward b. The derivative in a is 1, as the result moves with a."""

    numpy = quiet(np.nextafter)
    accepts, saves = "f", ""
    keeps_float16 = True

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return 1, None


class Gcd(Elementwise):
    """The greatest common divisor, never negative; 0 for two zeros."""

    numpy = np.gcd
    scalar, accepts, saves, differentiable = "gcd", "iu", "", False


FREXP, NEXTAFTER, GCD = Frexp(), Nextafter(), Gcd()


@public_function("lucid", "Tensor", numpy="frexp")
def frexp(input: Any) -> Parts:
    """`input` as mantissa * 2**exponent, elementwise, with the mantissa in [0.5, 1) or 0.

    >>> import lucid
    >>> lucid.frexp(lucid.tensor([3.0, 0.0])).mantissa
    Tensor([0.75, 0.  ])
    """
    x = as_tensor(input)
    if x.dtype.kind != "f":
        raise dtype_error("frexp", x.dtype, "it takes floating dtypes")
    return Parts(*bind(FREXP, x))


@public_function("lucid", "Tensor", inplace_function=True, numpy="ldexp")
def ldexp(input: Any, other: Any) -> Any:
    """`input * 2**other`, elementwise.

    >>> import lucid
    >>> lucid.ldexp(lucid.tensor([1.0, 3.0]), lucid.tensor([4, -1]))
    Tensor([16. ,  1.5])
    """
    x, other = promote_tensors(input, other, floating=True)
    return x * exp2(other)


@public_function("lucid", "Tensor", inplace=True, numpy="nextafter")
def nextafter(input: Any, other: Any) -> Any:
    """The next floating number after `input` in the direction of `other`, elementwise."""
    x, other = promote_real_floating("nextafter", input, other)
    return bind(NEXTAFTER, x, other)


@public_function("lucid", "Tensor", numpy="signbit")
def signbit(input: Any) -> Any:
    """True where the sign bit is set, elementwise, including for -0.0.

    >>> import lucid
    >>> lucid.signbit(lucid.tensor([-0.0, 0.0, -1.0]))
    Tensor([ True, False,  True])
    """
    x = as_tensor(input)
    if x.dtype.kind == "c":
        raise dtype_error("signbit", x.dtype, "complex numbers have no sign")
    if x.dtype.kind != "f":
        return x < 0
    return copysign(1.0, x.detach()) < 0


@public_function("lucid", "Tensor", inplace_function=True, numpy="gcd")
def gcd(input: Any, other: Any) -> Any:
    """The greatest common divisor of integers, elementwise.

    >>> import lucid
    >>> lucid.gcd(lucid.tensor([4, 0]), lucid.tensor([6, 9]))
    Tensor([2, 9])
    """
    return bind(GCD, *promote_integers("gcd", input, other))


@public_function("lucid", "Tensor", inplace_function=True, numpy="lcm")
def lcm(input: Any, other: Any) -> Any:
    """The least common multiple of integers, elementwise; 0 if either is 0."""
    x, other = promote_integers("lcm", input, other)
    divisor = maximum(bind(GCD, x, other), 1)
    return abs(floor_divide(x, divisor) * other)


def promote_integers(name: str, x: Any, other: Any) -> list[Any]:
    """Promote two operands to one integer dtype."""
    found = promote_tensors(x, other)
    if found[0].dtype.kind not in "iu":
        raise dtype_error(name, found[0].dtype, "it takes integer dtypes")
    return found
