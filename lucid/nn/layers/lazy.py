"""Lazy layers: the number of input features or channels is taken from the first input.

A lazy layer is the ordinary one with parameters that have no shape. Its first call gives them
shape and initial values and turns it into the ordinary layer.
"""

from __future__ import annotations

from typing import Any, ClassVar

from lucid.errors import ModuleError, ShapeError
from lucid.nn.layers.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from lucid.nn.layers.linear import Linear
from lucid.nn.layers.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from lucid.nn.module import Module
from lucid.nn.uninitialized import Uninitialized, UninitializedBuffer, UninitializedParameter
from lucid.ops.core.arguments import accepts_device, concrete_array
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public


class LazyModule(Module):
    """The base of lazy layers; a subclass gives `infer_shapes` and, as its last base, the layer."""

    cls_to_become: ClassVar[type[Module]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.cls_to_become = cls.__bases__[-1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.initialize_parameters(*args)
        return self(*args, **kwargs)

    def has_uninitialized_params(self) -> bool:
        """True if a tensor of this layer still has no shape."""
        tensors = [*self._parameters.values(), *self._buffers.values()]
        return any([isinstance(x, Uninitialized) for x in tensors])

    def initialize_parameters(self, x: Any, *_: Any) -> None:
        """Become the ordinary layer for inputs like this one."""
        x = as_tensor(x)
        if self.has_uninitialized_params():
            if concrete_array(x) is None:
                raise ModuleError(
                    f"{type(self).__name__}: its first call creates its parameters, which "
                    "is not possible inside jit or a transform; call it once before"
                )
            shapes = self.infer_shapes(x)
            for name, tensor in [*self._parameters.items(), *self._buffers.items()]:
                if isinstance(tensor, Uninitialized):
                    tensor.materialize(shapes[name])
            self.__class__ = self.cls_to_become  # type: ignore[assignment]
            self.reset_parameters()
        else:
            self.infer_shapes(x)
            self.__class__ = self.cls_to_become  # type: ignore[assignment]

    def infer_shapes(self, x: Any) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all tensors, and store the size taken from the input."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
        if not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def make_lazy(self, names: dict[str, bool], dtype: Any) -> None:
        """Register parameters without a shape."""
        for name, is_there in names.items():
            made = UninitializedParameter(dtype=dtype) if is_there else None
            self.register_parameter(name, made)


@public("nn")
class LazyLinear(LazyModule, Linear):
    """A Linear layer that takes `in_features` from its first input.

    >>> import lucid
    >>> net = lucid.nn.Sequential(lucid.nn.LazyLinear(8), lucid.nn.ReLU(), lucid.nn.LazyLinear(2))
    >>> net(lucid.ones(1, 5)).shape, net[0]
    ((1, 2), Linear(in_features=5, out_features=8, bias=True))
    """

    @accepts_device
    def __init__(self, out_features: int, bias: bool = True, dtype: Any = None) -> None:
        Module.__init__(self)
        self.in_features, self.out_features = 0, out_features
        self.make_lazy({"weight": True, "bias": bias}, dtype)

    def infer_shapes(self, x: Any) -> dict[str, tuple[int, ...]]:
        if not x.ndim:
            raise ShapeError("LazyLinear: an input of shape () has no features")
        self.in_features = x.shape[-1]
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}


class LazyConvolution(LazyModule):
    """A convolution that takes `in_channels` from its first input."""

    arguments: ClassVar[tuple[str, ...]] = (
        "stride", "padding", "dilation", "groups", "bias", "padding_mode", "dtype",
    )  # fmt: skip

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(self.arguments, args)), **kwargs}
        bias = given.pop("bias", True)
        made: Any = super()
        made.__init__(0, out_channels, kernel_size, bias=False, **given)
        self.make_lazy({"weight": True, "bias": bias}, given.get("dtype"))

    def infer_shapes(self: Any, x: Any) -> dict[str, tuple[int, ...]]:
        name = type(self).__name__
        if x.ndim not in (self.axes + 1, self.axes + 2):
            facts = (
                f"an input of shape {x.shape}; it must have {self.axes} axes after (N, C) or (C,)"
            )
            raise ShapeError(f"{name}: {facts}")
        channels = x.shape[-self.axes - 1]
        if channels % self.groups:
            facts = f"{channels} channels are not divisible into {self.groups} groups"
            raise ShapeError(f"{name}: {facts}")
        self.in_channels = channels
        sizes = (self.out_channels, channels // self.groups)
        if self.transposed:
            sizes = (channels, self.out_channels // self.groups)
        return {"weight": (*sizes, *self.kernel_size), "bias": (self.out_channels,)}


class LazyTransposedConvolution(LazyConvolution):
    """A transposed convolution that takes `in_channels` from its first input."""

    arguments = (
        "stride", "padding", "output_padding", "groups", "bias", "dilation", "padding_mode",
        "dtype",
    )  # fmt: skip


@public("nn")
class LazyConv1d(LazyConvolution, Conv1d):
    """A Conv1d that takes `in_channels` from its first input."""


@public("nn")
class LazyConv2d(LazyConvolution, Conv2d):
    """A Conv2d that takes `in_channels` from its first input."""


@public("nn")
class LazyConv3d(LazyConvolution, Conv3d):
    """A Conv3d that takes `in_channels` from its first input."""


@public("nn")
class LazyConvTranspose1d(LazyTransposedConvolution, ConvTranspose1d):
    """A ConvTranspose1d that takes `in_channels` from its first input."""


@public("nn")
class LazyConvTranspose2d(LazyTransposedConvolution, ConvTranspose2d):
    """A ConvTranspose2d that takes `in_channels` from its first input."""


@public("nn")
class LazyConvTranspose3d(LazyTransposedConvolution, ConvTranspose3d):
    """A ConvTranspose3d that takes `in_channels` from its first input."""


class LazyNorm(LazyModule):
    """A batch or instance norm that takes `num_features` from its first input.

    As in PyTorch, every one has parameters and running statistics by default.
    """

    @accepts_device
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        made: Any = super()
        made.__init__(0, eps, momentum, affine, track_running_stats, dtype=dtype, bias=bias)
        self.make_lazy({"weight": affine, "bias": affine and bias}, dtype)
        if track_running_stats:
            for name in ("running_mean", "running_var"):
                self.register_buffer(name, UninitializedBuffer(dtype=dtype))

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if not self.has_uninitialized_params():
            super().reset_running_stats()  # type: ignore[misc]

    def infer_shapes(self: Any, x: Any) -> dict[str, tuple[int, ...]]:
        self.check_input(x)
        is_unbatched = "Instance" in type(self).__name__ and x.ndim == min(self.ranks)
        self.num_features = x.shape[0 if is_unbatched else 1]
        shape = (self.num_features,)
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), shape)


@public("nn")
class LazyBatchNorm1d(LazyNorm, BatchNorm1d):
    """A BatchNorm1d that takes `num_features` from its first input."""


@public("nn")
class LazyBatchNorm2d(LazyNorm, BatchNorm2d):
    """A BatchNorm2d that takes `num_features` from its first input."""


@public("nn")
class LazyBatchNorm3d(LazyNorm, BatchNorm3d):
    """A BatchNorm3d that takes `num_features` from its first input."""


@public("nn")
class LazyInstanceNorm1d(LazyNorm, InstanceNorm1d):
    """An InstanceNorm1d that takes `num_features` from its first input."""


@public("nn")
class LazyInstanceNorm2d(LazyNorm, InstanceNorm2d):
    """An InstanceNorm2d that takes `num_features` from its first input."""


@public("nn")
class LazyInstanceNorm3d(LazyNorm, InstanceNorm3d):
    """An InstanceNorm3d that takes `num_features` from its first input."""
