"""Rows of shapes, orders of axes and parts."""

import itertools

import numpy as np

from lucid.errors import ArgumentError, AxisError, DTypeError, IndexingError, ShapeError
from tests.cases.case import boolean, complex_, integer, real
from tests.table.row import Row, bad, call


def moved(x, source, destination):
    return np.moveaxis(x, source, destination)


def transpose(x, dim0=None, dim1=None, axes=None):
    return np.swapaxes(x, dim0, dim1) if dim1 is not None else np.transpose(x, axes or dim0)


def squeeze(x, dim=None):
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    ones = [d for d in (d % max(x.ndim, 1) for d in dims) if x.ndim and x.shape[d] == 1]
    return np.squeeze(x, tuple(ones))


def flatten(x, start_dim=0, end_dim=-1):
    if not x.ndim:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:start], -1, *x.shape[end + 1 :])


def unflatten(x, dim, sizes):
    at = dim % x.ndim
    rest = x.shape[at] // abs(int(np.prod(sizes)))
    return x.reshape(*x.shape[:at], *[rest if n == -1 else n for n in sizes], *x.shape[at + 1 :])


def at_least(function):
    def expected(*xs):
        out = [function(x) for x in xs]
        return out[0] if len(out) == 1 else tuple(out)

    return expected


def broadcast(*xs):
    return tuple(np.broadcast_arrays(*xs))


def expanded(x, *shape):
    shape = shape[0] if isinstance(shape[0], tuple) else shape
    extra = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[i - extra] if n == -1 else n for i, n in enumerate(shape)])


def unbind(x, dim=0):
    return tuple(np.moveaxis(x, dim, 0))


def repeated(x, *sizes):
    return np.tile(x, sizes[0] if isinstance(sizes[0], tuple) else sizes)


def unfold(x, dim, size, step):
    dim = dim % x.ndim
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dim)
    return windows.take(np.arange(0, windows.shape[dim], step), dim)


def diagonal(x, offset=0, dim1=0, dim2=1):
    return np.diagonal(x, offset, dim1, dim2)


def diag_embed(x, offset=0, dim1=-2, dim2=-1):
    n = x.shape[-1] + abs(offset)
    y = np.zeros((*x.shape[:-1], n, n), x.dtype)
    places = np.arange(x.shape[-1])
    y[..., places + max(-offset, 0), places + max(offset, 0)] = x
    return np.moveaxis(y, (-2, -1), (dim1, dim2))


def grids(*xs, indexing="ij"):
    return tuple(np.meshgrid(*xs, indexing=indexing))


def select(x, dim, index):
    return np.take(x, index, dim)


def narrow(x, dim, start, length):
    return np.take(x, np.arange(start, start + length), dim)


def split(x, size, dim=0):
    n = x.shape[dim]
    cuts = np.cumsum(size)[:-1] if isinstance(size, list) else np.arange(size, n, size)
    return tuple(np.split(x, cuts, dim))


def chunk(x, chunks, dim=0):
    return split(x, -(-x.shape[dim] // chunks), dim)


def tensor_split(x, parts, dim=0):
    return tuple(np.array_split(x, parts, dim))


def combinations(x, r=2, with_replacement=False):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x, r)), x.dtype).reshape(-1, r)


def square(n=3):
    return real(n, n)


TALL = real(2, 3, 4)
ONE_SHAPE = bad(ShapeError, "6 elements", real(2, 3), (4, 2))

INT64 = np.dtype("int64")


def bits_of(source, shape, dtype):
    """The view at a dtype of numbers that `source` holds exactly."""
    make = boolean(*shape) if source == "bool" else integer(*shape, low=1, dtype=source)
    if np.dtype(source).kind == "f":
        make = real(*shape, dtype=source)
    expected = lambda x, to: x.astype(source).view(to)  # noqa: E731
    return call(make, np.dtype(dtype)).but(expected=expected, smooth=False)


BITS = [
    bits_of("float32", (2, 3), "int32"),
    bits_of("float32", (2, 4), "int64"),
    bits_of("int32", (2, 3), "float32"),
    bits_of("int64", (2, 3), "float32"),
    bits_of("int16", (2, 4), "complex64"),
    bits_of("bool", (3,), "uint8"),
    bits_of("float32", (), "int32"),
    bits_of("float32", (2, 0), "int32"),
]

ROWS = [
    Row(
        "reshape",
        lambda x, *shape: np.reshape(x, shape[0] if isinstance(shape[0], tuple) else shape),
        [
            call(TALL, (6, 4)),
            call(real(6), (2, -1)),
            call(real(), (1, 1)),
            call(real(1), ()),
            call(real(0, 3), (0,), label="empty"),
            call(complex_(4), (2, 2)),
        ],
        [ONE_SHAPE, bad(ShapeError, "one size may be -1", real(6), (-1, -1))],
    ),
    Row(
        "Tensor.view",
        lambda x, *shape: np.reshape(x, shape),
        [call(TALL, 6, 4), call(real(6), 2, -1), call(real(0, 3), 3, 0), *BITS],
        [
            bad(ShapeError, "6 elements", real(6), 4),
            bad(ShapeError, "12 bytes", integer(3, dtype="int32"), INT64),
            bad(ShapeError, "0-d", integer(dtype="int32"), INT64),
            bad(ArgumentError, "not both", real(6), 6, dtype=INT64),
            bad(DTypeError, "'words' is not a dtype", real(6), "words"),
        ],
        torch=lambda t, x, *shape: x.view(*shape),
    ),
    Row(
        "Tensor.view_as",
        lambda x, other: np.reshape(x, other.shape),
        [call(TALL, real(6, 4)), call(real(), real(1))],
        [bad(ShapeError, "6 elements", real(6), real(4))],
        torch=lambda t, x, other: x.reshape_as(other),
    ),
    Row(
        "permute",
        lambda x, dims: np.transpose(x, dims),
        [call(TALL, (2, 0, 1)), call(TALL, (-1, 0, 1)), call(real(), ()), call(real(0, 2), (1, 0))],
        [bad(ShapeError, "not a permutation", real(2, 3), (0, 0))],
    ),
    Row(
        "transpose",
        transpose,
        [call(TALL, 0, 2), call(real(2, 3), -1, 0), call(real(0, 2), 0, 1)],
        [
            bad(AxisError, "axis 3", real(2, 3), 0, 3),
            bad(AxisError, "not a permutation", real(2, 3), (0, 0)),
        ],
    ),
    Row(
        "swapaxes",
        np.swapaxes,
        [call(TALL, 0, 2), call(real(2, 3), -1, 0), call(real(0, 2), 0, 1)],
        [bad(AxisError, "axis 3", real(2, 3), 0, 3)],
    ),
    Row(
        "swapdims",
        lambda x, dim0, dim1: np.swapaxes(x, dim0, dim1),
        [call(TALL, 0, 2), call(real(2, 3), dim0=-1, dim1=0), call(real(0, 2), 0, 1)],
        [bad(AxisError, "axis 3", real(2, 3), 0, 3)],
    ),
    Row(
        "movedim",
        moved,
        [call(TALL, 0, 2), call(TALL, (0, 1), (-1, 0)), call(real(0, 2), 0, 1)],
        [
            bad(AxisError, "axis 3", real(2, 3), 3, 0),
            bad(AxisError, "each once", TALL, (0, 0), (1, 2)),
        ],
    ),
    Row(
        "t",
        np.transpose,
        [call(real(2, 3)), call(real(3)), call(real()), call(real(0, 2))],
        [bad(ShapeError, "more than two axes", TALL)],
    ),
    Row(
        "adjoint",
        lambda x: np.conj(np.swapaxes(x, -1, -2)),
        [call(real(2, 3)), call(complex_(2, 2, 3)), call(real(0, 2))],
        [bad(ShapeError, "fewer than two axes", real(3))],
    ),
    Row(
        "squeeze",
        squeeze,
        [
            call(real(2, 1, 3, 1)),
            call(real(1, 3, 1), 0),
            call(real(1, 3, 1), (0, -1)),
            call(real(2, 3), 0),
            call(real()),
            call(real(1, 0)),
        ],
        [bad(AxisError, "axis 3", real(2, 3), 3)],
    ),
    Row(
        "unsqueeze",
        lambda x, dim: np.expand_dims(x, dim),
        [call(real(2, 3), 1), call(real(2, 3), -1), call(real(), 0), call(real(0), 0)],
        [bad(AxisError, "axis 7", real(2, 3), 7)],
    ),
    Row(
        "expand_dims",
        np.expand_dims,
        [call(real(2, 3), 1), call(real(2, 3), (0, -1)), call(real(), 0), call(real(0), 0)],
        [bad(AxisError, "axis 7", real(2, 3), 7), bad(AxisError, "twice", real(2), (0, 0))],
        torch=None,
    ),
    Row(
        "Tensor.expand",
        expanded,
        [call(real(3), 2, 3), call(real(2, 1), (-1, 4)), call(real(), 2), call(real(1), 0)],
        [bad(ShapeError, "(2, 3)", real(2, 3), 2, 4), bad(ShapeError, "-1", real(2), -1, 2)],
    ),
    Row(
        "Tensor.expand_as",
        lambda x, other: np.broadcast_to(x, other.shape),
        [call(real(3), real(2, 3)), call(real(), real(2))],
        [bad(ShapeError, "(3,)", real(3), real(2))],
    ),
    Row(
        "broadcast_to",
        np.broadcast_to,
        [call(real(3), (2, 3)), call(real(2, 1), (2, 4)), call(real(), (2,)), call(real(1), (0,))],
        [bad(ShapeError, "(3,)", real(3), (2,))],
    ),
    Row(
        "broadcast_tensors",
        broadcast,
        [call(real(3), real(2, 1)), call(real(), real(2)), call(real(0), real(1))],
        [bad(ShapeError, "(3,) and (2,)", real(3), real(2))],
    ),
    Row(
        "broadcast_shapes",
        np.broadcast_shapes,
        [call((2, 1), (3,)), call((2,), ()), call((0,), (1,))],
        [bad(ShapeError, "(3,) and (2,)", (3,), (2,)), bad(ShapeError, "not a shape", ("a",))],
        smooth=False,
        result=lambda *sizes: np.array(sizes),
    ),
    Row(
        "flatten",
        flatten,
        [call(TALL), call(TALL, 1), call(TALL, 0, 1), call(real()), call(real(0, 2))],
        [bad(AxisError, "comes after", TALL, 2, 1), bad(AxisError, "axis 3", TALL, 3)],
    ),
    Row(
        "unflatten",
        unflatten,
        [call(real(6, 2), 0, (2, 3)), call(real(2, 6), -1, (3, -1)), call(real(0, 4), 1, (2, 2))],
        [
            bad(ShapeError, "6 elements", real(6), 0, (4, 2)),
            bad(AxisError, "axis 1", real(6), 1, (6,)),
        ],
    ),
    Row(
        "ravel",
        np.ravel,
        [call(TALL), call(real()), call(real(0, 2)), call(complex_(2, 2))],
        [bad(DTypeError, "numeric", "a")],
    ),
    Row(
        "atleast_1d",
        at_least(np.atleast_1d),
        [call(real()), call(real(2, 3)), call(real(), real(2))],
        [bad(DTypeError, "numeric", "a")],
    ),
    Row(
        "atleast_2d",
        at_least(np.atleast_2d),
        [call(real()), call(real(3)), call(TALL), call(real(0))],
        [bad(DTypeError, "numeric", "a")],
    ),
    Row(
        "atleast_3d",
        at_least(np.atleast_3d),
        [call(real()), call(real(3)), call(real(2, 3)), call(TALL), call(real(0))],
        [bad(DTypeError, "numeric", "a")],
    ),
    Row(
        "flip",
        lambda x, dims: np.flip(x, dims),
        [call(TALL, (0, 2)), call(real(3), (0,)), call(real(2, 3), (-1,)), call(real(0, 2), (0,))],
        [bad(AxisError, "axis 2", real(2, 3), 2), bad(AxisError, "twice", real(2), (0, 0))],
    ),
    Row(
        "fliplr",
        np.fliplr,
        [call(real(2, 3)), call(TALL), call(real(2, 0))],
        [bad(AxisError, "axis 1", real(3))],
    ),
    Row(
        "flipud",
        np.flipud,
        [call(real(2, 3)), call(real(3)), call(real(0, 2))],
        [bad(ShapeError, "0-d", real())],
    ),
    Row(
        "rot90",
        lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
        [
            call(real(2, 3)),
            call(real(2, 3), 2),
            call(real(2, 3), -1),
            call(TALL, 3, (1, 2)),
            call(real(2, 3), 4),
        ],
        [bad(AxisError, "axis 1", real(3)), bad(AxisError, "twice", real(2, 2), 1, (0, 0))],
    ),
    Row(
        "unbind",
        unbind,
        [
            call(real(3, 2)),
            call(TALL, 1),
            call(real(2, 0), -1).but(expected=lambda x, d: ()),
            call(real(3)),
        ],
        [bad(AxisError, "axis 2", real(2, 3), 2), bad(ShapeError, "0-d", real())],
    ),
    Row(
        "Tensor.repeat",
        repeated,
        [
            call(real(2), 3),
            call(real(2, 3), 2, 1, 2),
            call(real(), 2),
            call(real(2), 0),
            call(real(2), (2, 2)),
        ],
        [bad(ShapeError, "is not one count", real(2, 3), 2)],
    ),
    Row(
        "tile",
        lambda x, dims: np.tile(x, dims),
        [
            call(real(2), (3,)),
            call(real(2, 3), (2,)),
            call(real(2), (2, 2)),
            call(real(), (2,)),
            call(real(2), (0,)),
        ],
        [bad(ShapeError, "not a shape", real(2), ("a",))],
    ),
    Row(
        "repeat_interleave",
        lambda x, repeats, dim=None: np.repeat(x, repeats, dim),
        [
            call(real(2, 3), 2),
            call(real(2, 3), 2, 1),
            call(real(3), np.array([1, 0, 2]), dim=0),
            call(real(3), 0),
            call(real(0), 2, label="empty"),
        ],
        [
            bad(AxisError, "axis 2", real(2, 3), 2, 2),
            bad(ShapeError, "counts", real(3), np.array([1, 2]), 0),
        ],
        torch=lambda t, x, repeats, dim=None, **words: t.repeat_interleave(
            x, t.as_tensor(repeats), dim, **words
        ),
    ),
    Row(
        "roll",
        lambda x, shifts, dims=None: np.roll(x, shifts, dims),
        [
            call(real(5), 2),
            call(TALL, 1, 1),
            call(TALL, (1, -1), (0, 2)),
            call(real(0), 1, 0),
            call(real(2, 3), -4),
        ],
        [
            bad(AxisError, "axis 2", real(2, 3), 1, 2),
            bad(ShapeError, "2 shifts", TALL, (1, 2), (0,)),
        ],
    ),
    Row(
        "Tensor.unfold",
        unfold,
        [
            call(real(7), 0, 3, 2),
            call(real(2, 5), 1, 2, 1),
            call(real(5, 2), 0, 5, 1),
            call(real(4, 2), -2, 1, 3),
        ],
        [
            bad(ShapeError, "size 4 and step 1", real(3), 0, 4, 1),
            bad(AxisError, "axis 1", real(3), 1, 1, 1),
        ],
    ),
    Row(
        "diagonal",
        diagonal,
        [
            call(square()),
            call(real(2, 4), 1),
            call(TALL, -1, 0, 2),
            call(TALL, dim1=1, dim2=-1),
            call(real(0, 2)),
        ],
        [
            bad(ShapeError, "fewer than two axes", real(3)),
            bad(AxisError, "twice", real(2, 2), 0, 1, 1),
        ],
    ),
    Row(
        "diag_embed",
        diag_embed,
        [
            call(real(3)),
            call(real(2, 3), 1),
            call(real(2, 3), -2),
            call(real(2, 3), 0, 0, 2),
            call(real(0)),
        ],
        [bad(ShapeError, "not a diagonal", real())],
    ),
    Row(
        "diag",
        np.diag,
        [call(real(3)), call(real(3), -1), call(real(2, 4), 1), call(square()), call(real(0))],
        [bad(ShapeError, "neither", TALL)],
    ),
    Row(
        "diagflat",
        np.diagflat,
        [call(real(3)), call(real(2, 2), 1), call(real()), call(real(2), -2)],
        [bad(DTypeError, "numeric", "a")],
    ),
    Row(
        "trace",
        np.trace,
        [call(square()), call(real(2, 3)), call(complex_(2, 2)), call(integer(2, 2))],
        [bad(ShapeError, "not a matrix", real(3)), bad(ShapeError, "not a matrix", real(2, 3, 3))],
    ),
    Row(
        "tril",
        np.tril,
        [
            call(square()),
            call(TALL, 1),
            call(real(3, 2), -1),
            call(complex_(2, 2)),
            call(real(0, 2)),
        ],
        [bad(ShapeError, "fewer than two axes", real(3))],
    ),
    Row(
        "triu",
        np.triu,
        [
            call(square()),
            call(TALL, 1),
            call(real(3, 2), -1),
            call(complex_(2, 2)),
            call(real(0, 2)),
        ],
        [bad(ShapeError, "fewer than two axes", real(3))],
    ),
    Row(
        "meshgrid",
        grids,
        [
            call(real(2), real(3), indexing="ij"),
            call(real(2), real(3), real(1), indexing="xy"),
            call(real(2), indexing="ij"),
        ],
        [bad(ShapeError, "'ij' or 'xy'", real(2), real(3), indexing="ab")],
    ),
    Row(
        "select",
        select,
        [call(TALL, 1, 2), call(TALL, -1, -1), call(real(3), 0, 0), call(real(0, 2), 1, 0)],
        [
            bad(IndexingError, "index 3", real(2, 3), 1, 3),
            bad(AxisError, "axis 2", real(2, 3), 2, 0),
        ],
    ),
    Row(
        "narrow",
        narrow,
        [call(TALL, 1, 1, 2), call(real(4), 0, 0, 4), call(real(4), 0, 2, 0)],
        [
            bad(IndexingError, "3 elements from 2", real(4), 0, 2, 3),
            bad(AxisError, "axis 1", real(3), 1, 0, 1),
        ],
    ),
    Row(
        "narrow_copy",
        narrow,
        [call(TALL, 1, 1, 2), call(real(4), 0, 0, 4), call(real(4), 0, 2, 0)],
        [bad(IndexingError, "3 elements from 2", real(4), 0, 2, 3)],
    ),
    Row(
        "split",
        split,
        [call(real(5), 2), call(real(2, 6), [1, 2, 3], 1), call(TALL, 2, dim=-1), call(real(3), 5)],
        [bad(ShapeError, "do not add up", real(5), [1, 2]), bad(ShapeError, "size 0", real(5), 0)],
    ),
    Row(
        "split_with_sizes",
        split,
        [call(real(5), [2, 3]), call(real(2, 6), [1, 2, 3], 1), call(real(3), [0, 3])],
        [bad(ShapeError, "do not add up", real(5), [1, 2])],
    ),
    Row(
        "chunk",
        chunk,
        [call(real(5), 2), call(real(2, 6), 3, 1), call(TALL, 2, dim=-1)],
        [bad(ShapeError, "chunks=0", real(5), 0), bad(AxisError, "axis 1", real(5), 2, 1)],
    ),
    Row(
        "tensor_split",
        tensor_split,
        [call(real(5), 3), call(real(2, 6), [1, 4], 1), call(TALL, 2, dim=-1), call(real(2), 3)],
        [bad(ShapeError, "0 sections", real(5), 0), bad(AxisError, "axis 1", real(5), 2, 1)],
    ),
    Row(
        "hsplit",
        lambda x, parts: tuple(np.hsplit(x, parts)),
        [call(real(4), 2), call(real(2, 6), [1, 4]), call(TALL, 3)],
        [bad(ShapeError, "equal sections", real(5), 2), bad(ShapeError, "fewer than 1", real(), 1)],
    ),
    Row(
        "vsplit",
        lambda x, parts: tuple(np.vsplit(x, parts)),
        [call(real(4, 2), 2), call(real(6, 2), [1, 4]), call(TALL, 1)],
        [
            bad(ShapeError, "equal sections", real(5, 1), 2),
            bad(ShapeError, "fewer than 2", real(4), 2),
        ],
    ),
    Row(
        "dsplit",
        lambda x, parts: tuple(np.dsplit(x, parts)),
        [call(TALL, 2), call(TALL, [1, 3])],
        [
            bad(ShapeError, "equal sections", TALL, 3),
            bad(ShapeError, "fewer than 3", real(4, 2), 2),
        ],
    ),
    Row(
        "view_as_real",
        lambda x: np.stack([x.real, x.imag], -1),
        [call(complex_(2, 3)), call(complex_()), call(complex_(0))],
        [bad(DTypeError, "complex dtypes", real(3))],
        torch=lambda t, x: t.view_as_real(x) if x.numel() else t.stack([x.real, x.imag], -1),
    ),
    Row(
        "view_as_complex",
        lambda x: x[..., 0] + 1j * x[..., 1],
        [call(real(3, 2)), call(real(2)), call(real(0, 2))],
        [bad(ShapeError, "pairs of floats", real(3))],
        torch=lambda t, x: t.complex(x[..., 0], x[..., 1]),
    ),
    Row(
        "combinations",
        combinations,
        [call(real(4)), call(real(3), 3), call(real(3), 2, True), call(integer(3), r=1)],
        [bad(ShapeError, "combinations", real(2, 2)), bad(ShapeError, "r=-1", real(3), -1)],
    ),
    Row(
        "cartesian_prod",
        lambda *xs: np.stack([g.ravel() for g in np.meshgrid(*xs, indexing="ij")], 1),
        [call(real(2), real(3)), call(real(2), real(1), real(2)), call(integer(2), integer(0))],
        [bad(ShapeError, "give vectors", real(2, 2))],
    ),
    Row(
        "vander",
        lambda x, N=None, increasing=False: np.vander(x, N, increasing),
        [
            call(real(3, avoid=0.2)),
            call(real(3, avoid=0.2), 2),
            call(real(2, avoid=0.2), 4, True),
            call(integer(3)),
            call(real(0)),
        ],
        [bad(ShapeError, "takes a vector", real(2, 2)), bad(ShapeError, "N=-1", real(2), -1)],
        differs="PyTorch's derivative fails: it overwrites what it needs",
    ),
]
