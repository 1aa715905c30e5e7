"""Norms of vectors and matrices, and the condition number."""

from __future__ import annotations

import math
from typing import Any

from lucid.errors import ArgumentError, AxisError, ShapeError
from lucid.linalg.arguments import as_matrix
from lucid.linalg.eigenvalues import svdvals
from lucid.linalg.solving import inv
from lucid.ops.core.arguments import number, public_function
from lucid.ops.core.axes import canonicalize_axis, resolve_alias
from lucid.ops.reduce.extrema import amax, amin
from lucid.ops.reduce.reduction import reduced_axes, restore_axes
from lucid.ops.reduce.statistics import norm_operand, order_of, p_norm
from lucid.ops.shape.shaping import movedim

ORDERS = ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2)


@public_function("linalg")
def vector_norm(
    input: Any,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The norm `sum(|input|**ord) ** (1/ord)` of the elements over `dim`, all of them by default.

    >>> import lucid
    >>> lucid.linalg.vector_norm(lucid.tensor([[3.0, 4.0], [0.0, 0.0]]), dim=1)
    Tensor([5., 0.])
    """
    x = norm_operand("vector_norm", input, dtype)
    axes = reduced_axes("vector_norm", x.ndim, dim, axis)
    y = p_norm(x, order_of("vector_norm", ord), axes)
    keep = keepdim if keepdims is None else keepdims
    return restore_axes(y, x, axes) if keep else y


@public_function("linalg")
def matrix_norm(
    input: Any,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """A matrix norm: "fro", "nuc", inf, -inf, 1, -1, 2 or -2.

    >>> import lucid
    >>> lucid.linalg.matrix_norm(lucid.tensor([[1.0, -2.0], [3.0, 4.0]]), ord=1)
    Tensor(6.)
    """
    A = norm_operand("matrix_norm", input, dtype)
    rows, columns = two_axes(A, dim if axis is None else axis)
    keep = keepdim if keepdims is None else keepdims
    ord = number("matrix_norm", "ord", ord)
    if isinstance(ord, bool) or ord not in ORDERS:
        raise ArgumentError(f"matrix_norm: ord={ord!r} is not one of {ORDERS}")
    y = matrix_norm_along(A, ord, rows, columns)
    return restore_axes(y, A, tuple(sorted((rows, columns)))) if keep else y


def matrix_norm_along(A: Any, ord: Any, rows: int, columns: int) -> Any:
    if ord == "fro":
        return p_norm(A, 2.0, tuple(sorted((rows, columns))))
    if ord in ("nuc", 2, -2):
        values, at = svdvals(movedim(A, (rows, columns), (-2, -1))), -1
    else:
        over, along = (rows, columns) if abs(ord) == 1 else (columns, rows)
        values, at = A.abs().sum(dim=over), along - (along > over)
    if ord == "nuc" or (ord > 0 and not values.shape[at]):  # the largest of none is 0
        return values.sum(dim=at)
    return (amax if ord > 0 else amin)(values, dim=at)


def two_axes(A: Any, dim: Any) -> tuple[int, int]:
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise AxisError(f"matrix_norm: dim={dim!r}; it must be two axes")
    if A.ndim < 2:
        raise ShapeError(f"matrix_norm: {A.shape} is not a matrix")
    rows, columns = (canonicalize_axis("matrix_norm", d, A.ndim) for d in dim)
    if rows == columns:
        raise AxisError(f"matrix_norm: axis {rows} appears twice in dim")
    return rows, columns


@public_function("linalg")
def norm(
    input: Any,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The 2-norm of all elements, or a vector or matrix norm, depending on `ord` and `dim`."""
    A = norm_operand("norm", input, dtype)
    dim = resolve_alias("norm", ("dim", dim), ("axis", axis))
    keep = keepdim if keepdims is None else keepdims
    given = (dim,) if isinstance(dim, int) else dim
    if ord is None:
        return vector_norm(A, 2, given, keep)
    if isinstance(ord, str) or (A.ndim == 2 if given is None else len(given) == 2):
        return matrix_norm(A, ord, (-2, -1) if given is None else given, keep)
    if given is None and A.ndim != 1:
        raise ShapeError(f"norm: ord={ord!r} needs 1 or 2 axes, not shape {A.shape}")
    return vector_norm(A, ord, given, keep)


@public_function("linalg")
def cond(input: Any, p: Any = None) -> Any:
    """The condition number: the largest over the smallest singular value, or ‖A‖ ‖A⁻¹‖ for p."""
    p = number("cond", "p", p)
    if p is None or p in (2, -2):
        values = svdvals(as_matrix("cond", input, square=False))
        high, low = amax(values, dim=-1), amin(values, dim=-1)
        return low / high if p == -2 else high / low
    A = as_matrix("cond", input)
    return matrix_norm(A, p) * matrix_norm(inv(A), p)
