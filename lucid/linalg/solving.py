"""Linear systems, inverses, least squares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.linalg.arguments import (
    as_matrix,
    as_pivots,
    as_system,
    batch_shape,
    check_rows,
    expand_batch,
    is_vector,
)
from lucid.linalg.eigenvalues import cutoff, pseudo_inverse, svd
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.elementwise.complexes import conj
from lucid.ops.index.gather_scatter import PutAlong, TakeAlong
from lucid.ops.linalg.contraction import adjoint_matrix, product
from lucid.ops.linalg.decompositions.factorizations import (
    LuFactor,
    Permutation,
    row_indices,
    transpose_matrix,
)
from lucid.ops.linalg.decompositions.triangular import LuSolve, TriangularSolve
from lucid.ops.linalg.known_derivatives import identity_like
from lucid.ops.reduce.statistics import abs_square
from lucid.ops.shape.movement import Reshape
from lucid.ops.shape.shaping import movedim
from lucid.tape.bind import bind
from lucid.tape.node import wrap

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


class SolveEx(NamedTuple):
    result: Tensor
    info: Tensor


class InvEx(NamedTuple):
    inverse: Tensor
    info: Tensor


class Lstsq(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def solve_system(name: str, A: Any, B: Any, left: bool, check: bool) -> tuple[Any, Any]:
    """Return A⁻¹ B (or B A⁻¹) and the info of the factorization."""
    A, B = as_system(name, A, B)
    vector = is_vector(A, B)
    if vector and not left:
        raise ShapeError(f"{name}: left=False needs a matrix B; add a second axis")
    b = B.reshape(*B.shape, 1) if vector else B if left else check_and_transpose(name, B)
    a = A if left else transpose_matrix(A)
    check_rows(name, a, b)
    packed, pivots, info = bind(LuFactor(), a)
    outer = batch_shape(name, a, b)
    op = LuSolve(False, check)
    if a.ndim == 2 and b.ndim > 2:
        flat = bind(Reshape((math.prod(outer), *b.shape[-2:])), b)
        x = op.batch(flat.shape[0], (False, False, False, True), a, packed, pivots, flat)
        x = bind(Reshape(b.shape), x)
    else:
        factors = (
            expand_batch(a, outer),
            expand_batch(packed, outer),
            expand_batch(pivots, outer, 1),
        )
        x = bind(op, *factors, expand_batch(b, outer))
    if vector:
        return bind(Reshape(x.shape[:-1]), x), info
    return x if left else transpose_matrix(x), info


def check_and_transpose(name: str, B: Any) -> Any:
    if B.ndim < 2:
        raise ShapeError(f"{name}: {B.shape} is not a matrix")
    return transpose_matrix(B)


@public_function("linalg")
def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """The X with A X = B, or X A = B if `left` is False; batches broadcast.

    B is a matrix, or one vector for each matrix. A singular matrix raises LinAlgError.

    >>> import lucid
    >>> lucid.linalg.solve(lucid.tensor([[2.0, 0.0], [0.0, 4.0]]), lucid.tensor([2.0, 2.0]))
    Tensor([1. , 0.5])
    """
    return solve_system("solve", A, B, bool(left), True)[0]


@public_function("linalg")
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """`solve` without raising: `info` is the one-based index of the zero pivot, or 0."""
    return SolveEx(*solve_system("solve_ex", A, B, bool(left), bool(check_errors)))


@public_function("linalg", aliases=("inverse",))
def inv(A: Any) -> Any:
    """The inverse of a square matrix; a singular one raises LinAlgError.

    >>> import lucid
    >>> lucid.linalg.inv(lucid.tensor([[2.0, 0.0], [0.0, 4.0]]))
    Tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    return invert("inv", A, True)[0]


@public_function("linalg")
def inv_ex(A: Any, *, check_errors: bool = False) -> InvEx:
    """`inv` without raising: `info` is the one-based index of the zero pivot, or 0."""
    return InvEx(*invert("inv_ex", A, bool(check_errors)))


def invert(name: str, A: Any, check: bool) -> tuple[Any, Any]:
    A = as_matrix(name, A)
    packed, pivots, info = bind(LuFactor(), A)
    return bind(LuSolve(False, check), A, packed, pivots, identity_like(A)), info


@public_function("linalg")
def solve_triangular(
    input: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """The X with A X = B (or X A = B) for a triangular matrix; only one triangle is read.

    A zero on the diagonal gives inf or nan.
    """
    A, B = as_system("solve_triangular", input, B)
    b = B if left else check_and_transpose("solve_triangular", B)
    a = A if left else transpose_matrix(A)
    x = triangular_system("solve_triangular", a, b, bool(upper) == bool(left), bool(unitriangular))
    return x if left else transpose_matrix(x)


def triangular_system(
    name: str, a: Any, b: Any, upper: bool, unit: bool = False, adjoint: bool = False
) -> Any:
    check_rows(name, a, b)
    outer = batch_shape(name, a, b)
    op = TriangularSolve(upper, unit, adjoint)
    return bind(op, expand_batch(a, outer), expand_batch(b, outer))


@public_function("lucid", "Tensor", "linalg")
def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Any:
    """The X with A X = `input`, where `input2` is the Cholesky factor L (Lᴴ if `upper`) of A."""
    L, B = as_system("cholesky_solve", input2, input)
    half_way = triangular_system("cholesky_solve", L, B, bool(upper), adjoint=bool(upper))
    return triangular_system("cholesky_solve", L, half_way, bool(upper), adjoint=not upper)


@public_function("linalg")
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """The X with A X = B (X A = B if not `left`; Aᴴ if `adjoint`), from the `lu_factor` of A."""
    name = "lu_solve"
    LU, B = as_system(name, LU, B)
    pivots = as_pivots(name, pivots, LU)
    if not left:
        rhs = conj(check_and_transpose(name, B))  # X A = B is Aᴴ Xᴴ = Bᴴ
        return adjoint_matrix(lu_solve(LU, pivots, rhs, adjoint=not adjoint))
    check_rows(name, LU, B)
    outer = batch_shape(name, LU, B)
    lu, b = expand_batch(LU, outer), expand_batch(B, outer)
    swaps = expand_batch(pivots, outer, 1)
    order = row_indices(bind(Permutation(lu.shape[-1]), swaps), b)
    if not adjoint:
        b = bind(TakeAlong(b.ndim - 2), b, order)
        b = triangular_system(name, lu, b, False, True)
        return triangular_system(name, lu, b, True)
    b = triangular_system(name, lu, b, True, adjoint=True)
    b = triangular_system(name, lu, b, False, True, adjoint=True)
    return bind(PutAlong(b.ndim - 2, b.shape[-2]), b, order)


DRIVERS = (None, "gels", "gelsy", "gelsd", "gelss")


@public_function("linalg")
def lstsq(input: Any, b: Any, rcond: Any = None, *, driver: Any = None) -> Lstsq:
    """The X of least norm that minimizes ‖A X - B‖, with residuals, rank and singular values.

    It uses the pseudo-inverse. As in PyTorch, the driver determines which results are not empty:
    residuals ‖A X - B‖² with "gels", "gelsd" and "gelss" (and more rows than columns), the rank
    with all but "gels", singular values with "gelsd" and "gelss".
    """
    if driver not in DRIVERS:
        names = ", ".join(map(repr, DRIVERS[1:]))
        raise ArgumentError(f"lstsq: driver={driver!r} is not one of {names}")
    A, B = promote(as_tensor(input), as_tensor(b), floating=True)
    A = as_matrix("lstsq", A, square=False)
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    b = B.reshape(*B.shape, 1) if vector else B
    m, n = A.shape[-2:]
    if b.ndim < 2 or b.shape[-2] != m:
        raise ShapeError(
            f"lstsq: a matrix of {A.shape} and a right-hand side of {B.shape}: "
            "the numbers of rows differ"
        )
    batch_shape("lstsq", A, b)
    parts = svd(A, full_matrices=False)
    limit = cutoff(parts.S, A.shape, None, rcond)
    x = product(pseudo_inverse(A, parts, limit), b)
    none, driver = wrap(np.zeros(0, parts.S.dtype)), driver or "gelsy"
    measured = m > n and driver != "gelsy"
    residuals = abs_square(product(A, x) - b).sum(dim=-2) if measured else none
    rank = wrap(np.zeros(0, "int64")) if driver == "gels" else (parts.S > limit).sum(dim=-1)
    values = parts.S if driver in ("gelsd", "gelss") else none
    if vector:
        x = bind(Reshape(x.shape[:-1]), x)
    return Lstsq(x, residuals, rank, values)


@public_function("linalg")
def tensorinv(input: Any, ind: int = 2) -> Any:
    """The inverse of `tensordot(input, ., ind)`, with the first `ind` axes as rows."""
    A = as_tensor(input)
    ind = int(ind)
    if not 0 < ind < A.ndim or math.prod(A.shape[:ind]) != math.prod(A.shape[ind:]):
        raise ShapeError(f"tensorinv: ind={ind} splits {A.shape} into axes of different sizes")
    n = math.prod(A.shape[:ind])
    return inv(A.reshape(n, n)).reshape(*A.shape[ind:], *A.shape[:ind])


@public_function("linalg")
def tensorsolve(input: Any, other: Any, dims: Any = None) -> Any:
    """The X with `tensordot(input, X, X.ndim) = other`, after moving the axes `dims` to the end."""
    A, B = promote(as_tensor(input), as_tensor(other), floating=True)
    if dims is not None:
        moved = [canonicalize_axis("tensorsolve", d, A.ndim) for d in dims]
        A = movedim(A, moved, tuple(range(A.ndim - len(moved), A.ndim)))
    shape, n = A.shape[B.ndim :], math.prod(B.shape)
    if math.prod(shape) != n or math.prod(A.shape[: B.ndim]) != n:
        raise ShapeError(
            f"tensorsolve: {A.shape} and {B.shape}: the flattened matrix is not square"
        )
    return solve(A.reshape(n, n), B.reshape(n)).reshape(shape)
