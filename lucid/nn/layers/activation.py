"""Activations as layers."""

from __future__ import annotations

from typing import Any

import lucid.nn.functional as F
from lucid.nn.layers.function_layer import REQUIRED, Applied
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.ops.core.arguments import placed
from lucid.ops.shape.creation import full


class ReLU(Applied):
    """max(x, 0)."""

    function = F.relu
    settings = {"inplace": False}


class ReLU6(Applied):
    """min(max(x, 0), 6)."""

    function = F.relu6
    settings = {"inplace": False}


class LeakyReLU(Applied):
    """x where it is positive, else `negative_slope` x."""

    function = F.leaky_relu
    settings = {"negative_slope": 0.01, "inplace": False}


class ELU(Applied):
    """x where it is positive, else alpha (eˣ - 1)."""

    function = F.elu
    settings = {"alpha": 1.0, "inplace": False}


class SELU(Applied):
    """ELU scaled so that means and variances stay."""

    function = F.selu
    settings = {"inplace": False}


class CELU(Applied):
    """x where it is positive, else alpha (exp(x / alpha) - 1)."""

    function = F.celu
    settings = {"alpha": 1.0, "inplace": False}


class GELU(Applied):
    """x Φ(x), with Φ the normal distribution function."""

    function = F.gelu
    settings = {"approximate": "none"}


class SiLU(Applied):
    """x σ(x)."""

    function = F.silu
    settings = {"inplace": False}


class Mish(Applied):
    """x tanh(softplus(x))."""

    function = F.mish
    settings = {"inplace": False}


class GLU(Applied):
    """one half of an axis times the sigmoid of the other."""

    function = F.glu
    settings = {"dim": -1}


class Hardswish(Applied):
    """x relu6(x + 3) / 6."""

    function = F.hardswish
    settings = {"inplace": False}


class Hardsigmoid(Applied):
    """relu6(x + 3) / 6."""

    function = F.hardsigmoid
    settings = {"inplace": False}


class Hardtanh(Applied):
    """x between `min_val` and `max_val`."""

    function = F.hardtanh
    settings = {"min_val": -1.0, "max_val": 1.0, "inplace": False}


class Hardshrink(Applied):
    """x, and 0 between -lambd and lambd."""

    function = F.hardshrink
    settings = {"lambd": 0.5}


class Softshrink(Applied):
    """x moved towards 0 by lambd."""

    function = F.softshrink
    settings = {"lambd": 0.5}


class Tanhshrink(Applied):
    """x - tanh(x)."""

    function = F.tanhshrink


class Softplus(Applied):
    """log(1 + exp(beta x)) / beta."""

    function = F.softplus
    settings = {"beta": 1.0, "threshold": 20.0}


class Softsign(Applied):
    """x / (1 + |x|)."""

    function = F.softsign


class LogSigmoid(Applied):
    """log σ(x)."""

    function = F.logsigmoid


class Sigmoid(Applied):
    """1 / (1 + e⁻ˣ)."""

    function = F.sigmoid


class Tanh(Applied):
    """The hyperbolic tangent."""

    function = F.tanh


class Threshold(Applied):
    """x where it is above `threshold`, else `value`."""

    function = F.threshold
    settings = {"threshold": REQUIRED, "value": REQUIRED, "inplace": False}


class Softmax(Applied):
    """exp(x) along an axis, scaled to the sum 1."""

    function = F.softmax
    settings = {"dim": None}


class Softmin(Applied):
    """The softmax of -x."""

    function = F.softmin
    settings = {"dim": None}


class LogSoftmax(Applied):
    """The logarithm of the softmax."""

    function = F.log_softmax
    settings = {"dim": None}


class Softmax2d(Applied):
    """The softmax over the channels of images."""

    @staticmethod
    def function(x: Any) -> Any:  # type: ignore[override]
        return F.softmax(x, -3)


class RReLU(Module):
    """x where it is positive, else x times a slope that is random while training."""

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class PReLU(Module):
    """x where it is positive, else x times a slope that is learned, one or one a channel."""

    @placed
    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype))

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
