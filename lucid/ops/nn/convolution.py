"""Convolutions over any number of spatial axes: one trilinear form and its three derivatives.

    T(x, w, y) = sum of x[n, g c, stride q + dilation k - padding] w[g o, c, k] y[n, g o, q]

over images n, groups g, channels c and o, output positions q and kernel positions k; x is zero
outside its bounds. Each primitive is the derivative of T in one operand as a function of the other
two, so their adjoints are each other. `size` is the spatial size of the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.primitive import HEAVY
from lucid.ir.types import Type
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Bilinear, conjugate
from lucid.ops.shape.movement import Transpose, broadcast_unbatched
from lucid.tape.bind import bind

Sizes = tuple[int, ...]
WINDOW_BYTES = 1 << 24  # of the im2col windows of one chunk


class ConvolutionForm(Bilinear, abstract=True):
    """Base of the three: the geometry of the trilinear form, and the number of groups."""

    size: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int = 1
    native_from = HEAVY

    def check(self, first: Type, second: Type) -> None:
        if first.dtype != second.dtype:
            facts = f"dtypes {first.dtype} and {second.dtype}"
            raise DTypeError(f"{self.name}: {facts}; cast one first")
        if first.dtype.kind == "b":
            raise DTypeError(f"{self.name}: bool is not supported; cast the operands first")
        ndim = len(self.size) + 2
        if first.ndim != ndim or second.ndim != ndim:
            facts = f"operands of {first.shape} and {second.shape}"
            raise ShapeError(f"{self.name}: {facts}; both must have {ndim} axes")

    def refuse(self, x: Sizes, y: Sizes) -> ShapeError:
        facts = f"shapes {x} and {y} do not match for groups={self.groups}"
        return ShapeError(f"{self.name}: {facts}")

    def derivative_form(
        self, kind: type[ConvolutionForm], size: Sizes, groups: int | None = None
    ) -> ConvolutionForm:
        """Return another derivative of the same form."""
        return kind(size, self.stride, self.padding, self.dilation, groups or self.groups)

    def lengths(self, kernel: Sizes, outputs: Sizes) -> Sizes:
        """Return the extent of all windows along each axis, starting at the padding."""
        steps = zip(outputs, kernel, self.stride, self.dilation)
        return tuple((q - 1) * s + (k - 1) * d + 1 for q, k, s, d in steps)


class Convolution(ConvolutionForm):
    """y[n, g o, q] = sum of x[n, g c, stride q + dilation k - padding] w[g o, c, k]."""

    lowering = "lucid.compiler.lowering.conv.conv_lowering:ConvolutionLowering"
    complex_rule = "lucid.compiler.passes.expand.lower_complex:product"

    def infer(self, x: Type, w: Type) -> Type:
        self.check(x, w)
        if x.shape[1] != w.shape[1] * self.groups or w.shape[0] % self.groups:
            raise self.refuse(x.shape, w.shape)
        return Type(x.dtype, (x.shape[0], w.shape[0], *self.size))

    @quiet
    def eval(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        g, kernel = self.groups, w.shape[2:]
        if 0 in (*x.shape, *w.shape, *self.size):
            return np.zeros((len(x), len(w), *self.size), x.dtype)
        weights = w.reshape(g, w.shape[0] // g, -1)
        out = np.empty((len(x), g, weights.shape[1], math.prod(self.size)), x.dtype)
        for part, windows in windows_of(self, x, kernel, self.size):
            np.matmul(weights, windows, out=out[part])
        return out.reshape(len(x), len(w), *self.size)

    def left(self, ct: Any, x: Any, w: Any) -> Any:
        return bind(self.derivative_form(ConvolutionTranspose, x.shape[2:]), ct, conjugate(w))

    def right(self, ct: Any, x: Any, w: Any) -> Any:
        return bind(self.derivative_form(ConvolutionWeight, w.shape[2:]), conjugate(x), ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, w: Any) -> Any:
        if not batched[1]:
            return unfold_from_images(n, bind(self, fold_into_images(x), w))
        x, w = broadcast_unbatched(n, batched, x, w)
        op = self.derivative_form(Convolution, self.size, n * self.groups)
        return unfold_from_channels(n, bind(op, fold_into_channels(x), fold_into_images(w)))


class ConvolutionTranspose(ConvolutionForm):
    """x[n, g c, stride q + dilation k - padding] += y[n, g o, q] w[g o, c, k], from zeros."""

    lowering = "lucid.compiler.lowering.conv.conv_lowering:ConvolutionTransposeLowering"
    complex_rule = "lucid.compiler.passes.expand.lower_complex:product"

    def infer(self, y: Type, w: Type) -> Type:
        self.check(y, w)
        if y.shape[1] != w.shape[0] or w.shape[0] % self.groups:
            raise self.refuse(y.shape, w.shape)
        return Type(y.dtype, (y.shape[0], w.shape[1] * self.groups, *self.size))

    @quiet
    def eval(self, y: np.ndarray, w: np.ndarray) -> np.ndarray:
        g, kernel, outputs = self.groups, w.shape[2:], y.shape[2:]
        channels = w.shape[1] * g
        out = np.zeros((len(y), channels, *self.size), y.dtype)
        if 0 in (*y.shape, *w.shape, *self.size):
            return out
        weights = w.reshape(g, w.shape[0] // g, -1).swapaxes(1, 2)
        values = y.reshape(len(y), g, y.shape[1] // g, -1)
        lengths = self.lengths(kernel, outputs)
        for part in image_chunks(len(y), weights[0].size * values[0, 0].size * g * y.itemsize):
            windows = np.matmul(weights, values[part])
            windows = windows.reshape(-1, channels, *kernel, *outputs)
            whole = np.zeros((len(windows), channels, *lengths), y.dtype)
            for k in np.ndindex(kernel):
                whole[self.output_slices(k, outputs)] += windows[:, :, *k]
            target, source = overlap(self.size, self.padding, lengths)
            out[part][source] = whole[target]
        return out

    def output_slices(self, k: Sizes, outputs: Sizes) -> tuple[Any, ...]:
        """Return the slices of the padded array that hold element k of every window."""
        steps = zip(k, outputs, self.stride, self.dilation)
        return (..., *[slice(i * d, i * d + (q - 1) * s + 1, s) for i, q, s, d in steps])

    def left(self, ct: Any, y: Any, w: Any) -> Any:
        return bind(self.derivative_form(Convolution, y.shape[2:]), ct, conjugate(w))

    def right(self, ct: Any, y: Any, w: Any) -> Any:
        return bind(self.derivative_form(ConvolutionWeight, w.shape[2:]), ct, conjugate(y))

    def batch(self, n: int, batched: tuple[bool, ...], y: Any, w: Any) -> Any:
        if not batched[1]:
            return unfold_from_images(n, bind(self, fold_into_images(y), w))
        y, w = broadcast_unbatched(n, batched, y, w)
        op = self.derivative_form(ConvolutionTranspose, self.size, n * self.groups)
        return unfold_from_channels(n, bind(op, fold_into_channels(y), fold_into_images(w)))


class ConvolutionWeight(ConvolutionForm):
    """w[g o, c, k] = sum of x[n, g c, stride q + dilation k - padding] y[n, g o, q]."""

    lowering = "lucid.compiler.lowering.conv.weight_gradient_panels:ConvolutionWeightLowering"
    complex_rule = "lucid.compiler.passes.expand.lower_complex:product"

    def infer(self, x: Type, y: Type) -> Type:
        self.check(x, y)
        if x.shape[0] != y.shape[0] or x.shape[1] % self.groups or y.shape[1] % self.groups:
            raise self.refuse(x.shape, y.shape)
        return Type(x.dtype, (y.shape[1], x.shape[1] // self.groups, *self.size))

    @quiet
    def eval(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        g, outputs = self.groups, y.shape[2:]
        shape = (y.shape[1], x.shape[1] // g, *self.size)
        if 0 in (*x.shape, *y.shape, *self.size):
            return np.zeros(shape, x.dtype)
        values = y.reshape(len(y), g, y.shape[1] // g, -1)
        total: Any = 0
        for part, windows in windows_of(self, x, self.size, outputs):
            total = total + np.matmul(values[part], windows.swapaxes(2, 3)).sum(0, x.dtype)
        return total.reshape(shape)

    def left(self, ct: Any, x: Any, y: Any) -> Any:
        return bind(self.derivative_form(ConvolutionTranspose, x.shape[2:]), conjugate(y), ct)

    def right(self, ct: Any, x: Any, y: Any) -> Any:
        return bind(self.derivative_form(Convolution, y.shape[2:]), conjugate(x), ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, y: Any) -> Any:
        x, y = broadcast_unbatched(n, batched, x, y)
        op = self.derivative_form(ConvolutionWeight, self.size, n * self.groups)
        return unfold_from_images(n, bind(op, fold_into_channels(x), fold_into_channels(y)))


def windows_of(
    op: ConvolutionForm, x: np.ndarray, kernel: Sizes, outputs: Sizes
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield chunks of images and their im2col windows: (images, groups, channels × k, outputs)."""
    channels = x.shape[1] // op.groups
    rows, columns = channels * math.prod(kernel), math.prod(outputs)
    for part in image_chunks(len(x), rows * columns * op.groups * x.itemsize):
        whole = pad_images(x[part], op.padding, op.lengths(kernel, outputs))
        steps = whole.strides[2:]
        apart = [n * d for n, d in zip(steps, op.dilation)]
        moved = [n * s for n, s in zip(steps, op.stride)]
        view = np.lib.stride_tricks.as_strided(
            whole,
            (*whole.shape[:2], *kernel, *outputs),
            (*whole.strides[:2], *apart, *moved),
            writeable=False,
        )
        yield part, view.reshape(len(whole), op.groups, rows, columns)


def image_chunks(n: int, nbytes: int) -> Iterator[slice]:
    """Yield chunks of images whose windows, `nbytes` each, fit into WINDOW_BYTES."""
    count = max(1, WINDOW_BYTES // max(nbytes, 1))
    for start in range(0, n, count):
        yield slice(start, min(start + count, n))


def pad_images(x: np.ndarray, padding: Sizes, lengths: Sizes) -> np.ndarray:
    """Return `x` from `-padding` on with spatial sizes `lengths`, padded with zeros."""
    if not any(padding) and x.shape[2:] == lengths:
        return x
    whole = np.zeros((*x.shape[:2], *lengths), x.dtype)
    target, source = overlap(x.shape[2:], padding, lengths)
    whole[target] = x[source]
    return whole


def overlap(size: Sizes, padding: Sizes, lengths: Sizes) -> tuple[Any, Any]:
    """Return the slices of the overlap in the padded array and in the original."""
    target, source = [], []
    for n, low, length in zip(size, padding, lengths):
        first, last = max(0, -low), min(n, length - low)
        last = max(first, last)
        target.append(slice(first + low, last + low))
        source.append(slice(first, last))
    return (..., *target), (..., *source)


def fold_into_images(x: Any) -> Any:
    """Fold a batch (n, N, ...) into the images (n N, ...)."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def unfold_from_images(n: int, y: Any) -> Any:
    return y.reshape(n, y.shape[0] // n, *y.shape[1:])


def fold_into_channels(x: Any) -> Any:
    """Fold a batch (n, N, C, ...) into groups of channels (N, n C, ...)."""
    x = bind(Transpose((1, 0, *range(2, x.ndim))), x)
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:])


def unfold_from_channels(n: int, y: Any) -> Any:
    y = y.reshape(y.shape[0], n, y.shape[1] // n, *y.shape[2:])
    return bind(Transpose((1, 0, *range(2, y.ndim))), y)
