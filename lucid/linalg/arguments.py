"""Argument checks of linear algebra: matrices, systems with broadcasting batches, tolerances."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.promote import as_tensor, cast, promote, to_floating
from lucid.ops.core.runtime_check import refuse_elements
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.elementwise.logic import logical_or
from lucid.ops.linalg.matrices import check_matrix


def as_matrix(name: str, x: Any, square: bool = True) -> Any:
    """Convert `x` to a tensor of floating or complex matrices."""
    x = to_floating(x)
    check_matrix(name, x.type, square)
    return x


def as_system(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Convert a square matrix and a right-hand side to tensors of one dtype."""
    a, b = promote(as_tensor(a), as_tensor(b), floating=True)
    check_matrix(name, a.type)
    return a, b


def as_pivots(name: str, pivots: Any, matrix: Any, signed: bool = False) -> Any:
    """Convert the pivots of a factorization to int32; their values must be rows, from 1 on.

    LAPACK reads memory by them. A sign may mark a block, as in LAPACK's ldl_factor.
    """
    pivots, (*outer, m, n) = as_tensor(pivots), matrix.shape
    remedy = f"use those from {'ldl_factor' if signed else 'lu_factor'}"
    if pivots.dtype.kind not in "iu" or pivots.shape != (*outer, min(m, n)):
        raise ShapeError(f"{name}: pivots {pivots.type} for a matrix of {matrix.shape}; {remedy}")
    pivots = cast(pivots, "int64")
    rows = abs(pivots) if signed else pivots
    outside = logical_or(rows < 1, rows > m)
    checked = refuse_elements(pivots, outside, f"{name}: a pivot is not from 1 to {m}; {remedy}")
    return cast(clamp(checked, -m if signed else 1, m), "int32")


def is_vector(a: Any, b: Any) -> bool:
    """True if the right-hand side is one vector per matrix, by PyTorch's rule."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


def check_rows(name: str, a: Any, b: Any) -> None:
    if b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{name}: a matrix of {a.shape} and a right-hand side of {b.shape}: "
            "the numbers of rows differ"
        )


def batch_shape(name: str, a: Any, b: Any) -> tuple[int, ...]:
    try:
        return broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ShapeError as error:
        raise ShapeError(f"{name}: {a.shape} and {b.shape}: {error}") from None


def expand_batch(x: Any, outer: tuple[int, ...], kept: int = 2) -> Any:
    """Expand the batch axes of `x` to `outer`; its last `kept` axes stay."""
    shape = (*outer, *x.shape[x.ndim - kept :])
    return x if x.shape == shape else x.expand(shape)


def cutoff(values: Any, shape: tuple[int, ...], atol: Any, rtol: Any) -> Any:
    """Return max(atol, rtol · largest value), with a last axis of size 1.

    By default rtol is max(m, n) times the machine epsilon, or 0 if atol is given.
    """
    eps = float(np.finfo(values.dtype).eps)
    given = atol is not None
    atol = as_tensor(0.0 if atol is None else atol).to(values.dtype)
    default = 0.0 if given and is_positive(atol) else max(shape[-2:]) * eps
    rtol = as_tensor(default if rtol is None else rtol).to(values.dtype)
    top = values.amax(dim=-1, keepdim=True) if values.shape[-1] else values.sum(-1, keepdim=True)
    atol, rtol = (x.reshape(*x.shape, 1) if x.ndim else x for x in (atol, rtol))
    return (rtol * top).maximum(atol)


def is_positive(atol: Any) -> bool:
    """True if a tolerance is positive; a traced one without a value counts as positive."""
    return atol.raw is None or bool(np.any(atol.value > 0))
