"""Rows of methods of Tensor that are no functions, and of other tensors made like one."""

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from tests.cases.case import boolean, complex_, integer, real
from tests.table.row import Row, bad, call

F64, INT32 = np.dtype("float64"), np.dtype("int32")


def cast_row(name, dtype):
    calls = [
        call(real(2, 3, dtype="float16")),
        call(integer(3)),
        call(boolean(2)),
        call(real(0, dtype="float16")),
    ]
    if np.dtype(dtype).kind == "c":
        calls.append(call(complex_(2, dtype="complex64")))
    return Row(f"Tensor.{name}", lambda x: x.astype(dtype), calls, smooth=False, result=lambda x: x)


def new_row(name, function):
    return Row(
        f"Tensor.{name}",
        lambda x, *size, dtype=None: function(
            size[0] if isinstance(size[0], tuple) else size, dtype=dtype or x.dtype
        ),
        [
            call(real(2), 2, 3),
            call(integer(2), (2,)),
            call(real(), 0, dtype=INT32),
            call(complex_(1), 2),
        ],
        [bad(ShapeError, "not be negative", real(2), -1)],
        smooth=False,
    )


def sum_to_size(x, *size):
    extra = x.ndim - len(size)
    y = x.sum(tuple(range(extra)))
    return y.sum(tuple(i for i, n in enumerate(size) if n == 1), keepdims=True)


def filled_diagonal(x, value, wrap=False):
    y = x.copy()
    np.fill_diagonal(y, value, wrap)
    return y


ROWS = [
    cast_row("double", "float64"),
    cast_row("half", "float16"),
    cast_row("int", "int32"),
    cast_row("long", "int64"),
    cast_row("short", "int16"),
    cast_row("char", "int8"),
    cast_row("bool", "bool"),
    cast_row("cfloat", "complex64"),
    cast_row("cdouble", "complex128"),
    new_row("new_zeros", np.zeros),
    new_row("new_ones", np.ones),
    Row(
        "Tensor.new_full",
        lambda x, size, value, dtype=None: np.full(size, value, dtype or x.dtype),
        [
            call(real(2), (2, 3), 1.5),
            call(integer(2), (2,), 7),
            call(real(), (0,), 1.0, dtype=INT32),
        ],
        [bad(ShapeError, "not be negative", real(2), (-1,), 1.0)],
        smooth=False,
    ),
    Row(
        "Tensor.new_tensor",
        lambda x, data, dtype=None: np.array(data, dtype or x.dtype),
        [call(real(2), [1.5, 2.5]), call(integer(2), 7), call(real(), [], dtype=INT32)],
        [bad(DTypeError, "numeric", real(2), "text")],
        smooth=False,
    ),
    Row(
        "Tensor.type_as",
        lambda x, other: x.astype(other.dtype),
        [call(integer(3), real(2)), call(real(2), complex_(1)), call(real(3), real())],
        torch=lambda t, x, other: x.type_as(other),
    ),
    Row(
        "Tensor.where",
        lambda x, condition, other: np.where(condition, x, other),
        [
            call(real(2, 3), boolean(3), real(3)),
            call(real(), boolean(2), 1.5),
            call(real(0), boolean(0), real(0)),
        ],
        [bad(ShapeError, "where", real(3), boolean(2), real(3))],
    ),
    Row(
        "Tensor.sum_to_size",
        sum_to_size,
        [
            call(real(2, 3), 1, 3),
            call(real(2, 3, 4), 3, 1),
            call(real(2, 3), 2, 3),
            call(real(2, 0), 2, 1),
        ],
        [bad(ShapeError, "does not broadcast", real(2, 3), 4, 3)],
    ),
    Row(
        "Tensor.fill_diagonal_",
        filled_diagonal,
        [
            call(real(3, 3), 1.5),
            call(real(7, 3), 2.0, True),
            call(real(7, 3), 2.0),
            call(integer(2, 2), 7),
        ],
        [bad(ShapeError, "must be a matrix", real(3), 1.0)],
        smooth=False,
        unjitted="it writes into its argument, so a second call sees another one",
    ),
    Row(
        "asarray",
        lambda x, dtype=None, copy=None: np.array(x, dtype),
        [call(real(2, 3)), call(real(2), copy=True), call(integer(2), dtype=F64), call([1, 2])],
        [bad(DTypeError, "numeric", "text")],
    ),
    Row(
        "scalar_tensor",
        lambda s, dtype="float32": np.array(s, dtype),
        [call(1.5), call(2), call(3, dtype=F64), call(True, dtype=INT32)],
        [bad(ShapeError, "one number", [1.0, 2.0])],
    ),
    Row(
        "frombuffer",
        lambda buffer, dtype, count=-1, offset=0: np.frombuffer(buffer, dtype, count, offset),
        [call(bytearray(16), dtype=F64), call(bytearray(range(8)), dtype=INT32, count=1, offset=4)],
        [bad(ArgumentError, "frombuffer", "text", dtype=F64)],
    ),
    Row(
        "constant_pad_nd",
        lambda x, pad, value=0: np.pad(
            x, list(zip(pad[::2], pad[1::2]))[::-1], constant_values=value
        ),
        [call(real(3), (1, 2)), call(real(2, 3), (1, 0, 2, 1), 1.5), call(real(0), (1, 1), 2.0)],
        [bad(ShapeError, "3 widths", real(3), (1, 2, 3))],
    ),
]
