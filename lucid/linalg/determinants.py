"""Determinants and their logarithms."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from lucid.linalg.arguments import matrix
from lucid.ops.core.arguments import explained
from lucid.ops.elementwise.conditional import where
from lucid.ops.linalg.eigh_svd import diagonal_of
from lucid.ops.linalg.factorizations import LuFactor
from lucid.ops.linalg.known_derivatives import KnownDet, KnownSlogdet, parity
from lucid.tape.bind import bind


class Slogdet(NamedTuple):
    sign: Any
    logabsdet: Any


@explained
def det(A: Any) -> Any:
    """The determinant. Its gradient, the cofactors, is right for singular matrices too.

    >>> import lucid
    >>> lucid.linalg.det(lucid.tensor([[0.0, 2.0], [3.0, 4.0]]))
    Tensor(-6.)
    """
    A = matrix("det", A)
    packed, pivots, _ = bind(LuFactor(), A)
    value = diagonal_of(packed).prod(dim=-1) * parity(pivots, A.dtype)
    return bind(KnownDet(), A, packed, pivots, value)


@explained
def slogdet(A: Any) -> Slogdet:
    """The sign of the determinant and log |det A|: 0 and -inf for a singular matrix."""
    A = matrix("slogdet", A)
    packed, pivots, _ = bind(LuFactor(), A)
    pivot = diagonal_of(packed)
    sign = pivot.sgn().prod(dim=-1) * parity(pivots, A.dtype)
    log = pivot.abs().log().sum(dim=-1)
    return Slogdet(*bind(KnownSlogdet(), A, packed, pivots, sign, log))


@explained
def logdet(input: Any) -> Any:
    """log det A: nan for a negative determinant, -inf for 0.

    >>> import lucid
    >>> lucid.logdet(lucid.eye(3))
    Tensor(0.)
    """
    sign, log = slogdet(input)
    return where(sign < 0, math.nan, log) if log.dtype == sign.dtype else sign.log() + log
