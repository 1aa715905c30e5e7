"""scatter_reduce and index_reduce: every element of a tensor reduced with those at its index.

Sums and means are made of `put_along`; max, min and prod are the primitive `combine_along`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import conjugate, times
from lucid.ops.core.promote import as_tensor, cast, cast_like
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.rounding import floor_divide
from lucid.ops.index.gather_scatter import (
    PutAlong,
    TakeAlong,
    along_axis_index,
    check_along,
    check_indices,
    check_range,
    normalize_indices,
)
from lucid.ops.index.lookup import index_tensor, leading_block
from lucid.ops.index.writing import SliceSet
from lucid.ops.shape.movement import broadcast_unbatched, with_size
from lucid.ops.shape.shaping import movedim
from lucid.tape.bind import bind

UFUNCS: dict[str, np.ufunc] = {"max": np.maximum, "min": np.minimum, "prod": np.multiply}


class Zeros(NamedTuple):
    """Where elements are zero, and for each zero its count (1 or 0), its value and its square."""

    here: Any
    sums: tuple[Any, Any, Any]

    @classmethod
    def of(cls, x: Any) -> Zeros:
        here = x == 0
        value = where(here, x, 0)
        return cls(here, (cast(here, x.dtype), value, value * value))

    def product_of_others(self, whole: Sequence[Any]) -> Any:
        """Return the product of the other zeros of a group, as a polynomial of the sums over it.

        Its value is 0 or 1; its derivatives are correct if at most two zeros are left.
        """
        count, total, squares = (all - mine for all, mine in zip(whole, self.sums))
        several = where(count == 2, (total * total - squares) / 2, 0)
        return where(count == 0, 1, where(count == 1, total, several))


class CombineAlong(Primitive):
    """`x` with `x[i, index[i, j]]` combined with `values[i, j]` for all j, for axis 1: `how` is
    "max", "min" or "prod".

    Elements that tie for an extremum share the derivative. That of a product is the product of the
    others, in which zeros are counted separately. Like that of `max`, it reads only the operands.
    """

    axis: int
    how: str
    saves = "x"
    lowering = "lucid.compiler.lowering.index.scatter_kernel:CombineAlongLowering"

    def infer(self, x: Type, values: Type, indices: Type) -> Type:
        check_indices(self.name, indices)
        if x.dtype != values.dtype:
            raise DTypeError(f"{self.name}: values of {values.dtype} for a tensor of {x.dtype}")
        if x.dtype.kind == "c" and self.how != "prod":
            raise DTypeError(f"{self.name}: {x.dtype} numbers have no order")
        if values.shape != indices.shape:
            facts = f"values of shape {values.shape} and indices of shape {indices.shape} differ"
            raise ShapeError(f"{self.name}: {facts}")
        check_along(self.name, self.axis, x.shape, indices.shape)
        return x

    @quiet
    def eval(self, x: np.ndarray, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
        out = np.array(x)
        positions = normalize_indices(self.name, indices, x.shape[self.axis], self.axis)
        UFUNCS[self.how].at(out, along_axis_index(positions, self.axis), values)
        return out

    def check_values(self, x: Any, values: Any, indices: Any) -> None:
        check_range(self.name, indices, x.shape[self.axis], self.axis)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any, values: Any, indices: Any) -> Any:
        own, sent = self.partial_derivatives(x, values, indices)
        total = None if ts[0] is None else times(ts[0], own)
        if ts[1] is not None:
            added = self.put(times(ts[1], sent), x, indices)
            total = added if total is None else total + added
        return total

    def vjp(self, ct: Any, y: Any, x: Any, values: Any, indices: Any) -> tuple[Any, ...]:
        own, sent = self.partial_derivatives(x, values, indices)
        taken = self.take(ct, indices)
        return times(ct, conjugate(own)), times(taken, conjugate(sent)), None

    def partial_derivatives(self, x: Any, values: Any, indices: Any) -> tuple[Any, Any]:
        """Return the partial derivatives in the elements of `x`, and in the values."""
        if self.how == "prod":
            return self.products_of_others(x, values, indices)
        y = bind(self, x, values, indices)
        at_index = self.take(y, indices)
        own = cast((x == y) | (x != x), x.dtype)
        sent = cast((values == at_index) | (values != values), x.dtype)
        count = own + self.put(sent, x, indices)
        return own / count, sent / self.take(count, indices)

    def products_of_others(self, x: Any, values: Any, indices: Any) -> tuple[Any, Any]:
        """Return the products of the other factors, without dividing by zeros."""
        own, sent = Zeros.of(x), Zeros.of(values)
        full = (where(own.here, 1, x), where(sent.here, 1, values))
        product = bind(self, *full, indices)
        whole = [part + self.put(given, x, indices) for part, given in zip(own.sums, sent.sums)]
        at_index = [self.take(part, indices) for part in whole]
        return (
            times(own.product_of_others(whole), product / full[0]),
            times(sent.product_of_others(at_index), self.take(product, indices) / full[1]),
        )

    def put(self, values: Any, x: Any, indices: Any) -> Any:
        return bind(PutAlong(self.axis, x.shape[self.axis]), values, indices)

    def take(self, x: Any, indices: Any) -> Any:
        return bind(TakeAlong(self.axis), x, indices)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, values: Any, indices: Any) -> Any:
        operands = broadcast_unbatched(n, batched, x, values, indices)
        return bind(CombineAlong(self.axis + 1, self.how), *operands)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@public_function("lucid", "Tensor", inplace=True)
@aliases(dim="axis")
def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """`input` with `y[i, index[i, j]]` reduced with `src[i, j]` for all j, for dim 1.

    `reduce` is "sum", "prod", "mean", "amax" or "amin". Without `include_self` the old values of
    the elements at the indices are left out.

    >>> import lucid
    >>> index = lucid.tensor([0, 0, 1])
    >>> lucid.scatter_reduce(lucid.zeros(2), 0, index, lucid.tensor([1.0, 5.0, 2.0]), "amax")
    Tensor([5., 2.])
    """
    x, index = as_tensor(input), index_tensor("scatter_reduce", index)
    if reduce not in REDUCTIONS:
        known = ", ".join(REDUCTIONS)
        raise ArgumentError(f"scatter_reduce: reduce={reduce!r} is not one of {known}")
    axis = canonicalize_axis("scatter_reduce", dim, x.ndim)
    if not x.ndim:
        src = cast_like(x, "scatter_reduce", src).reshape(-1)
        return reduce_along(x.reshape(1), 0, index.reshape(-1), src, reduce, include_self).reshape(
            ()
        )
    leading_block("scatter_reduce", x, index.shape, axis, "the tensor")
    src = leading_block(
        "scatter_reduce", cast_like(x, "scatter_reduce", src), index.shape, -1, "src"
    )
    sizes = with_size(index.shape, axis, x.shape[axis])
    part = leading_block("scatter_reduce", x, index.shape, axis, "the tensor")
    y = reduce_along(part, axis, index, src, reduce, include_self)
    if x.shape == sizes:
        return y
    return bind(SliceSet((0,) * x.ndim, sizes, (1,) * x.ndim), x, y)


def reduce_along(x: Any, axis: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    n = x.shape[axis]
    if not include_self:
        hits = bind(PutAlong(axis, n), ones_like_shape(src, "int64"), index)
        x = where(hits > 0, identity_element(reduce, x.dtype), x)
    if reduce in ("sum", "mean"):
        total = x + bind(PutAlong(axis, n), src, index)
        if reduce == "sum":
            return total
        count = bind(PutAlong(axis, n), ones_like_shape(src, "int64"), index)
        count = count + 1 if include_self else where(count == 0, 1, count)
        if x.dtype.kind in "fc":
            return total / cast(count, x.dtype)
        return floor_divide(total, cast(count, x.dtype))
    how = {"amax": "max", "amin": "min", "prod": "prod"}[reduce]
    return bind(CombineAlong(axis, how), x, src, index)


def ones_like_shape(x: Any, dtype: str) -> Any:
    from lucid.ops.shape.creation import ones

    return ones(x.shape, dtype=dtype)


def identity_element(reduce: str, dtype: np.dtype) -> Any:
    """Return the identity element of a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    if dtype.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(dtype)
    return int(limits.min if reduce == "amax" else limits.max)


@public_function("lucid", "Tensor", inplace=True)
@aliases(dim="axis")
def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """`input` with its slices at the index reduced with those of `source`.

    `reduce` is "prod", "mean", "amax" or "amin"; see `scatter_reduce`.

    >>> import lucid
    >>> lucid.index_reduce(lucid.ones(2), 0, [1, 1], lucid.tensor([3.0, 4.0]), "prod")
    Tensor([ 1., 12.])
    """
    x, index = as_tensor(input), index_tensor("index_reduce", index)
    if reduce not in REDUCTIONS or reduce == "sum":
        known = ", ".join(REDUCTIONS).replace("sum, ", "")
        raise ArgumentError(f"index_reduce: reduce={reduce!r} is not one of {known}")
    axis = canonicalize_axis("index_reduce", dim, x.ndim)
    source = cast_like(x, "index_reduce", source)
    if not x.ndim:
        parts = (x.reshape(1), dim, index, source.reshape(-1), reduce)
        return index_reduce(*parts, include_self=include_self).reshape(())
    wanted = with_size(x.shape, axis, index.shape[0] if index.ndim else 1)
    if source.shape != wanted or index.ndim > 1:
        raise ShapeError(f"index_reduce: source of shape {source.shape}; the index needs {wanted}")
    ones = [1] * (source.ndim - 1)
    spread = movedim(index.reshape(-1, *ones), 0, axis).expand(source.shape)
    return reduce_along(x, axis, spread, source, reduce, include_self)
