"""A convolution or linear layer with the batch norm behind it as one layer, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ModuleError
from lucid.ir.source import at_line
from lucid.nn.layers.convolution import TransposedConvolution
from lucid.nn.parameter import Parameter
from lucid.ops.creation import ones_like, zeros_like
from lucid.ops.exponential import rsqrt


def fuse(layer: Any, norm: Any, axis: int) -> Any:
    """A copy of `layer` that computes `norm(layer(x))`; `axis` of its weight is its outputs."""
    if layer.training or norm.training or norm.running_mean is None:
        raise ModuleError(
            f"fuse: {type(layer).__name__} and {type(norm).__name__} are fused in evaluation, with "
            f"running statistics; call eval() first{at_line()}"
        )
    fused = copy.deepcopy(layer)
    mean = norm.running_mean
    weight = ones_like(mean) if norm.weight is None else norm.weight
    shift = zeros_like(mean) if norm.bias is None else norm.bias
    bias = zeros_like(mean) if layer.bias is None else layer.bias
    with no_grad():
        factor = weight * rsqrt(norm.running_var + norm.eps)
        shape = [-1 if i == axis else 1 for i in range(layer.weight.ndim)]
        fused.weight = Parameter(layer.weight * factor.reshape(shape), layer.weight.requires_grad)
        fused.bias = Parameter((bias - mean) * factor + shift)
    return fused


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """The convolution that computes `bn(conv(x))` in evaluation."""
    if (transpose or isinstance(conv, TransposedConvolution)) and conv.groups > 1:
        raise ModuleError(
            f"fuse_conv_bn_eval: a transposed convolution in {conv.groups} groups{at_line()}"
        )
    return fuse(conv, bn, int(transpose or isinstance(conv, TransposedConvolution)))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """The linear layer that computes `bn(linear(x))` in evaluation."""
    return fuse(linear, bn, 0)
