"""Eigenvalues and singular values by LAPACK, with their vectors or alone.

Derivatives at repeated values follow `lucid.ops.linalg.decompositions.degenerate`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ir.types import Type
from lucid.ops.core.errstate import quiet
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.complexes import real
from lucid.ops.linalg.contraction import adjoint_matrix, product
from lucid.ops.linalg.decompositions.degenerate import DegenerateGroups, max_abs
from lucid.ops.linalg.matrices import (
    Matrixwise,
    check_matrix,
    constant_like,
    convergence_error,
    eval_in_float32,
    hermitian_part,
    per_matrix,
    real_dtype,
    skew_hermitian_part,
)
from lucid.ops.shape.diagonals import diag_embed, strided_diagonal
from lucid.ops.shape.joining import cat
from lucid.tape.bind import bind

EIGENVECTORS = (
    "eigh: eigenvectors of a repeated eigenvalue have no derivative, because their basis is"
    " arbitrary; a loss of the eigenvalues alone (eigvalsh) has one"
)
UNEQUAL_EIGENVALUES = (
    "eigh: the loss depends on eigenvectors and treats equal eigenvalues differently, so it has no"
    " derivative; matrix_exp, solve and inv have derivatives at repeated eigenvalues too"
)
SINGULAR_VECTORS = (
    "svd: singular vectors of a repeated singular value have no derivative, because their basis is"
    " arbitrary; a loss of the singular values alone (svdvals) has one"
)
UNEQUAL_SINGULAR = (
    "svd: the loss depends on singular vectors and treats equal singular values differently, so it"
    " has no derivative; solve, inv and pinv have derivatives at repeated singular values too"
)
ZERO_VECTORS = "svd: singular vectors of a singular value that is zero have no derivative"


def scipy_lapack(names: tuple[str, ...], dtype: np.dtype) -> Any:
    """Return SciPy's LAPACK routines, which compiled programs call; NumPy's may differ in signs."""
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs(names, dtype=dtype)


def workspace_sizes(found: Any) -> list[int]:
    """Return the workspace sizes from a LAPACK workspace query, whose last result is info."""
    return [int(x.real) for x in found[:-1]]


def diagonal_of(x: Any) -> Any:
    return strided_diagonal(x, 0, x.ndim - 2, x.ndim - 1)


class Eigh(Matrixwise):
    """h = Vᴴ diag(w) V with real w in ascending order: w, and V with vectors as rows.

    h is the Hermitian matrix whose lower triangle is that of a. Derivatives are those in h, as if
    a were moved to another Hermitian matrix.
    """

    lowering = "lucid.compiler.lowering.lapack.eigen:EighLowering"

    def infer(self, a: Type) -> tuple[Type, Type]:
        check_matrix("eigh", a)
        return Type(real_dtype(a.dtype), a.shape[:-1]), a

    @eval_in_float32
    @quiet
    def eval(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, rows = np.empty(a.shape[:-1], real_dtype(a.dtype)), np.empty(a.shape, a.dtype)
        if a.size:
            name, n = "heevd" if a.dtype.kind == "c" else "syevd", a.shape[-1]
            solve, ask = scipy_lapack((name, name + "_lwork"), a.dtype)
            space = dict(zip(("lwork", "liwork", "lrwork"), workspace_sizes(ask(n, lower=1))))
            each = zip(per_matrix(a.conj()), values.reshape(-1, n), per_matrix(rows))
            for matrix, some, columns in each:
                some[...], vectors, info = solve(matrix, lower=1, **space)
                if info:
                    raise convergence_error("eigh")
                columns[...] = vectors.T
        return values, rows

    def jvp(self, ts: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any, Any]:
        values, rows = y
        if not a.shape[-1]:
            return None, None
        moved = product(product(rows, hermitian_part(ts[0])), adjoint_matrix(rows))
        groups = DegenerateGroups(values)
        rotation = groups.divide_by_gaps(moved, max_abs(moved), EIGENVECTORS)
        return groups.group_mean(real(diagonal_of(moved))), -product(rotation, rows)

    def vjp(self, ct: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any]:
        (gw, gv), (values, rows) = ct, y
        if (gw is None and gv is None) or not a.shape[-1]:
            return (None,)
        groups = DegenerateGroups(values)
        if gw is not None:
            gw = (
                groups.group_mean(gw)
                if gv is None
                else groups.require_uniform(gw, UNEQUAL_EIGENVALUES)
            )
        if gv is None:
            return (eigen_product(rows, gw),)
        rotation = product(gv, adjoint_matrix(rows))
        inner = -groups.divide_by_gaps(
            skew_hermitian_part(rotation), max_abs(rotation), EIGENVECTORS
        )
        if gw is not None:
            inner = inner + diag_embed(cast(gw, a.dtype))
        return (product(adjoint_matrix(rows), product(inner, rows)),)


def eigen_product(rows: Any, weights: Any) -> Any:
    """Vᴴ diag(weights) V."""
    column = weights.reshape(*weights.shape, 1)
    return product(adjoint_matrix(rows), cast(column, rows.dtype) * rows)


class Eigvalsh(Matrixwise):
    """The eigenvalues, ascending, of the Hermitian matrix with the lower triangle of a."""

    saves = "x"
    lowering = "lucid.compiler.lowering.lapack.eigen:EighLowering"

    def infer(self, a: Type) -> Type:
        check_matrix("eigvalsh", a)
        return Type(real_dtype(a.dtype), a.shape[:-1])

    @eval_in_float32
    @quiet
    def eval(self, a: np.ndarray) -> np.ndarray:
        try:
            return np.linalg.eigvalsh(a)
        except np.linalg.LinAlgError:
            raise convergence_error("eigvalsh") from None

    def jvp(self, ts: tuple[Any, ...], y: Any, a: Any) -> Any:
        return Eigh().jvp(ts, bind(Eigh(), a), a)[0]

    def vjp(self, ct: Any, y: Any, a: Any) -> tuple[Any]:
        return Eigh().vjp((ct, None), bind(Eigh(), a), a)


class Svd(Matrixwise):
    """a = U diag(s) Vᴴ with s ≥ 0 in descending order: U, s and Vᴴ.

    If `full`, U and Vᴴ are square; the vectors without a singular value are arbitrary, and no
    derivative flows to or from them.
    """

    full: bool = False
    lowering = "lucid.compiler.lowering.lapack.eigen:SvdLowering"

    def infer(self, a: Type) -> tuple[Type, Type, Type]:
        check_matrix("svd", a, square=False)
        *outer, m, n = a.shape
        k = min(m, n)
        left, right = ((m, m), (n, n)) if self.full else ((m, k), (k, n))
        values = Type(real_dtype(a.dtype), (*outer, k))
        return Type(a.dtype, (*outer, *left)), values, Type(a.dtype, (*outer, *right))

    @eval_in_float32
    def eval(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m, n = a.shape[-2:]
        u, s, vh = (np.empty(t.shape, t.dtype) for t in self.infer(Type(a.dtype, a.shape)))
        if a.size:
            solve, ask = scipy_lapack(("gesdd", "gesdd_lwork"), a.dtype)
            (space,) = workspace_sizes(ask(n, m, full_matrices=self.full))
            each = zip(per_matrix(a), per_matrix(u), s.reshape(-1, min(m, n)), per_matrix(vh))
            for matrix, left, values, right in each:
                first, values[...], second, info = solve(
                    matrix.T, full_matrices=self.full, lwork=space
                )
                if info:
                    raise convergence_error("svd")
                left[...], right[...] = second.T, first.T
        elif self.full:
            u[...], vh[...] = np.eye(m), np.eye(n)
        return u, s, vh

    def jvp(self, ts: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any, Any, Any]:
        if not min(a.shape[-2:]):
            return None, None, None
        (u, s, vh), t = self.reduced(y, y[1].shape[-1]), ts[0]
        v, groups = adjoint_matrix(vh), DegenerateGroups(s)
        right = product(t, v)
        inner = product(adjoint_matrix(u), right)
        size = max_abs(inner)
        first = groups.divide_by_gaps(hermitian_part(inner), size, SINGULAR_VECTORS)
        second = groups.divide_by_sums(skew_hermitian_part(inner), size, ZERO_VECTORS)
        tu, tv = product(u, first + second), product(v, first - second)
        if u.shape[-2] > s.shape[-1]:
            rest = right - product(u, inner)
            tu = tu + groups.divide_by_values(rest, max_abs(right), ZERO_VECTORS)
        if v.shape[-2] > s.shape[-1]:
            left = product(adjoint_matrix(t), u)
            rest = left - product(v, adjoint_matrix(inner))
            tv = tv + groups.divide_by_values(rest, max_abs(left), ZERO_VECTORS)
        ts_out = groups.group_mean(real(diagonal_of(inner)))
        return self.pad_zeros(tu, y[0], -1), ts_out, self.pad_zeros(adjoint_matrix(tv), y[2], -2)

    def vjp(self, ct: tuple[Any, ...], y: tuple[Any, ...], a: Any) -> tuple[Any]:
        k = y[1].shape[-1]
        (gu, gs, gvh), (u, s, vh) = self.reduced(ct, k), self.reduced(y, k)
        if (gu is None and gs is None and gvh is None) or not min(a.shape[-2:]):
            return (None,)
        groups = DegenerateGroups(s)
        if gu is None and gvh is None:
            weights = cast(groups.group_mean(gs), a.dtype)
            return (product(u, weights.reshape(*weights.shape, 1) * vh),)
        return (SvdPullback(groups, u, vh).run(gu, gs, gvh),)

    def reduced(self, parts: tuple[Any, ...], k: int) -> tuple[Any, Any, Any]:
        """Return the vectors that have a singular value, and the values."""
        u, s, vh = parts
        if self.full:
            u = None if u is None else u[..., :k]
            vh = None if vh is None else vh[..., :k, :]
        return u, s, vh

    def pad_zeros(self, x: Any, like: Any, axis: int) -> Any:
        missing = like.shape[axis] - x.shape[axis]
        if not missing:
            return x
        shape = list(x.shape)
        shape[axis] = missing
        return cat([x, constant_like(np.zeros(shape), x)], axis)


class SvdPullback:
    """Computes the cotangent of a matrix from those of its singular vectors and values."""

    def __init__(self, groups: DegenerateGroups, u: Any, vh: Any) -> None:
        self.groups, self.u, self.vh = groups, u, vh

    def run(self, gu: Any, gs: Any, gvh: Any) -> Any:
        groups, u, vh, v = self.groups, self.u, self.vh, adjoint_matrix(self.vh)
        gv = None if gvh is None else adjoint_matrix(gvh)
        left = None if gu is None else product(adjoint_matrix(u), gu)
        right = None if gv is None else product(vh, gv)
        both, apart = add_optional(left, right, 1), add_optional(left, right, -1)
        size = max_abs(both) + max_abs(apart)
        inner = groups.divide_by_gaps(skew_hermitian_part(both), size, SINGULAR_VECTORS)
        inner = inner + groups.divide_by_sums(skew_hermitian_part(apart), size, ZERO_VECTORS)
        if gs is not None:
            inner = inner + diag_embed(cast(groups.require_uniform(gs, UNEQUAL_SINGULAR), u.dtype))
        outside = product(u, inner)
        if gu is not None and u.shape[-2] > u.shape[-1]:
            rest = gu - product(u, left)
            outside = outside + groups.divide_by_values(rest, max_abs(gu), ZERO_VECTORS)
        ga = product(outside, vh)
        if gv is not None and v.shape[-2] > v.shape[-1]:
            rest = gv - product(v, right)
            rest = groups.divide_by_values(rest, max_abs(gv), ZERO_VECTORS)
            ga = ga + product(u, adjoint_matrix(rest))
        return ga


def add_optional(x: Any, y: Any, sign: int) -> Any:
    if x is None:
        return y * sign
    return x if y is None else x + y * sign


class Svdvals(Matrixwise):
    """The singular values in descending order."""

    saves = "x"
    lowering = "lucid.compiler.lowering.lapack.eigen:SvdLowering"

    def infer(self, a: Type) -> Type:
        check_matrix("svdvals", a, square=False)
        return Type(real_dtype(a.dtype), (*a.shape[:-2], min(a.shape[-2:])))

    @eval_in_float32
    def eval(self, a: np.ndarray) -> np.ndarray:
        try:
            return np.linalg.svd(a.swapaxes(-1, -2), compute_uv=False)
        except np.linalg.LinAlgError:
            raise convergence_error("svdvals") from None

    def jvp(self, ts: tuple[Any, ...], y: Any, a: Any) -> Any:
        return Svd().jvp(ts, bind(Svd(), a), a)[1]

    def vjp(self, ct: Any, y: Any, a: Any) -> tuple[Any]:
        return Svd().vjp((None, ct, None), bind(Svd(), a), a)
