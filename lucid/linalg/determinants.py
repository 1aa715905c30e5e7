"""Determinants and their logarithms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.linalg.arguments import as_matrix
from lucid.ops.core.arguments import public_function
from lucid.ops.elementwise.conditional import where
from lucid.ops.linalg.decompositions.eigh_svd import diagonal_of
from lucid.ops.linalg.decompositions.factorizations import LuFactor
from lucid.ops.linalg.known_derivatives import PrecomputedDet, PrecomputedSlogdet, permutation_sign
from lucid.tape.bind import bind

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


class Slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


@public_function("linalg")
def det(A: Any) -> Any:
    """The determinant. Its gradient, the cofactors, is correct for singular matrices too.

    >>> import lucid
    >>> lucid.linalg.det(lucid.tensor([[0.0, 2.0], [3.0, 4.0]]))
    Tensor(-6.)
    """
    A = as_matrix("det", A)
    packed, pivots, _ = bind(LuFactor(), A)
    value = diagonal_of(packed).prod(dim=-1) * permutation_sign(pivots, A.dtype)
    return bind(PrecomputedDet(), A, packed, pivots, value)


@public_function("linalg")
def slogdet(A: Any) -> Slogdet:
    """The sign of the determinant and log |det A|: 0 and -inf for a singular matrix."""
    A = as_matrix("slogdet", A)
    packed, pivots, _ = bind(LuFactor(), A)
    pivot = diagonal_of(packed)
    sign = pivot.sgn().prod(dim=-1) * permutation_sign(pivots, A.dtype)
    log = pivot.abs().log().sum(dim=-1)
    return Slogdet(*bind(PrecomputedSlogdet(), A, packed, pivots, sign, log))


@public_function("lucid", "Tensor", "linalg")
def logdet(input: Any) -> Any:
    """log det A: nan for a negative determinant, -inf for 0.

    >>> import lucid
    >>> lucid.logdet(lucid.eye(3))
    Tensor(0.)
    """
    sign, log = slogdet(input)
    return where(sign < 0, math.nan, log) if log.dtype == sign.dtype else sign.log() + log
