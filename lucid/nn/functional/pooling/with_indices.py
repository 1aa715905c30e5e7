"""Max pooling that also returns the indices of the maxima, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from lucid.nn.functional.pooling.adaptive import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from lucid.nn.functional.pooling.windows import max_pool1d, max_pool2d, max_pool3d
from lucid.ops.core.arguments import public_function


@public_function("nn.functional")
def max_pool1d_with_indices(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Any, Any]:
    """`max_pool1d` with `return_indices=True`."""
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@public_function("nn.functional")
def max_pool2d_with_indices(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Any, Any]:
    """`max_pool2d` with `return_indices=True`."""
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@public_function("nn.functional")
def max_pool3d_with_indices(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Any, Any]:
    """`max_pool3d` with `return_indices=True`."""
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@public_function("nn.functional")
def adaptive_max_pool1d_with_indices(
    input: Any, output_size: Any, return_indices: bool = False
) -> tuple[Any, Any]:
    """`adaptive_max_pool1d` with `return_indices=True`."""
    return adaptive_max_pool1d(input, output_size, True)


@public_function("nn.functional")
def adaptive_max_pool2d_with_indices(
    input: Any, output_size: Any, return_indices: bool = False
) -> tuple[Any, Any]:
    """`adaptive_max_pool2d` with `return_indices=True`."""
    return adaptive_max_pool2d(input, output_size, True)


@public_function("nn.functional")
def adaptive_max_pool3d_with_indices(
    input: Any, output_size: Any, return_indices: bool = False
) -> tuple[Any, Any]:
    """`adaptive_max_pool3d` with `return_indices=True`."""
    return adaptive_max_pool3d(input, output_size, True)
