"""Activations: functions of every element, made of primitives, with PyTorch's choice at each kink.

Each fuses into the kernel around it when compiled. Those with `inplace` store the result in their
operand where that is true.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.nn.functional.arguments import choice, number, real
from lucid.ops.core.apply import refuse
from lucid.ops.core.arguments import also, explained
from lucid.ops.core.axes import axis_of
from lucid.ops.core.promote import as_tensor, to_floating
from lucid.ops.elementwise import conditional
from lucid.ops.elementwise.arithmetic import abs, sgn
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, expm1, log1p, logaddexp, sigmoid
from lucid.ops.elementwise.trigonometric import tanh
from lucid.ops.higher_order.region import fused_when_hot
from lucid.ops.shape.movement import slice_axis
from lucid.ops.special.error_and_gamma import erfc
from lucid.random import rand_like
from lucid.tape.node import Traced
from lucid.tensors.inplace import in_place

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def ordered(name: str, x: Any) -> Any:
    """`x` as a tensor of numbers that have an order: integers stay integers."""
    x = as_tensor(x)
    if x.dtype.kind in "iuf":
        return x
    raise refuse(name, x.dtype, "it takes integers and floating numbers")


def run(name: str, function: Callable[..., Any], input: Any, inplace: Any, *args: Any) -> Any:
    """`function(input, *args)`, stored in `input` where `inplace` is true."""
    if not inplace:
        return function(input, *args)
    return stored(function, name + "_")(input, *args)


def stored(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The form of an activation that stores its result in its operand."""
    method = in_place(function, name=name)

    def write(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Traced):
            facts = f"{type(input).__name__} cannot be written to; it takes a Tensor"
            raise ArgumentError(f"{name}: {facts}{at_line()}")
        return method(input, *args, **kwargs)

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"`{name[:-1]}` in place: the result is stored in the tensor itself."
    write.__wrapped__ = function  # type: ignore[attr-defined]  # the signature is its
    return write


@explained
def relu(input: Any, inplace: bool = False) -> Any:
    """max(x, 0); the derivative at 0 is 0."""
    return run("relu", conditional.relu, input, inplace)


@explained
def relu6(input: Any, inplace: bool = False) -> Any:
    """min(max(x, 0), 6); the derivative at 0 and at 6 is 0."""
    return run("relu6", _held, input, inplace, 0, 6, "relu6")


@explained
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """x held between two numbers; the derivative is 0 at both of them and beyond."""
    if not number("hardtanh", min_val, "min_val") <= number("hardtanh", max_val, "max_val"):
        facts = f"min_val={min_val} is greater than max_val={max_val}"
        raise ArgumentError(f"hardtanh: {facts}{at_line()}")
    return run("hardtanh", _held, input, inplace, min_val, max_val, "hardtanh")


@fused_when_hot
def _held(x: Any, low: Any, high: Any, name: str) -> Any:
    x = ordered(name, x)
    if x.dtype.kind in "iu":
        low, high = int(low), int(high)
    return where(x <= low, low, where(x >= high, high, x))


@explained
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """x where it is above the threshold, else `value`."""
    number("threshold", threshold, "threshold")
    number("threshold", value, "value")
    return run("threshold", _threshold, input, inplace, threshold, value)


@fused_when_hot
def _threshold(x: Any, threshold: Any, value: Any) -> Any:
    x = ordered("threshold", x)
    return where(x <= threshold, value, x)


@explained
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x above 0, `negative_slope * x` elsewhere.

    >>> import lucid
    >>> lucid.nn.functional.leaky_relu(lucid.tensor([-2.0, 3.0]), 0.1)
    Tensor([-0.2,  3. ])
    """
    number("leaky_relu", negative_slope, "negative_slope")
    return run("leaky_relu", _leaky, input, inplace, negative_slope, "leaky_relu")


@fused_when_hot
def _leaky(x: Any, slope: Any, name: str) -> Any:
    x = real(name, x)
    return where(x > 0, x, x * slope)


@explained
@fused_when_hot
def prelu(input: Any, weight: Any) -> Any:
    """x above 0, `weight * x` elsewhere: one weight, or one for each channel (axis 1)."""
    x, weight = real("prelu", input), real("prelu", weight)
    if weight.dtype != x.dtype:
        facts = f"input of dtype {x.dtype} and weight of {weight.dtype}; cast one first"
        raise DTypeError(f"prelu: {facts}{at_line()}")
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        facts = f"weight of shape {weight.shape} for {channels} channels of input {x.shape}"
        raise ShapeError(f"prelu: {facts}; it is one number or one for each{at_line()}")
    if weight.numel() != 1:
        weight = weight.reshape(-1, *[1] * (x.ndim - 2))
    elif weight.ndim > x.ndim:
        weight = weight.reshape(())
    return where(x > 0, x, weight * x)


@explained
def rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """x above 0, elsewhere x times a slope drawn from [lower, upper): their mean, not training."""
    lower, upper = number("rrelu", lower, "lower"), number("rrelu", upper, "upper")
    if not lower <= upper:
        raise ArgumentError(f"rrelu: lower={lower} is greater than upper={upper}{at_line()}")
    return run("rrelu", _rrelu, input, inplace, lower, upper, training)


def _rrelu(x: Any, lower: float, upper: float, training: Any) -> Any:
    if not training:
        return _leaky(x, (lower + upper) / 2, "rrelu")
    x = real("rrelu", x)
    return where(x > 0, x, x * (rand_like(x) * (upper - lower) + lower))


@explained
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x above 0, alpha (eˣ - 1) elsewhere."""
    return run("elu", _elu, input, inplace, number("elu", alpha, "alpha"), 1.0, 1.0, "elu")


@explained
def selu(input: Any, inplace: bool = False) -> Any:
    """`scale * elu(x, alpha)` with the numbers that keep mean 0 and variance 1."""
    return run("selu", _elu, input, inplace, SELU_ALPHA, SELU_SCALE, 1.0, "selu")


@explained
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x above 0, alpha (exp(x / alpha) - 1) elsewhere: smooth also for alpha other than 1."""
    alpha = number("celu", alpha, "alpha")
    if alpha == 0:
        raise ArgumentError(f"celu: alpha is 0; it divides{at_line()}")
    return run("celu", _elu, input, inplace, alpha, 1.0, alpha, "celu")


@fused_when_hot
def _elu(x: Any, alpha: float, scale: float, width: float, name: str) -> Any:
    x = real(name, x)
    above = x if scale == 1 else x * scale
    return where(x > 0, above, expm1(x if width == 1 else x / width) * (alpha * scale))


@explained
@fused_when_hot
def gelu(input: Any, approximate: str = "none") -> Any:
    """x Φ(x), where Φ is the normal distribution's function; or its approximation by tanh.

    >>> import lucid
    >>> lucid.nn.functional.gelu(lucid.tensor([-1.0, 0.0, 1.0]))
    Tensor([-0.15865526,  0.        ,  0.8413447 ])
    """
    x = real("gelu", input)
    if choice("gelu", approximate, "approximate", ("none", "tanh")) == "none":
        return x * (0.5 * erfc(x * -math.sqrt(0.5)))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + tanh(inner))


@explained
@also(dim="axis")
@fused_when_hot
def glu(input: Any, dim: int = -1) -> Any:
    """The first half along `dim` times the sigmoid of the second."""
    x = real("glu", input)
    axis = axis_of("glu", dim, x.ndim)
    if not x.ndim or x.shape[axis] % 2:
        facts = f"input of shape {x.shape} has no two halves along axis {axis}"
        raise ShapeError(f"glu: {facts}; its size there is even{at_line()}")
    half = x.shape[axis] // 2
    first = slice_axis(x, axis, 0, half)
    return first * sigmoid(slice_axis(x, axis, half, 2 * half))


@explained
def silu(input: Any, inplace: bool = False) -> Any:
    """x sigmoid(x), also called swish."""
    return run("silu", _silu, input, inplace)


@fused_when_hot
def _silu(x: Any) -> Any:
    x = to_floating(x)
    return x * sigmoid(x)


@explained
def mish(input: Any, inplace: bool = False) -> Any:
    """x tanh(log(1 + eˣ))."""
    return run("mish", _mish, input, inplace)


@fused_when_hot
def _mish(x: Any) -> Any:
    x = real("mish", x)
    return x * tanh(logaddexp(x, 0.0))


@explained
def hardswish(input: Any, inplace: bool = False) -> Any:
    """x relu6(x + 3) / 6: 0 up to -3, x from 3 on, with derivatives 0 and 1 there."""
    return run("hardswish", _hardswish, input, inplace)


@fused_when_hot
def _hardswish(x: Any) -> Any:
    x = real("hardswish", x)
    return where(x >= 3, x, x * clamp(_hardsigmoid(x), 0.0))


@explained
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """relu6(x + 3) / 6."""
    return run("hardsigmoid", _hardsigmoid, input, inplace)


@fused_when_hot
def _hardsigmoid(x: Any) -> Any:
    x = real("hardsigmoid", x)
    return where(x <= -3, 0.0, where(x >= 3, 1.0, (x + 3) / 6))


@explained
@fused_when_hot
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """x outside of [-lambd, lambd], 0 inside."""
    x, lambd = real("hardshrink", input), number("hardshrink", lambd, "lambd")
    return where((x >= -lambd) & (x <= lambd), 0.0, x)


@explained
@fused_when_hot
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """x moved towards 0 by lambd, and 0 where it would pass it."""
    x, lambd = real("softshrink", input), number("softshrink", lambd, "lambd")
    if not lambd >= 0:
        raise ArgumentError(f"softshrink: lambd={lambd}; it is not negative{at_line()}")
    return x - clamp(x, -lambd, lambd)


@explained
@fused_when_hot
def tanhshrink(input: Any) -> Any:
    """x - tanh(x)."""
    x = to_floating(input)
    return x - tanh(x)


@explained
@fused_when_hot
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta x)) / beta, a smooth relu; x itself where beta x is above the threshold.

    Above 80 (10 in float16) the two are the same number, so that nothing overflows.
    """
    x, beta = real("softplus", input), number("softplus", beta, "beta")
    if beta == 0:
        raise ArgumentError(f"softplus: beta is 0; it divides{at_line()}")
    scaled = x if beta == 1 else x * beta
    limit = min(number("softplus", threshold, "threshold"), 10 if x.dtype.itemsize == 2 else 80)
    above = scaled > limit
    smooth = log1p(exp(where(above, 0.0, scaled)))
    return where(above, x, smooth if beta == 1 else smooth / beta)


@explained
@fused_when_hot
def softsign(input: Any) -> Any:
    """x / (1 + |x|), from -1 to 1.

    Beyond 1 it is ±(1 - 1 / (1 + |x|)), whose derivative does not cancel: it is exact at 1e4, and
    ±1 with derivative 0 at ±inf.
    """
    x = to_floating(input)
    size = abs(x)
    if x.dtype.kind == "c":
        return x / (1 + size)
    return where(size < 1, x / (1 + size), sgn(x) * (1 - 1 / (1 + size)))


@explained
@fused_when_hot
def logsigmoid(input: Any) -> Any:
    """log(sigmoid(x)) = -log(1 + exp(-x)), exact also where sigmoid(x) is 0 or 1.

    >>> import lucid
    >>> lucid.nn.functional.logsigmoid(lucid.tensor([-1000.0, 1000.0])) + 0.0
    Tensor([-1000.,     0.])
    """
    return -logaddexp(-real("logsigmoid", input), 0.0)


relu_ = stored(relu, "relu_")
hardtanh_ = stored(hardtanh, "hardtanh_")
threshold_ = stored(threshold, "threshold_")
leaky_relu_ = stored(leaky_relu, "leaky_relu_")
rrelu_ = stored(rrelu, "rrelu_")
elu_ = stored(elu, "elu_")
selu_ = stored(selu, "selu_")
celu_ = stored(celu, "celu_")
