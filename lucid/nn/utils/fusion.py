"""Fusion of a convolution or linear layer with the following batch norm, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ModuleError
from lucid.nn.layers.conv import TransposedConvolution
from lucid.nn.parameter import Parameter
from lucid.ops.core.arguments import public_function
from lucid.ops.elementwise.exponential import rsqrt
from lucid.ops.shape.creation import ones_like, zeros_like


def fuse_batch_norm(layer: Any, norm: Any, axis: int) -> Any:
    """Return a copy of `layer` that computes `norm(layer(x))`; `axis` is its output axis."""
    if layer.training or norm.training or norm.running_mean is None:
        raise ModuleError(
            f"fuse: {type(layer).__name__} and {type(norm).__name__} must be in evaluation mode, "
            "with running statistics; call eval() first"
        )
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fused_weights(
        layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight,
        norm.bias, axis,
    )  # fmt: skip
    return fused


def fused_weights(
    weight: Any, bias: Any, mean: Any, var: Any, eps: float, factor: Any, shift: Any, axis: int
) -> tuple[Parameter, Parameter]:
    """Return the weight and bias with the batch norm folded in."""
    factor = ones_like(mean) if factor is None else factor
    shift = zeros_like(mean) if shift is None else shift
    wanted = True if bias is None else bias.requires_grad
    bias = zeros_like(mean) if bias is None else bias
    with no_grad():
        factor = factor * rsqrt(var + eps)
        shape = [-1 if i == axis else 1 for i in range(weight.ndim)]
        fused = Parameter(weight * factor.reshape(shape), weight.requires_grad)
        return fused, Parameter((bias - mean) * factor + shift, wanted)


@public_function("nn.utils")
def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return the weight and bias of a convolution with a batch norm folded in."""
    return fused_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, int(transpose))


@public_function("nn.utils")
def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Return the weight and bias of a linear layer with a batch norm folded in."""
    return fused_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


@public_function("nn.utils")
def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a convolution that computes `bn(conv(x))` in evaluation."""
    if (transpose or isinstance(conv, TransposedConvolution)) and conv.groups > 1:
        raise ModuleError(
            f"fuse_conv_bn_eval: a transposed convolution with {conv.groups} groups is not "
            "supported"
        )
    return fuse_batch_norm(conv, bn, int(transpose or isinstance(conv, TransposedConvolution)))


@public_function("nn.utils")
def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a linear layer that computes `bn(linear(x))` in evaluation."""
    return fuse_batch_norm(linear, bn, 0)
