"""Pooling layers."""

from __future__ import annotations

from typing import Any

import lucid.nn.functional as F
from lucid.nn.layers.function_layer import REQUIRED, FunctionLayer
from lucid.public.declare import public

WINDOW: dict[str, Any] = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
MAXIMUM = {**WINDOW, "dilation": 1, "return_indices": False, "ceil_mode": False}
AVERAGE = {**WINDOW, "ceil_mode": False, "count_include_pad": True}
AVERAGE_BY = {**AVERAGE, "divisor_override": None}
NORM = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}
ADAPTIVE = {"output_size": REQUIRED}
ADAPTIVE_MAXIMUM = {**ADAPTIVE, "return_indices": False}


@public("nn")
class MaxPool1d(FunctionLayer, function=F.max_pool1d, **MAXIMUM):
    """The maximum of every window of a sequence."""


@public("nn")
class MaxPool2d(FunctionLayer, function=F.max_pool2d, **MAXIMUM):
    """The maximum of every window of an image."""


@public("nn")
class MaxPool3d(FunctionLayer, function=F.max_pool3d, **MAXIMUM):
    """The maximum of every window of a volume."""


@public("nn")
class AvgPool1d(FunctionLayer, function=F.avg_pool1d, **AVERAGE):
    """The average of every window of a sequence."""


@public("nn")
class AvgPool2d(FunctionLayer, function=F.avg_pool2d, **AVERAGE_BY):
    """The average of every window of an image."""


@public("nn")
class AvgPool3d(FunctionLayer, function=F.avg_pool3d, **AVERAGE_BY):
    """The average of every window of a volume."""


@public("nn")
class LPPool1d(FunctionLayer, function=F.lp_pool1d, **NORM):
    """The p-norm of every window of a sequence."""


@public("nn")
class LPPool2d(FunctionLayer, function=F.lp_pool2d, **NORM):
    """The p-norm of every window of an image."""


@public("nn")
class LPPool3d(FunctionLayer, function=F.lp_pool3d, **NORM):
    """The p-norm of every window of a volume."""


@public("nn")
class AdaptiveMaxPool1d(FunctionLayer, function=F.adaptive_max_pool1d, **ADAPTIVE_MAXIMUM):
    """The maximum of `output_size` windows of a sequence."""


@public("nn")
class AdaptiveMaxPool2d(FunctionLayer, function=F.adaptive_max_pool2d, **ADAPTIVE_MAXIMUM):
    """The maximum of `output_size` windows of an image."""


@public("nn")
class AdaptiveMaxPool3d(FunctionLayer, function=F.adaptive_max_pool3d, **ADAPTIVE_MAXIMUM):
    """The maximum of `output_size` windows of a volume."""


@public("nn")
class AdaptiveAvgPool1d(FunctionLayer, function=F.adaptive_avg_pool1d, **ADAPTIVE):
    """The average of `output_size` windows of a sequence."""


@public("nn")
class AdaptiveAvgPool2d(FunctionLayer, function=F.adaptive_avg_pool2d, **ADAPTIVE):
    """The average of `output_size` windows of an image."""


@public("nn")
class AdaptiveAvgPool3d(FunctionLayer, function=F.adaptive_avg_pool3d, **ADAPTIVE):
    """The average of `output_size` windows of a volume."""


class FractionalPooling(
    FunctionLayer,
    hidden_in_repr=("_random_samples",),
    kernel_size=REQUIRED,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """The maximum of randomly placed windows."""


@public("nn")
class FractionalMaxPool2d(FractionalPooling, function=F.fractional_max_pool2d):
    """The maximum of randomly placed windows of an image."""


@public("nn")
class FractionalMaxPool3d(FractionalPooling, function=F.fractional_max_pool3d):
    """The maximum of randomly placed windows of a volume."""


class Unpooling(FunctionLayer, **WINDOW):
    """The inverse of max pooling: elements at their indices, zeros elsewhere."""

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return type(self).function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


@public("nn")
class MaxUnpool1d(Unpooling, function=F.max_unpool1d):
    """The inverse of max pooling over sequences."""


@public("nn")
class MaxUnpool2d(Unpooling, function=F.max_unpool2d):
    """The inverse of max pooling over images."""


@public("nn")
class MaxUnpool3d(Unpooling, function=F.max_unpool3d):
    """The inverse of max pooling over volumes."""
