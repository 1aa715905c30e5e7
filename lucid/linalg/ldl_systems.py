"""Symmetric indefinite systems: `ldl_factor`, and `ldl_solve` with its result.

The factors have no derivative, as in PyTorch; the right-hand side of `ldl_solve` has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.errors import LinAlgError
from lucid.linalg.arguments import (
    as_matrix,
    as_pivots,
    as_system,
    batch_shape,
    check_rows,
    expand_batch,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.core.runtime_check import refuse
from lucid.ops.linalg.decompositions.ldl import LdlFactor, LdlSolve
from lucid.tape.bind import bind
from lucid.tape.conversion import needs_grad

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


class LDLFactor(NamedTuple):
    LD: Tensor
    pivots: Tensor


class LDLFactorEx(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor


def ldl_factors(name: str, A: Any, hermitian: Any, checked: Any) -> Any:
    A = as_matrix(name, A)
    if needs_grad(A):
        raise LinAlgError(f"{name}: not differentiable; use linalg.solve, or detach() the matrix")
    packed, pivots, info = bind(LdlFactor(bool(hermitian)), A)
    if checked:
        failed = (info != 0).reshape(*info.shape, 1, 1)
        packed = refuse(packed, failed, f"{name}: a block of D is zero: the matrix is singular")
    return LDLFactorEx(packed, pivots, info)


@public_function("linalg")
def ldl_factor(input: Any, *, hermitian: bool = False) -> LDLFactor:
    """A = L D Lᵀ of a symmetric matrix (L D Lᴴ if `hermitian`), packed as `ldl_solve` takes it.

    >>> import lucid
    >>> A = lucid.tensor([[0.0, 2.0], [2.0, 1.0]])
    >>> LD, pivots = lucid.linalg.ldl_factor(A)
    >>> lucid.linalg.ldl_solve(LD, pivots, A @ lucid.tensor([[3.0], [5.0]]))
    Tensor([[3.],
            [5.]])
    """
    return LDLFactor(*ldl_factors("ldl_factor", input, hermitian, True)[:2])


@public_function("linalg")
def ldl_factor_ex(
    input: Any, *, hermitian: bool = False, check_errors: bool = False
) -> LDLFactorEx:
    """`ldl_factor`, with `info`: the one-based index of the first zero block of D, or 0."""
    return ldl_factors("ldl_factor_ex", input, hermitian, check_errors)


@public_function("linalg")
def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False) -> Any:
    """The X with A X = B, from the `ldl_factor` of A."""
    LD, B = as_system("ldl_solve", LD, B)
    pivots = as_pivots("ldl_solve", pivots, LD, signed=True)
    if needs_grad(LD):
        raise LinAlgError("ldl_solve: not differentiable in LD; detach() it")
    check_rows("ldl_solve", LD, B)
    outer = batch_shape("ldl_solve", LD, B)
    swaps = expand_batch(pivots, outer, 1)
    return bind(LdlSolve(bool(hermitian)), expand_batch(LD, outer), swaps, expand_batch(B, outer))
