"""What operations on matrices share: they work on the last two axes, for all axes before at once.

LAPACK takes float32, float64, complex64 and complex128; float16 is computed in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import DTypeError, LinAlgError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.source import at_line
from lucid.ir.types import Type
from lucid.ops.core.kinds import Constant
from lucid.ops.linalg.contraction import adjoint_matrix
from lucid.ops.shape.movement import Broadcast
from lucid.tape.bind import bind
from lucid.tape.node import wrap

HALF, INT32 = np.dtype("float16"), np.dtype("int32")


class Matrixwise(Primitive, abstract=True):
    """Operands whose axes before the last ones are the same; the examples of vmap are one more."""

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        return bind(self, *repeated(n, batched, xs))


class MatrixwiseConstant(Constant, abstract=True):
    """The same, where no derivative flows through."""

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        return bind(self, *repeated(n, batched, xs))


def repeated(n: int, batched: tuple[bool, ...], xs: tuple[Any, ...]) -> list[Any]:
    """The operands, those that all examples share repeated for each."""
    return [
        x if b else bind(Broadcast((n, *x.shape), tuple(range(1, x.ndim + 1))), x)
        for b, x in zip(batched, xs)
    ]


def check_matrix(name: str, x: Type, square: bool = True) -> None:
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{name}: a matrix of dtype {x.dtype}; it takes floating and complex ones")
    if x.ndim < 2:
        raise ShapeError(f"{name}: {x.shape} is not a matrix: it needs at least two axes")
    if square and x.shape[-1] != x.shape[-2]:
        rows, columns = x.shape[-2:]
        raise ShapeError(f"{name}: {rows} rows and {columns} columns; the matrix must be square")


def check_system(name: str, a: Type, b: Type) -> None:
    """A square matrix and a right-hand side of as many rows, with the same axes before."""
    check_matrix(name, a)
    if b.dtype != a.dtype:
        raise DTypeError(f"{name}: operands of dtypes {a.dtype} and {b.dtype}; cast one first")
    if b.ndim < 2 or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(f"{name}: {a.shape} and {b.shape}: the numbers of rows differ")


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of absolute values."""
    return np.empty(0, dtype).real.dtype


def in_single(eval: Callable[..., Any]) -> Callable[..., Any]:
    """An `eval` that gets float32 for float16, and whose results go back to float16."""

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
    """The matrices of an array one after another."""
    return x.reshape(-1, *x.shape[-2:])


def place(index: tuple[int, ...]) -> str:
    """`matrix [2, 0]` of a batch, `the matrix` where there is one."""
    return f"matrix {list(index)} of the batch" if index else "the matrix"


def refuse_info(name: str, info: np.ndarray, explain: Callable[[int], str]) -> None:
    """Raise for the first matrix whose LAPACK routine reported a failure."""
    if info.any():
        index = tuple(int(i) for i in np.argwhere(info)[0])
        raise LinAlgError(f"{name}: {place(index)} {explain(int(info[index]))}{at_line()}")


def did_not_converge(name: str) -> LinAlgError:
    return LinAlgError(f"{name}: it did not converge; are there nan or inf in it?{at_line()}")


def constant(array: np.ndarray, like: Any) -> Any:
    """A matrix of a rule as a tensor of another's dtype."""
    return wrap(array.astype(like.dtype))


def hermitian(x: Any) -> Any:
    """The Hermitian part of a matrix, (x + xᴴ) / 2."""
    return (x + adjoint_matrix(x)) * 0.5


def skew(x: Any) -> Any:
    """The part of a matrix that changes sign with its adjoint, (x - xᴴ) / 2."""
    return (x - adjoint_matrix(x)) * 0.5


def hermitian_array(x: np.ndarray) -> np.ndarray:
    return (x + x.swapaxes(-1, -2).conj()) * x.dtype.type(0.5)
