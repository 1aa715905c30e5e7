"""Images as layers: padding, shuffles of pixels and channels, other sizes, windows as columns."""

from __future__ import annotations

from typing import Any, ClassVar

import lucid.nn.functional as F
from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.nn.layers.function_layer import REQUIRED, Applied
from lucid.nn.module import Module


class PixelShuffle(Applied):
    """(N, C r², H, W) as (N, C, H r, W r)."""

    function = F.pixel_shuffle
    settings = {"upscale_factor": REQUIRED}


class PixelUnshuffle(Applied):
    """(N, C, H r, W r) as (N, C r², H, W)."""

    function = F.pixel_unshuffle
    settings = {"downscale_factor": REQUIRED}


class ChannelShuffle(Applied):
    """Groups of channels, dealt one by one."""

    function = F.channel_shuffle
    settings = {"groups": REQUIRED}


class Unfold(Applied):
    """The windows of images as columns."""

    function = F.unfold
    settings = {"kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1}


class Fold(Applied):
    """Images from the columns of their windows, summed where windows overlap."""

    function = F.fold
    settings = {
        "output_size": REQUIRED, "kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1
    }  # fmt: skip


class Upsample(Applied):
    """Images, sequences or volumes of another size."""

    function = F.interpolate
    settings = {
        "size": None, "scale_factor": None, "mode": "nearest", "align_corners": None,
        "recompute_scale_factor": None,
    }  # fmt: skip
    unshown = ("size", "scale_factor", "align_corners", "recompute_scale_factor")


class UpsamplingNearest2d(Applied):
    """Images of another size, by the nearest pixel."""

    function = F.upsample_nearest
    settings = {"size": None, "scale_factor": None}
    unshown = ("size", "scale_factor")


class UpsamplingBilinear2d(Applied):
    """Images of another size, linear between pixels, with corners kept."""

    function = F.upsample_bilinear
    settings = {"size": None, "scale_factor": None}
    unshown = ("size", "scale_factor")


class Padding(Module):
    """Elements added at both ends of the last axes; a number is the same for all ends.

    axes    how many axes are padded
    mode    what stands there, as in `nn.functional.pad`
    """

    axes: ClassVar[int]
    mode: ClassVar[str] = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        ends = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(ends) != 2 * self.axes:
            raise ArgumentError(
                f"{type(self).__name__}: padding {ends}; it is a number, or {2 * self.axes} of "
                f"them, the last axis first{at_line()}"
            )
        self.padding = ends

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class ConstantPadding(Padding):
    """One value added at both ends of the last axes."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(ConstantPadding):
    """One value added at both ends of the last axis."""

    axes = 1


class ConstantPad2d(ConstantPadding):
    """One value added at both ends of the last two axes."""

    axes = 2


class ConstantPad3d(ConstantPadding):
    """One value added at both ends of the last three axes."""

    axes = 3


class ZeroPad1d(Padding):
    """Zeros at both ends of the last axis."""

    axes = 1


class ZeroPad2d(Padding):
    """Zeros at both ends of the last two axes."""

    axes = 2


class ZeroPad3d(Padding):
    """Zeros at both ends of the last three axes."""

    axes = 3


class ReflectionPad1d(Padding):
    """The elements mirrored at both ends of the last axis."""

    axes, mode = 1, "reflect"


class ReflectionPad2d(Padding):
    """The elements mirrored at both ends of the last two axes."""

    axes, mode = 2, "reflect"


class ReflectionPad3d(Padding):
    """The elements mirrored at both ends of the last three axes."""

    axes, mode = 3, "reflect"


class ReplicationPad1d(Padding):
    """The first and the last element repeated along the last axis."""

    axes, mode = 1, "replicate"


class ReplicationPad2d(Padding):
    """The first and the last elements repeated along the last two axes."""

    axes, mode = 2, "replicate"


class ReplicationPad3d(Padding):
    """The first and the last elements repeated along the last three axes."""

    axes, mode = 3, "replicate"


class CircularPad1d(Padding):
    """The elements from the other end of the last axis."""

    axes, mode = 1, "circular"


class CircularPad2d(Padding):
    """The elements from the other ends of the last two axes."""

    axes, mode = 2, "circular"


class CircularPad3d(Padding):
    """The elements from the other ends of the last three axes."""

    axes, mode = 3, "circular"
