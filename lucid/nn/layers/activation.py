"""Activation functions as layers."""

from __future__ import annotations

from typing import Any

import lucid.nn.functional as F
from lucid.nn.layers.function_layer import REQUIRED, FunctionLayer
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.ops.core.arguments import accepts_device
from lucid.ops.shape.creation import full
from lucid.public.declare import public


@public("nn")
class ReLU(FunctionLayer, function=F.relu, inplace=False):
    """max(x, 0)."""


@public("nn")
class ReLU6(FunctionLayer, function=F.relu6, inplace=False):
    """min(max(x, 0), 6)."""


@public("nn")
class LeakyReLU(FunctionLayer, function=F.leaky_relu, negative_slope=0.01, inplace=False):
    """x where it is positive, `negative_slope` x elsewhere."""


@public("nn")
class ELU(FunctionLayer, function=F.elu, alpha=1.0, inplace=False):
    """x where it is positive, alpha (eˣ - 1) elsewhere."""


@public("nn")
class SELU(FunctionLayer, function=F.selu, inplace=False):
    """ELU scaled to preserve mean 0 and variance 1."""


@public("nn")
class CELU(FunctionLayer, function=F.celu, alpha=1.0, inplace=False):
    """x where it is positive, alpha (exp(x / alpha) - 1) elsewhere."""


@public("nn")
class GELU(FunctionLayer, function=F.gelu, approximate="none"):
    """x Φ(x), with Φ the normal distribution function."""


@public("nn")
class SiLU(FunctionLayer, function=F.silu, inplace=False):
    """x σ(x)."""


@public("nn")
class Mish(FunctionLayer, function=F.mish, inplace=False):
    """x tanh(softplus(x))."""


@public("nn")
class GLU(FunctionLayer, function=F.glu, dim=-1):
    """The first half of an axis times the sigmoid of the second half."""


@public("nn")
class Hardswish(FunctionLayer, function=F.hardswish, inplace=False):
    """x relu6(x + 3) / 6."""


@public("nn")
class Hardsigmoid(FunctionLayer, function=F.hardsigmoid, inplace=False):
    """relu6(x + 3) / 6."""


@public("nn")
class Hardtanh(FunctionLayer, function=F.hardtanh, min_val=-1.0, max_val=1.0, inplace=False):
    """x clipped to [min_val, max_val]."""


@public("nn")
class Hardshrink(FunctionLayer, function=F.hardshrink, lambd=0.5):
    """x outside [-lambd, lambd], 0 inside."""


@public("nn")
class Softshrink(FunctionLayer, function=F.softshrink, lambd=0.5):
    """x shrunk toward 0 by lambd."""


@public("nn")
class Tanhshrink(FunctionLayer, function=F.tanhshrink):
    """x - tanh(x)."""


@public("nn")
class Softplus(FunctionLayer, function=F.softplus, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta."""


@public("nn")
class Softsign(FunctionLayer, function=F.softsign):
    """x / (1 + |x|)."""


@public("nn")
class LogSigmoid(FunctionLayer, function=F.logsigmoid):
    """log σ(x)."""


@public("nn")
class Sigmoid(FunctionLayer, function=F.sigmoid):
    """1 / (1 + e⁻ˣ)."""


@public("nn")
class Tanh(FunctionLayer, function=F.tanh):
    """The hyperbolic tangent."""


@public("nn")
class Threshold(
    FunctionLayer, function=F.threshold, threshold=REQUIRED, value=REQUIRED, inplace=False
):
    """x where it is above `threshold`, `value` elsewhere."""


@public("nn")
class Softmax(FunctionLayer, function=F.softmax, dim=None):
    """exp(x) along an axis, scaled to sum to 1."""


@public("nn")
class Softmin(FunctionLayer, function=F.softmin, dim=None):
    """The softmax of -x."""


@public("nn")
class LogSoftmax(FunctionLayer, function=F.log_softmax, dim=None):
    """The logarithm of the softmax."""


@public("nn")
class Softmax2d(FunctionLayer, function=lambda x: F.softmax(x, -3)):
    """The softmax over the channels of images."""


@public("nn")
class RReLU(Module):
    """x where it is positive, elsewhere x times a slope that is random in training."""

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


@public("nn")
class PReLU(Module):
    """x where it is positive, elsewhere x times a learned slope, one or one per channel."""

    @accepts_device
    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype))

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
