"""Shared by matrix primitives, which work on the last two axes; leading axes are batch axes.

LAPACK takes float32, float64, complex64 and complex128; float16 is computed in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import DTypeError, LinAlgError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.kinds import Constant
from lucid.ops.linalg.contraction import adjoint_matrix
from lucid.ops.shape.movement import Broadcast
from lucid.tape.bind import bind
from lucid.tape.node import wrap

HALF, INT32 = np.dtype("float16"), np.dtype("int32")


class Matrixwise(Primitive, abstract=True):
    """A primitive whose operands share their batch axes; vmap adds one more."""

    fails = True
    check_error = (LinAlgError, "no result for this matrix")

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        return bind(self, *broadcast_batch(n, batched, xs))


class MatrixwiseConstant(Constant, abstract=True):
    """A Matrixwise primitive through which no derivative flows."""

    fails = True
    check_error = (LinAlgError, "no result for this matrix")

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        return bind(self, *broadcast_batch(n, batched, xs))


def broadcast_batch(n: int, batched: tuple[bool, ...], xs: tuple[Any, ...]) -> list[Any]:
    """Return the operands, broadcasting those that are not batched."""
    return [
        x if b else bind(Broadcast((n, *x.shape), tuple(range(1, x.ndim + 1))), x)
        for b, x in zip(batched, xs)
    ]


def check_matrix(name: str, x: Type, square: bool = True) -> None:
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{name}: dtype {x.dtype}; it takes floating and complex matrices")
    if x.ndim < 2:
        raise ShapeError(f"{name}: {x.shape} is not a matrix: it needs at least two axes")
    if square and x.shape[-1] != x.shape[-2]:
        rows, columns = x.shape[-2:]
        raise ShapeError(f"{name}: {rows} rows and {columns} columns; the matrix must be square")


def check_system(name: str, a: Type, b: Type) -> None:
    """Check a square matrix and a right-hand side with the same rows and batch axes."""
    check_matrix(name, a)
    if b.dtype != a.dtype:
        raise DTypeError(f"{name}: operands of dtypes {a.dtype} and {b.dtype}; cast one first")
    if b.ndim < 2 or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(f"{name}: {a.shape} and {b.shape}: the numbers of rows differ")


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of absolute values."""
    return np.empty(0, dtype).real.dtype


def eval_in_float32(eval: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate an `eval` to compute float16 in float32."""

    @functools.wraps(eval)
    def run(self: Any, *xs: np.ndarray) -> Any:
        if not any(x.dtype == HALF for x in xs):
            return eval(self, *xs)
        out = eval(self, *[x.astype("float32") if x.dtype == HALF else x for x in xs])
        several = out if isinstance(out, tuple) else (out,)
        back = tuple([y.astype(HALF) if y.dtype.kind == "f" else y for y in several])
        return back if isinstance(out, tuple) else back[0]

    return run


def per_matrix(x: np.ndarray) -> np.ndarray:
    """Flatten the batch axes into one."""
    return x.reshape(-1, *x.shape[-2:])


def matrix_label(index: tuple[int, ...]) -> str:
    """Return "matrix [2, 0] of the batch", or "the matrix" if there is only one."""
    return f"matrix {list(index)} of the batch" if index else "the matrix"


def check_info(name: str, info: np.ndarray, explain: Callable[[int], str]) -> None:
    """Raise for the first matrix whose LAPACK routine reported a failure."""
    if info.any():
        index = tuple(int(i) for i in np.argwhere(info)[0])
        raise LinAlgError(f"{name}: {matrix_label(index)} {explain(int(info[index]))}")


def convergence_error(name: str) -> LinAlgError:
    return LinAlgError(f"{name}: did not converge; check the matrix for nan and inf")


def constant_like(array: np.ndarray, like: Any) -> Any:
    """Return an array as a constant tensor with the dtype of `like`."""
    return wrap(array.astype(like.dtype))


def hermitian_part(x: Any) -> Any:
    """Return the Hermitian part of a matrix, (x + xᴴ) / 2."""
    return (x + adjoint_matrix(x)) * 0.5


def skew_hermitian_part(x: Any) -> Any:
    """Return the skew-Hermitian part of a matrix, (x - xᴴ) / 2."""
    return (x - adjoint_matrix(x)) * 0.5
