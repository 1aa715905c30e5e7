"""Functions that replace parts of a tensor: index_put, put, masked_scatter, select_scatter, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast, cast_like
from lucid.ops.elementwise.conditional import maximum, where
from lucid.ops.index.gather_scatter import Gather, ScatterAdd
from lucid.ops.index.lookup import index_tensor
from lucid.ops.index.subscript import getitem, setitem
from lucid.ops.index.writing import ScatterSet
from lucid.ops.reduce.cumulative import Cumsum
from lucid.ops.shape.diagonals import matrix_axes
from lucid.ops.shape.movement import broadcast_to
from lucid.ops.shape.shaping import broadcast_tensors, movedim, ravel
from lucid.tape.bind import bind
from lucid.tape.node import wrap


@public_function("lucid", "Tensor", inplace_function=True)
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """`input` with `input[indices] = values`; `accumulate` adds the values to the old ones.

    >>> import lucid
    >>> places = (lucid.tensor([0, 0]),)
    >>> lucid.index_put(lucid.zeros(2), places, lucid.tensor([1.0, 2.0]), accumulate=True)
    Tensor([3., 0.])
    """
    x = as_tensor(input)
    if not isinstance(indices, (tuple, list)):
        raise ShapeError("index_put: indices must be a tuple of tensors, one per axis")
    index = tuple(slice(None) if i is None else i for i in indices)
    if not accumulate:
        return setitem(x, index, cast_like(x, "index_put", values))
    number = wrap(np.arange(math.prod(x.shape)).reshape(x.shape))
    positions = getitem(number, index)
    values = broadcast_to(cast_like(x, "index_put", values), positions.shape)
    return add_at(x, positions, values)


def add_at(x: Any, positions: Any, values: Any) -> Any:
    """Return `x` with values added at row-major positions."""
    op = ScatterAdd((math.prod(x.shape),), (0,))
    return x + bind(op, ravel(values), ravel(positions)).reshape(x.shape)


@public_function("lucid", "Tensor", inplace=True)
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """`input` with elements replaced at row-major positions; `accumulate` adds to them.

    >>> import lucid
    >>> lucid.put(lucid.zeros(2, 2), lucid.tensor([3, 0]), lucid.tensor([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 1.]])
    """
    x, index = as_tensor(input), index_tensor("put", index)
    source = cast_like(x, "put", source)
    if math.prod(source.shape) != math.prod(index.shape):
        facts = f"{math.prod(source.shape)} elements for {math.prod(index.shape)} indices"
        raise ShapeError(f"put: {facts}")
    if accumulate:
        return add_at(x, index, source)
    return bind(ScatterSet((0,)), ravel(x), ravel(source), ravel(index)).reshape(x.shape)


@public_function("lucid", "Tensor", inplace=True)
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """`input` with the elements where `mask` is True replaced by those of `source`, in order.

    >>> import lucid
    >>> mask = lucid.tensor([True, False, True])
    >>> lucid.masked_scatter(lucid.zeros(3), mask, lucid.tensor([1.0, 2.0]))
    Tensor([1., 0., 2.])
    """
    x, mask = as_tensor(input), as_tensor(mask)
    if mask.dtype.kind != "b":
        raise DTypeError(f"masked_scatter: mask of dtype {mask.dtype}; it must be bool")
    source = as_tensor(source)
    if source.dtype != x.dtype:
        facts = f"source of {source.dtype} for a tensor of {x.dtype}"
        raise DTypeError(f"masked_scatter: {facts}; cast one first")
    x, mask = broadcast_tensors(x, mask)
    flat, source = ravel(mask), ravel(source)
    if not source.shape[0]:
        source = source.new_zeros(1)
    number = bind(Cumsum(0), cast(flat, "int64"))
    chosen = bind(Gather((0,)), source, where(flat, maximum(number - 1, 0), 0))
    return where(mask, chosen.reshape(x.shape), x)


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """`input` with the slice at one index along `dim` replaced by `src`."""
    x, src = as_tensor(input), as_tensor(src)
    axis = canonicalize_axis("select_scatter", dim, x.ndim)
    return replace_part("select_scatter", x, (*[slice(None)] * axis, int(index)), src)


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    """`input` with the slices `start:end:step` along `dim` replaced by `src`.

    >>> import lucid
    >>> lucid.slice_scatter(lucid.zeros(4), lucid.ones(2), 0, 1, 3)
    Tensor([0., 1., 1., 0.])
    """
    x, src = as_tensor(input), as_tensor(src)
    axis = canonicalize_axis("slice_scatter", dim, x.ndim)
    if step < 1:
        raise ShapeError(f"slice_scatter: step {step} is not positive")
    return replace_part("slice_scatter", x, (*[slice(None)] * axis, slice(start, end, step)), src)


def replace_part(name: str, x: Any, index: tuple[Any, ...], src: Any) -> Any:
    wanted = getitem(wrap(np.broadcast_to(np.zeros(()), x.shape)), index).shape
    if src.shape != wanted:
        raise ShapeError(f"{name}: src of shape {src.shape} for a slice of {wanted}")
    return setitem(x, index, cast_like(x, name, src))


@public_function("lucid", "Tensor")
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """`input` with the diagonals of the matrices in two axes replaced by the last axis of `src`.

    >>> import lucid
    >>> lucid.diagonal_scatter(lucid.zeros(2, 2), lucid.tensor([1.0, 2.0]))
    Tensor([[1., 0.],
            [0., 2.]])
    """
    x, src = as_tensor(input), as_tensor(src)
    a, b = matrix_axes("diagonal_scatter", x, dim1, dim2)
    matrices = movedim(x, (a, b), (-2, -1))
    rows, columns = matrices.shape[-2:]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    numbers = np.arange(count)
    wanted = (*matrices.shape[:-2], count)
    if src.shape != wanted:
        raise ShapeError(f"diagonal_scatter: src of shape {src.shape} for diagonals of {wanted}")
    positions = (Ellipsis, wrap(numbers + max(-offset, 0)), wrap(numbers + max(offset, 0)))
    written = setitem(matrices, positions, cast_like(x, "diagonal_scatter", src))
    return movedim(written, (-2, -1), (a, b))
