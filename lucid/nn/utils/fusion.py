"""A convolution or linear layer with the batch norm behind it as one layer, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ModuleError
from lucid.ir.source import at_line
from lucid.nn.layers.conv import TransposedConvolution
from lucid.nn.parameter import Parameter
from lucid.ops.elementwise.exponential import rsqrt
from lucid.ops.shape.creation import ones_like, zeros_like


def fuse(layer: Any, norm: Any, axis: int) -> Any:
    """A copy of `layer` that computes `norm(layer(x))`; `axis` of its weight is its outputs."""
    if layer.training or norm.training or norm.running_mean is None:
        raise ModuleError(
            f"fuse: {type(layer).__name__} and {type(norm).__name__} are fused in evaluation, with "
            f"running statistics; call eval() first{at_line()}"
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
    factor = ones_like(mean) if factor is None else factor
    shift = zeros_like(mean) if shift is None else shift
    wanted = True if bias is None else bias.requires_grad
    bias = zeros_like(mean) if bias is None else bias
    with no_grad():
        factor = factor * rsqrt(var + eps)
        shape = [-1 if i == axis else 1 for i in range(weight.ndim)]
        fused = Parameter(weight * factor.reshape(shape), weight.requires_grad)
        return fused, Parameter((bias - mean) * factor + shift, wanted)


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
    """Weight and bias of a convolution that does what a batch norm with these statistics did."""
    return fused_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, int(transpose))


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that does what a batch norm with these statistics did."""
    return fused_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


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
