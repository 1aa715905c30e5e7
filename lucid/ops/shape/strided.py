"""Strided: the view whose every axis takes a fixed step through the operand.

Diagonals (a step along two axes), windows (two axes that step along the same one) and `as_strided`
are such views. Their elements can be in the same memory; derivatives add up there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.kinds import Linear
from lucid.ops.shape.movement import Reshape, Slice, Transpose
from lucid.tape.bind import bind
from lucid.tape.node import wrap


class Strided(Linear):
    """`y[i, j] = x[starts + i * steps[0] + j * steps[1]]`; a step has one entry for each axis."""

    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    is_view = True
    may_overlap = True
    moves = True

    def infer(self, x: Type) -> Type:
        lengths = {len(self.starts), *[len(step) for step in self.steps]}
        if lengths != {x.ndim} or len(self.sizes) != len(self.steps):
            raise ShapeError(f"strided: {self!r} does not have a step for each axis of {x.shape}")
        for axis, (start, n) in enumerate(zip(self.starts, x.shape)):
            moves = [(size - 1) * step[axis] for size, step in zip(self.sizes, self.steps)]
            least = start + sum([move for move in moves if move < 0])
            most = start + sum([move for move in moves if move > 0])
            if math.prod(self.sizes) and not 0 <= least <= most < n:
                raise ShapeError(
                    f"strided: {least} to {most} is out of range for axis {axis} of {x.shape}"
                )
        return Type(x.dtype, self.sizes)

    def eval(self, x: np.ndarray) -> np.ndarray:
        if not math.prod(self.sizes):
            return np.empty(self.sizes, x.dtype)
        strides = tuple([self.along(step, x.strides) for step in self.steps])
        if x.flags.c_contiguous:
            return np.ndarray(self.sizes, x.dtype, x, self.along(self.starts, x.strides), strides)
        first = x[tuple([slice(start, None) for start in self.starts])]
        return np.lib.stride_tricks.as_strided(first, self.sizes, strides)

    def view(self, x: Any) -> Any:
        strides = tuple([self.along(step, x.strides) for step in self.steps])
        first = self.along(self.starts, x.strides) if math.prod(self.sizes) else 0
        return x.over(self.sizes, strides, first)

    @staticmethod
    def along(step: tuple[int, ...], strides: tuple[int, ...]) -> int:
        return sum([n * stride for n, stride in zip(step, strides)])

    def flat(self, shape: tuple[int, ...]) -> tuple[int, list[int]]:
        """Return the start and the steps in row-major positions of an operand of this shape."""
        strides = tuple([math.prod(shape[i + 1 :]) for i in range(len(shape))])
        return self.along(self.starts, strides), [self.along(s, strides) for s in self.steps]

    def positions(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the row-major position in an operand of this shape of every element."""
        start, steps = self.flat(shape)
        places: Any = np.asarray(start)
        for n, step in zip(self.sizes, steps):
            places = places[..., None] + np.arange(n) * step
        return places

    def diagonal_moves(self, shape: tuple[int, ...]) -> tuple[Primitive, ...] | None:
        """Return the transpose, reshape and slice that equal a diagonal; None for other views."""
        *units, diagonal = self.steps or ((),)
        pair = [axis for axis, step in enumerate(diagonal) if step == 1]
        rest = [axis for axis in range(len(shape)) if axis not in pair]
        if len(pair) != 2 or sum(map(abs, diagonal)) != 2 or len(units) != len(rest):
            return None
        if units != [tuple([int(i == axis) for i in range(len(shape))]) for axis in rest]:
            return None
        whole = [(self.sizes[i], shape[axis], self.starts[axis]) for i, axis in enumerate(rest)]
        if any(size != n or start for size, n, start in whole):
            return None
        rows, columns = (shape[axis] for axis in pair)
        outer = tuple([shape[axis] for axis in rest])
        start = self.starts[pair[0]] * columns + self.starts[pair[1]]
        count = self.sizes[-1]
        limit = start + (count - 1) * (columns + 1) + 1 if count else start
        zeros, ones = (0,) * len(outer), (1,) * len(outer)
        return (
            Transpose((*rest, *pair)),
            Reshape((*outer, rows * columns)),
            Slice((*zeros, start), (*outer, limit), (*ones, columns + 1)),
        )

    def adjoint(self, ct: Any, x: Any) -> Any:
        from lucid.ops.index.gather_scatter import ScatterAdd

        moves = self.diagonal_moves(x.shape)
        if moves is None:
            size = math.prod(x.shape)
            total = bind(ScatterAdd((size,), (0,)), ct, wrap(self.positions(x.shape)))
            return total.reshape(x.shape)
        turn, flatten, cut = moves
        types = [x.type, turn.infer(x.type)]
        types.append(flatten.infer(types[-1]))  # type: ignore[arg-type]
        for op, type in zip((cut, flatten, turn), reversed(types)):
            ct = op.adjoint(ct, type)  # type: ignore[attr-defined]
        return ct

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        first = (1, *[0] * len(self.starts))
        steps = (first, *[(0, *step) for step in self.steps])
        return bind(Strided((n, *self.sizes), (0, *self.starts), steps), x)

    def insert(self, base: Any, part: Any) -> Any:
        moves = self.diagonal_moves(base.shape)
        if moves is None:
            return self.insert_at(base, part, self.positions(base.shape))
        turn, flatten, cut = moves
        turned = bind(turn, base)
        part = cut.insert(bind(flatten, turned), part)
        return turn.insert(base, flatten.insert(turned, part))

    def insert_at(self, base: Any, part: Any, positions: np.ndarray) -> Any:
        """Return `base` with the elements at row-major positions replaced by those of `part`."""
        from lucid.ops.index.writing import ScatterSet

        flat = bind(ScatterSet((0,)), base.reshape(-1), part, wrap(positions))
        return flat.reshape(base.shape)


def windows(x: Any, axis: int, size: int, step: int) -> Any:
    """Return the windows of `size` elements along an axis, `step` apart, as a new last axis."""
    units = [tuple([int(i == j) for i in range(x.ndim)]) for j in range(x.ndim)]
    along = units[axis]
    units[axis] = tuple([step * n for n in along])
    sizes = list(x.shape)
    sizes[axis] = (x.shape[axis] - size) // step + 1
    return bind(Strided((*sizes, size), (0,) * x.ndim, (*units, along)), x)


def strided_diagonal(x: Any, offset: int, a: int, b: int) -> Any:
    """Return the diagonals of the matrices in axes a and b, as the last axis."""
    rows, columns = x.shape[a], x.shape[b]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    rest = [i for i in range(x.ndim) if i not in (a, b)]
    starts = [0] * x.ndim
    if count:
        starts[a], starts[b] = max(-offset, 0), max(offset, 0)
    steps = [tuple([int(i == axis) for i in range(x.ndim)]) for axis in rest]
    steps.append(tuple([int(i in (a, b)) for i in range(x.ndim)]))
    sizes = (*[x.shape[axis] for axis in rest], count)
    return bind(Strided(sizes, tuple(starts), tuple(steps)), x)
