"""Pooling layers."""

from __future__ import annotations

from typing import Any

import lucid.nn.functional as F
from lucid.nn.layers.function_layer import REQUIRED, FunctionLayer
from lucid.public.declare import public


@public("nn")
class MaxPool1d(FunctionLayer):
    """The maximum of every window of a sequence."""

    function = F.max_pool1d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "dilation": 1,
        "return_indices": False,
        "ceil_mode": False,
    }


@public("nn")
class MaxPool2d(FunctionLayer):
    """The maximum of every window of an image."""

    function = F.max_pool2d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "dilation": 1,
        "return_indices": False,
        "ceil_mode": False,
    }


@public("nn")
class MaxPool3d(FunctionLayer):
    """The maximum of every window of a volume."""

    function = F.max_pool3d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "dilation": 1,
        "return_indices": False,
        "ceil_mode": False,
    }


@public("nn")
class AvgPool1d(FunctionLayer):
    """The average of every window of a sequence."""

    function = F.avg_pool1d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "ceil_mode": False,
        "count_include_pad": True,
    }


@public("nn")
class AvgPool2d(FunctionLayer):
    """The average of every window of an image."""

    function = F.avg_pool2d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "ceil_mode": False,
        "count_include_pad": True,
        "divisor_override": None,
    }


@public("nn")
class AvgPool3d(FunctionLayer):
    """The average of every window of a volume."""

    function = F.avg_pool3d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "ceil_mode": False,
        "count_include_pad": True,
        "divisor_override": None,
    }


@public("nn")
class LPPool1d(FunctionLayer):
    """The p-norm of every window of a sequence."""

    function = F.lp_pool1d
    settings = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}


@public("nn")
class LPPool2d(FunctionLayer):
    """The p-norm of every window of an image."""

    function = F.lp_pool2d
    settings = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}


@public("nn")
class LPPool3d(FunctionLayer):
    """The p-norm of every window of a volume."""

    function = F.lp_pool3d
    settings = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}


@public("nn")
class AdaptiveMaxPool1d(FunctionLayer):
    """The maximum of `output_size` windows of a sequence."""

    function = F.adaptive_max_pool1d
    settings = {"output_size": REQUIRED, "return_indices": False}


@public("nn")
class AdaptiveMaxPool2d(FunctionLayer):
    """The maximum of `output_size` windows of an image."""

    function = F.adaptive_max_pool2d
    settings = {"output_size": REQUIRED, "return_indices": False}


@public("nn")
class AdaptiveMaxPool3d(FunctionLayer):
    """The maximum of `output_size` windows of a volume."""

    function = F.adaptive_max_pool3d
    settings = {"output_size": REQUIRED, "return_indices": False}


@public("nn")
class AdaptiveAvgPool1d(FunctionLayer):
    """The average of `output_size` windows of a sequence."""

    function = F.adaptive_avg_pool1d
    settings = {"output_size": REQUIRED}


@public("nn")
class AdaptiveAvgPool2d(FunctionLayer):
    """The average of `output_size` windows of an image."""

    function = F.adaptive_avg_pool2d
    settings = {"output_size": REQUIRED}


@public("nn")
class AdaptiveAvgPool3d(FunctionLayer):
    """The average of `output_size` windows of a volume."""

    function = F.adaptive_avg_pool3d
    settings = {"output_size": REQUIRED}


@public("nn")
class FractionalMaxPool2d(FunctionLayer):
    """The maximum of randomly placed windows of an image."""

    function = F.fractional_max_pool2d
    settings = {
        "kernel_size": REQUIRED,
        "output_size": None,
        "output_ratio": None,
        "return_indices": False,
        "_random_samples": None,
    }
    hidden_in_repr = ("_random_samples",)


@public("nn")
class FractionalMaxPool3d(FunctionLayer):
    """The maximum of randomly placed windows of a volume."""

    function = F.fractional_max_pool3d
    settings = FractionalMaxPool2d.settings
    hidden_in_repr = ("_random_samples",)


class Unpooling(FunctionLayer):
    """The inverse of max pooling: elements at their indices, zeros elsewhere."""

    settings = {"kernel_size": REQUIRED, "stride": None, "padding": 0}

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return type(self).function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


@public("nn")
class MaxUnpool1d(Unpooling):
    """The inverse of max pooling over sequences."""

    function = F.max_unpool1d


@public("nn")
class MaxUnpool2d(Unpooling):
    """The inverse of max pooling over images."""

    function = F.max_unpool2d


@public("nn")
class MaxUnpool3d(Unpooling):
    """The inverse of max pooling over volumes."""

    function = F.max_unpool3d
