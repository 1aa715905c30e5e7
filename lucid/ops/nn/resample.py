"""resample: one axis read at other places, every result a weighted sum of some elements.

A table says which: `starts[i]` to `starts[i + 1]` are the terms of result i, each with the place
that it is read at and a weight. What a table does not name is not read, so inf and nan stay where
they are. The adjoint has the table of the transposed matrix.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.primitive import HEAVY
from lucid.ir.types import Type
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Linear
from lucid.ops.shape.movement import replaced
from lucid.tape.bind import bind


class Table(NamedTuple):
    """A sparse matrix by rows."""

    starts: np.ndarray
    places: np.ndarray
    weights: np.ndarray

    def transposed(self, columns: int) -> Table:
        """Terms in the order of the rows that they come from."""
        counts = np.bincount(self.places, minlength=columns)
        order = np.argsort(self.places, kind="stable")
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return Table(np.cumsum([0, *counts]), rows[order], self.weights[order])


class Resample(Linear):
    """Axis `axis` of `old` elements at `new` places, which lie `scale` old elements apart.

    mode        "nearest", "nearest-exact", "linear" or "cubic"
    corners     the first and the last places are those of the first and the last elements
    antialias   weights are stretched where places are more than an element apart
    turned      the adjoint: from the new places to the old ones
    """

    axis: int
    old: int
    new: int
    mode: str
    scale: float
    corners: bool = False
    antialias: bool = False
    turned: bool = False
    native_from = HEAVY

    @property
    def sizes(self) -> tuple[int, int]:
        """Of the operand's axis and of the result's."""
        return (self.new, self.old) if self.turned else (self.old, self.new)

    @property
    def table(self) -> Table:
        return table_of(
            self.old, self.new, self.mode, self.scale, self.corners, self.antialias, self.turned
        )

    def infer(self, x: Type) -> Type:
        before, after = self.sizes
        if x.ndim <= self.axis or x.shape[self.axis] != before:
            raise ShapeError(f"resample: {x.shape} has no axis {self.axis} of {before} elements")
        if x.dtype.kind not in "fc":
            raise DTypeError(f"resample: dtype {x.dtype}; cast it to a floating one")
        return Type(x.dtype, replaced(x.shape, self.axis, after))

    @quiet
    def eval(self, x: np.ndarray) -> np.ndarray:
        starts, places, weights = self.table
        counts, shape = np.diff(starts), [-1 if a == self.axis else 1 for a in range(x.ndim)]
        exact = x.astype(np.float32) if x.dtype == np.float16 else x
        weights = weights.astype(exact.real.dtype)
        y = np.zeros(replaced(x.shape, self.axis, len(counts)), exact.dtype)
        for i in range(counts.max()):
            rows = np.flatnonzero(counts > i)
            terms = starts[rows] + i
            term = exact.take(places[terms], self.axis) * weights[terms].reshape(shape)
            at = (slice(None),) * self.axis + (slice(None) if len(rows) == len(counts) else rows,)
            y[at] = y[at] + term if i else term
        return y.astype(x.dtype, copy=False)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(replace(self, turned=not self.turned), ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(replace(self, axis=self.axis + 1), x)


@lru_cache(maxsize=256)
def table_of(
    n: int, m: int, mode: str, scale: float, corners: bool, antialias: bool, turned: bool
) -> Table:
    if turned:
        return table_of(n, m, mode, scale, corners, antialias, False).transposed(n)
    if mode.startswith("nearest"):
        i = np.arange(m, dtype=np.float32)  # as PyTorch does: 15 * 1.4 is 21, but not in float64
        at = (i + np.float32(0.5) if mode == "nearest-exact" else i) * np.float32(scale)
        places = np.minimum(np.floor(at).astype(np.int64), n - 1)
        return Table(np.arange(m + 1), places, np.ones(m))
    if corners:
        scale = (n - 1) / (m - 1) if m > 1 else 0.0
    if antialias:
        weights = smoothing(n, m, scale, mode).T
        rows, places = np.nonzero(weights)
        counts = np.bincount(rows, minlength=m)
        return Table(np.cumsum([0, *counts]), places, weights[rows, places])
    at = np.arange(m) * scale if corners else (np.arange(m) + 0.5) * scale - 0.5
    at = at if mode == "cubic" else np.maximum(at, 0)
    first = np.floor(at).astype(np.int64)
    t = at - first
    around, before = (cubic(t), 1) if mode == "cubic" else ([1 - t, t], 0)
    places = (first[:, None] + np.arange(len(around)) - before).clip(0, n - 1)
    starts = np.arange(m + 1) * len(around)
    return Table(starts, places.reshape(-1), np.stack(around, 1).reshape(-1))


def cubic(t: Any, a: float = -0.75) -> list[Any]:
    """Keys' weights of the four elements around a place, which lies t beyond the second."""

    def near(s: Any) -> Any:
        return ((a + 2) * s - (a + 3)) * s * s + 1

    def far(s: Any) -> Any:
        return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def smoothing(n: int, m: int, scale: float, mode: str) -> np.ndarray:
    """Weights (n, m) of a filter that is stretched where the image shrinks, as in Pillow."""
    reach = (2.0 if mode == "cubic" else 1.0) * max(scale, 1.0)
    centre = scale * (np.arange(m) + 0.5)
    first = np.maximum(np.floor(centre - reach + 0.5), 0)
    last = np.minimum(np.floor(centre + reach + 0.5), n)
    k = np.arange(n)[:, None]
    t = np.abs((k - centre + 0.5) / max(scale, 1.0))
    if mode == "cubic":
        a = -0.5
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        weights = np.where(t < 1, near, np.where(t < 2, far, 0.0))
    else:
        weights = np.maximum(1 - t, 0)
    weights = np.where((k >= first) & (k < last), weights, 0.0)
    return weights / weights.sum(0)
