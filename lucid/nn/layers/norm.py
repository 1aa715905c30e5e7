"""Normalization layers."""

from __future__ import annotations

from typing import Any

import numpy as np

import lucid.nn.functional as F
from lucid.autograd import no_grad
from lucid.errors import ArgumentError, ShapeError
from lucid.nn.layers.function_layer import REQUIRED, FunctionLayer, LayerFamily
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.nn.registered import registered
from lucid.ops.core.arguments import accepts_device
from lucid.ops.shape.creation import ones, zeros
from lucid.public.declare import public
from lucid.tape.node import wrap
from lucid.tape.writes import is_argument


def add_affine(module: Module, shape: Any, weight: bool, bias: bool, dtype: Any) -> None:
    """Register a weight of ones and a bias of zeros, or None for either."""
    module.register_parameter("weight", Parameter(ones(shape, dtype=dtype)) if weight else None)
    module.register_parameter("bias", Parameter(zeros(shape, dtype=dtype)) if bias else None)


def reset_affine(module: Any) -> None:
    """Reset the weight to ones and the bias to zeros."""
    with no_grad():
        if module.weight is not None:
            module.weight.fill_(1.0)
        if getattr(module, "bias", None) is not None:
            module.bias.fill_(0.0)


class RunningNorm(LayerFamily):
    """The base of batch and instance norms: running statistics per channel.

    Training updates the statistics in place. If the module is an argument of a transform or a
    jitted function, its tensors belong to the caller, so its buffers are replaced by new tensors:
    return `dict(module.named_buffers())` to keep them.

    ranks    the allowed numbers of axes of an input
    """

    ranks: tuple[int, ...] = ()
    weight: Any = registered()
    bias: Any = registered()
    running_mean: Any = registered("_buffers")
    running_var: Any = registered("_buffers")
    num_batches_tracked: Any = registered("_buffers")

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        is_affine: bool,
        track_running_stats: bool,
        dtype: Any,
        is_shifted: bool,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = is_affine, track_running_stats
        add_affine(self, (num_features,), is_affine, is_affine and is_shifted, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype) if tracked else None)
        count = wrap(np.zeros((), np.int64)) if tracked else None
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.track_running_stats:
            with no_grad():
                self.running_mean.zero_()
                self.running_var.fill_(1.0)
                self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset parameters and running statistics to their initial values."""
        self.reset_running_stats()
        reset_affine(self)

    def copy_shared_buffers(self) -> None:
        """Replace buffers that belong to the caller by copies, so that they can be written."""
        for name, x in self._buffers.items():
            if x is not None and is_argument(x):
                self._buffers[name] = x.detach().clone()

    def check_input(self, x: Any) -> None:
        """Raise ShapeError unless the input has an allowed number of axes."""
        if self.ranks and x.ndim not in self.ranks:
            wanted = " or ".join(map(str, self.ranks))
            raise ShapeError(f"{type(self).__name__}: input must have {wanted} axes, not {x.shape}")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm(RunningNorm):
    """Normalize every channel over the batch, then scale and shift.

    Inside a transform of the module itself, return the running statistics to keep them:

    >>> import lucid
    >>> norm, x = lucid.nn.BatchNorm1d(1), lucid.tensor([[1.0], [3.0]])
    >>> loss = lambda norm: (norm(x).sum(), dict(norm.named_buffers()))
    >>> grads, buffers = lucid.func.grad(loss, has_aux=True)(norm)
    >>> buffers["running_mean"], norm.running_mean
    (Tensor([0.2]), Tensor([0.]))
    """

    @accepts_device
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, input: Any) -> Any:
        self.check_input(input)
        momentum: Any = self.momentum
        training = self.training
        if training and self.track_running_stats:
            self.copy_shared_buffers()
            count = self.num_batches_tracked
            if count is not None:
                count.add_(1)
                if momentum is None:
                    momentum = 1.0 / count.to(input.dtype)
        mean, var = self.running_mean, self.running_var
        if training and not self.track_running_stats:  # set on a layer that has statistics
            mean = var = None
        return F.batch_norm(
            input, mean, var, self.weight, self.bias, training or (mean is None and var is None),
            0.0 if momentum is None else momentum, self.eps,
        )  # fmt: skip


@public("nn")
class BatchNorm1d(BatchNorm, ranks=(2, 3)):
    """Batch norm of vectors or sequences: (N, C) or (N, C, L)."""


@public("nn")
class BatchNorm2d(BatchNorm, ranks=(4,)):
    """Batch norm of images: (N, C, H, W)."""


@public("nn")
class BatchNorm3d(BatchNorm, ranks=(5,)):
    """Batch norm of volumes: (N, C, D, H, W)."""


class InstanceNorm(RunningNorm):
    """Normalize every channel of every example."""

    @accepts_device
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, input: Any) -> Any:
        self.check_input(input)
        batched = not self.ranks or input.ndim == self.ranks[-1]
        input = input if batched else input.unsqueeze(0)
        training, tracked = self.training, self.track_running_stats
        own = training or not tracked
        if training and tracked:
            self.copy_shared_buffers()
        y = F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, own,
            0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return y if batched else y.squeeze(0)


@public("nn")
class InstanceNorm1d(InstanceNorm, ranks=(2, 3)):
    """Instance norm of sequences: (N, C, L) or (C, L)."""


@public("nn")
class InstanceNorm2d(InstanceNorm, ranks=(3, 4)):
    """Instance norm of images: (N, C, H, W) or (C, H, W)."""


@public("nn")
class InstanceNorm3d(InstanceNorm, ranks=(4, 5)):
    """Instance norm of volumes: (N, C, D, H, W) or (C, D, H, W)."""


@public("nn")
class LayerNorm(Module):
    """Normalize over the last axes, then scale and shift elementwise."""

    weight: Any = registered()
    bias: Any = registered()

    @accepts_device
    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape, self.eps = tuple(shape), eps
        self.elementwise_affine = elementwise_affine
        shifted = elementwise_affine and bias
        add_affine(self, self.normalized_shape, elementwise_affine, shifted, dtype)

    def reset_parameters(self) -> None:
        """Reset parameters to their initial values."""
        reset_affine(self)

    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine_ = f"elementwise_affine={self.elementwise_affine}"
        return f"{self.normalized_shape}, eps={self.eps}, {affine_}"


@public("nn")
class RMSNorm(Module):
    """Divide the last axes by their root mean square, then scale elementwise."""

    @accepts_device
    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape, self.eps = tuple(shape), eps
        self.elementwise_affine = elementwise_affine
        weight = Parameter(ones(self.normalized_shape, dtype=dtype))
        self.register_parameter("weight", weight if elementwise_affine else None)

    def reset_parameters(self) -> None:
        """Reset the weight to ones."""
        reset_affine(self)

    def forward(self, input: Any) -> Any:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        affine_ = f"elementwise_affine={self.elementwise_affine}"
        return f"{self.normalized_shape}, eps={self.eps}, {affine_}"


@public("nn")
class GroupNorm(Module):
    """Normalize groups of channels of every example, then scale and shift."""

    @accepts_device
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentError(
                f"GroupNorm: {num_channels} channels do not form {num_groups} groups"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.affine = affine
        add_affine(self, (num_channels,), affine, affine and bias, dtype)

    def reset_parameters(self) -> None:
        """Reset parameters to their initial values."""
        reset_affine(self)

    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


@public("nn")
class LocalResponseNorm(
    FunctionLayer, function=F.local_response_norm, size=REQUIRED, alpha=1e-4, beta=0.75, k=1.0
):
    """Divide every channel by a power of the mean square of its neighbors."""
