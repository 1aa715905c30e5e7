"""Elements of several tensors blended into one: addcmul, lerp, fmax, heaviside, ... No rules here.

They are compositions: derivatives, batching and compiled code follow from their parts.
"""

from __future__ import annotations

from typing import Any

from lucid.errors import DTypeError
from lucid.ir.source import at_line
from lucid.ops.core.apply import refuse
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor, cast, operand, promote_tensors, result_type
from lucid.ops.elementwise.arithmetic import add, divide, multiply, subtract
from lucid.ops.elementwise.conditional import clamp, maximum, minimum, where


@explained
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """`input + value * tensor1 * tensor2`, elementwise.

    >>> import lucid
    >>> lucid.addcmul(lucid.ones(2), lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]), value=2)
    Tensor([ 7., 17.])
    """
    product = multiply(tensor1, tensor2)
    return add(input, product if is_one(value) else multiply(product, value))


@explained
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """`input + value * tensor1 / tensor2`, elementwise; the division is a true one."""
    quotient = divide(tensor1, tensor2)
    return add(input, quotient if is_one(value) else multiply(quotient, value))


def is_one(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 1


@explained
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`other - alpha * input`, elementwise."""
    return subtract(other, input if is_one(alpha) else multiply(input, alpha))


@explained
def lerp(input: Any, end: Any, weight: Any) -> Any:
    """`input + weight * (end - input)`, elementwise: exactly `input` at weight 0 and `end` at 1.

    >>> import lucid
    >>> lucid.lerp(lucid.tensor([0.0, 1.0]), lucid.tensor([4.0, 5.0]), 0.25)
    Tensor([1., 2.])
    """
    x, end = promote_tensors(input, end)
    if x.dtype.kind not in "fc":
        raise refuse("lerp", x.dtype, "points between integers are not integers; cast first")
    way = end - x
    weight = operand(weight)
    if isinstance(weight, (bool, int, float, complex)):
        return x + weight * way if abs(weight) < 0.5 else end - (1 - weight) * way
    weight = cast(weight, x.dtype)
    near = abs(weight) < 0.5 if weight.dtype.kind == "f" else abs(weight.real) < 0.5
    return where(near, x + weight * way, end - (1 - weight) * way)


@explained
def clamp_min(input: Any, min: Any) -> Any:
    """`input`, but nowhere less than `min`, elementwise."""
    return clamp(input, min=min)


@explained
def clamp_max(input: Any, max: Any) -> Any:
    """`input`, but nowhere more than `max`, elementwise."""
    return clamp(input, max=max)


@explained
def fmax(input: Any, other: Any) -> Any:
    """The greater of two, elementwise; where one is nan, the other.

    >>> import lucid
    >>> lucid.fmax(lucid.tensor([1.0, lucid.nan]), lucid.tensor([2.0, 3.0]))
    Tensor([2., 3.])
    """
    return unless_nan(maximum(input, other), input, other)


@explained
def fmin(input: Any, other: Any) -> Any:
    """The lesser of two, elementwise; where one is nan, the other."""
    return unless_nan(minimum(input, other), input, other)


def unless_nan(chosen: Any, x: Any, other: Any) -> Any:
    if chosen.dtype.kind != "f":
        return chosen
    x, other = promote_tensors(x, other)
    return where(x != x, other, where(other != other, x, chosen))


@explained
def heaviside(input: Any, values: Any) -> Any:
    """0 below 0, 1 above and `values` where `input` is 0, elementwise. The step has slope 0.

    >>> import lucid
    >>> lucid.heaviside(lucid.tensor([-1.0, 0.0, 2.0]), 0.5)
    Tensor([0. , 0.5, 1. ])
    """
    x, values = promote_tensors(input, values)
    if x.dtype.kind == "c":
        raise refuse("heaviside", x.dtype, "complex numbers have no order")
    return where(x == 0, values, cast(x > 0, x.dtype))


@explained
def fill(input: Any, value: Any) -> Any:
    """One number, or a 0-d tensor, in the shape and dtype of `input`."""
    from lucid.ops.shape.creation import full_like

    return full_like(input, value)


@explained
def isreal(input: Any) -> Any:
    """True where the imaginary part is 0, elementwise; for real dtypes everywhere."""
    from lucid.ops.shape.creation import ones_like

    x = as_tensor(input)
    return x.imag == 0 if x.dtype.kind == "c" else ones_like(x, dtype="bool")


def common_floating(name: str, *xs: Any) -> list[Any]:
    """Operands of one real floating dtype; integers become the default float."""
    out = promote_tensors(*xs, floating=True)
    if out[0].dtype.kind == "c":
        raise DTypeError(f"{name}: operand of dtype {result_type(*xs)}; it takes reals{at_line()}")
    return out
