"""Sorting along one axis. A nan counts as larger than every number, as in NumPy and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.infer import infer
from lucid.ir.types import Type
from lucid.ops.core.arguments import flag, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.kinds import Constant
from lucid.ops.core.promote import as_tensor
from lucid.ops.index.selection import INT64, Selected, Selection, check_ordered, reshape_to
from lucid.ops.reduce.reduction import bind_checked
from lucid.public.declare import public
from lucid.tape.bind import bind

SMALL = 10_000  # elements that are sorted by the stable algorithm at once


def sort_order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Return the int64 indices that sort `x`.

    Equal elements keep their order whether `stable` is asked for or not, as in compiled programs:
    derivatives follow the indices.
    """
    if not descending:
        return stable_argsort(x, axis).astype(INT64, copy=False)
    from_the_end = stable_argsort(np.flip(x, axis), axis)
    return np.subtract(x.shape[axis] - 1, np.flip(from_the_end, axis), dtype=INT64)


def stable_argsort(x: np.ndarray, axis: int) -> np.ndarray:
    """NumPy's stable argsort; many floats are sorted by the faster one, and ties after it."""
    if x.size <= SMALL or x.dtype.kind != "f":
        return np.argsort(x, axis, kind="stable")
    x = x.swapaxes(axis, -1)
    order, n = np.argsort(x, -1), x.shape[-1]
    values = np.take_along_axis(x, order, -1)
    differs = (values[..., 1:] != values[..., :-1]) & ~np.isnan(values[..., :-1])
    if not differs.all():  # sort the indices within each run of equal values
        keys = order.astype(INT64, copy=False)
        keys[..., 1:] += np.cumsum(differs, -1) * n
        order = np.sort(keys, -1, kind="stable") % n
    return order.swapaxes(axis, -1)


class Sort(Selection):
    """The elements sorted along `axis`, and their indices."""

    descending: bool = False
    stable: bool = False
    lowering = "lucid.compiler.lowering.index.sort_kernel:SortLowering"

    def infer(self, x: Type) -> tuple[Type, Type]:
        check_ordered("sort", x)
        return x, Type(INT64, x.shape)

    def eval(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        indices = sort_order(x, self.axis, self.descending)
        return np.take_along_axis(x, indices, self.axis), indices

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Sort(self.axis + 1, self.descending, self.stable), x)


class Argsort(Constant):
    """The indices that sort the elements along `axis`."""

    axis: int
    descending: bool = False
    stable: bool = False
    lowering = "lucid.compiler.lowering.index.sort_kernel:SortLowering"

    def infer(self, x: Type) -> Type:
        check_ordered("argsort", x)
        return Type(INT64, x.shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        return sort_order(x, self.axis, self.descending)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Argsort(self.axis + 1, self.descending, self.stable), x)


class TopK(Selection):
    """The `k` largest or smallest elements along `axis`, with their indices; sorted if `sorted`.

    Equal chosen elements are in the order of their indices. Of those that tie for the last place
    the first ones are chosen.
    """

    name = "topk"
    k: int
    largest: bool = True
    sorted: bool = True
    lowering = "lucid.compiler.lowering.index.sort_kernel:TopKLowering"

    def infer(self, x: Type) -> tuple[Type, Type]:
        check_ordered("topk", x)
        if not 0 <= self.k <= x.shape[self.axis]:
            raise ShapeError(
                f"topk: k={self.k} is not between 0 and {x.shape[self.axis]}, the size of axis "
                f"{self.axis} of {x}"
            )
        shape = (*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :])
        return Type(x.dtype, shape), Type(INT64, shape)

    def eval(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        axis, k, n = self.axis, self.k, x.shape[self.axis]
        if k > n:
            raise ValueError(f"topk: k={k} exceeds the size {n}")
        if 0 < k < n:
            indices = self.choose(x.swapaxes(axis, -1)).swapaxes(axis, -1)
        else:
            row = np.arange(k).reshape([-1] + [1] * (x.ndim - 1 - axis))
            indices = np.broadcast_to(row, (*x.shape[:axis], k, *x.shape[axis + 1 :]))
        indices = np.sort(indices, axis).astype(INT64, copy=False)
        values = np.take_along_axis(x, indices, axis)
        if not self.sorted:
            return values, indices
        inner = sort_order(values, axis, self.largest)
        return np.take_along_axis(values, inner, axis), np.take_along_axis(indices, inner, axis)

    def choose(self, x: np.ndarray) -> np.ndarray:
        """Return the indices of the chosen elements of the last axis, in any order."""
        k, n = self.k, x.shape[-1]
        if x.size > SMALL:
            last = n - k if self.largest else k - 1
            order = np.argpartition(x, last, -1)
            chosen = order[..., last:] if self.largest else order[..., :k]
            least = np.take_along_axis(x, order[..., last : last + 1], -1)
            ties = (np.take_along_axis(x, chosen, -1) == least).sum(-1)
            is_known = x.dtype.kind != "f" or not np.isnan(least).any()
            if is_known and np.array_equal((x == least).sum(-1), ties):
                return chosen
        return sort_order(x, -1, self.largest)[..., :k]

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(TopK(self.axis + 1, self.k, self.largest, self.sorted), x)


def row_of(name: str, x: Any, dim: Any, axis: Any) -> tuple[Any, int]:
    """Return the operand and its axis; a scalar becomes a vector of one element."""
    number = canonicalize_axis(name, dim if axis is None else axis, x.ndim)
    return (x.reshape(1) if x.ndim == 0 else x), number


@public("lucid", "Tensor")
def sort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False, *, axis: Any = None
) -> Selected:
    """The elements sorted along `dim`, and their indices; gradients follow the indices.

    >>> import lucid
    >>> values, indices = lucid.sort(lucid.tensor([3.0, 1.0, 2.0]))
    >>> values, indices
    (Tensor([1., 2., 3.]), Tensor([1, 2, 0]))
    """
    x = as_tensor(input)
    row, number = row_of("sort", x, dim, axis)
    order = flag("sort", "descending", descending), flag("sort", "stable", stable)
    outs = bind_checked(Sort(number, *order), row)
    return Selected(*[reshape_to(part, x.shape) for part in outs])


@public("lucid", "Tensor")
def argsort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False, *, axis: Any = None
) -> Any:
    """The indices that sort the elements along `dim`.

    >>> import lucid
    >>> lucid.argsort(lucid.tensor([3.0, 1.0, 2.0]), descending=True)
    Tensor([0, 2, 1])
    """
    x = as_tensor(input)
    row, number = row_of("argsort", x, dim, axis)
    order = flag("argsort", "descending", descending), flag("argsort", "stable", stable)
    indices = bind_checked(Argsort(number, *order), row)
    return reshape_to(indices, x.shape)


@public_function("lucid", "Tensor")
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
    outs = bind_checked(op, row)
    if x.ndim == 0 and k == 1:
        outs = [reshape_to(part, ()) for part in outs]
    return Selected(*outs)
