"""Rows of tensors read by sizes and strides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lucid.errors import ArgumentError, IndexingError, ShapeError
from tests.cases.case import complex_, integer, real
from tests.table.row import Row, bad, call


def picked(x, size, stride, storage_offset=0):
    flat = np.ascontiguousarray(x).reshape(-1)[storage_offset or 0 :]
    steps = [n * x.itemsize for n in stride]
    return np.lib.stride_tricks.as_strided(flat, size, steps).copy()


def written(x, src, size, stride, storage_offset=0):
    out = np.array(x, order="C")
    flat = out.reshape(-1)[storage_offset or 0 :]
    np.lib.stride_tricks.as_strided(flat, size, [n * x.itemsize for n in stride])[...] = src
    return out


LAID_OUT = "strides count the elements of memory"

ROWS = [
    Row(
        "as_strided",
        picked,
        [
            call(real(12), (3, 2), (4, 1)),
            call(real(3, 4), (2, 3), (1, 2), 3),
            call(real(5), (3, 3), (1, 1), label="overlapping"),
            call(complex_(4), (), (), 2),
            call(integer(6), (2, 2), (0, 3)).but(smooth=False),
            call(real(4), (0, 2), (1, 1), label="empty"),
        ],
        refused=[
            bad(IndexingError, "offset 8 is not among the 6 elements", real(6), (3, 3), (3, 1)),
            bad(ArgumentError, "one stride for each size", real(6), (3,), (1, 1)),
            bad(ArgumentError, "all >= 0", real(6), (3,), (-1,)),
        ],
        laid_out=LAID_OUT,
    ),
    Row(
        "as_strided_scatter",
        written,
        [
            call(real(12), real(3, 2), (3, 2), (4, 1)),
            call(real(3, 4), real(2, 3), (2, 3), (1, 2), 3),
            call(real(4), real(), (), (), 1),
        ],
        refused=[
            bad(ShapeError, "it must be (3,)", real(6), real(2), (3,), (1,)),
            bad(ArgumentError, "overlap", real(6), real(2, 2), (2, 2), (1, 1)),
            bad(IndexingError, "offset 9", real(6), real(4), (4,), (3,)),
        ],
        laid_out=LAID_OUT,
        differs="the input has a gradient where it is kept, in PyTorch where it is overwritten",
    ),
]
ROWS.append(replace(ROWS[0], name="as_strided_copy"))
