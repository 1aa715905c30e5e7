"""Elementwise compositions of several tensors: addcmul, lerp, fmax, heaviside, ...

They define no rules: derivatives, batching and compiled code follow from their parts.
"""

from __future__ import annotations

from typing import Any

from lucid.errors import DTypeError
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import is_one, public_function
from lucid.ops.core.promote import as_operand, as_tensor, cast, promote_tensors, result_type
from lucid.ops.elementwise.arithmetic import add, divide, multiply, subtract
from lucid.ops.elementwise.conditional import clamp, maximum, minimum, where


@public_function("lucid", "Tensor", inplace=True)
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """`input + value * tensor1 * tensor2`, elementwise.

    >>> import lucid
    >>> lucid.addcmul(lucid.ones(2), lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]), value=2)
    Tensor([ 7., 17.])
    """
    product = multiply(tensor1, tensor2)
    return add(input, product if is_one(value) else multiply(product, value))


@public_function("lucid", "Tensor", inplace=True)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """`input + value * tensor1 / tensor2`, elementwise, by true division."""
    quotient = divide(tensor1, tensor2)
    return add(input, quotient if is_one(value) else multiply(quotient, value))


@public_function("lucid", "Tensor")
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`other - alpha * input`, elementwise."""
    return subtract(other, input if is_one(alpha) else multiply(input, alpha))


@public_function("lucid", "Tensor", inplace=True)
def lerp(input: Any, end: Any, weight: Any) -> Any:
    """`input + weight * (end - input)`, elementwise: exactly `input` at weight 0 and `end` at 1.

    >>> import lucid
    >>> lucid.lerp(lucid.tensor([0.0, 1.0]), lucid.tensor([4.0, 5.0]), 0.25)
    Tensor([1., 2.])
    """
    x, end = promote_tensors(input, end)
    if x.dtype.kind not in "fc":
        raise dtype_error(
            "lerp", x.dtype, "interpolation takes floating or complex dtypes; cast first"
        )
    delta = end - x
    weight = as_operand(weight)
    if isinstance(weight, (bool, int, float, complex)):
        return x + weight * delta if abs(weight) < 0.5 else end - (1 - weight) * delta
    weight = cast(weight, x.dtype)
    near = abs(weight) < 0.5 if weight.dtype.kind == "f" else abs(weight.real) < 0.5
    return where(near, x + weight * delta, end - (1 - weight) * delta)


@public_function("lucid", "Tensor", inplace_function=True)
def clamp_min(input: Any, min: Any) -> Any:
    """`max(input, min)`, elementwise."""
    return clamp(input, min=min)


@public_function("lucid", "Tensor", inplace_function=True)
def clamp_max(input: Any, max: Any) -> Any:
    """`min(input, max)`, elementwise."""
    return clamp(input, max=max)


@public_function("lucid", "Tensor", numpy="fmax")
def fmax(input: Any, other: Any) -> Any:
    """The greater of two elements; if one is nan, the other.

    >>> import lucid
    >>> lucid.fmax(lucid.tensor([1.0, lucid.nan]), lucid.tensor([2.0, 3.0]))
    Tensor([2., 3.])
    """
    return ignore_nan(maximum(input, other), input, other)


@public_function("lucid", "Tensor", numpy="fmin")
def fmin(input: Any, other: Any) -> Any:
    """The lesser of two elements; if one is nan, the other."""
    return ignore_nan(minimum(input, other), input, other)


def ignore_nan(chosen: Any, x: Any, other: Any) -> Any:
    """Return `chosen`, or the operand that is not nan where the other is."""
    if chosen.dtype.kind != "f":
        return chosen
    x, other = promote_tensors(x, other)
    return where(x != x, other, where(other != other, x, chosen))


@public_function("lucid", "Tensor", inplace=True)
def heaviside(input: Any, values: Any) -> Any:
    """0 below 0, 1 above and `values` where `input` is 0, elementwise. The derivative is 0.

    >>> import lucid
    >>> lucid.heaviside(lucid.tensor([-1.0, 0.0, 2.0]), 0.5)
    Tensor([0. , 0.5, 1. ])
    """
    x, values = promote_tensors(input, values)
    if x.dtype.kind == "c":
        raise dtype_error("heaviside", x.dtype, "complex numbers have no order")
    return where(x == 0, values, cast(x > 0, x.dtype))


@public_function("lucid", "Tensor")
def fill(input: Any, value: Any) -> Any:
    """A tensor of the shape and dtype of `input` filled with `value`, a number or 0-d tensor."""
    from lucid.ops.shape.creation import full_like

    return full_like(input, value)


@public_function("lucid", "Tensor")
def isreal(input: Any) -> Any:
    """True where the imaginary part is 0, elementwise; always true for real dtypes."""
    from lucid.ops.shape.creation import ones_like

    x = as_tensor(input)
    return x.imag == 0 if x.dtype.kind == "c" else ones_like(x, dtype="bool")


def promote_real_floating(name: str, *xs: Any) -> list[Any]:
    """Promote operands to one real floating dtype; integers become the default float dtype."""
    out = promote_tensors(*xs, floating=True)
    if out[0].dtype.kind == "c":
        raise DTypeError(f"{name}: operand of dtype {result_type(*xs)}; it takes real dtypes")
    return out
