"""Cases for L D Lᵀ: of matrices with a heavy diagonal, where nothing is exchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lucid.ops.linalg.decompositions.ldl import LdlFactor, LdlSolve
from tests.cases.case import Arg, Case, complex_, real


@dataclass(frozen=True)
class Symmetric(Arg):
    """A symmetric matrix, or a Hermitian one, with a diagonal of both signs that outweighs it."""

    hermitian: bool = False

    def make(self, rng, dtype):
        x = super().make(rng, dtype) / 4
        x = x + (x.conj() if self.hermitian else x).swapaxes(-1, -2)
        n = x.shape[-1]
        return (x + np.diag(5.0 * (-1.0) ** np.arange(n))).astype(x.dtype)


@dataclass(frozen=True)
class Packed(Symmetric):
    """Its factors."""

    def make(self, rng, dtype):
        x = super().make(rng, dtype)
        return factors(x, hermitian=self.hermitian)[0].astype(x.dtype)


@dataclass(frozen=True)
class Order(Arg):
    """1, 2, 3, ...: the pivots where nothing is exchanged."""

    def make(self, rng, dtype):
        return np.broadcast_to(np.arange(1, self.shape[-1] + 1), self.shape).astype("int32")


def factors(a, *, hermitian=False, check_errors=False):
    """Column by column, as on paper."""
    if a.ndim > 2:
        parts = [factors(x, hermitian=hermitian) for x in a]
        return tuple(np.stack(part) for part in zip(*parts))
    out, rest = np.zeros_like(a), a.copy()
    for k in range(len(a)):
        column = rest[k + 1 :, k] / rest[k, k]
        out[k, k], out[k + 1 :, k] = rest[k, k], column
        row = column.conj() if hermitian else column
        rest[k + 1 :, k + 1 :] -= rest[k, k] * np.outer(column, row)
    return out, np.arange(1, len(a) + 1, dtype="int32")


def solution(packed, pivots, b, *, hermitian=False):
    lower = np.tril(packed, -1) + np.eye(packed.shape[-1])
    upper = (lower.conj() if hermitian else lower).swapaxes(-1, -2)
    diagonal = np.einsum("...i,ij->...ij", np.einsum("...ii->...i", packed), np.eye(len(pivots.T)))
    return np.linalg.solve(lower @ diagonal @ upper, b)


def with_info(hermitian):
    return lambda a: (*factors(a, hermitian=hermitian), np.zeros(a.shape[:-2], "int32"))


CASES = [
    Case(LdlFactor(), (Symmetric("real", (3, 3)),), with_info(False)),
    Case(LdlFactor(), (Symmetric("complex", (2, 3, 3)),), with_info(False)),
    Case(LdlFactor(True), (Symmetric("complex", (3, 3), hermitian=True),), with_info(True)),
    Case(
        LdlFactor(),
        (real(0, 0),),
        lambda a: (a, np.zeros(0, "int32"), np.zeros((), "int32")),
        label="empty",
    ),
    Case(
        LdlSolve(),
        (Packed("real", (2, 3, 3)), Order("int", (2, 3)), real(2, 3, 2)),
        solution,
        smooth=False,  # the factors have no derivative
    ),
    Case(
        LdlSolve(True),
        (Packed("complex", (3, 3), hermitian=True), Order("int", (3,)), complex_(3, 2)),
        lambda packed, pivots, b: solution(packed, pivots, b, hermitian=True),
        smooth=False,
    ),
]
