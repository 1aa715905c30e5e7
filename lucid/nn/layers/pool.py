"""Pooling as layers."""

from __future__ import annotations

from typing import Any

import lucid.nn.functional as F
from lucid.nn.layers.function_layer import REQUIRED, Applied


class MaxPool1d(Applied):
    """The greatest elements of windows over sequences."""

    function = F.max_pool1d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "dilation": 1,
        "return_indices": False,
        "ceil_mode": False,
    }


class MaxPool2d(Applied):
    """The greatest elements of windows over images."""

    function = F.max_pool2d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "dilation": 1,
        "return_indices": False,
        "ceil_mode": False,
    }


class MaxPool3d(Applied):
    """The greatest elements of windows over volumes."""

    function = F.max_pool3d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "dilation": 1,
        "return_indices": False,
        "ceil_mode": False,
    }


class AvgPool1d(Applied):
    """The means of windows over sequences."""

    function = F.avg_pool1d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "ceil_mode": False,
        "count_include_pad": True,
    }


class AvgPool2d(Applied):
    """The means of windows over images."""

    function = F.avg_pool2d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "ceil_mode": False,
        "count_include_pad": True,
        "divisor_override": None,
    }


class AvgPool3d(Applied):
    """The means of windows over volumes."""

    function = F.avg_pool3d
    settings = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "ceil_mode": False,
        "count_include_pad": True,
        "divisor_override": None,
    }


class LPPool1d(Applied):
    """The p-norms of windows over sequences."""

    function = F.lp_pool1d
    settings = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}


class LPPool2d(Applied):
    """The p-norms of windows over images."""

    function = F.lp_pool2d
    settings = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}


class LPPool3d(Applied):
    """The p-norms of windows over volumes."""

    function = F.lp_pool3d
    settings = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}


class AdaptiveMaxPool1d(Applied):
    """The greatest elements of as many windows as wanted over sequences."""

    function = F.adaptive_max_pool1d
    settings = {"output_size": REQUIRED, "return_indices": False}


class AdaptiveMaxPool2d(Applied):
    """The greatest elements of as many windows as wanted over images."""

    function = F.adaptive_max_pool2d
    settings = {"output_size": REQUIRED, "return_indices": False}


class AdaptiveMaxPool3d(Applied):
    """The greatest elements of as many windows as wanted over volumes."""

    function = F.adaptive_max_pool3d
    settings = {"output_size": REQUIRED, "return_indices": False}


class AdaptiveAvgPool1d(Applied):
    """The means of as many windows as wanted over sequences."""

    function = F.adaptive_avg_pool1d
    settings = {"output_size": REQUIRED}


class AdaptiveAvgPool2d(Applied):
    """The means of as many windows as wanted over images."""

    function = F.adaptive_avg_pool2d
    settings = {"output_size": REQUIRED}


class AdaptiveAvgPool3d(Applied):
    """The means of as many windows as wanted over volumes."""

    function = F.adaptive_avg_pool3d
    settings = {"output_size": REQUIRED}


class FractionalMaxPool2d(Applied):
    """The greatest elements of windows over images that stand at random places."""

    function = F.fractional_max_pool2d
    settings = {
        "kernel_size": REQUIRED,
        "output_size": None,
        "output_ratio": None,
        "return_indices": False,
        "_random_samples": None,
    }
    unshown = ("_random_samples",)


class FractionalMaxPool3d(Applied):
    """The greatest elements of windows over volumes that stand at random places."""

    function = F.fractional_max_pool3d
    settings = FractionalMaxPool2d.settings
    unshown = ("_random_samples",)


class Unpooling(Applied):
    """The inverse of max pooling: elements at their indices, zeros elsewhere."""

    settings = {"kernel_size": REQUIRED, "stride": None, "padding": 0}

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return type(self).function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(Unpooling):
    """The inverse of max pooling over sequences."""

    function = F.max_unpool1d


class MaxUnpool2d(Unpooling):
    """The inverse of max pooling over images."""

    function = F.max_unpool2d


class MaxUnpool3d(Unpooling):
    """The inverse of max pooling over volumes."""

    function = F.max_unpool3d
