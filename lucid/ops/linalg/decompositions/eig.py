"""Eigenvalues of general square matrices: complex, in LAPACK's order.

The derivative exists where the eigenvalues are distinct. That of the eigenvalues alone also exists
where equal ones have independent vectors, and is then correct for functions symmetric in them.
Vectors have length 1; a loss must not depend on their phase.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ir.types import Type
from lucid.ops.core.promote import cast, complex_dtype
from lucid.ops.core.runtime_check import refuse
from lucid.ops.elementwise.complexes import conj, real
from lucid.ops.elementwise.conditional import where
from lucid.ops.linalg.contraction import adjoint_matrix, product
from lucid.ops.linalg.decompositions.degenerate import (
    EQUAL_TOLERANCE,
    ZERO_TOLERANCE,
    column,
    max_abs,
    row,
)
from lucid.ops.linalg.decompositions.eigh_svd import diagonal_of
from lucid.ops.linalg.decompositions.factorizations import LuFactor
from lucid.ops.linalg.decompositions.triangular import LuSolve
from lucid.ops.linalg.matrices import (
    HALF,
    Matrixwise,
    check_matrix,
    constant_like,
    convergence_error,
    per_matrix,
)
from lucid.ops.shape.diagonals import diag_embed
from lucid.tape.bind import bind

REPEATED = "eig: eigenvectors of a repeated eigenvalue have no derivative"


def complex_type(a: Type, shape: tuple[int, ...]) -> Type:
    return Type(a.dtype if a.dtype.kind == "c" else complex_dtype(a.dtype), shape)


def promote_half(a: np.ndarray) -> np.ndarray:
    return a.astype("float32") if a.dtype == HALF else a


class Eig(Matrixwise):
    """a V = V diag(w): the eigenvalues w and the vectors in the columns of V."""

    lowering = "lucid.compiler.lowering.lapack.eigen:EigLowering"

    def infer(self, a: Type) -> tuple[Type, Type]:
        check_matrix("eig", a)
        return complex_type(a, a.shape[:-1]), complex_type(a, a.shape)

    def eval(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        dtype = complex_dtype(a.dtype) if a.dtype.kind == "f" else a.dtype
        values, vectors = np.empty(a.shape[:-1], dtype), np.empty(a.shape, dtype)
        if a.size:
            from scipy.linalg import eig  # NumPy's LAPACK may give the vectors other signs

            rows = zip(
                per_matrix(promote_half(a)), values.reshape(-1, a.shape[-1]), per_matrix(vectors)
            )
            for matrix, some, columns in rows:
                try:
                    some[...], columns[...] = eig(matrix)
                except (np.linalg.LinAlgError, ValueError):
                    raise convergence_error("eig") from None
        return values, vectors

    def jvp(self, ts: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any, Any]:
        values, vectors = y
        if not a.shape[-1]:
            return None, None
        moved = solve_with(vectors, product(cast(ts[0], vectors.dtype), vectors))
        rotation = product(vectors, divide_by_gaps(moved, values, conjugated=False))
        along = real((conj(vectors) * rotation).sum(-2, keepdim=True))
        return diagonal_of(moved), rotation - vectors * cast(along, vectors.dtype)

    def vjp(self, ct: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any]:
        (gw, gv), (values, vectors) = ct, y
        if (gw is None and gv is None) or not a.shape[-1]:
            return (None,)
        inner = None if gw is None else diag_embed(gw)
        if gv is not None:
            rotation = product(adjoint_matrix(vectors), gv)
            length = cast(real(diagonal_of(rotation)), vectors.dtype)
            gram = product(adjoint_matrix(vectors), vectors)
            found = divide_by_gaps(rotation - gram * row(length), values, conjugated=True)
            inner = found if inner is None else inner + found
        pulled = solve_with(vectors, product(inner, adjoint_matrix(vectors)), adjoint=True)
        return (cast(real(pulled), a.dtype) if a.dtype.kind == "f" else pulled,)


def solve_with(a: Any, b: Any, adjoint: bool = False) -> Any:
    """Return a⁻¹ b, or a⁻ᴴ b if `adjoint`."""
    packed, pivots, _ = bind(LuFactor(), a)
    return bind(LuSolve(adjoint), a, packed, pivots, b)


def divide_by_gaps(x: Any, values: Any, conjugated: bool) -> Any:
    """Return x[i, j] / (values[j] - values[i]), and 0 on the diagonal and for equal values."""
    size = values.abs()
    eps = float(np.finfo(size.dtype).eps)
    gaps = row(values) - column(values)
    near = gaps.abs() <= EQUAL_TOLERANCE * eps * max_abs(column(size))
    other = constant_like(1 - np.eye(values.shape[-1]), size) != 0
    bad = (near & other) & (x.abs() > ZERO_TOLERANCE * eps * max_abs(x))
    inverse = where(near, 0.0, 1.0 / where(near, 1.0, gaps))
    return refuse(x, bad, REPEATED) * (conj(inverse) if conjugated else inverse)


class Eigvals(Matrixwise):
    """The eigenvalues, in LAPACK's order."""

    saves = "x"
    lowering = "lucid.compiler.lowering.lapack.eigen:EigLowering"

    def infer(self, a: Type) -> Type:
        check_matrix("eigvals", a)
        return complex_type(a, a.shape[:-1])

    def eval(self, a: np.ndarray) -> np.ndarray:
        try:
            values = np.linalg.eigvals(promote_half(a))
        except np.linalg.LinAlgError:
            raise convergence_error("eigvals") from None
        dtype = complex_dtype(a.dtype) if a.dtype.kind == "f" else a.dtype
        return values.astype(dtype, copy=False)

    def jvp(self, ts: tuple[Any, ...], y: Any, a: Any) -> Any:
        return Eig().jvp(ts, bind(Eig(), a), a)[0]

    def vjp(self, ct: Any, y: Any, a: Any) -> tuple[Any]:
        return Eig().vjp((ct, None), bind(Eig(), a), a)
