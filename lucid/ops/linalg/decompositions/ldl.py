"""a = L D Lᵀ of symmetric (L D Lᴴ of Hermitian) indefinite matrices.

LAPACK's format (Bunch-Kaufman): L and D, whose blocks have one or two rows, in one lower triangle;
a negative pivot marks a block of two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.elementwise.complexes import conj
from lucid.ops.linalg.matrices import (
    MatrixwiseConstant,
    broadcast_batch,
    check_matrix,
    eval_in_float32,
    per_matrix,
)
from lucid.tape.bind import bind

INT32 = np.dtype("int32")


def lapack_routine(step: str, hermitian: bool, dtype: np.dtype) -> Any:
    """Return LAPACK's sytrf, hetrf, sytrs or hetrs."""
    from scipy.linalg import get_lapack_funcs

    kind = "he" if hermitian and dtype.kind == "c" else "sy"
    return get_lapack_funcs(kind + step, dtype=dtype)


class LdlFactor(MatrixwiseConstant):
    """L and D in one matrix, one-based pivots, and info: the first singular block, or 0."""

    hermitian: bool = False

    def infer(self, a: Type) -> tuple[Type, Type, Type]:
        check_matrix("ldl_factor", a)
        return a, Type(INT32, a.shape[:-1]), Type(INT32, a.shape[:-2])

    @eval_in_float32
    def eval(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        packed = np.array(a, order="C")
        pivots, info = np.zeros(a.shape[:-1], INT32), np.zeros(a.shape[:-2], INT32)
        if a.size:
            factor, failed = lapack_routine("trf", self.hermitian, a.dtype), info.reshape(-1)
            rows = zip(per_matrix(packed), pivots.reshape(-1, a.shape[-1]))
            for i, (out, row_pivots) in enumerate(rows):
                found, row_pivots[...], failed[i] = factor(out, lower=1)
                out[...] = np.tril(found)
        return packed, pivots, info


def check_blocks(pivots: np.ndarray) -> None:
    """Raise an error unless pivots are rows, each negative one twice: LAPACK reads by them."""
    given, n = pivots.tolist(), len(pivots)
    row = 0
    while row < n and 0 < abs(given[row]) <= n:
        row += 1 if given[row] > 0 else 2 if given[row : row + 2].count(given[row]) == 2 else n + 1
    if row != n:
        facts = f"pivots {given} are not those of a matrix of {n} rows"
        raise ArgumentError(f"ldl_solve: {facts}; use those from ldl_factor")


class LdlSolve(Primitive):
    """a⁻¹ b from the factors of a: linear in b; the factors have no derivative."""

    hermitian: bool = False
    saves = "x"
    fails = True

    def infer(self, packed: Type, pivots: Type, b: Type) -> Type:
        check_matrix("ldl_solve", packed)
        if b.ndim < 2 or b.shape[:-1] != packed.shape[:-1] or b.dtype != packed.dtype:
            raise ShapeError(f"ldl_solve: {packed} and the right-hand side {b} do not match")
        if pivots.dtype != INT32 or pivots.shape != packed.shape[:-1]:
            raise ShapeError(f"ldl_solve: pivots {pivots} for {packed}")
        return b

    @eval_in_float32
    def eval(self, packed: np.ndarray, pivots: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = np.array(b, order="C")
        if b.size:
            solve = lapack_routine("trs", self.hermitian, b.dtype)
            row_pivots = pivots.reshape(-1, pivots.shape[-1])
            for factors, swaps, x in zip(per_matrix(packed), row_pivots, per_matrix(out)):
                check_blocks(swaps)
                x[...] = solve(factors, swaps, x, lower=1)[0]
        return out

    def jvp(self, ts: tuple[Any, ...], y: Any, packed: Any, pivots: Any, b: Any) -> Any:
        return None if ts[2] is None else bind(self, packed, pivots, ts[2])

    def vjp(self, ct: Any, y: Any, packed: Any, pivots: Any, b: Any) -> tuple[Any, ...]:
        factors = packed if self.hermitian else conj(packed)
        return None, None, bind(self, factors, pivots, ct)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        return bind(self, *broadcast_batch(n, batched, xs))
