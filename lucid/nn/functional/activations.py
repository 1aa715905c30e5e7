"""Activation functions, made of primitives, with PyTorch's derivative at each kink.

When compiled, each fuses into the kernel around it. With `inplace=True` the result is written to
the input.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.nn.functional.arguments import as_real, check_choice, check_number
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import aliases, clear_errors, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise import conditional
from lucid.ops.elementwise.arithmetic import abs, sgn
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, expm1, log, log1p, logaddexp, sigmoid
from lucid.ops.elementwise.trigonometric import tanh
from lucid.ops.higher_order.expected_call import expect_calls
from lucid.ops.higher_order.region import compile_when_hot
from lucid.ops.nn.softmax import log_softmax as log_softmax
from lucid.ops.nn.softmax import softmax as softmax
from lucid.ops.reduce.extrema import argmax
from lucid.ops.shape.creation import arange
from lucid.ops.shape.movement import slice_axis
from lucid.ops.special.error_and_gamma import erfc
from lucid.public.declare import public
from lucid.random import rand_like
from lucid.tape.node import Traced
from lucid.tensors.inplace import in_place

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def as_ordered(name: str, x: Any) -> Any:
    """Return `x` as a tensor of integers or real numbers; integers stay integers."""
    x = as_tensor(x)
    if x.dtype.kind in "iuf":
        return x
    raise dtype_error(name, x.dtype, "it takes integers and floating numbers")


def maybe_inplace(
    name: str, function: Callable[..., Any], input: Any, inplace: Any, *args: Any
) -> Any:
    """Return `function(input, *args)`, written to `input` if `inplace` is true."""
    if not inplace:
        return function(input, *args)
    return inplace_variant(function, name + "_")(input, *args)


def inplace_variant(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the variant of an activation that writes its result to its input."""
    method = in_place(function, name=name)

    def write(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Traced):
            facts = f"{type(input).__name__} cannot be written in place; pass a Tensor"
            raise ArgumentError(f"{name}: {facts}")
        return method(input, *args, **kwargs)

    return write


def writes_input(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `relu_` of `relu`: the call with `inplace=True`, which is no parameter of its own."""

    @clear_errors
    @functools.wraps(function)
    def write(*args: Any, **kwargs: Any) -> Any:
        return function(*signature.bind(*args, **kwargs).args, inplace=True)

    plain = inspect.signature(function)
    signature = plain.replace(parameters=[*plain.parameters.values()][:-1])  # `inplace` is the last
    name = function.__name__ + "_"
    for call in (write, write.__wrapped__):  # type: ignore[attr-defined]
        call.__name__ = call.__qualname__ = name
        call.__doc__ = f"`{name[:-1]}` in place: the result is stored in the tensor itself."
        call.__signature__ = signature  # type: ignore[attr-defined]
    return write


@public_function("nn.functional")
@expect_calls()
def relu(input: Any, inplace: bool = False) -> Any:
    """max(x, 0); the derivative at 0 is 0."""
    return maybe_inplace("relu", conditional.relu, input, inplace)


@public_function("nn.functional")
def relu6(input: Any, inplace: bool = False) -> Any:
    """min(max(x, 0), 6); the derivative at 0 and at 6 is 0."""
    return maybe_inplace("relu6", _clip, input, inplace, 0, 6, "relu6")


@public_function("nn.functional")
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Clip x to [min_val, max_val]; the derivative is 0 at both bounds and beyond."""
    if not check_number("hardtanh", min_val, "min_val") <= check_number(
        "hardtanh", max_val, "max_val"
    ):
        raise ArgumentError(f"hardtanh: min_val={min_val} is greater than max_val={max_val}")
    return maybe_inplace("hardtanh", _clip, input, inplace, min_val, max_val, "hardtanh")


@compile_when_hot
def _clip(x: Any, low: Any, high: Any, name: str) -> Any:
    x = as_ordered(name, x)
    if x.dtype.kind in "iu":
        low, high = int(low), int(high)
    return where(x <= low, low, where(x >= high, high, x))


@public_function("lucid", "nn.functional")
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """x where it is above the threshold, `value` elsewhere."""
    check_number("threshold", threshold, "threshold")
    check_number("threshold", value, "value")
    return maybe_inplace("threshold", _threshold, input, inplace, threshold, value)


@compile_when_hot
def _threshold(x: Any, threshold: Any, value: Any) -> Any:
    x = as_ordered("threshold", x)
    return where(x <= threshold, value, x)


@public_function("nn.functional")
@expect_calls()
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x above 0, `negative_slope * x` elsewhere.

    >>> import lucid
    >>> lucid.nn.functional.leaky_relu(lucid.tensor([-2.0, 3.0]), 0.1)
    Tensor([-0.2,  3. ])
    """
    check_number("leaky_relu", negative_slope, "negative_slope")
    return maybe_inplace("leaky_relu", _leaky_relu, input, inplace, negative_slope, "leaky_relu")


@compile_when_hot
def _leaky_relu(x: Any, slope: Any, name: str) -> Any:
    x = as_real(name, x)
    return where(x > 0, x, x * slope)


@public_function("lucid", "Tensor", "nn.functional")
@compile_when_hot
def prelu(input: Any, weight: Any) -> Any:
    """x above 0, `weight * x` elsewhere, with one weight or one per channel (axis 1)."""
    x, weight = as_real("prelu", input), as_real("prelu", weight)
    if weight.dtype != x.dtype:
        facts = f"input of dtype {x.dtype} and weight of {weight.dtype}; cast one first"
        raise DTypeError(f"prelu: {facts}")
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        facts = f"weight of shape {weight.shape} for {channels} channels of input {x.shape}"
        raise ShapeError(f"prelu: {facts}; give one number or one per channel")
    if weight.numel() != 1:
        weight = weight.reshape(-1, *[1] * (x.ndim - 2))
    elif weight.ndim > x.ndim:
        weight = weight.reshape(())
    return where(x > 0, x, weight * x)


@public_function("lucid", "nn.functional")
def rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """x above 0, elsewhere x times a slope drawn from [lower, upper), their mean in evaluation."""
    lower, upper = check_number("rrelu", lower, "lower"), check_number("rrelu", upper, "upper")
    if not lower <= upper:
        raise ArgumentError(f"rrelu: lower={lower} is greater than upper={upper}")
    return maybe_inplace("rrelu", _rrelu, input, inplace, lower, upper, training)


def _rrelu(x: Any, lower: float, upper: float, training: Any) -> Any:
    if not training:
        return _leaky_relu(x, (lower + upper) / 2, "rrelu")
    x = as_real("rrelu", x)
    return where(x > 0, x, x * (rand_like(x) * (upper - lower) + lower))


@public_function("nn.functional")
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x above 0, alpha (eˣ - 1) elsewhere."""
    return maybe_inplace(
        "elu", _elu, input, inplace, check_number("elu", alpha, "alpha"), 1.0, 1.0, "elu"
    )


@public_function("lucid", "nn.functional")
def selu(input: Any, inplace: bool = False) -> Any:
    """`scale * elu(x, alpha)` with the constants that preserve mean 0 and variance 1."""
    return maybe_inplace("selu", _elu, input, inplace, SELU_ALPHA, SELU_SCALE, 1.0, "selu")


@public_function("lucid", "nn.functional")
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x above 0, alpha (exp(x / alpha) - 1) elsewhere; smooth for every alpha."""
    alpha = check_number("celu", alpha, "alpha")
    if alpha == 0:
        raise ArgumentError("celu: alpha must not be 0")
    return maybe_inplace("celu", _elu, input, inplace, alpha, 1.0, alpha, "celu")


@compile_when_hot
def _elu(x: Any, alpha: float, scale: float, width: float, name: str) -> Any:
    x = as_real(name, x)
    above = x if scale == 1 else x * scale
    return where(x > 0, above, expm1(x if width == 1 else x / width) * (alpha * scale))


@public_function("nn.functional")
@compile_when_hot
def gelu(input: Any, approximate: str = "none") -> Any:
    """x Φ(x), with Φ the normal distribution function, or its tanh approximation.

    >>> import lucid
    >>> lucid.nn.functional.gelu(lucid.tensor([-1.0, 0.0, 1.0]))
    Tensor([-0.15865526,  0.        ,  0.8413447 ])
    """
    x = as_real("gelu", input)
    if check_choice("gelu", approximate, "approximate", ("none", "tanh")) == "none":
        return x * (0.5 * erfc(x * -math.sqrt(0.5)))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + tanh(inner))


@public_function("nn.functional")
@aliases(dim="axis")
@compile_when_hot
def glu(input: Any, dim: int = -1) -> Any:
    """The first half along `dim` times the sigmoid of the second half."""
    x = as_real("glu", input)
    axis = canonicalize_axis("glu", dim, x.ndim)
    if not x.ndim or x.shape[axis] % 2:
        facts = f"input of shape {x.shape} cannot be halved along axis {axis}"
        raise ShapeError(f"glu: {facts}; its size there must be even")
    half = x.shape[axis] // 2
    first = slice_axis(x, axis, 0, half)
    return first * sigmoid(slice_axis(x, axis, half, 2 * half))


@public_function("nn.functional")
def silu(input: Any, inplace: bool = False) -> Any:
    """x sigmoid(x), also called swish."""
    return maybe_inplace("silu", _silu, input, inplace)


@compile_when_hot
def _silu(x: Any) -> Any:
    x = to_floating(x)
    return x * sigmoid(x)


@public_function("nn.functional")
def mish(input: Any, inplace: bool = False) -> Any:
    """x tanh(log(1 + eˣ))."""
    return maybe_inplace("mish", _mish, input, inplace)


@compile_when_hot
def _mish(x: Any) -> Any:
    x = as_real("mish", x)
    return x * tanh(logaddexp(x, 0.0))


@public_function("nn.functional")
def hardswish(input: Any, inplace: bool = False) -> Any:
    """x relu6(x + 3) / 6; the derivative is 0 up to -3 and 1 from 3 on."""
    return maybe_inplace("hardswish", _hardswish, input, inplace)


@compile_when_hot
def _hardswish(x: Any) -> Any:
    x = as_real("hardswish", x)
    return where(x >= 3, x, x * clamp(_hardsigmoid(x), 0.0))


@public_function("nn.functional")
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """relu6(x + 3) / 6."""
    return maybe_inplace("hardsigmoid", _hardsigmoid, input, inplace)


@compile_when_hot
def _hardsigmoid(x: Any) -> Any:
    x = as_real("hardsigmoid", x)
    return where(x <= -3, 0.0, where(x >= 3, 1.0, (x + 3) / 6))


@public_function("lucid", "Tensor", "nn.functional")
@compile_when_hot
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """x outside [-lambd, lambd], 0 inside."""
    x, lambd = as_real("hardshrink", input), check_number("hardshrink", lambd, "lambd")
    return where((x >= -lambd) & (x <= lambd), 0.0, x)


@public_function("nn.functional")
@compile_when_hot
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """Shrink x toward 0 by lambd; 0 inside [-lambd, lambd]."""
    x, lambd = as_real("softshrink", input), check_number("softshrink", lambd, "lambd")
    if not lambd >= 0:
        raise ArgumentError(f"softshrink: lambd={lambd}; it must not be negative")
    return x - clamp(x, -lambd, lambd)


@public_function("nn.functional")
@compile_when_hot
def tanhshrink(input: Any) -> Any:
    """x - tanh(x)."""
    x = to_floating(input)
    return x - tanh(x)


@public_function("nn.functional")
@compile_when_hot
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta x)) / beta, a smooth relu; x itself where beta x exceeds the threshold.

    Above 80 (10 in float16) both are the same number, so nothing overflows.
    """
    x, beta = as_real("softplus", input), check_number("softplus", beta, "beta")
    if beta == 0:
        raise ArgumentError("softplus: beta must not be 0")
    scaled = x if beta == 1 else x * beta
    limit = min(
        check_number("softplus", threshold, "threshold"), 10 if x.dtype.itemsize == 2 else 80
    )
    above = scaled > limit
    smooth = log1p(exp(where(above, 0.0, scaled)))
    return where(above, x, smooth if beta == 1 else smooth / beta)


@public_function("nn.functional")
@compile_when_hot
def softsign(input: Any) -> Any:
    """x / (1 + |x|), between -1 and 1.

    For |x| > 1 it is computed as ±(1 - 1 / (1 + |x|)), whose derivative does not cancel: it is
    exact at 1e4, and ±1 with derivative 0 at ±inf.
    """
    x = to_floating(input)
    size = abs(x)
    if x.dtype.kind == "c":
        return x / (1 + size)
    return where(size < 1, x / (1 + size), sgn(x) * (1 - 1 / (1 + size)))


@public_function("nn.functional")
@compile_when_hot
def logsigmoid(input: Any) -> Any:
    """log(sigmoid(x)) = -log(1 + exp(-x)), exact even where sigmoid(x) rounds to 0 or 1.

    >>> import lucid
    >>> lucid.nn.functional.logsigmoid(lucid.tensor([-1000.0, 1000.0])) + 0.0
    Tensor([-1000.,     0.])
    """
    return -logaddexp(-as_real("logsigmoid", input), 0.0)


@public_function("nn.functional")
def softmin(input: Any, dim: Any = None, dtype: Any = None, *, axis: Any = None) -> Any:
    """`softmax(-x)` along `dim`."""
    return softmax(-as_real("softmin", input), dim, axis=axis, dtype=dtype)


@public_function("nn.functional")
@aliases(dim="axis")
def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Draw from the relaxed categorical distribution: softmax((logits + noise) / tau).

    `hard` returns one-hot vectors with the gradient of the relaxed ones. `eps` is ignored, as in
    PyTorch.
    """
    x, tau = as_real("gumbel_softmax", logits), check_number("gumbel_softmax", tau, "tau")
    if tau == 0:
        raise ArgumentError("gumbel_softmax: tau must not be 0")
    axis = canonicalize_axis("gumbel_softmax", dim, x.ndim)
    uniform = rand_like(x).clamp(2.0**-26)
    noise = -log(-log1p(-uniform))
    soft = softmax((x + noise) / tau, axis)
    if not hard or not x.ndim:
        return soft
    sizes = [-1 if i == axis else 1 for i in range(x.ndim)]
    places = arange(x.shape[axis]).reshape(sizes)
    chosen = cast(places == argmax(soft, axis, True), x.dtype)
    return chosen - soft.detach() + soft


relu_ = public("nn.functional")(writes_input(relu))
hardtanh_ = public("nn.functional")(writes_input(hardtanh))
threshold_ = public("lucid", "nn.functional")(writes_input(threshold))
leaky_relu_ = public("nn.functional")(writes_input(leaky_relu))
rrelu_ = public("lucid", "nn.functional")(writes_input(rrelu))
elu_ = public("nn.functional")(writes_input(elu))
selu_ = public("lucid", "nn.functional")(writes_input(selu))
celu_ = public("lucid", "nn.functional")(writes_input(celu))
