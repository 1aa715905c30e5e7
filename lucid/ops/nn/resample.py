"""resample: interpolate along one axis; every result is a weighted sum of some elements.

The weights are a sparse matrix: `starts[i]` to `starts[i + 1]` are the terms of result i, each with
the index of its element and a weight. Other elements are not read, so inf and nan do not spread.
The adjoint uses the transposed matrix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.primitive import HEAVY
from lucid.ir.types import Type
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Linear
from lucid.ops.shape.movement import with_size
from lucid.support.caches import memoize
from lucid.tape.bind import bind


class InterpolationTable(NamedTuple):
    """A sparse matrix by rows (CSR)."""

    starts: np.ndarray
    indices: np.ndarray
    weights: np.ndarray

    def transposed(self, columns: int) -> InterpolationTable:
        """Return the transposed matrix."""
        counts = np.bincount(self.indices, minlength=columns)
        order = np.argsort(self.indices, kind="stable")
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return InterpolationTable(np.cumsum([0, *counts]), rows[order], self.weights[order])


class Resample(Linear):
    """`axis` resampled from `old` to `new` elements, which are `scale` old elements apart.

    mode             "nearest", "nearest-exact", "linear" or "cubic"
    align_corners    the first and last results are at the first and last elements
    antialias        the filter is stretched if the image shrinks
    transpose        the adjoint: from the new elements to the old ones
    """

    axis: int
    old: int
    new: int
    mode: str
    scale: float
    align_corners: bool = False
    antialias: bool = False
    transpose: bool = False
    native_from = HEAVY
    lowering = "lucid.compiler.lowering.conv.resample_kernel:ResampleLowering"
    partwise = True

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the sizes of the operand's and the result's axis."""
        return (self.new, self.old) if self.transpose else (self.old, self.new)

    @property
    def table(self) -> InterpolationTable:
        return interpolation_table(
            self.old,
            self.new,
            self.mode,
            self.scale,
            self.align_corners,
            self.antialias,
            self.transpose,
        )

    def infer(self, x: Type) -> Type:
        before, after = self.sizes
        if x.ndim <= self.axis or x.shape[self.axis] != before:
            raise ShapeError(f"resample: {x.shape} has no axis {self.axis} of {before} elements")
        if x.dtype.kind not in "fc":
            raise DTypeError(f"resample: dtype {x.dtype}; cast it to a floating dtype")
        return Type(x.dtype, with_size(x.shape, self.axis, after))

    @quiet
    def eval(self, x: np.ndarray) -> np.ndarray:
        starts, indices, weights = self.table
        counts, shape = np.diff(starts), [-1 if a == self.axis else 1 for a in range(x.ndim)]
        exact = x.astype(np.float32) if x.dtype == np.float16 else x
        weights = weights.astype(exact.real.dtype)
        y = np.zeros(with_size(x.shape, self.axis, len(counts)), exact.dtype)
        for i in range(counts.max()):
            rows = np.flatnonzero(counts > i)
            terms = starts[rows] + i
            term = exact.take(indices[terms], self.axis) * weights[terms].reshape(shape)
            at = (slice(None),) * self.axis + (slice(None) if len(rows) == len(counts) else rows,)
            y[at] = y[at] + term if i else term
        return y.astype(x.dtype, copy=False)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(replace(self, transpose=not self.transpose), ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(replace(self, axis=self.axis + 1), x)


@memoize(maxsize=256)
def interpolation_table(
    n: int, m: int, mode: str, scale: float, align_corners: bool, antialias: bool, transpose: bool
) -> InterpolationTable:
    if transpose:
        return interpolation_table(n, m, mode, scale, align_corners, antialias, False).transposed(n)
    if mode.startswith("nearest"):
        i = np.arange(m, dtype=np.float32)  # as PyTorch does: 15 * 1.4 is 21, but not in float64
        at = (i + np.float32(0.5) if mode == "nearest-exact" else i) * np.float32(scale)
        indices = np.minimum(np.floor(at).astype(np.int64), n - 1)
        return InterpolationTable(np.arange(m + 1), indices, np.ones(m))
    if align_corners:
        scale = (n - 1) / (m - 1) if m > 1 else 0.0
    if antialias:
        weights = antialias_weights(n, m, scale, mode).T
        rows, indices = np.nonzero(weights)
        counts = np.bincount(rows, minlength=m)
        return InterpolationTable(np.cumsum([0, *counts]), indices, weights[rows, indices])
    at = np.arange(m) * scale if align_corners else (np.arange(m) + 0.5) * scale - 0.5
    at = at if mode == "cubic" else np.maximum(at, 0)
    first = np.floor(at).astype(np.int64)
    t = at - first
    around, before = (cubic_weights(t), 1) if mode == "cubic" else ([1 - t, t], 0)
    indices = (first[:, None] + np.arange(len(around)) - before).clip(0, n - 1)
    starts = np.arange(m + 1) * len(around)
    return InterpolationTable(starts, indices.reshape(-1), np.stack(around, 1).reshape(-1))


def cubic_weights(t: Any, a: float = -0.75) -> list[Any]:
    """Return Keys' cubic weights of four elements for a position t after the second."""

    def near(s: Any) -> Any:
        return ((a + 2) * s - (a + 3)) * s * s + 1

    def far(s: Any) -> Any:
        return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def antialias_weights(n: int, m: int, scale: float, mode: str) -> np.ndarray:
    """Return the weights (n, m) of a filter stretched if the image shrinks, as in Pillow."""
    reach = (2.0 if mode == "cubic" else 1.0) * max(scale, 1.0)
    center = scale * (np.arange(m) + 0.5)
    first = np.maximum(np.floor(center - reach + 0.5), 0)
    last = np.minimum(np.floor(center + reach + 0.5), n)
    k = np.arange(n)[:, None]
    t = np.abs((k - center + 0.5) / max(scale, 1.0))
    if mode == "cubic":
        a = -0.5
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        weights = np.where(t < 1, near, np.where(t < 2, far, 0.0))
    else:
        weights = np.maximum(1 - t, 0)
    weights = np.where((k >= first) & (k < last), weights, 0.0)
    return weights / weights.sum(0)
