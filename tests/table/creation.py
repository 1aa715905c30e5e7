"""Rows of tensors made from shapes and numbers, windows, and conversions."""

import numpy as np
from scipy.signal import windows

from lucid.errors import ArgumentError, DTypeError, ShapeError
from tests.cases.case import boolean, complex_, integer, real
from tests.table.row import Row, bad, call

F64, INT32 = np.dtype("float64"), np.dtype("int32")


def shaped(function):
    """`zeros(2, 3)` and `zeros((2, 3))`, in the default dtype, float32."""

    def expected(*size, dtype="float32"):
        size = size[0] if size and isinstance(size[0], tuple) else size
        return function(size, dtype=dtype)

    return expected


def like(function):
    return lambda x, dtype=None: function(x.shape, dtype or x.dtype)


def made(name, function, **row):
    return Row(
        name,
        shaped(function),
        [call(2, 3), call((2, 3)), call(()), call(0, 2), call(2, dtype=F64), call(3, dtype=INT32)],
        [
            bad(ShapeError, "not be negative", 2, -1),
            bad(ShapeError, "not a shape", "ab"),
            bad(DTypeError, "nonsense", 2, dtype="nonsense"),
        ],
        **row,
    )


def made_like(name, function, **row):
    return Row(
        name,
        like(function),
        [
            call(real(2, 3)),
            call(real()),
            call(integer(2)),
            call(complex_(2)),
            call(real(0)),
            call(real(2), dtype=INT32),
        ],
        [
            bad(DTypeError, "numeric", "text"),
            bad(DTypeError, "nonsense", real(2), dtype="nonsense"),
        ],
        **{"smooth": False, **row},
    )


def numbers(start, end=None, step=1, dtype=None):
    start, end = (0, start) if end is None else (start, end)
    y = np.arange(start, end, step, dtype=dtype)
    return y.astype("float32") if dtype is None and y.dtype.kind == "f" else y


def spaced(start, end, steps, base=None, dtype="float32"):
    points = np.linspace(start, end, steps)
    return (points if base is None else base**points).astype(dtype)


def window(name, *parameters):
    """SciPy's window of a length; a periodic one lacks its last point."""

    def expected(length, periodic=True, *given, dtype="float32", **words):
        extra = list(given) + list(words.values()) or list(parameters)
        if name == "general":
            alpha = extra[0]
            beta = extra[1] if len(extra) > 1 else 0.46
            n = np.arange(length)
            span = max(length if periodic else length - 1, 1)
            return (alpha - beta * np.cos(2 * np.pi * n / span)).astype(dtype)
        kind = (name, *extra) if extra else name
        return windows.get_window(kind, length, fftbins=periodic).astype(dtype)

    return expected


def windowed(name, expected, *more):
    return Row(
        name,
        expected,
        [call(8), call(7, False), call(8, dtype=F64), call(5, periodic=False, dtype=F64), *more],
        [
            bad(ShapeError, "length -1", -1),
            bad(ShapeError, "the dtype floating", 3, dtype="int64"),
        ],
        rtol={"float64": 1e-6, "float32": 1e-6},  # results are float32 unless told otherwise
    )


def as_dtype(x, dtype=None):
    return np.asarray(x, dtype)


def nothing(x):
    """Of a tensor whose elements are not defined the shape alone is compared."""
    return (x != x) & False


ROWS = [
    made("zeros", np.zeros),
    made("ones", np.ones),
    made("empty", np.zeros, result=nothing),
    made_like("zeros_like", np.zeros),
    made_like("ones_like", np.ones),
    made_like("empty_like", np.zeros, result=nothing),
    Row(
        "full",
        lambda size, value, dtype=None: np.full(
            size, value, dtype or {float: "float32"}.get(type(value))
        ),
        [
            call((2, 3), 1.5),
            call((2,), 7),
            call((), True),
            call((0, 2), 1.5, label="empty"),
            call((2,), 1, dtype=F64),
            call((2, 3), real()),
        ],
        [
            bad(ShapeError, "one number", (2,), real(3)),
            bad(ShapeError, "not be negative", (-1,), 1.0),
        ],
        torch=lambda t, size, value, dtype=None: (
            value.expand(size) if t.is_tensor(value) else t.full(size, value, dtype=dtype)
        ),
    ),
    Row(
        "full_like",
        lambda x, value, dtype=None: np.full(x.shape, value, dtype or x.dtype),
        [
            call(real(2, 3), 1.5),
            call(integer(2), 7),
            call(real(2), 1, dtype=INT32),
            call(real(0), 1.0),
            call(real(2), real()),
        ],
        [bad(ShapeError, "one number", real(2), real(3))],
        torch=lambda t, x, value, dtype=None: (
            value.expand(x.shape) if t.is_tensor(value) else t.full_like(x, value, dtype=dtype)
        ),
    ),
    Row(
        "fill",
        lambda x, value: np.full(x.shape, value, x.dtype),
        [call(real(2, 3), 1.5), call(integer(2), 7), call(real(0), 1.0), call(real(2), real())],
        [bad(ShapeError, "one number", real(2), real(3))],
    ),
    Row(
        "eye",
        lambda n, m=None, dtype="float32": np.eye(n, m, dtype=dtype),
        [call(3), call(2, 3), call(3, 1, dtype=F64), call(0)],
        [bad(ShapeError, "not be negative", -1), bad(ShapeError, "not a shape", 1.5)],
    ),
    Row(
        "arange",
        numbers,
        [
            call(5),
            call(1, 8, 2),
            call(5, 0, -2),
            call(0.5),
            call(0.0, 1.0, 0.25),
            call(3, dtype=F64),
            call(0),
        ],
        [bad(ShapeError, "step must not be 0", 1, 5, 0), bad(ArgumentError, "arange", "a")],
    ),
    Row(
        "linspace",
        spaced,
        [call(0.0, 1.0, 5), call(-2, 2, 4, dtype=F64), call(1.0, 1.0, 1), call(0, 1, 0)],
        [bad(ShapeError, "not be negative", 0, 1, -1), bad(ArgumentError, "linspace", "a", 1, 2)],
    ),
    Row(
        "logspace",
        lambda start, end, steps, base=10.0, dtype="float32": spaced(
            start, end, steps, base, dtype
        ),
        [call(0.0, 1.0, 5), call(-2, 2, 4, 2.0, dtype=F64), call(1.0, 1.0, 1), call(0, 1, 0)],
        [bad(ShapeError, "not be negative", 0, 1, -1)],
        rtol={"float64": 1e-6, "float32": 1e-6},  # results are float32 unless told otherwise
    ),
    windowed("hann_window", window("hann")),
    windowed("hamming_window", window("general", 0.54), call(6, True, 0.6, 0.4)),
    windowed("blackman_window", window("blackman")),
    windowed("bartlett_window", window("bartlett")),
    windowed("kaiser_window", window("kaiser", 12.0), call(6, True, 5.0)),
    Row(
        "tensor",
        lambda data, dtype="float32": np.array(data, dtype),
        [
            call([[1.0, 2.0], [3.0, 4.0]]),
            call(1.5),
            call([]),
            call([1, 2], dtype=F64),
            call([], dtype=INT32),
        ],
        [
            bad(ShapeError, "different lengths", [[1], [1, 2]]),
            bad(DTypeError, "numeric", "text"),
            bad(DTypeError, "64 bits", [10**40]),
        ],
    ),
    Row(
        "as_tensor",
        as_dtype,
        [
            call(real(2, 3)),
            call(integer(2), dtype=F64),
            call(boolean(3)),
            call(complex_(2)),
            call([1, 2]),
        ],
        [bad(DTypeError, "numeric", "text"), bad(ShapeError, "different lengths", [[1], [1, 2]])],
    ),
    Row(
        "from_numpy",
        np.asarray,
        [
            call(np.arange(3)),
            call(np.ones((2, 3))),
            call(np.zeros(0, "int8")),
            call(np.array(True)),
        ],
        [bad(DTypeError, "object", np.array([object()]))],
        torch=lambda t, x: t.as_tensor(x),
    ),
    Row(
        "from_dlpack",
        np.asarray,
        [call(np.arange(3)), call(np.ones((2, 3)))],
        [bad(DTypeError, "has no __dlpack__", [1, 2])],
    ),
    Row(
        "tril_indices",
        lambda row, col=None, offset=0: np.stack(np.tril_indices(row, offset, col)),
        [call(3, 3), call(3, 4, 1), call(4, 2, offset=-1), call(0, 0)],
        [bad(ArgumentError, "tril_indices", "a")],
    ),
    Row(
        "triu_indices",
        lambda row, col=None, offset=0: np.stack(np.triu_indices(row, offset, col)),
        [call(3, 3), call(3, 4, 1), call(4, 2, offset=-1), call(0, 0)],
        [bad(ArgumentError, "triu_indices", "a")],
    ),
]
