"""Image layers: padding, pixel and channel shuffles, resizing, unfold and fold."""

from __future__ import annotations

from typing import Any, ClassVar

import lucid.nn.functional as F
from lucid.errors import ArgumentError
from lucid.nn.layers.function_layer import REQUIRED, FunctionLayer
from lucid.nn.module import Module
from lucid.public.declare import public


@public("nn")
class PixelShuffle(FunctionLayer):
    """Rearrange (N, C r², H, W) to (N, C, H r, W r)."""

    function = F.pixel_shuffle
    settings = {"upscale_factor": REQUIRED}


@public("nn")
class PixelUnshuffle(FunctionLayer):
    """Rearrange (N, C, H r, W r) to (N, C r², H, W)."""

    function = F.pixel_unshuffle
    settings = {"downscale_factor": REQUIRED}


@public("nn")
class ChannelShuffle(FunctionLayer):
    """Interleave groups of channels."""

    function = F.channel_shuffle
    settings = {"groups": REQUIRED}


@public("nn")
class Unfold(FunctionLayer):
    """The windows of images as columns."""

    function = F.unfold
    settings = {"kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1}


@public("nn")
class Fold(FunctionLayer):
    """Sum columns of windows into images."""

    function = F.fold
    settings = {
        "output_size": REQUIRED, "kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1
    }  # fmt: skip


@public("nn")
class Upsample(FunctionLayer):
    """Resize sequences, images or volumes."""

    function = F.interpolate
    settings = {
        "size": None, "scale_factor": None, "mode": "nearest", "align_corners": None,
        "recompute_scale_factor": None,
    }  # fmt: skip
    hidden_in_repr = ("size", "scale_factor", "align_corners", "recompute_scale_factor")


@public("nn")
class UpsamplingNearest2d(FunctionLayer):
    """Resize images by the nearest pixel."""

    function = F.upsample_nearest
    settings = {"size": None, "scale_factor": None}
    hidden_in_repr = ("size", "scale_factor")


@public("nn")
class UpsamplingBilinear2d(FunctionLayer):
    """Resize images by bilinear interpolation with aligned corners."""

    function = F.upsample_bilinear
    settings = {"size": None, "scale_factor": None}
    hidden_in_repr = ("size", "scale_factor")


class Padding(Module):
    """The base of padding layers; one number pads all ends alike.

    axes    the number of padded axes, counted from the last
    mode    as in `nn.functional.pad`
    """

    axes: ClassVar[int]
    mode: ClassVar[str] = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        ends = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(ends) != 2 * self.axes:
            raise ArgumentError(
                f"{type(self).__name__}: padding {ends}; it must be a number, or {2 * self.axes} "
                f"numbers, last axis first"
            )
        self.padding = ends

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class ConstantPadding(Padding):
    """Pad the last axes with a constant."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


@public("nn")
class ConstantPad1d(ConstantPadding):
    """Pad the last axis with a constant."""

    axes = 1


@public("nn")
class ConstantPad2d(ConstantPadding):
    """Pad the last two axes with a constant."""

    axes = 2


@public("nn")
class ConstantPad3d(ConstantPadding):
    """Pad the last three axes with a constant."""

    axes = 3


@public("nn")
class ZeroPad1d(Padding):
    """Pad the last axis with zeros."""

    axes = 1


@public("nn")
class ZeroPad2d(Padding):
    """Pad the last two axes with zeros."""

    axes = 2


@public("nn")
class ZeroPad3d(Padding):
    """Pad the last three axes with zeros."""

    axes = 3


@public("nn")
class ReflectionPad1d(Padding):
    """Pad the last axis by reflection."""

    axes, mode = 1, "reflect"


@public("nn")
class ReflectionPad2d(Padding):
    """Pad the last two axes by reflection."""

    axes, mode = 2, "reflect"


@public("nn")
class ReflectionPad3d(Padding):
    """Pad the last three axes by reflection."""

    axes, mode = 3, "reflect"


@public("nn")
class ReplicationPad1d(Padding):
    """Pad the last axis by repeating its end elements."""

    axes, mode = 1, "replicate"


@public("nn")
class ReplicationPad2d(Padding):
    """Pad the last two axes by repeating their end elements."""

    axes, mode = 2, "replicate"


@public("nn")
class ReplicationPad3d(Padding):
    """Pad the last three axes by repeating their end elements."""

    axes, mode = 3, "replicate"


@public("nn")
class CircularPad1d(Padding):
    """Pad the last axis circularly."""

    axes, mode = 1, "circular"


@public("nn")
class CircularPad2d(Padding):
    """Pad the last two axes circularly."""

    axes, mode = 2, "circular"


@public("nn")
class CircularPad3d(Padding):
    """Pad the last three axes circularly."""

    axes, mode = 3, "circular"
