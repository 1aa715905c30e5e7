"""Rows of tensors joined: cat, stack, blocks, padding."""

import numpy as np
from scipy import linalg

from lucid.errors import AxisError, ShapeError
from tests.cases.case import complex_, integer, real
from tests.table.row import Row, bad, call


def pad(x, widths, mode="constant", value=0.0):
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2)
    pairs += list(zip(widths[::2], widths[1::2]))[::-1]
    if mode == "constant":
        cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, x.shape))
        grown = [(max(a, 0), max(b, 0)) for a, b in pairs]
        return np.pad(x[cut], grown, constant_values=value)
    return np.pad(x, pairs, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


def stacking(name, function, shape, wrong):
    calls = [
        call([real(*shape), real(*shape)]),
        call((real(*shape), complex_(*shape))),
        call([real(2, 2, 2), real(2, 2, 2)]),
        call([real(), real()]),
        call([integer(3), integer(3)]),
    ]
    refused = [bad(ShapeError, "the sequence is empty", []), bad(ShapeError, "concatenate", wrong)]
    return Row(name, function, calls, refused)


ROWS = [
    Row(
        "cat",
        lambda xs, dim=0: np.concatenate(xs, dim),
        [
            call([real(2), real(3)]),
            call([real(2, 3), real(2, 1)], 1),
            call((real(2, 2), real(1, 2), real(3, 2)), dim=-2),
            call([real(2), integer(2)]),
            call([real(2), complex_(2)]),
            call([real(0, 2), real(3, 2)], label="empty"),
        ],
        [
            bad(ShapeError, "(2, 3) and (3, 4)", [real(2, 3), real(3, 4)]),
            bad(ShapeError, "the sequence is empty", []),
            bad(ShapeError, "0-d", [real(), real()]),
            bad(AxisError, "axis 1", [real(2), real(2)], 1),
        ],
    ),
    Row(
        "concatenate",
        lambda xs, axis=0: np.concatenate(xs, axis),
        [
            call([real(2), real(3)]),
            call([real(2, 3), real(2, 1)], 1),
            call([real(2, 2), real(3)], None),
        ],
        [
            bad(ShapeError, "the sequence is empty", []),
            bad(AxisError, "axis 1", [real(2), real(2)], 1),
        ],
        torch=lambda t, xs, axis=0: t.cat(
            [x.reshape(-1) for x in xs] if axis is None else xs, axis or 0
        ),
    ),
    Row(
        "stack",
        lambda xs, dim=0: np.stack(xs, dim),
        [
            call([real(2), real(2)]),
            call([real(2, 3), real(2, 3)], 1),
            call((real(), real(), real()), dim=-1),
            call([real(2), complex_(2)]),
            call([real(0), real(0)], label="empty"),
        ],
        [
            bad(ShapeError, "(2, 3) and (3,)", [real(2, 3), real(3)]),
            bad(ShapeError, "the sequence is empty", []),
            bad(AxisError, "axis 2", [real(2), real(2)], 2),
        ],
    ),
    stacking("hstack", np.hstack, (2,), [real(2, 2), real(3, 2)]),
    stacking("vstack", np.vstack, (2,), [real(2), real(3)]),
    stacking("dstack", np.dstack, (2, 3), [real(2), real(3)]),
    stacking("column_stack", np.column_stack, (3,), [real(2), real(3)]),
    Row(
        "block_diag",
        linalg.block_diag,
        [
            call(real(2, 2), real(1, 3)),
            call(real(2), real(), real(2, 1)),
            call(real(2, 2)),
            call(real(2, 1), complex_(1, 2)),
        ],
        [bad(ShapeError, "at most two axes", real(2, 2, 2))],
    ),
    Row(
        "pad",
        pad,
        [
            call(real(3), (1, 2)),
            call(real(2, 3), (1, 0, 2, 1), value=1.5),
            call(real(2, 4), (-1, 2)),
            call(real(2, 4), (-1, -2), "constant", 3.0),
            call(real(1, 2, 4), (2, 1), "reflect"),
            call(real(1, 2, 4), (2, 1), mode="replicate"),
            call(real(1, 2, 4), (2, 1), mode="circular"),
            call(real(0, 2), (1, 1), label="empty"),
        ],
        [
            bad(ShapeError, "3 widths", real(3), (1, 2, 3)),
            bad(ShapeError, "mode 'mirror'", real(3), (1, 1), "mirror"),
        ],
        torch="nn.functional.pad",
    ),
]
