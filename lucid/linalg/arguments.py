"""Arguments of linear algebra: matrices, systems whose batches broadcast, tolerances."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import LucidError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.promote import as_tensor, promote, to_floating
from lucid.ops.linalg.matrices import check_matrix
from lucid.tape.node import GRAD


def matrix(name: str, x: Any, square: bool = True) -> Any:
    """A tensor of matrices, floating or complex."""
    x = to_floating(x)
    checked(name, x, square)
    return x


def checked(name: str, x: Any, square: bool = True) -> None:
    try:
        check_matrix(name, x.type, square)
    except LucidError as error:
        raise type(error)(f"{error}{at_line()}") from None


def matrices(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """A square matrix and another operand, of one dtype."""
    a, b = promote(as_tensor(a), as_tensor(b), floating=True)
    checked(name, a)
    return a, b


def is_vector(a: Any, b: Any) -> bool:
    """Is the right-hand side one vector for every matrix, as PyTorch decides it?"""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


def rows_agree(name: str, a: Any, b: Any) -> None:
    if b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{name}: a matrix of {a.shape} and a right-hand side of {b.shape}: "
            f"the numbers of rows differ{at_line()}"
        )


def outer_shape(name: str, a: Any, b: Any) -> tuple[int, ...]:
    try:
        return broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ShapeError as error:
        raise ShapeError(f"{name}: {a.shape} and {b.shape}: {error}{at_line()}") from None


def expanded(x: Any, outer: tuple[int, ...], kept: int = 2) -> Any:
    """x with these axes before its last ones."""
    shape = (*outer, *x.shape[x.ndim - kept :])
    return x if x.shape == shape else x.expand(shape)


def is_tracked(x: Any) -> bool:
    """Will a derivative be wanted, as far as can be seen?"""
    return x.node is not None and bool(x.node.flags & GRAD)


def cutoff(values: Any, shape: tuple[int, ...], atol: Any, rtol: Any) -> Any:
    """max(atol, rtol · largest value), as a tensor with an axis of size 1 at the end.

    By default rtol is max(m, n) times the rounding error, and 0 where atol is given.
    """
    eps = float(np.finfo(values.dtype).eps)
    given = atol is not None
    atol = as_tensor(0.0 if atol is None else atol).to(values.dtype)
    default = 0.0 if given and bool_of(atol) else max(shape[-2:]) * eps
    rtol = as_tensor(default if rtol is None else rtol).to(values.dtype)
    top = values.amax(dim=-1, keepdim=True) if values.shape[-1] else values.sum(-1, keepdim=True)
    atol, rtol = (x.reshape(*x.shape, 1) if x.ndim else x for x in (atol, rtol))
    return (rtol * top).maximum(atol)


def bool_of(atol: Any) -> bool:
    """Is a tolerance given that is more than zero? One that has no value yet counts as given."""
    return atol.value is None or bool(np.any(atol.value > 0))
