"""Cases for reshape, transpose, broadcast and their kin."""

import numpy as np

from lucid.ops.shape.bitcast import Bitcast
from lucid.ops.shape.concatenate import Concatenate, Stack
from lucid.ops.shape.movement import Broadcast, Flip, Pad, Reshape, Slice, Transpose
from lucid.ops.shape.strided import Strided
from tests.cases.case import Case, boolean, complex_, integer, real


def padded(low, high, interior):
    """What XLA's pad gives: dilate, then pad, then crop."""

    def expected(x):
        for axis, (a, b, between) in enumerate(zip(low, high, interior)):
            x = np.moveaxis(x, axis, 0)
            dilated = np.zeros((max((len(x) - 1) * (between + 1) + 1, 0), *x.shape[1:]), x.dtype)
            dilated[:: between + 1] = x
            widths = [(max(a, 0), max(b, 0))] + [(0, 0)] * (x.ndim - 1)
            whole = np.pad(dilated, widths)
            x = np.moveaxis(whole[max(-a, 0) : len(whole) - max(-b, 0)], 0, axis)
        return x

    return expected


def pad_case(low, high, interior, arg, label=""):
    return Case(Pad(low, high, interior), (arg,), padded(low, high, interior), label=label)


def concatenated(axis):
    return lambda *xs: np.concatenate(xs, axis)


CASES = [
    Case(Reshape((3, 2)), (real(2, 3),), lambda x: np.reshape(x, (3, 2))),
    Case(Reshape(()), (real(1, 1),), lambda x: np.reshape(x, ())),
    Case(Reshape((0, 5)), (real(2, 0),), lambda x: np.reshape(x, (0, 5)), label="empty"),
    Case(Reshape((6,)), (boolean(2, 3),), lambda x: np.reshape(x, 6)),
    Case(Bitcast("f32"), (integer(2, 3, low=1, dtype="int32"),), lambda x: x.view("float32")),
    Case(Bitcast("i16"), (real(2, 3, dtype="float64"),), lambda x: x.view("int16")),
    Case(Bitcast("c64"), (integer(2, 4, low=1),), lambda x: x.view("complex64")),
    Case(Bitcast("f64"), (integer(0, 2, dtype="int32"),), lambda x: x.view("float64")),
    Case(Bitcast("u32"), (integer(dtype="int32"),), lambda x: x.view("uint32")),
    Case(Transpose((1, 0)), (real(2, 3),), np.transpose),
    Case(Transpose((2, 0, 1)), (complex_(2, 3, 4),), lambda x: np.transpose(x, (2, 0, 1))),
    Case(Transpose(()), (integer(),), lambda x: x),
    Case(Broadcast((4, 3), (1,)), (real(3),), lambda x: np.broadcast_to(x, (4, 3))),
    Case(Broadcast((2, 3), (0, 1)), (real(2, 1),), lambda x: np.broadcast_to(x, (2, 3))),
    Case(
        Broadcast((2, 3, 4), (0, 2)),
        (complex_(2, 4),),
        lambda x: np.broadcast_to(x[:, None], (2, 3, 4)),
    ),
    Case(Broadcast((2, 3), ()), (integer(),), lambda x: np.broadcast_to(x, (2, 3))),
    Case(Broadcast((2, 0), (0, 1)), (real(2, 1),), lambda x: np.broadcast_to(x, (2, 0))),
    Case(Broadcast((3, 0), (1,)), (real(0),), lambda x: np.broadcast_to(x, (3, 0))),
    Case(Strided((3,), (0, 1), ((1, 1),)), (real(3, 4),), lambda x: np.diagonal(x, 1)),
    Case(
        Strided((3, 2), (0, 1, 0), ((0, 0, 1), (1, 1, 0))),
        (complex_(2, 4, 3),),
        lambda x: np.diagonal(x, 1),
        label="diagonals",
    ),
    Case(
        Strided((2, 3, 2), (0, 0), ((1, 0), (0, 1), (0, 1))),
        (real(2, 4),),
        lambda x: np.stack([x[:, :3], x[:, 1:]], -1),
        label="windows",
    ),
    Case(Strided((2, 2), (5,), ((-2,), (1,))), (integer(8),), lambda x: x[[[5, 6], [3, 4]]]),
    Case(Strided((0, 2), (0, 0), ((1, 0), (0, 1))), (real(2, 3),), lambda x: x[:0, :2]),
    Case(Slice((1,), (5,), (1,)), (real(6),), lambda x: x[1:5]),
    Case(Slice((1, 0), (6, 3), (2, 1)), (real(7, 3),), lambda x: x[1:6:2]),
    Case(Slice((0, 1), (4, 7), (3, 2)), (complex_(4, 7),), lambda x: x[0:4:3, 1:7:2]),
    Case(Slice((2, 0), (3, 3), (1, 1), (0,)), (real(4, 3),), lambda x: x[2]),
    Case(Slice((2, 0, 1), (3, 3, 2), (1, 2, 1), (0, 2)), (real(4, 3, 2),), lambda x: x[2, ::2, 1]),
    Case(Slice((3,), (4,), (1,), (0,)), (real(5),), lambda x: x[3], label="to 0-d"),
    Case(Slice((2,), (2,), (1,)), (real(5),), lambda x: x[2:2], label="empty"),
    Case(Slice((2,), (2,), (3,)), (real(5),), lambda x: x[2:2:3], label="empty with a stride"),
    Case(Slice((), (), ()), (real(),), lambda x: x),
    Case(Slice((0, 1), (0, 3), (1, 1)), (integer(0, 3),), lambda x: x[:, 1:]),
    pad_case((1,), (2,), (0,), real(3)),
    pad_case((1, 0), (0, 2), (2, 1), real(3, 4)),
    pad_case((-1, 2), (-1, -2), (0, 1), real(4, 3), "crops"),
    pad_case((-2,), (-1,), (2,), real(4), "crops what it dilated"),
    pad_case((-3,), (1,), (1,), complex_(3)),
    pad_case((-1,), (3,), (2,), real(3)),
    pad_case((-4,), (3,), (0,), real(3), "crops everything and more"),
    pad_case((2,), (-4,), (0,), real(3), "crops everything and more behind"),
    pad_case((2,), (1,), (3,), real(0), "empty"),
    pad_case((2, 0), (1, 0), (0, 0), integer(2, 0)),
    pad_case((1,), (1,), (1,), boolean(3)),
    pad_case((), (), (), real()),
    Case(Flip((0,)), (real(4),), lambda x: x[::-1]),
    Case(Flip((0, 2)), (real(2, 3, 4),), lambda x: np.flip(x, (0, 2))),
    Case(Flip((1,)), (complex_(2, 3),), np.fliplr),
    Case(Flip(()), (integer(2, 3),), lambda x: x),
    Case(Flip((0,)), (real(0, 3),), lambda x: x, label="empty"),
    Case(Concatenate(0), (real(2), real(3)), concatenated(0)),
    Case(Concatenate(1), (real(2, 1), real(2, 3), real(2, 2)), concatenated(1)),
    Case(Concatenate(0), (real(2, 2), real(0, 2)), concatenated(0), label="empty"),
    Case(Concatenate(0), (complex_(2), complex_(1)), concatenated(0)),
    Case(Concatenate(0), (integer(2), integer(1)), concatenated(0)),
    Case(Concatenate(0), (boolean(2),), concatenated(0)),
    Case(Stack(0), (real(3), real(3)), lambda *xs: np.stack(xs)),
    Case(Stack(1), (real(2, 3), real(2, 3), real(2, 3)), lambda *xs: np.stack(xs, 1)),
    Case(Stack(2), (complex_(2, 3), complex_(2, 3)), lambda *xs: np.stack(xs, 2)),
    Case(Stack(0), (real(), real()), lambda *xs: np.stack(xs)),
    Case(Stack(1), (integer(2), integer(2)), lambda *xs: np.stack(xs, 1)),
    Case(Stack(0), (boolean(2),), lambda *xs: np.stack(xs)),
    Case(Stack(1), (real(2, 0), real(2, 0)), lambda *xs: np.stack(xs, 1), label="empty"),
]
