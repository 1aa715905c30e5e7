"""Reading and writing along axes by index, as named functions: gather, scatter, take, ..."""

from __future__ import annotations

from typing import Any

from lucid.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.arguments import also, explained
from lucid.ops.core.axes import axis_of, either
from lucid.ops.core.promote import as_tensor, cast, to_dtype_of
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.gather_scatter import Gather, PutAlong, ScatterAdd, TakeAlong, nonzero
from lucid.ops.index.subscript import getitem, setitem
from lucid.ops.index.writing import ScatterSet
from lucid.ops.shape.movement import Pad, Slice, broadcast_to, replaced, slice_axis
from lucid.ops.shape.shaping import movedim, ravel
from lucid.tape.bind import bind


def index_tensor(name: str, index: Any) -> Any:
    index = as_tensor(index)
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{name}: an index of dtype {index.dtype}; it holds integers{at_line()}")
    return index


def take_along_dim(input: Any, indices: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """`input` read along one axis at indices that broadcast with it in all others.

    >>> import lucid
    >>> x = lucid.tensor([[3.0, 1.0], [2.0, 4.0]])
    >>> lucid.take_along_dim(x, x.argsort(dim=1), dim=1)
    Tensor([[1., 3.],
            [2., 4.]])
    """
    x, indices = as_tensor(input), index_tensor("take_along_dim", indices)
    at = either("take_along_dim", ("dim", dim), ("axis", axis))
    if at is None:
        x, indices, at = ravel(x), ravel(indices), 0
    at = axis_of("take_along_dim", at, x.ndim)
    if x.ndim != indices.ndim:
        facts = f"indices of shape {indices.shape} for a tensor of shape {x.shape}"
        raise ShapeError(f"take_along_dim: {facts}: as many axes{at_line()}")
    if not x.ndim:
        return take_along_dim(ravel(x), ravel(indices), 0).reshape(())
    try:
        others = broadcast_shapes(replaced(x.shape, at, 1), replaced(indices.shape, at, 1))
    except ShapeError as error:
        raise ShapeError(f"take_along_dim: {error}{at_line()}") from None
    x = broadcast_to(x, replaced(others, at, x.shape[at]))
    indices = broadcast_to(indices, replaced(others, at, indices.shape[at]))
    return bind(TakeAlong(at), x, indices)


def take_along_axis(x: Any, indices: Any, axis: Any = -1) -> Any:
    """`take_along_dim` by NumPy's name."""
    return take_along_dim(x, indices, axis)


def corner(name: str, x: Any, shape: tuple[int, ...], axis: int, what: str) -> Any:
    """The first elements of `x`, as many as `shape` has in every axis but one (None: in all)."""
    sizes = shape if axis < 0 else replaced(shape, axis, x.shape[axis] if x.ndim else 0)
    if x.ndim != len(shape) or any(n > m for n, m in zip(sizes, x.shape)):
        facts = f"{what} of shape {x.shape} is smaller than the index, {shape}"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    return x if x.shape == sizes else bind(Slice((0,) * x.ndim, sizes, (1,) * x.ndim), x)


def has_a_number(x: Any, index: Any) -> bool:
    """Whether one is 0-d, the other at most a vector: then both are used as vectors."""
    return max(x.ndim, index.ndim) <= 1 and not (x.ndim and index.ndim)


def vector(x: Any) -> Any:
    return x if x.ndim else x.reshape(1)


@explained
@also(dim="axis")
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """`y[i, j] = input[i, index[i, j]]` for dim 1, and so for other axes; as large as the index.

    `sparse_grad` makes no difference: gradients are dense.
    """
    x, index = as_tensor(input), index_tensor("gather", index)
    axis = axis_of("gather", dim, x.ndim)
    if has_a_number(x, index):
        return gather(vector(x), 0, vector(index)).reshape(index.shape)
    if 0 in index.shape and index.ndim != x.ndim:
        return x.new_zeros(index.shape)
    return bind(TakeAlong(axis), corner("gather", x, index.shape, axis, "the tensor"), index)


@explained
@also(dim="axis")
def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Any:
    """`input` with `y[i, index[i, j]] = src[i, j]` for dim 1; of repeated indices the last counts.

    `src` may be one number (also as `value`). With `reduce` "add" or "multiply" it is combined with
    what is there instead.
    """
    x, index = as_tensor(input), index_tensor("scatter", index)
    axis = axis_of("scatter", dim, x.ndim)
    src = either("scatter", ("src", src), ("value", value))
    if src is None:
        raise ArgumentError(f"scatter: give what to write, as src or value{at_line()}")
    src = to_dtype_of(x, "scatter", src)
    if has_a_number(x, index):
        src = vector(src) if src.ndim <= 1 and index.ndim <= 1 else src
        return scatter(vector(x), 0, vector(index), src, reduce=reduce).reshape(x.shape)
    corner("scatter", x, index.shape, axis, "the tensor")
    if reduce is not None:
        return _scatter_combined(x, axis, index, src, reduce)
    if src.ndim:
        src = corner("scatter", src, index.shape, -1, "src")
    indices = [index if i == axis else positions(index, i) for i in range(x.ndim)]
    return bind(ScatterSet(tuple(range(x.ndim))), x, src, *indices)


def _scatter_combined(x: Any, axis: int, index: Any, src: Any, reduce: Any) -> Any:
    from lucid.ops.index.scatter_reduce import scatter_reduce

    if reduce not in ("add", "multiply"):
        facts = f"reduce={reduce!r}; it is 'add' or 'multiply'"
        raise ArgumentError(f"scatter: {facts}, see scatter_reduce for more{at_line()}")
    src = src if src.ndim else broadcast_to(src, index.shape)
    return scatter_reduce(x, axis, index, src, "sum" if reduce == "add" else "prod")


def positions(index: Any, axis: int) -> Any:
    """The position along one axis of every element of an index."""
    from lucid.ops.shape.creation import arange

    sizes = [n if i == axis else 1 for i, n in enumerate(index.shape)]
    return broadcast_to(arange(index.shape[axis]).reshape(sizes), index.shape)


@explained
@also(dim="axis")
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """`input` with `y[i, index[i, j]] += src[i, j]` for dim 1; indices that repeat add all."""
    x, index = as_tensor(input), index_tensor("scatter_add", index)
    axis = axis_of("scatter_add", dim, x.ndim)
    src = to_dtype_of(x, "scatter_add", src)
    if has_a_number(x, index):
        return scatter_add(vector(x), 0, vector(index), vector(src)).reshape(x.shape)
    corner("scatter_add", x, index.shape, axis, "the tensor")
    src = corner("scatter_add", src, index.shape, -1, "src")
    added = bind(PutAlong(axis, x.shape[axis]), src, index)
    if added.shape != x.shape:
        missing = tuple(m - n for m, n in zip(x.shape, added.shape))
        added = bind(Pad((0,) * x.ndim, missing, (0,) * x.ndim), added)
    return x + added


@explained
@also(dim="axis")
def index_select(input: Any, dim: Any, index: Any) -> Any:
    """The slices of `input` along one axis that an index vector names, in its order."""
    x, index = as_tensor(input), index_tensor("index_select", index)
    if index.ndim > 1:
        raise ShapeError(f"index_select: an index of shape {index.shape} is no vector{at_line()}")
    if not x.ndim and index.reshape(-1).shape == (1,):
        return index_select(vector(x), dim, index).reshape(())
    return take(x, index.reshape(-1), dim)


@explained
@also(index="indices")
def take(input: Any, index: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """The elements of `input` at indices: in row-major order, or slices along one axis.

    >>> import lucid
    >>> lucid.take(lucid.tensor([[4, 3], [2, 1]]), [0, -1])
    Tensor([4, 1])
    """
    x, indices = as_tensor(input), index_tensor("take", index)
    at = either("take", ("dim", dim), ("axis", axis))
    if at is None:
        return bind(Gather((0,)), ravel(x), indices)
    at = axis_of("take", at, x.ndim)
    y = bind(Gather((at,)), x, indices)
    if at == 0:
        return y
    return movedim(y, tuple(range(indices.ndim)), tuple(range(at, at + indices.ndim)))


@explained
@also(dim="axis")
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """`input` with `alpha` times the slices of `source` added to those that the index names."""
    x, index = as_tensor(input), index_tensor("index_add", index)
    axis = axis_of("index_add", dim, x.ndim)
    if not x.ndim:
        return index_add(vector(x), dim, index, vector(as_tensor(source)), alpha=alpha).reshape(())
    source = to_dtype_of(x, "index_add", source)
    wanted = replaced(x.shape, axis, index.shape[0] if index.ndim else 1)
    if source.shape != wanted or index.ndim > 1:
        facts = f"source of shape {source.shape}; {wanted} fits the index"
        raise ShapeError(f"index_add: {facts}{at_line()}")
    rows = source if axis == 0 else movedim(source, axis, 0)
    added = bind(ScatterAdd(x.shape, (axis,)), rows, index.reshape(-1))
    return x + (added if alpha == 1 else added * alpha)


@explained
@also(dim="axis")
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """`input` with the slices that the index names replaced by those of `source`."""
    x = as_tensor(input)
    axis = axis_of("index_copy", dim, x.ndim)
    if not x.ndim:
        return index_copy(vector(x), dim, index, source).reshape(())
    return setitem(x, (*[slice(None)] * axis, index_tensor("index_copy", index)), source)


@explained
@also(dim="axis")
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """`input` with the slices that the index names filled with one number."""
    return index_copy(input, dim, index, value)


@explained
@also(dim="axis")
def select(input: Any, dim: int, index: int) -> Any:
    """`input` at one index along one axis, which the result lacks."""
    x = as_tensor(input)
    return getitem(x, (*[slice(None)] * axis_of("select", dim, x.ndim), index))


@explained
@also(dim="axis")
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """`length` slices of `input` along one axis from `start` on."""
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError(f"narrow: a 0-d tensor has no slices{at_line()}")
    axis = axis_of("narrow", dim, x.ndim)
    n = x.shape[axis]
    first = start + n if start < 0 else start
    if not 0 <= first <= first + length <= n:
        facts = f"{length} elements from {start} on, of {n}"
        raise IndexingError(f"narrow: {facts}{at_line()}")
    return slice_axis(x, axis, first, first + length)


def masked_select(input: Any, mask: Any) -> Any:
    """The elements of `input` where a mask holds, as a vector whose size depends on its values."""
    x, mask = as_tensor(input), cast(as_tensor(mask), "bool")
    shape = broadcast_shapes(x.shape, mask.shape)
    return getitem(broadcast_to(x, shape), broadcast_to(mask, shape))


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """`input` with one number where a mask holds.

    >>> import lucid
    >>> lucid.masked_fill(lucid.tensor([1.0, -2.0]), lucid.tensor([False, True]), 0.0)
    Tensor([1., 0.])
    """
    x = as_tensor(input)
    return where(cast(as_tensor(mask), "bool"), to_dtype_of(x, "masked_fill", value), x)


def argwhere(input: Any) -> Any:
    """The indices of the elements that are not zero, one row for each."""
    return nonzero(input)


@explained
def diff(
    input: Any,
    n: int = 1,
    dim: Any = None,
    prepend: Any = None,
    append: Any = None,
    *,
    axis: Any = None,
) -> Any:
    """Differences between neighbours along an axis, taken n times, with values put at its ends.

    >>> import lucid
    >>> lucid.diff(lucid.tensor([1, 4, 9]), prepend=lucid.tensor([0]))
    Tensor([1, 3, 5])
    """
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError(f"diff: a 0-d tensor has no neighbours{at_line()}")
    at = axis_of("diff", either("diff", ("dim", dim), ("axis", axis), -1), x.ndim)
    if n < 0:
        raise ArgumentError(f"diff: n={n}; differences are taken 0 times or more{at_line()}")
    if n and (prepend is not None or append is not None):
        from lucid.ops.shape.joining import cat

        x = cat([as_tensor(part) for part in (prepend, x, append) if part is not None], at)
    for _ in range(min(n, x.shape[at] + 1)):
        size = x.shape[at]
        last, first = slice_axis(x, at, min(1, size), size), slice_axis(x, at, 0, max(size - 1, 0))
        x = last ^ first if x.dtype.kind == "b" else last - first
    return x
