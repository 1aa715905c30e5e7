"""Rows of operations that run along an axis and keep its size."""

import numpy as np

from lucid.errors import AxisError
from tests.cases.case import real
from tests.table.row import Row, bad, call

ROWS = [
    Row(
        "cumsum",
        lambda x, dim: np.cumsum(x, dim),
        [
            call(real(4), 0),
            call(real(2, 3), -1),
            call(real(2, 3, 2), dim=1),
            call(real(0), 0),
            call(real(2, 0), 1),
        ],
        refused=[
            bad(AxisError, ("cumsum", "axis 2"), real(3, 3), 2),
            bad(AxisError, "'rows' is not an integer", real(3), "rows"),
        ],
    ),
]
