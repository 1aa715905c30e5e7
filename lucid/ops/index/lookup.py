"""Functions that read and write along axes by index: gather, scatter, take, ..."""

from __future__ import annotations

from typing import Any

from lucid.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.arguments import aliases, is_one, public_function
from lucid.ops.core.axes import canonicalize_axis, resolve_alias
from lucid.ops.core.promote import as_tensor, cast, cast_like
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.gather_scatter import Gather, PutAlong, ScatterAdd, TakeAlong, nonzero
from lucid.ops.index.subscript import getitem, setitem
from lucid.ops.index.writing import ScatterSet
from lucid.ops.shape.movement import Pad, Slice, broadcast_to, slice_axis, with_size
from lucid.ops.shape.shaping import movedim, ravel
from lucid.public.declare import public
from lucid.tape.bind import bind


def index_tensor(name: str, index: Any) -> Any:
    index = as_tensor(index)
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{name}: index of dtype {index.dtype}; it must be integer")
    return index


@public("lucid", "Tensor")
def take_along_dim(input: Any, indices: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """`input` read along one axis at indices that broadcast with it in all others.

    >>> import lucid
    >>> x = lucid.tensor([[3.0, 1.0], [2.0, 4.0]])
    >>> lucid.take_along_dim(x, x.argsort(dim=1), dim=1)
    Tensor([[1., 3.],
            [2., 4.]])
    """
    x, indices = as_tensor(input), index_tensor("take_along_dim", indices)
    at = resolve_alias("take_along_dim", ("dim", dim), ("axis", axis))
    if at is None:
        x, indices, at = ravel(x), ravel(indices), 0
    at = canonicalize_axis("take_along_dim", at, x.ndim)
    if x.ndim != indices.ndim:
        facts = f"indices of shape {indices.shape} for a tensor of shape {x.shape}"
        raise ShapeError(f"take_along_dim: {facts}; the numbers of axes must agree")
    if not x.ndim:
        return take_along_dim(ravel(x), ravel(indices), 0).reshape(())
    try:
        others = broadcast_shapes(with_size(x.shape, at, 1), with_size(indices.shape, at, 1))
    except ShapeError as error:
        raise ShapeError(f"take_along_dim: {error}") from None
    x = broadcast_to(x, with_size(others, at, x.shape[at]))
    indices = broadcast_to(indices, with_size(others, at, indices.shape[at]))
    return bind(TakeAlong(at), x, indices)


@public(numpy="take_along_axis")
def take_along_axis(x: Any, indices: Any, axis: Any = -1) -> Any:
    """`take_along_dim` with NumPy's name and signature."""
    return take_along_dim(x, indices, axis)


def leading_block(name: str, x: Any, shape: tuple[int, ...], axis: int, what: str) -> Any:
    """Return the block x[:n, :m, ...] for shape (n, m, ...), whole along `axis` unless it is -1."""
    sizes = shape if axis < 0 else with_size(shape, axis, x.shape[axis] if x.ndim else 0)
    if x.ndim != len(shape) or any(n > m for n, m in zip(sizes, x.shape)):
        facts = f"{what} of shape {x.shape} is smaller than the index of shape {shape}"
        raise ShapeError(f"{name}: {facts}")
    return x if x.shape == sizes else bind(Slice((0,) * x.ndim, sizes, (1,) * x.ndim), x)


def is_scalar_case(x: Any, index: Any) -> bool:
    """True if one is 0-d and the other at most 1-d: then both are treated as vectors."""
    return max(x.ndim, index.ndim) <= 1 and not (x.ndim and index.ndim)


def scalar_to_vector(x: Any) -> Any:
    return x if x.ndim else x.reshape(1)


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """`y[i, j] = input[i, index[i, j]]` for dim 1, and likewise for others; shaped like the index.

    `sparse_grad` is ignored: gradients are dense.
    """
    x, index = as_tensor(input), index_tensor("gather", index)
    axis = canonicalize_axis("gather", dim, x.ndim)
    if is_scalar_case(x, index):
        return gather(scalar_to_vector(x), 0, scalar_to_vector(index)).reshape(index.shape)
    if 0 in index.shape and index.ndim != x.ndim:
        return x.new_zeros(index.shape)
    return bind(TakeAlong(axis), leading_block("gather", x, index.shape, axis, "the tensor"), index)


@public_function("lucid", "Tensor", inplace=True)
@aliases(dim="axis")
def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Any:
    """`input` with `y[i, index[i, j]] = src[i, j]` for dim 1; the last of repeated indices wins.

    `src` may be one number (also as `value`). With `reduce` "add" or "multiply" it is combined with
    the old values instead.
    """
    x, index = as_tensor(input), index_tensor("scatter", index)
    axis = canonicalize_axis("scatter", dim, x.ndim)
    src = resolve_alias("scatter", ("src", src), ("value", value))
    if src is None:
        raise ArgumentError("scatter: give src or value")
    src = cast_like(x, "scatter", src)
    if is_scalar_case(x, index):
        src = scalar_to_vector(src) if src.ndim <= 1 and index.ndim <= 1 else src
        return scatter(scalar_to_vector(x), 0, scalar_to_vector(index), src, reduce=reduce).reshape(
            x.shape
        )
    leading_block("scatter", x, index.shape, axis, "the tensor")
    if reduce is not None:
        return _scatter_combined(x, axis, index, src, reduce)
    if src.ndim:
        src = leading_block("scatter", src, index.shape, -1, "src")
    indices = [index if i == axis else positions(index, i) for i in range(x.ndim)]
    return bind(ScatterSet(tuple(range(x.ndim))), x, src, *indices)


def _scatter_combined(x: Any, axis: int, index: Any, src: Any, reduce: Any) -> Any:
    from lucid.ops.index.scatter_reduce import scatter_reduce

    if reduce not in ("add", "multiply"):
        facts = f"reduce={reduce!r}; it must be 'add' or 'multiply'"
        raise ArgumentError(f"scatter: {facts} (scatter_reduce has more)")
    src = src if src.ndim else broadcast_to(src, index.shape)
    return scatter_reduce(x, axis, index, src, "sum" if reduce == "add" else "prod")


def positions(index: Any, axis: int) -> Any:
    """Return the position along one axis of every element of an index."""
    from lucid.ops.shape.creation import arange

    sizes = [n if i == axis else 1 for i, n in enumerate(index.shape)]
    return broadcast_to(arange(index.shape[axis]).reshape(sizes), index.shape)


@public_function("lucid", "Tensor", inplace=True)
@aliases(dim="axis")
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """`input` with `y[i, index[i, j]] += src[i, j]` for dim 1; repeated indices accumulate."""
    x, index = as_tensor(input), index_tensor("scatter_add", index)
    axis = canonicalize_axis("scatter_add", dim, x.ndim)
    src = cast_like(x, "scatter_add", src)
    if is_scalar_case(x, index):
        return scatter_add(
            scalar_to_vector(x), 0, scalar_to_vector(index), scalar_to_vector(src)
        ).reshape(x.shape)
    leading_block("scatter_add", x, index.shape, axis, "the tensor")
    src = leading_block("scatter_add", src, index.shape, -1, "src")
    added = bind(PutAlong(axis, x.shape[axis]), src, index)
    if added.shape != x.shape:
        missing = tuple(m - n for m, n in zip(x.shape, added.shape))
        added = bind(Pad((0,) * x.ndim, missing, (0,) * x.ndim), added)
    return x + added


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def index_select(input: Any, dim: Any, index: Any) -> Any:
    """The slices of `input` along one axis at the indices in a vector."""
    x, index = as_tensor(input), index_tensor("index_select", index)
    if index.ndim > 1:
        raise ShapeError(f"index_select: index of shape {index.shape} is not a vector")
    if not x.ndim and index.reshape(-1).shape == (1,):
        return index_select(scalar_to_vector(x), dim, index).reshape(())
    return take(x, index.reshape(-1), dim)


@public_function("lucid", "Tensor")
@aliases(index="indices")
def take(input: Any, index: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """The elements of the flattened `input` at indices, or slices along one axis.

    >>> import lucid
    >>> lucid.take(lucid.tensor([[4, 3], [2, 1]]), [0, -1])
    Tensor([4, 1])
    """
    x, indices = as_tensor(input), index_tensor("take", index)
    at = resolve_alias("take", ("dim", dim), ("axis", axis))
    if at is None:
        return bind(Gather((0,)), ravel(x), indices)
    at = canonicalize_axis("take", at, x.ndim)
    y = bind(Gather((at,)), x, indices)
    if at == 0:
        return y
    return movedim(y, tuple(range(indices.ndim)), tuple(range(at, at + indices.ndim)))


@public_function("lucid", "Tensor", inplace=True)
@aliases(dim="axis")
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """`input` with `alpha` times the slices of `source` added to its slices at the index."""
    x, index = as_tensor(input), index_tensor("index_add", index)
    axis = canonicalize_axis("index_add", dim, x.ndim)
    if not x.ndim:
        return index_add(
            scalar_to_vector(x), dim, index, scalar_to_vector(as_tensor(source)), alpha=alpha
        ).reshape(())
    source = cast_like(x, "index_add", source)
    wanted = with_size(x.shape, axis, index.shape[0] if index.ndim else 1)
    if source.shape != wanted or index.ndim > 1:
        raise ShapeError(f"index_add: source of shape {source.shape}; the index needs {wanted}")
    rows = source if axis == 0 else movedim(source, axis, 0)
    added = bind(ScatterAdd(x.shape, (axis,)), rows, index.reshape(-1))
    return x + (added if is_one(alpha) else added * alpha)


@public_function("lucid", "Tensor", inplace=True)
@aliases(dim="axis")
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """`input` with its slices at the index replaced by those of `source`."""
    x = as_tensor(input)
    axis = canonicalize_axis("index_copy", dim, x.ndim)
    if not x.ndim:
        return index_copy(scalar_to_vector(x), dim, index, source).reshape(())
    place = (*[slice(None)] * axis, index_tensor("index_copy", index))
    return setitem(x, place, cast_like(x, "index_copy", source))


@public_function("lucid", "Tensor", inplace=True)
@aliases(dim="axis")
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """`input` with its slices at the index filled with one number."""
    return index_copy(input, dim, index, value)


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def select(input: Any, dim: int, index: int) -> Any:
    """`input` at one index along one axis, which is removed."""
    x = as_tensor(input)
    return getitem(x, (*[slice(None)] * canonicalize_axis("select", dim, x.ndim), index))


@public_function("lucid", "Tensor")
@aliases(dim="axis")
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """`length` slices of `input` along one axis, starting at `start`."""
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError("narrow: a 0-d tensor has no slices")
    axis = canonicalize_axis("narrow", dim, x.ndim)
    n = x.shape[axis]
    first = start + n if start < 0 else start
    if not 0 <= first <= first + length <= n:
        raise IndexingError(f"narrow: {length} elements from {start} are out of range for size {n}")
    return slice_axis(x, axis, first, first + length)


@public("lucid", "Tensor")
def masked_select(input: Any, mask: Any) -> Any:
    """The elements of `input` where a mask is True, as a vector; its size depends on values."""
    x, mask = as_tensor(input), cast(as_tensor(mask), "bool")
    shape = broadcast_shapes(x.shape, mask.shape)
    return getitem(broadcast_to(x, shape), broadcast_to(mask, shape))


@public("lucid", "Tensor")
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """`input` with one number where a mask is True.

    >>> import lucid
    >>> lucid.masked_fill(lucid.tensor([1.0, -2.0]), lucid.tensor([False, True]), 0.0)
    Tensor([1., 0.])
    """
    x = as_tensor(input)
    return where(cast(as_tensor(mask), "bool"), cast_like(x, "masked_fill", value), x)


@public("lucid", "Tensor", numpy="argwhere")
def argwhere(input: Any) -> Any:
    """The indices of nonzero elements, one row for each."""
    return nonzero(input)


@public_function("Tensor")
def diff(
    input: Any,
    n: int = 1,
    dim: Any = None,
    prepend: Any = None,
    append: Any = None,
    *,
    axis: Any = None,
) -> Any:
    """The n-th differences between neighbors along an axis, with values added at its ends.

    >>> import lucid
    >>> lucid.diff(lucid.tensor([1, 4, 9]), prepend=lucid.tensor([0]))
    Tensor([1, 3, 5])
    """
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError("diff: a 0-d tensor has no axis")
    at = canonicalize_axis("diff", resolve_alias("diff", ("dim", dim), ("axis", axis), -1), x.ndim)
    if n < 0:
        raise ArgumentError(f"diff: n={n}; it must be nonnegative")
    if n and (prepend is not None or append is not None):
        from lucid.ops.shape.joining import cat

        x = cat([as_tensor(part) for part in (prepend, x, append) if part is not None], at)
    for _ in range(min(n, x.shape[at] + 1)):
        size = x.shape[at]
        last, first = slice_axis(x, at, min(1, size), size), slice_axis(x, at, 0, max(size - 1, 0))
        x = last ^ first if x.dtype.kind == "b" else last - first
    return x if n else x.clone()
