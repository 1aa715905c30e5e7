"""Symmetric systems that need not be definite: `ldl_factor`, and `ldl_solve` with its result.

The factors have no derivative, as in PyTorch; the right-hand side of `ldl_solve` has one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lucid.errors import LinAlgError, ShapeError
from lucid.ir.source import at_line
from lucid.linalg.arguments import (
    expanded,
    is_tracked,
    matrices,
    matrix,
    outer_shape,
    rows_agree,
)
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.core.runtime_check import refuse
from lucid.ops.linalg.ldl import LdlFactor, LdlSolve
from lucid.tape.bind import bind


class LDLFactor(NamedTuple):
    LD: Any
    pivots: Any


class LDLFactorEx(NamedTuple):
    LD: Any
    pivots: Any
    info: Any


def factored(name: str, A: Any, hermitian: Any, checked: Any) -> Any:
    A = matrix(name, A)
    if is_tracked(A):
        raise LinAlgError(f"{name}: it has no derivative; use linalg.solve, or detach(){at_line()}")
    packed, pivots, info = bind(LdlFactor(bool(hermitian)), A)
    if checked:
        failed = (info != 0).reshape(*info.shape, 1, 1)
        packed = refuse(packed, failed, f"{name}: a block of D is zero: the matrix is singular")
    return LDLFactorEx(packed, pivots, info)


@explained
def ldl_factor(input: Any, *, hermitian: bool = False) -> LDLFactor:
    """A = L D Lᵀ of a symmetric matrix (L D Lᴴ if `hermitian`), packed: what `ldl_solve` takes.

    >>> import lucid
    >>> A = lucid.tensor([[0.0, 2.0], [2.0, 1.0]])
    >>> LD, pivots = lucid.linalg.ldl_factor(A)
    >>> lucid.linalg.ldl_solve(LD, pivots, A @ lucid.tensor([[3.0], [5.0]]))
    Tensor([[3.],
            [5.]])
    """
    return LDLFactor(*factored("ldl_factor", input, hermitian, True)[:2])


@explained
def ldl_factor_ex(
    input: Any, *, hermitian: bool = False, check_errors: bool = False
) -> LDLFactorEx:
    """`ldl_factor`, with `info`: the number of the first block of D that is zero, or 0."""
    return factored("ldl_factor_ex", input, hermitian, check_errors)


@explained
def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False) -> Any:
    """The X with A X = B, from the `ldl_factor` of A."""
    LD, B = matrices("ldl_solve", LD, B)
    pivots = as_tensor(pivots)
    if pivots.dtype.kind not in "iu" or pivots.shape != LD.shape[:-1]:
        facts = f"pivots {pivots.type} for a matrix of {LD.shape}; they are what ldl_factor gives"
        raise ShapeError(f"ldl_solve: {facts}{at_line()}")
    if is_tracked(LD):
        raise LinAlgError(f"ldl_solve: LD has no derivative; detach() it{at_line()}")
    rows_agree("ldl_solve", LD, B)
    outer = outer_shape("ldl_solve", LD, B)
    swaps = expanded(cast(pivots, "int32"), outer, 1)
    return bind(LdlSolve(bool(hermitian)), expanded(LD, outer), swaps, expanded(B, outer))
