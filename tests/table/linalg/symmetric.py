"""Rows of L D Lᵀ: of matrices with a heavy diagonal, where nothing is exchanged."""

from __future__ import annotations

import numpy as np

from lucid.errors import LinAlgError, ShapeError
from tests.cases.case import Arg, integer, real
from tests.cases.symmetric import Order, Packed, Symmetric, factors, solution
from tests.table.row import Row, bad, call


def with_info(a, **options):
    return *factors(a, **options), np.zeros(a.shape[:-2], "int32")


A, C = Symmetric("real", (3, 3)), Symmetric("complex", (3, 3))
H = Symmetric("complex", (2, 3, 3), hermitian=True)
SHAPES = [call(A), call(C), call(H, hermitian=True), call(Symmetric("real", (2, 4, 4)))]
REFUSED = [
    bad(ShapeError, "2 rows and 3 columns", real(2, 3)),
    bad(ShapeError, "not a matrix", real(3)),
]
SINGULAR = Arg("real", (2, 2), 0.0, 0.0)
PIVOTS = Order("int", (3,))

ROWS = [
    Row(
        "linalg.ldl_factor",
        factors,
        SHAPES,
        [*REFUSED, bad(LinAlgError, "a block of D is zero", SINGULAR)],
        smooth=False,
    ),
    Row(
        "linalg.ldl_factor_ex",
        with_info,
        [*SHAPES, call(A, check_errors=True)],
        [*REFUSED, bad(LinAlgError, "a block of D is zero", SINGULAR, check_errors=True)],
        smooth=False,
    ),
    Row(
        "linalg.ldl_solve",
        solution,
        [
            call(Packed("real", (3, 3)), PIVOTS, real(3, 2)),
            call(Packed("complex", (3, 3)), PIVOTS, Arg("complex", (3, 2))),
            call(
                Packed("complex", (2, 3, 3), hermitian=True),
                Order("int", (2, 3)),
                Arg("complex", (2, 3, 2)),
                hermitian=True,
            ),
        ],
        [
            bad(ShapeError, "pivots", A, integer(2), real(3, 2)),
            bad(ShapeError, "pivots", A, real(3), real(3, 2)),
            bad(ShapeError, "rows differ", A, PIVOTS, real(2, 2)),
            bad(ShapeError, "2 rows and 3 columns", real(2, 3), PIVOTS, real(3, 2)),
        ],
        smooth=False,
    ),
]
