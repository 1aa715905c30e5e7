"""The matrix exponential."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import LinAlgError, ShapeError
from lucid.ir.types import Type
from lucid.ops.linalg.contraction import adjoint_matrix
from lucid.ops.linalg.matrices import Matrixwise, MatrixwiseConstant, check_matrix, eval_in_float32
from lucid.ops.shape.joining import cat
from lucid.tape.bind import bind


class MatrixExp(Matrixwise):
    """The matrix exponential, by scaling, Padé approximation and squaring.

    Its derivative in the direction t is the upper right block of exp([[a, t], [0, a]]).
    """

    saves = "x"
    decomposition = "lucid.compiler.passes.expand.expand_matrix_exp:expand_matrix_exp"

    def infer(self, a: Type) -> Type:
        check_matrix("matrix_exp", a)
        return a

    @eval_in_float32
    def eval(self, a: np.ndarray) -> np.ndarray:
        from scipy.linalg import expm

        if not a.size:
            return a.copy()
        if not np.isfinite(a).all():
            return np.full_like(a, np.nan)
        try:
            with np.errstate(all="ignore"):
                return expm(a).astype(a.dtype, copy=False)
        except ValueError as error:
            raise LinAlgError(f"matrix_exp: {error}") from None

    def jvp(self, ts: tuple[Any, ...], y: Any, a: Any) -> Any:
        return frechet_derivative(a, ts[0])

    def vjp(self, ct: Any, y: Any, a: Any) -> tuple[Any]:
        return (frechet_derivative(adjoint_matrix(a), ct),)


class RepeatedSquare(MatrixwiseConstant):
    """Each matrix squared `times` times; compiled programs use it for matrix_exp."""

    lowering = "lucid.compiler.lowering.lapack.repeated_square:RepeatedSquareLowering"

    def infer(self, a: Type, times: Type) -> Type:
        check_matrix("repeated_square", a)
        if times.dtype != np.int64 or times.shape != a.shape[:-2]:
            raise ShapeError(f"repeated_square: times {times} for matrices {a}")
        return a

    def eval(self, a: np.ndarray, times: np.ndarray) -> np.ndarray:
        a, step = a.copy(), 0
        with np.errstate(all="ignore"):
            while (more := step < times).any():
                a[more] = np.matmul(a[more], a[more])
                step += 1
        return a


def frechet_derivative(a: Any, t: Any) -> Any:
    """Return the derivative of the exponential at `a` in the direction `t`."""
    n = a.shape[-1]
    above, below = cat([a, t], -1), cat([0 * t, a], -1)
    return bind(MatrixExp(), cat([above, below], -2))[..., :n, n:]
