"""Convolutions as layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import lucid.nn.functional as F
from lucid.errors import ArgumentError
from lucid.nn import init
from lucid.nn.functional.spatial import int_tuple
from lucid.nn.layers.function_layer import LayerFamily
from lucid.nn.parameter import Parameter
from lucid.nn.registered import registered
from lucid.ops.core.arguments import accepts_device
from lucid.ops.shape.creation import empty
from lucid.public.declare import public

MODES = ("zeros", "reflect", "replicate", "circular")


class ConvolutionBase(LayerFamily):
    """The weight, bias and settings of convolutions; `axes` is the number of spatial axes."""

    axes: ClassVar[int]
    function: ClassVar[Callable[..., Any]]
    transposed = False
    weight: Parameter = registered()
    bias: Any = registered()

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ArgumentError(
                f"{name}: {in_channels} and {out_channels} channels do not split into {groups} "
                "groups"
            )
        if padding_mode not in MODES:
            raise ArgumentError(
                f"{name}: padding_mode must be one of {', '.join(MODES)}, not {padding_mode!r}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = int_tuple(name, "kernel_size", kernel_size, self.axes, 1)
        self.stride = int_tuple(name, "stride", stride, self.axes, 1)
        self.dilation = int_tuple(name, "dilation", dilation, self.axes, 1)
        self.padding: Any = (
            padding
            if isinstance(padding, str)
            else int_tuple(name, "padding", padding, self.axes, 0)
        )
        self.padding_mode = padding_mode
        channels = (out_channels, in_channels // groups)
        if self.transposed:
            channels = (in_channels, out_channels // groups)
        self.weight = Parameter(empty(*channels, *self.kernel_size, dtype=dtype))
        added = Parameter(empty(out_channels, dtype=dtype)) if bias else None
        self.register_parameter("bias", added)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(max(init.fans(self.weight)[0], 1))
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        ones, zeros = (1,) * self.axes, (0,) * self.axes
        for name, usual in [
            ("padding", zeros), ("output_padding", zeros), ("dilation", ones), ("groups", 1),
            ("padding_mode", "zeros"),
        ]:  # fmt: skip
            value = getattr(self, name, usual)
            if value != usual:
                text += f", {name}={value!r}"
        return text if self.bias is not None else text + ", bias=False"


class Convolution(ConvolutionBase):
    """A convolution with learned weights."""

    @accepts_device
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, dtype,
        )  # fmt: skip
        if self.padding == "same" and any(n != 1 for n in self.stride):
            raise ArgumentError(f"{type(self).__name__}: padding='same' needs stride 1")

    def pad_widths(self) -> list[int]:
        """Return the padding at both ends of every spatial axis, last axis first."""
        if self.padding == "same":
            whole = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            pairs = [(n // 2, n - n // 2) for n in whole]
        elif self.padding == "valid":
            pairs = [(0, 0)] * self.axes
        else:
            pairs = [(n, n) for n in self.padding]
        return [n for pair in reversed(pairs) for n in pair]

    def forward(self, input: Any) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self.pad_widths(), self.padding_mode), 0
        return type(self).function(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class TransposedConvolution(ConvolutionBase):
    """A transposed convolution with learned weights."""

    transposed = True

    @accepts_device
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ArgumentError(f"{type(self).__name__}: only padding_mode='zeros' is supported")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, dtype,
        )  # fmt: skip
        self.output_padding = int_tuple(
            type(self).__name__, "output_padding", output_padding, self.axes
        )

    def forward(self, input: Any, output_size: Any = None) -> Any:
        extra = (
            self.output_padding
            if output_size is None
            else self.output_padding_for(input, output_size)
        )
        return type(self).function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip

    def output_padding_for(self, x: Any, output_size: Any) -> tuple[int, ...]:
        """Return the output padding that gives this output size."""
        sizes = x.shape[-self.axes :]
        wanted = tuple(output_size)[-self.axes :]
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                sizes, self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        if any(not low <= n < low + s for n, low, s in zip(wanted, least, self.stride)):
            most = [low + s - 1 for low, s in zip(least, self.stride)]
            raise ArgumentError(
                f"{type(self).__name__}: output_size {wanted} is not between {tuple(least)} and "
                f"{tuple(most)}"
            )
        return tuple(n - low for n, low in zip(wanted, least))


@public("nn")
class Conv1d(Convolution, axes=1, function=F.conv1d):
    """A convolution of sequences: (N, C, L)."""


@public("nn")
class Conv2d(Convolution, axes=2, function=F.conv2d):
    """A convolution of images: (N, C, H, W)."""


@public("nn")
class Conv3d(Convolution, axes=3, function=F.conv3d):
    """A convolution of volumes: (N, C, D, H, W)."""


@public("nn")
class ConvTranspose1d(TransposedConvolution, axes=1, function=F.conv_transpose1d):
    """A transposed convolution of sequences: (N, C, L)."""


@public("nn")
class ConvTranspose2d(TransposedConvolution, axes=2, function=F.conv_transpose2d):
    """A transposed convolution of images: (N, C, H, W)."""


@public("nn")
class ConvTranspose3d(TransposedConvolution, axes=3, function=F.conv_transpose3d):
    """A transposed convolution of volumes: (N, C, D, H, W)."""
