"""Sorting along one axis. A nan counts as larger than every number, as in NumPy and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.infer import infer
from lucid.ir.types import Type
from lucid.ops.core.axes import axis_of
from lucid.ops.core.kinds import Constant
from lucid.ops.core.promote import as_tensor
from lucid.ops.index.selection import INT64, Selected, Selection, check_ordered, reshaped
from lucid.ops.reduce.reduction import checked
from lucid.tape.bind import bind


def order(x: np.ndarray, axis: int, descending: bool, stable: bool) -> np.ndarray:
    """The int64 indices that sort `x`; where `stable`, equal elements keep their order."""
    kind: Any = "stable" if stable else None
    if not descending:
        return np.argsort(x, axis, kind=kind).astype(INT64, copy=False)
    from_the_end = np.argsort(np.flip(x, axis), axis, kind=kind)
    return np.subtract(x.shape[axis] - 1, np.flip(from_the_end, axis), dtype=INT64)


class Sort(Selection):
    """The elements in order along `axis`, and the indices they had."""

    descending: bool = False
    stable: bool = False

    def infer(self, x: Type) -> tuple[Type, Type]:
        check_ordered("sort", x)
        return x, Type(INT64, x.shape)

    def eval(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        indices = order(x, self.axis, self.descending, self.stable)
        return np.take_along_axis(x, indices, self.axis), indices

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Sort(self.axis + 1, self.descending, self.stable), x)


class Argsort(Constant):
    """The indices that put the elements in order along `axis`."""

    axis: int
    descending: bool = False
    stable: bool = False

    def infer(self, x: Type) -> Type:
        check_ordered("argsort", x)
        return Type(INT64, x.shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        return order(x, self.axis, self.descending, self.stable)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Argsort(self.axis + 1, self.descending, self.stable), x)


class TopK(Selection):
    """The `k` largest or smallest elements along `axis`, with their indices; in order if `sorted`.

    Equal elements that are chosen stand in the order of their indices. Which of those that tie for
    the last place are chosen is not defined.
    """

    name = "topk"
    k: int
    largest: bool = True
    sorted: bool = True

    def infer(self, x: Type) -> tuple[Type, Type]:
        check_ordered("topk", x)
        if not 0 <= self.k <= x.shape[self.axis]:
            raise ShapeError(
                f"topk: k={self.k} of the {x.shape[self.axis]} elements in axis {self.axis} of {x}"
            )
        shape = (*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :])
        return Type(x.dtype, shape), Type(INT64, shape)

    def eval(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        axis, k, n = self.axis, self.k, x.shape[self.axis]
        if k > n:
            raise ValueError("more elements are wanted than there are")
        if 0 < k < n:
            start = n - k if self.largest else 0
            places = np.argpartition(x, n - k if self.largest else k - 1, axis)
            places = places[(slice(None),) * axis + (slice(start, start + k),)]
        else:
            row = np.arange(k).reshape([-1] + [1] * (x.ndim - 1 - axis))
            places = np.broadcast_to(row, (*x.shape[:axis], k, *x.shape[axis + 1 :]))
        places = np.sort(places, axis).astype(INT64, copy=False)
        values = np.take_along_axis(x, places, axis)
        if not self.sorted:
            return values, places
        inner = order(values, axis, self.largest, True)
        return np.take_along_axis(values, inner, axis), np.take_along_axis(places, inner, axis)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(TopK(self.axis + 1, self.k, self.largest, self.sorted), x)


def row_of(name: str, x: Any, dim: Any, axis: Any) -> tuple[Any, int]:
    """The operand and its axis; a number is taken as a row of one."""
    number = axis_of(name, dim if axis is None else axis, x.ndim)
    return (x.reshape(1) if x.ndim == 0 else x), number


def sort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False, *, axis: Any = None
) -> Selected:
    """The elements in order along `dim`, and their indices; the gradient goes back the same way.

    >>> import lucid
    >>> values, indices = lucid.sort(lucid.tensor([3.0, 1.0, 2.0]))
    >>> values, indices
    (Tensor([1., 2., 3.]), Tensor([1, 2, 0]))
    """
    x = as_tensor(input)
    row, number = row_of("sort", x, dim, axis)
    outs = checked(Sort(number, bool(descending), bool(stable)), row)
    return Selected(*[reshaped(part, x.shape) for part in outs])


def argsort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False, *, axis: Any = None
) -> Any:
    """The indices that put the elements in order along `dim`.

    >>> import lucid
    >>> lucid.argsort(lucid.tensor([3.0, 1.0, 2.0]), descending=True)
    Tensor([0, 2, 1])
    """
    x = as_tensor(input)
    row, number = row_of("argsort", x, dim, axis)
    indices = checked(Argsort(number, bool(descending), bool(stable)), row)
    return reshaped(indices, x.shape)


def topk(
    input: Any,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    axis: Any = None,
) -> Selected:
    """The `k` largest (or smallest) elements along `dim`, and their indices.

    >>> import lucid
    >>> lucid.topk(lucid.tensor([3.0, 1.0, 4.0, 1.0, 5.0]), 2).values
    Tensor([5., 4.])
    """
    x = as_tensor(input)
    row, number = row_of("topk", x, dim, axis)
    op = TopK(number, int(k), bool(largest), bool(sorted))
    if k < 0:
        infer(op, (row.type,))
    outs = checked(op, row)
    if x.ndim == 0 and k == 1:
        outs = [reshaped(part, ()) for part in outs]
    return Selected(*outs)
