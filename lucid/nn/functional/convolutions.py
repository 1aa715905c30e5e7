"""Convolutions and transposed convolutions over one, two and three axes."""

from __future__ import annotations

from typing import Any

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.nn.functional.spatial import (
    Sizes,
    add_batch_axis,
    drop_batch_axis,
    int_tuple,
    is_plain_sizes,
    over_axes,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.expected_call import expect_calls
from lucid.ops.higher_order.region import compile_when_hot
from lucid.ops.nn.convolution import Convolution, ConvolutionTranspose
from lucid.support.caches import memoize
from lucid.tape.bind import bind


def convolve(
    name: str,
    axes: int,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Check the arguments and convolve over `axes` spatial axes."""
    x, was_batched = add_batch_axis(name, input, axes)
    w = check_weight(name, weight, x, axes, groups)
    facts = (name, axes, x.shape, w.shape, stride, padding, dilation, groups)
    y = with_bias(name, exact(convolution, padding, stride, dilation)(*facts), x, w, bias)
    return drop_batch_axis(y, was_batched)


@memoize(1024)
def convolution(
    name: str, axes: int, x: Sizes, w: Sizes, stride: Any, padding: Any, dilation: Any, groups: int
) -> Convolution:
    """Return the operation for operands of these shapes."""
    if w[1] * groups != x[1] or w[0] % groups:
        facts = f"input of shape {x} has {x[1]} channels, weights of shape {w}"
        takes = f"{facts} take {w[1] * groups} (groups={groups})"
        raise ShapeError(f"{name}: {takes}; weights are (out, in / groups, ...)")
    stride = int_tuple(name, "stride", stride, axes, 1)
    dilation = int_tuple(name, "dilation", dilation, axes, 1)
    extent = [(k - 1) * d + 1 for k, d in zip(w[2:], dilation)]
    low, high = resolve_padding(name, padding, extent, stride, axes)
    room = [n + a + b - e for n, a, b, e in zip(x[2:], low, high, extent)]
    if min(room) < 0 or 0 in w[2:]:
        facts = f"windows of {tuple(extent)} do not fit into {x[2:]} with padding {padding!r}"
        raise ShapeError(f"{name}: {facts}")
    size = tuple(n // s + 1 for n, s in zip(room, stride))
    return Convolution(size, stride, low, dilation, groups)


def conv_transpose(
    name: str,
    axes: int,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Check the arguments and apply the adjoint of `convolve`."""
    x, was_batched = add_batch_axis(name, input, axes)
    w = check_weight(name, weight, x, axes, groups)
    facts = (name, axes, x.shape, w.shape, stride, padding, output_padding, groups, dilation)
    find = exact(transposed_convolution, stride, padding, output_padding, dilation)
    return drop_batch_axis(with_bias(name, find(*facts), x, w, bias), was_batched)


@memoize(1024)
def transposed_convolution(
    name: str, axes: int, x: Sizes, w: Sizes, stride: Any, padding: Any, output_padding: Any,
    groups: int, dilation: Any,
) -> ConvolutionTranspose:  # fmt: skip
    """Return the operation for operands of these shapes."""
    if w[0] != x[1] or x[1] % groups:
        facts = f"input of shape {x} has {x[1]} channels, weights of shape {w}"
        takes = f"{facts} take {w[0]} (groups={groups})"
        raise ShapeError(f"{name}: {takes}; weights are (in, out / groups, ...)")
    stride = int_tuple(name, "stride", stride, axes, 1)
    dilation = int_tuple(name, "dilation", dilation, axes, 1)
    low = int_tuple(name, "padding", padding, axes)
    extra = int_tuple(name, "output_padding", output_padding, axes)
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation)):
        facts = f"output_padding {output_padding!r} with stride {stride} and dilation {dilation}"
        raise ShapeError(f"{name}: {facts}; it must be smaller than stride or dilation")
    lengths = zip(x[2:], w[2:], stride, dilation, low, extra)
    size = tuple((n - 1) * s + (k - 1) * d + 1 - 2 * p + e for n, k, s, d, p, e in lengths)
    if min(size) < 0 or 0 in w[2:] or 0 in x[2:]:
        facts = f"an input of {x} and weights of {w} give a result of size {size}"
        raise ShapeError(f"{name}: {facts}")
    return ConvolutionTranspose(size, stride, low, dilation, groups)


def exact(function: Any, *sizes: Any) -> Any:
    """Return a memoized function; the plain one if a size merely compares equal to integers."""
    return function if all([is_plain_sizes(n) for n in sizes]) else function.__wrapped__


def check_weight(name: str, w: Any, x: Any, axes: int, groups: Any) -> Any:
    """Return the weight as a tensor, with its rank, dtype and groups checked."""
    w = as_tensor(w)
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1:
        raise ArgumentError(f"{name}: groups is {groups!r}; it must be a positive integer")
    if w.ndim != axes + 2:
        raise ShapeError(f"{name}: weights of shape {w.shape}; they must have {axes + 2} axes")
    if w.dtype != x.dtype:
        facts = f"an input of {x.dtype} and weights of {w.dtype}"
        raise DTypeError(f"{name}: {facts}; cast one of them")
    return w


def resolve_padding(
    name: str, padding: Any, extent: list[int], stride: Sizes, axes: int
) -> tuple[Sizes, Sizes]:
    """Return the zeros before and after each axis."""
    if padding == "valid":
        return (0,) * axes, (0,) * axes
    if padding != "same":
        if isinstance(padding, str):
            facts = f"padding must be 'same', 'valid' or integers, not {padding!r}"
            raise ArgumentError(f"{name}: {facts}")
        low = int_tuple(name, "padding", padding, axes)
        return low, low
    if max(stride) > 1:
        raise ArgumentError(f"{name}: padding 'same' needs stride 1, not {stride}")
    return tuple((e - 1) // 2 for e in extent), tuple(e // 2 for e in extent)


def with_bias(name: str, op: Any, x: Any, w: Any, bias: Any) -> Any:
    """Apply a convolution, and add a bias per channel (axis 1)."""
    if bias is None:
        return bind(op, x, w)
    bias = as_tensor(bias)
    channels = w.shape[0] if op.__class__ is Convolution else w.shape[1] * op.groups
    if bias.shape != (channels,):
        raise ShapeError(f"{name}: a bias of shape {bias.shape} for {channels} channels")
    if bias.dtype != x.dtype:
        raise DTypeError(f"{name}: bias of dtype {bias.dtype} for a result of {x.dtype}; cast it")
    return convolve_with_bias(op, x, w, bias)


@compile_when_hot
def convolve_with_bias(op: Any, x: Any, w: Any, bias: Any) -> Any:
    """Apply a convolution, and add a bias per channel."""
    y = bind(op, x, w)
    return y + bias.reshape(-1, *[1] * (y.ndim - 2))


@public_function("lucid", "nn.functional")
@expect_calls()
@over_axes(1, convolve)
def conv1d() -> None:
    """Convolve (N, C, L) with weights (O, C / groups, K).

    >>> import lucid
    >>> x, w = lucid.tensor([[[1.0, 2.0, 4.0, 8.0]]]), lucid.tensor([[[1.0, 10.0]]])
    >>> lucid.nn.functional.conv1d(x, w)
    Tensor([[[21., 42., 84.]]])
    """


@public_function("lucid", "nn.functional")
@expect_calls()
@over_axes(2, convolve)
def conv2d() -> None:
    """Convolve images (N, C, H, W) with weights (O, C / groups, KH, KW)."""


@public_function("lucid", "nn.functional")
@expect_calls()
@over_axes(3, convolve)
def conv3d() -> None:
    """Convolve volumes (N, C, D, H, W) with weights (O, C / groups, KD, KH, KW)."""


@public_function("lucid", "nn.functional")
@expect_calls()
@over_axes(1, conv_transpose)
def conv_transpose1d() -> None:
    """The adjoint of conv1d: (N, C, L) and weights (C, O / groups, K) give (N, O, L')."""


@public_function("lucid", "nn.functional")
@expect_calls()
@over_axes(2, conv_transpose)
def conv_transpose2d() -> None:
    """The adjoint of conv2d: (N, C, H, W) and weights (C, O / groups, KH, KW) give larger images.

    >>> import lucid
    >>> x, w = lucid.ones(1, 1, 2, 2), lucid.ones(1, 1, 2, 2)
    >>> lucid.nn.functional.conv_transpose2d(x, w).reshape(3, 3)
    Tensor([[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]])
    """


@public_function("lucid", "nn.functional")
@expect_calls()
@over_axes(3, conv_transpose)
def conv_transpose3d() -> None:
    """The adjoint of conv3d: (N, C, D, H, W) and weights (C, O / groups, KD, KH, KW)."""
