"""Diagonals and triangles of matrices.

A diagonal is a view. A matrix with a given diagonal is that diagonal padded with zeros between its
elements.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lucid.errors import AxisError, ShapeError
from lucid.ops.core.arguments import accepts_device, clear_errors, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, parse_dtype
from lucid.ops.elementwise.conditional import where
from lucid.ops.shape.copying import COPY
from lucid.ops.shape.movement import Pad, Reshape
from lucid.ops.shape.shaping import movedim
from lucid.ops.shape.strided import strided_diagonal
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.node import wrap


@public_function("lucid", "Tensor")
def diagonal(
    input: Any,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    *,
    axis1: Any = None,
    axis2: Any = None,
) -> Any:
    """The diagonals of the matrices in two axes, as the last axis of the result: a view.

    >>> import lucid
    >>> lucid.diagonal(lucid.arange(9).reshape(3, 3), 1)
    Tensor([1, 5])
    """
    x = as_tensor(input)
    a = dim1 if axis1 is None else axis1
    b = dim2 if axis2 is None else axis2
    return strided_diagonal(x, offset, *matrix_axes("diagonal", x, a, b))


def matrix_axes(name: str, x: Any, dim1: Any, dim2: Any) -> tuple[int, int]:
    """Return two different axes, counted from the front."""
    if x.ndim < 2:
        raise ShapeError(f"{name}: a tensor of shape {x.shape} has fewer than two axes")
    a, b = canonicalize_axis(name, dim1, x.ndim), canonicalize_axis(name, dim2, x.ndim)
    if a == b:
        raise AxisError(f"{name}: axis {a} is given twice; give two different axes")
    return a, b


@public_function("lucid", "Tensor")
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with the last axis of `input` on one diagonal and zeros elsewhere."""
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError("diag_embed: a 0-d tensor is not a diagonal; give at least one axis")
    n, offset = x.shape[-1], operator.index(offset)
    size = n + abs(offset)
    start = offset if offset >= 0 else -offset * size
    end = size * size - start - ((n - 1) * (size + 1) + 1 if n else 0)
    none = (0,) * (x.ndim - 1)
    flat = bind(Pad((*none, start), (*none, end), (*none, size)), x)
    matrices = bind(Reshape((*x.shape[:-1], size, size)), flat)
    axes = matrix_axes("diag_embed", matrices, dim1, dim2)
    if axes == (matrices.ndim - 2, matrices.ndim - 1):
        return matrices
    return movedim(matrices, (-2, -1), axes)


@public_function("lucid", "Tensor")
def diag(input: Any, diagonal: int = 0) -> Any:
    """A matrix with the vector `input` as its diagonal, or the diagonal of the matrix `input`."""
    x = as_tensor(input)
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim != 2:
        raise ShapeError(f"diag: {x.shape} is neither a vector nor a matrix")
    return bind(COPY, strided_diagonal(x, diagonal, 0, 1))


@public("lucid", "Tensor")
def trace(input: Any) -> Any:
    """The sum of the diagonal of a matrix."""
    x = as_tensor(input)
    if x.ndim != 2:
        remedy = "x.diagonal(dim1=-2, dim2=-1).sum(-1) takes those of many"
        raise ShapeError(f"trace: {x.shape} is not a matrix; {remedy}")
    return diagonal(x).sum(dim=-1)


@public_function("lucid", "Tensor", inplace=True)
def tril(input: Any, diagonal: int = 0) -> Any:
    """The matrices of `input` with zeros above a diagonal."""
    return triangle("tril", input, diagonal, True)


@public_function("lucid", "Tensor", inplace=True)
def triu(input: Any, diagonal: int = 0) -> Any:
    """The matrices of `input` with zeros below a diagonal.

    >>> import lucid
    >>> lucid.triu(lucid.ones(2, 2))
    Tensor([[1., 1.],
            [0., 1.]])
    """
    return triangle("triu", input, diagonal - 1, False)


def triangle(name: str, x: Any, diagonal: int, lower: bool) -> Any:
    """Zero everything above a diagonal, or on and below it, including nan."""
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: a tensor of shape {x.shape} has fewer than two axes")
    mask = np.tri(x.shape[-2], x.shape[-1], k=diagonal, dtype=bool)
    return where(wrap(mask if lower else ~mask), x, False)


@public()
@accepts_device
@clear_errors
def tril_indices(row: int, col: int | None = None, offset: int = 0, *, dtype: Any = None) -> Any:
    """Row and column indices of the lower triangle of a matrix, as a tensor of two rows."""
    found = np.tril_indices(row, offset, row if col is None else col)
    return wrap(np.stack(found).astype(parse_dtype(dtype or "int64")))


@public()
@accepts_device
@clear_errors
def triu_indices(row: int, col: int | None = None, offset: int = 0, *, dtype: Any = None) -> Any:
    """Row and column indices of the upper triangle of a matrix, as a tensor of two rows."""
    found = np.triu_indices(row, offset, row if col is None else col)
    return wrap(np.stack(found).astype(parse_dtype(dtype or "int64")))
