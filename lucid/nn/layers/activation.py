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
class ReLU(FunctionLayer):
    """max(x, 0)."""

    function = F.relu
    settings = {"inplace": False}


@public("nn")
class ReLU6(FunctionLayer):
    """min(max(x, 0), 6)."""

    function = F.relu6
    settings = {"inplace": False}


@public("nn")
class LeakyReLU(FunctionLayer):
    """x where it is positive, `negative_slope` x elsewhere."""

    function = F.leaky_relu
    settings = {"negative_slope": 0.01, "inplace": False}


@public("nn")
class ELU(FunctionLayer):
    """x where it is positive, alpha (eˣ - 1) elsewhere."""

    function = F.elu
    settings = {"alpha": 1.0, "inplace": False}


@public("nn")
class SELU(FunctionLayer):
    """ELU scaled to preserve mean 0 and variance 1."""

    function = F.selu
    settings = {"inplace": False}


@public("nn")
class CELU(FunctionLayer):
    """x where it is positive, alpha (exp(x / alpha) - 1) elsewhere."""

    function = F.celu
    settings = {"alpha": 1.0, "inplace": False}


@public("nn")
class GELU(FunctionLayer):
    """x Φ(x), with Φ the normal distribution function."""

    function = F.gelu
    settings = {"approximate": "none"}


@public("nn")
class SiLU(FunctionLayer):
    """x σ(x)."""

    function = F.silu
    settings = {"inplace": False}


@public("nn")
class Mish(FunctionLayer):
    """x tanh(softplus(x))."""

    function = F.mish
    settings = {"inplace": False}


@public("nn")
class GLU(FunctionLayer):
    """The first half of an axis times the sigmoid of the second half."""

    function = F.glu
    settings = {"dim": -1}


@public("nn")
class Hardswish(FunctionLayer):
    """x relu6(x + 3) / 6."""

    function = F.hardswish
    settings = {"inplace": False}


@public("nn")
class Hardsigmoid(FunctionLayer):
    """relu6(x + 3) / 6."""

    function = F.hardsigmoid
    settings = {"inplace": False}


@public("nn")
class Hardtanh(FunctionLayer):
    """x clipped to [min_val, max_val]."""

    function = F.hardtanh
    settings = {"min_val": -1.0, "max_val": 1.0, "inplace": False}


@public("nn")
class Hardshrink(FunctionLayer):
    """x outside [-lambd, lambd], 0 inside."""

    function = F.hardshrink
    settings = {"lambd": 0.5}


@public("nn")
class Softshrink(FunctionLayer):
    """x shrunk toward 0 by lambd."""

    function = F.softshrink
    settings = {"lambd": 0.5}


@public("nn")
class Tanhshrink(FunctionLayer):
    """x - tanh(x)."""

    function = F.tanhshrink


@public("nn")
class Softplus(FunctionLayer):
    """log(1 + exp(beta x)) / beta."""

    function = F.softplus
    settings = {"beta": 1.0, "threshold": 20.0}


@public("nn")
class Softsign(FunctionLayer):
    """x / (1 + |x|)."""

    function = F.softsign


@public("nn")
class LogSigmoid(FunctionLayer):
    """log σ(x)."""

    function = F.logsigmoid


@public("nn")
class Sigmoid(FunctionLayer):
    """1 / (1 + e⁻ˣ)."""

    function = F.sigmoid


@public("nn")
class Tanh(FunctionLayer):
    """The hyperbolic tangent."""

    function = F.tanh


@public("nn")
class Threshold(FunctionLayer):
    """x where it is above `threshold`, `value` elsewhere."""

    function = F.threshold
    settings = {"threshold": REQUIRED, "value": REQUIRED, "inplace": False}


@public("nn")
class Softmax(FunctionLayer):
    """exp(x) along an axis, scaled to sum to 1."""

    function = F.softmax
    settings = {"dim": None}


@public("nn")
class Softmin(FunctionLayer):
    """The softmax of -x."""

    function = F.softmin
    settings = {"dim": None}


@public("nn")
class LogSoftmax(FunctionLayer):
    """The logarithm of the softmax."""

    function = F.log_softmax
    settings = {"dim": None}


@public("nn")
class Softmax2d(FunctionLayer):
    """The softmax over the channels of images."""

    @staticmethod
    def function(x: Any) -> Any:  # type: ignore[override]
        return F.softmax(x, -3)


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
