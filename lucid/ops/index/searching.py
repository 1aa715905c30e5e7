"""Searching: positions in sorted rows, membership, distinct elements.

A search in sorted rows has a static shape. The number of distinct elements depends on the values:
`unique` reads them, so vmap refuses it and jit guards the values it read.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.infer import infer
from lucid.ir.types import Type
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import canonicalize_axis, canonicalize_shape
from lucid.ops.core.kinds import Constant
from lucid.ops.core.promote import as_tensor, cast, promote
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.gather_scatter import Gather, TakeAlong
from lucid.ops.index.selection import check_ordered
from lucid.ops.reduce.reduction import sum
from lucid.ops.reduce.sorting import Argsort, Sort
from lucid.ops.shape.joining import stack, take_axis
from lucid.ops.shape.movement import broadcast_unbatched, slice_axis
from lucid.ops.shape.shaping import ravel
from lucid.public.declare import Dynamic
from lucid.tape.bind import bind
from lucid.tape.node import wrap

INT64 = np.dtype("int64")
COMPARE_ALL_LIMIT = 32  # up to this many test elements, `isin` compares with all of them


class Searchsorted(Constant):
    """The insertion point of each value in a sorted row, before equal elements or after (`right`).

    The rows are along the last axis; the operands have the same axes before it, or one row serves
    all values. A nan is larger than every number.
    """

    right: bool = False
    decomposition = "lucid.compiler.passes.expand.expand_searchsorted:expand_searchsorted"

    def infer(self, row: Type, values: Type) -> Type:
        check_ordered(self.name, row)
        if row.dtype != values.dtype:
            raise DTypeError(f"{self.name}: values of {values.dtype} in rows of {row.dtype}")
        if row.ndim == 0 or (row.ndim > 1 and row.shape[:-1] != values.shape[:-1]):
            facts = f"values of {values.shape} in sorted rows of {row.shape}"
            raise ShapeError(f"{self.name}: {facts}: the axes before the last must be the same")
        return Type(INT64, values.shape)

    def eval(self, row: np.ndarray, values: np.ndarray) -> np.ndarray:
        side: Any = "right" if self.right else "left"
        if row.ndim == 1:
            return np.asarray(np.searchsorted(row, values, side), INT64)
        out = np.empty(values.shape, INT64)
        for i in np.ndindex(row.shape[:-1]):
            out[i] = np.searchsorted(row[i], values[i], side)
        return out

    def batch(self, n: int, batched: tuple[bool, ...], row: Any, values: Any) -> Any:
        if not batched[0] and row.ndim == 1:
            return bind(self, row, values)
        row, values = broadcast_unbatched(n, batched, row, values)
        shape = values.shape
        if row.ndim == 2 and values.ndim != 2:
            values = values.reshape(n, math.prod(shape[1:]))
        return bind(self, row, values).reshape(shape)


@public_function()
@aliases(input="values")
def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Any:
    """The insertion point of every element of `input` in the sorted last axis, by binary search.

    It is before elements equal to it, or after them if `right` (or `side="right"`).

    >>> import lucid
    >>> lucid.searchsorted(lucid.tensor([1.0, 3.0, 5.0]), lucid.tensor([3.0, 9.0]))
    Tensor([1, 3])
    """
    if side not in (None, "left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', not {side!r}")
    if side == "left" and right:
        raise ArgumentError("searchsorted: side='left' contradicts right=True")
    rows = as_tensor(sorted_sequence)
    if sorter is not None:
        sorter = as_tensor(sorter)
        axis = max(rows.ndim - 1, 0)
        rows = bind(TakeAlong(axis), rows, sorter)
    return search_rows(rows, input, right or side == "right", out_int32)


def search_rows(rows: Any, values: Any, right: bool, narrow: bool) -> Any:
    rows, values = promote(rows, as_tensor(values))
    op = Searchsorted(bool(right))
    infer(op, (rows.type, values.type))
    found = bind(op, rows.detach(), values.detach())
    return cast(found, "int32") if narrow else found


@public_function()
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """The index of the bucket between sorted boundaries that contains each element.

    >>> import lucid
    >>> lucid.bucketize(lucid.tensor([0.5, 1.0, 2.5]), lucid.tensor([1.0, 2.0]))
    Tensor([0, 0, 2])
    """
    boundaries = as_tensor(boundaries)
    if boundaries.ndim != 1:
        facts = f"boundaries of shape {boundaries.shape}"
        raise ShapeError(f"bucketize: {facts}; they must be a sorted vector")
    return search_rows(boundaries, input, right, out_int32)


@public_function()
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Any:
    """True where an element is one of the test elements.

    >>> import lucid
    >>> lucid.isin(lucid.tensor([1, 2, 3]), lucid.tensor([2, 5]))
    Tensor([False,  True, False])
    """
    x, tests = promote(as_tensor(elements), as_tensor(test_elements))
    x, tests = x.detach(), ravel(tests.detach())
    n = tests.shape[0]
    if n <= COMPARE_ALL_LIMIT or x.dtype.kind == "c":
        found = (x.reshape(*x.shape, 1) == tests).any(-1)
    else:
        ordered = bind(Sort(0), tests)[0]
        place = bind(Searchsorted(), ordered, x)
        found = bind(Gather((0,)), ordered, where(place == n, 0, place)) == x
    return ~found if invert else found


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Dynamic:
    """The distinct elements (or slices along `dim`), sorted; the shape depends on the values.

    `return_inverse` adds the index in them of each element, `return_counts` the number of each.

    >>> import lucid
    >>> lucid.unique(lucid.tensor([3, 1, 3]), return_counts=True)
    (Tensor([1, 3]), Tensor([1, 2]))
    """
    x = as_tensor(input)
    array = x.array("unique")
    axis = None if dim is None else canonicalize_axis("unique", dim, x.ndim)
    _, first, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True,
        axis=axis, equal_nan=False,
    )  # fmt: skip
    values = take_axis(ravel(x) if axis is None else x, axis or 0, first)
    inverse = inverse.reshape(array.shape if axis is None else -1)
    return unique_results(values, inverse, counts, return_inverse, return_counts)


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Dynamic:
    """`input` without elements (or slices along `dim`) that equal their predecessor.

    >>> import lucid
    >>> lucid.unique_consecutive(lucid.tensor([1, 1, 2, 1]))
    Tensor([1, 2, 1])
    """
    x = as_tensor(input)
    array = x.array("unique_consecutive")
    axis = None if dim is None else canonicalize_axis("unique_consecutive", dim, x.ndim)
    rows = array.reshape(-1) if axis is None else np.moveaxis(array, axis, 0)
    changed = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
    starts = np.concatenate([np.ones(min(len(rows), 1), bool), changed])
    first = np.flatnonzero(starts)
    counts = np.diff(np.append(first, len(rows)))
    inverse = np.cumsum(starts) - 1
    values = take_axis(ravel(x) if axis is None else x, axis or 0, first)
    inverse = inverse.reshape(array.shape if axis is None else -1)
    return unique_results(values, inverse, counts, return_inverse, return_counts)


def unique_results(values: Any, inverse: Any, counts: Any, wants_inverse: Any, wants: Any) -> Any:
    out = [values]
    if wants_inverse:
        out.append(wrap(np.asarray(inverse, INT64)))
    if wants:
        out.append(wrap(np.asarray(counts, INT64)))
    return tuple(out) if len(out) > 1 else values


@public_function("lucid", "Tensor")
def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """The indices of the first `size` nonzero elements; missing rows are filled.

    The shape does not depend on values, so it works inside vmap and jit.

    >>> import lucid
    >>> lucid.nonzero_static(lucid.tensor([0, 2, 3]), size=3)
    Tensor([[ 1],
            [ 2],
            [-1]])
    """
    x, size = as_tensor(input), operator.index(size)
    if size < 0:
        raise ShapeError(f"nonzero_static: size {size} is negative")
    nonzero_mask = ravel(x != 0)
    n = nonzero_mask.shape[0]
    positions = bind(Argsort(0, True, True), nonzero_mask)
    positions = slice_axis(positions, 0, 0, min(size, n))
    if size > n:
        positions = bind_pad(positions, size - n)
    filled = wrap(np.arange(size)) < sum(nonzero_mask)
    columns = [where(filled, i, int(fill_value)) for i in unravel_index(positions, x.shape)]
    return stack(columns, 1) if columns else positions.reshape(size, 1)[:, :0]


def bind_pad(x: Any, count: int) -> Any:
    from lucid.ops.shape.movement import Pad

    return bind(Pad((0,), (count,), (0,)), x)


@public_function()
def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """The coordinates of row-major positions in an array of `shape`.

    >>> import lucid
    >>> lucid.unravel_index(lucid.tensor([5, 1]), (2, 3))
    (Tensor([1, 0]), Tensor([2, 1]))
    """
    indices, sizes = as_tensor(indices), canonicalize_shape("unravel_index", (shape,))
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"unravel_index: indices of dtype {indices.dtype}; they must be integers")
    indices, out = cast(indices, "int64"), []
    for i, n in enumerate(sizes):
        after = max(math.prod(sizes[i + 1 :]), 1)
        place = indices // after
        out.append(place % n if n else place)
    return tuple(out)
