"""Image layers: padding, pixel and channel shuffles, resizing, unfold and fold."""

from __future__ import annotations

from typing import Any, ClassVar

import lucid.nn.functional as F
from lucid.errors import ArgumentError
from lucid.nn.layers.function_layer import REQUIRED, FunctionLayer, LayerFamily
from lucid.public.declare import public

SIZE = ("size", "scale_factor")
COLUMNS = {"kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1}


@public("nn")
class PixelShuffle(FunctionLayer, function=F.pixel_shuffle, upscale_factor=REQUIRED):
    """Rearrange (N, C r², H, W) to (N, C, H r, W r)."""


@public("nn")
class PixelUnshuffle(FunctionLayer, function=F.pixel_unshuffle, downscale_factor=REQUIRED):
    """Rearrange (N, C, H r, W r) to (N, C r², H, W)."""


@public("nn")
class ChannelShuffle(FunctionLayer, function=F.channel_shuffle, groups=REQUIRED):
    """Interleave groups of channels."""


@public("nn")
class Unfold(FunctionLayer, function=F.unfold, **COLUMNS):
    """The windows of images as columns."""


@public("nn")
class Fold(FunctionLayer, function=F.fold, output_size=REQUIRED, **COLUMNS):
    """Sum columns of windows into images."""


@public("nn")
class Upsample(
    FunctionLayer,
    function=F.interpolate,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    hidden_in_repr=(*SIZE, "align_corners", "recompute_scale_factor"),
):
    """Resize sequences, images or volumes."""


class Upsampling(FunctionLayer, hidden_in_repr=SIZE, size=None, scale_factor=None):
    """Resize images."""


@public("nn")
class UpsamplingNearest2d(Upsampling, function=F.upsample_nearest):
    """Resize images by the nearest pixel."""


@public("nn")
class UpsamplingBilinear2d(Upsampling, function=F.upsample_bilinear):
    """Resize images by bilinear interpolation with aligned corners."""


class Padding(LayerFamily):
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
                "numbers, last axis first"
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
class ConstantPad1d(ConstantPadding, axes=1):
    """Pad the last axis with a constant."""


@public("nn")
class ConstantPad2d(ConstantPadding, axes=2):
    """Pad the last two axes with a constant."""


@public("nn")
class ConstantPad3d(ConstantPadding, axes=3):
    """Pad the last three axes with a constant."""


@public("nn")
class ZeroPad1d(Padding, axes=1):
    """Pad the last axis with zeros."""


@public("nn")
class ZeroPad2d(Padding, axes=2):
    """Pad the last two axes with zeros."""


@public("nn")
class ZeroPad3d(Padding, axes=3):
    """Pad the last three axes with zeros."""


@public("nn")
class ReflectionPad1d(Padding, axes=1, mode="reflect"):
    """Pad the last axis by reflection."""


@public("nn")
class ReflectionPad2d(Padding, axes=2, mode="reflect"):
    """Pad the last two axes by reflection."""


@public("nn")
class ReflectionPad3d(Padding, axes=3, mode="reflect"):
    """Pad the last three axes by reflection."""


@public("nn")
class ReplicationPad1d(Padding, axes=1, mode="replicate"):
    """Pad the last axis by repeating its end elements."""


@public("nn")
class ReplicationPad2d(Padding, axes=2, mode="replicate"):
    """Pad the last two axes by repeating their end elements."""


@public("nn")
class ReplicationPad3d(Padding, axes=3, mode="replicate"):
    """Pad the last three axes by repeating their end elements."""


@public("nn")
class CircularPad1d(Padding, axes=1, mode="circular"):
    """Pad the last axis circularly."""


@public("nn")
class CircularPad2d(Padding, axes=2, mode="circular"):
    """Pad the last two axes circularly."""


@public("nn")
class CircularPad3d(Padding, axes=3, mode="circular"):
    """Pad the last three axes circularly."""
