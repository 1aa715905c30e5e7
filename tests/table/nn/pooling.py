"""Rows of pooling, against a loop over every window."""

import numpy as np

from lucid.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from tests.cases.case import Arg, boolean, complex_, index, integer, real
from tests.table.nn.convolution import each
from tests.table.row import Row, bad, call


def apart(*shape):
    return real(*shape, distinct=True)


def windows(axes, sizes, window, stride, padding, dilation=1, ceil_mode=False):
    """For every place the indices that its window has along each axis, padding included."""
    window, padding, dilation = (each(v, axes) for v in (window, padding, dilation))
    stride = window if stride is None else each(stride, axes)
    along = []
    for n, k, s, p, d in zip(sizes, window, stride, padding, dilation):
        starts = [i * s - p for i in range(n + 2 * p)]
        last = [a for a in starts if a + (k - 1) * d < n + p]
        if ceil_mode and (not last or last[-1] + (k - 1) * d < n + p - 1):
            following = starts[len(last)]
            last += [following] if following < n else []
        along.append([[a + j * d for j in range(k)] for a in last])
    return along


def places_of(along):
    for q in np.ndindex(*map(len, along)):
        yield q, [axis[i] for axis, i in zip(along, q)]


def largest(axes):
    def expected(
        x, window, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ):
        sizes = x.shape[-axes:]
        along = windows(axes, sizes, window, stride, padding, dilation, ceil_mode)
        flat = np.arange(np.prod(sizes)).reshape(sizes)
        shape = (*x.shape[:-axes], *map(len, along))
        values, indices = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
        for q, places in places_of(along):
            inside = [[i for i in axis if 0 <= i < n] for axis, n in zip(places, sizes)]
            box = x[(..., *np.ix_(*inside))]
            box = box.reshape(*x.shape[:-axes], np.prod([len(i) for i in inside]))
            values[(..., *q)] = box.max(-1)
            indices[(..., *q)] = flat[np.ix_(*inside)].reshape(-1)[box.argmax(-1)]
        return (values, indices) if return_indices else values

    return expected


def averages(axes):
    def expected(
        x,
        window,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        sizes, padding = x.shape[-axes:], each(padding, axes)
        along = windows(axes, sizes, window, stride, padding, 1, ceil_mode)
        values = np.zeros((*x.shape[:-axes], *map(len, along)), x.dtype)
        for q, places in places_of(along):
            inside = [[i for i in axis if 0 <= i < n] for axis, n in zip(places, sizes)]
            padded = [[i for i in axis if i < n + p] for axis, n, p in zip(places, sizes, padding)]
            count = np.prod([len(i) for i in (padded if count_include_pad else inside)])
            box = x[(..., *np.ix_(*inside))].reshape(*x.shape[:-axes], -1)
            values[(..., *q)] = box.sum(-1) / (divisor_override or count)
        return values

    return expected


def norms(axes):
    def expected(x, p, window, stride=None, ceil_mode=False):
        sizes = x.shape[-axes:]
        along = windows(axes, sizes, window, stride, 0, 1, ceil_mode)
        values = np.zeros((*x.shape[:-axes], *map(len, along)), x.dtype)
        whole = np.prod(each(window, axes))
        for q, places in places_of(along):
            inside = [[i for i in axis if i < n] for axis, n in zip(places, sizes)]
            box = x[(..., *np.ix_(*inside))].reshape(*x.shape[:-axes], -1)
            values[(..., *q)] = ((box**p).mean(-1) * whole) ** (1 / p)
        return values

    return expected


def adaptive(axes, how):
    def expected(x, size, return_indices=False):
        sizes = x.shape[-axes:]
        size = [n if m is None else m for m, n in zip(each(size, axes), sizes)]
        along = [
            [list(range(i * n // m, -((-(i + 1) * n) // m))) for i in range(m)]
            for n, m in zip(sizes, size)
        ]
        flat = np.arange(np.prod(sizes)).reshape(sizes)
        shape = (*x.shape[:-axes], *size)
        values, indices = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
        for q, places in places_of(along):
            box = x[(..., *np.ix_(*places))].reshape(*x.shape[:-axes], -1)
            values[(..., *q)] = how(box, -1)
            indices[(..., *q)] = flat[np.ix_(*places)].reshape(-1)[box.argmax(-1)]
        return (values, indices) if return_indices else values

    return expected


def unpooled(axes):
    def expected(x, indices, window, stride=None, padding=0, output_size=None):
        window = each(window, axes)
        stride = window if stride is None else each(stride, axes)
        shape = x.shape[-axes:]
        size = [
            (n - 1) * s - 2 * p + k
            for n, s, p, k in zip(shape, stride, each(padding, axes), window)
        ]
        size = size if output_size is None else list(output_size)[-axes:]
        out = np.zeros((*x.shape[:-axes], np.prod(size)), x.dtype)
        np.put_along_axis(
            out, indices.reshape(*x.shape[:-axes], -1), x.reshape(*x.shape[:-axes], -1), -1
        )
        return out.reshape(*x.shape[:-axes], *size)

    return expected


def positive(*shape):
    return real(*shape, low=0.5, high=2.0)


def both(how):
    """The same pooling, which always gives the indices too."""
    return lambda *args, **kwargs: how(*args, **kwargs, return_indices=True)


def fractional(axes, always=False):
    """Graham's windows, plane by plane."""

    def expected(x, window, size=None, ratio=None, return_indices=always, _random_samples=None):
        sizes, window = x.shape[-axes:], each(window, axes)
        size = each(size, axes) if ratio is None else [int(n * ratio) for n in sizes]
        planes = x.reshape(-1, *sizes)
        drawn = _random_samples.reshape(-1, axes)
        values = np.zeros((len(planes), *size), x.dtype)
        indices = np.zeros(values.shape, np.int64)
        flat = np.arange(np.prod(sizes)).reshape(sizes)
        for b, (plane, u) in enumerate(zip(planes, drawn)):
            u = u[::-1] if axes == 2 else u
            along = []
            for n, k, m, v in zip(sizes, window, size, u):
                step = (n - k) / (m - 1) if m > 1 else 0.0
                first = [int((i + v) * step) - int(v * step) for i in range(m - 1)] + [n - k]
                along.append([list(range(a, a + k)) for a in first])
            for q, places in places_of(along):
                box = plane[np.ix_(*places)].reshape(-1)
                values[(b, *q)] = box.max()
                indices[(b, *q)] = flat[np.ix_(*places)].reshape(-1)[box.argmax()]
        shape = (*x.shape[:-axes], *size)
        values, indices = values.reshape(shape), indices.reshape(shape)
        return (values, indices) if return_indices else values

    return expected


def sample(*shape):
    return real(*shape, low=0.0, high=1.0)


def fractional_pooling(name):
    """PyTorch's function, which takes a ratio for every axis."""

    def call_it(torch, x, window, size=None, ratio=None, *rest, **options):
        axes = int(name[name.index("pool") + 4])
        ratio = None if ratio is None else (ratio,) * axes
        return getattr(torch.nn.functional, name)(x, window, size, ratio, *rest, **options)

    return call_it


FRACTIONAL = {
    2: [
        call(apart(2, 2, 6, 7), 2, (3, 4), _random_samples=sample(2, 2, 2)),
        call(apart(3, 7, 6), (2, 3), 4, _random_samples=sample(1, 3, 2)),
        call(apart(1, 2, 8, 9), 2, None, 0.5, _random_samples=sample(1, 2, 2)),
        call(apart(2, 1, 5, 5), 3, 1, _random_samples=sample(2, 1, 2)),
    ],
    3: [
        call(apart(1, 2, 4, 5, 6), 2, (2, 3, 3), _random_samples=sample(1, 2, 3)),
        call(apart(2, 5, 4, 4), (2, 1, 2), 2, _random_samples=sample(1, 2, 3)),
    ],
}


ROWS = [
    Row(
        "nn.functional.max_pool1d",
        largest(1),
        [
            call(apart(2, 3, 7), 2),
            call(apart(3, 7), 3, stride=1, padding=1),
            call(apart(1, 2, 8), 2, 2, 1, 3),
            call(apart(2, 7), 2, ceil_mode=True, return_indices=True),
            call(apart(0, 2, 5), 2, label="no images"),
        ],
        refused=[
            bad(ShapeError, "padding 2", real(1, 2, 5), 3, padding=2),
            bad(DTypeError, "complex", complex_(1, 2, 5), 2),
            bad(ShapeError, "do not fit", real(1, 2, 2), 3),
            bad(ArgumentError, "kernel_size", real(1, 2, 2), "two"),
        ],
    ),
    Row(
        "nn.functional.max_pool2d",
        largest(2),
        [
            call(apart(2, 2, 4, 6), 2),
            call(apart(2, 5, 6), (3, 2), (1, 2), (1, 1)),
            call(apart(1, 2, 7, 6), 3, 2, 1, return_indices=True),
            call(apart(1, 1, 6, 7), 2, 3, 1, 2, True, True),
            call(integer(1, 2, 4, 4), 2).but(smooth=False),
        ],
        refused=[
            bad(ShapeError, "max_pool2d", real(4, 4), 2),
            bad(ShapeError, "kernel_size (2, 2, 2)", real(1, 2, 4, 4), (2, 2, 2)),
            bad(DTypeError, "bool", boolean(1, 2, 4, 4), 2),
        ],
    ),
    Row(
        "nn.functional.max_pool3d",
        largest(3),
        [
            call(apart(1, 2, 3, 4, 4), 2),
            call(apart(2, 3, 4, 3), (2, 1, 3), 1, (1, 0, 1), 1, False, True),
        ],
        refused=[bad(ShapeError, "max_pool3d", real(2, 2, 2), 2)],
    ),
    Row(
        "nn.functional.avg_pool1d",
        averages(1),
        [
            call(real(2, 3, 7), 2),
            call(real(3, 7), 3, 2, 1),
            call(real(1, 2, 8), 3, 2, 1, True, False),
        ],
        refused=[bad(ShapeError, "kernel_size 0", real(1, 2, 4), 0)],
    ),
    Row(
        "nn.functional.avg_pool2d",
        averages(2),
        [
            call(real(2, 2, 4, 6), 2),
            call(real(2, 5, 6), (3, 2), (1, 2), (1, 0)),
            call(real(1, 2, 6, 6), 3, 2, 1, True),
            call(real(1, 2, 6, 6), 3, 2, 1, count_include_pad=False),
            call(real(1, 1, 4, 4), 2, divisor_override=3),
        ],
        refused=[bad(ArgumentError, "divisor_override", real(1, 1, 4, 4), 2, divisor_override=0)],
    ),
    Row(
        "nn.functional.avg_pool3d",
        averages(3),
        [
            call(real(1, 2, 4, 4, 2), 2),
            call(real(2, 3, 4, 5), (2, 3, 2), 1, (1, 1, 0), True, False),
        ],
        refused=[bad(ShapeError, "avg_pool3d", real(2, 2, 2), 2)],
    ),
    Row(
        "nn.functional.lp_pool1d",
        norms(1),
        [call(positive(2, 3, 6), 2, 2), call(positive(3, 7), 3, 3, stride=2, ceil_mode=True)],
        refused=[bad(ArgumentError, "norm_type", real(1, 2, 4), 0, 2)],
    ),
    Row(
        "nn.functional.lp_pool2d",
        norms(2),
        [call(positive(1, 2, 4, 5), 2, 2), call(positive(2, 5, 4), 1, (3, 2), 1)],
        refused=[bad(ArgumentError, "norm_type", real(1, 2, 4, 4), "two", 2)],
    ),
    Row(
        "nn.functional.lp_pool3d",
        norms(3),
        [call(positive(1, 1, 3, 4, 4), 2.0, 2), call(positive(2, 2, 3, 2), 3, (1, 2, 2), 1)],
        refused=[bad(ShapeError, "lp_pool3d", real(2, 2, 2), 2, 2)],
    ),
    Row(
        "nn.functional.adaptive_avg_pool1d",
        adaptive(1, np.mean),
        [call(real(2, 3, 7), 3), call(real(3, 6), 2)],
        refused=[bad(ArgumentError, "output_size", real(1, 2, 4), "all")],
    ),
    Row(
        "nn.functional.adaptive_avg_pool2d",
        adaptive(2, np.mean),
        [call(real(2, 2, 5, 6), (2, 3)), call(real(2, 4, 6), 1), call(real(1, 2, 5, 4), (None, 7))],
        refused=[bad(ShapeError, "output_size", real(1, 2, 4, 4), (1, 2, 3))],
    ),
    Row(
        "nn.functional.adaptive_avg_pool3d",
        adaptive(3, np.mean),
        [call(real(1, 2, 3, 4, 5), (2, 2, 3)), call(real(2, 2, 4, 2), 1)],
        refused=[bad(ShapeError, "adaptive_avg_pool3d", real(2, 2), 2)],
    ),
    Row(
        "nn.functional.adaptive_max_pool1d",
        adaptive(1, np.max),
        [call(apart(2, 3, 7), 3), call(apart(3, 6), 2, True)],
        refused=[bad(DTypeError, "complex", complex_(1, 2, 4), 2)],
    ),
    Row(
        "nn.functional.adaptive_max_pool2d",
        adaptive(2, np.max),
        [
            call(apart(2, 2, 5, 6), (2, 4), True),
            call(apart(2, 4, 6), 1),
            call(apart(1, 2, 5, 4), (None, 3)),
        ],
        refused=[bad(ShapeError, "no elements to pool", real(1, 2, 0, 4), 1)],
    ),
    Row(
        "nn.functional.adaptive_max_pool3d",
        adaptive(3, np.max),
        [call(apart(1, 2, 3, 4, 5), (2, 2, 3), True), call(apart(2, 2, 4, 2), 1)],
        refused=[bad(ShapeError, "adaptive_max_pool3d", real(2, 2), 2)],
    ),
    Row(
        "nn.functional.max_unpool1d",
        unpooled(1),
        [
            call(real(1, 2, 1), index(1, 2, 1, high=2), 2),
            call(real(2, 1), index(2, 1, high=3), 2, output_size=(3,)),
        ],
        refused=[
            bad(ShapeError, "the same shape", real(1, 2, 3), index(1, 2, 2, high=2), 2),
            bad(IndexingError, "out of range", real(1, 2, 1), Arg("index", (1, 2, 1), 9, 10), 2),
            bad(DTypeError, "integers", real(1, 2, 3), real(1, 2, 3), 2),
        ],
    ),
    Row(
        "nn.functional.max_unpool2d",
        unpooled(2),
        [
            call(real(2, 2, 1, 1), index(2, 2, 1, 1, high=9), 3),
            call(real(2, 1, 1), index(2, 1, 1, high=6), 2, 2, 0, (2, 3)),
        ],
        refused=[
            bad(
                ShapeError,
                "output_size",
                real(1, 2, 2, 2),
                index(1, 2, 2, 2, high=2),
                2,
                output_size=(9, 9),
            )
        ],
    ),
    Row(
        "nn.functional.max_unpool3d",
        unpooled(3),
        [call(real(1, 2, 1, 1, 1), index(1, 2, 1, 1, 1, high=8), 2)],
        refused=[bad(ShapeError, "max_unpool3d", real(2, 2), index(2, 2, high=2), 2)],
    ),
    Row(
        "nn.functional.max_pool1d_with_indices",
        both(largest(1)),
        [call(apart(2, 3, 7), 2), call(apart(2, 3, 7), 3, 1, 1, ceil_mode=True)],
        refused=[bad(ShapeError, "max_pool1d", real(4), 2)],
    ),
    Row(
        "nn.functional.adaptive_max_pool1d_with_indices",
        both(adaptive(1, np.max)),
        [call(apart(2, 3, 7), 2), call(apart(2, 3, 7), 3)],
        refused=[bad(DTypeError, "complex", complex_(2, 3, 7), 2)],
    ),
    Row(
        "nn.functional.max_pool2d_with_indices",
        both(largest(2)),
        [call(apart(2, 5, 6), 2), call(apart(2, 5, 6), 3, 1, 1, ceil_mode=True)],
        refused=[bad(ShapeError, "max_pool2d", real(4, 4), 2)],
    ),
    Row(
        "nn.functional.adaptive_max_pool2d_with_indices",
        both(adaptive(2, np.max)),
        [call(apart(2, 5, 6), 2), call(apart(2, 5, 6), 3)],
        refused=[bad(DTypeError, "complex", complex_(2, 5, 6), 2)],
    ),
    Row(
        "nn.functional.max_pool3d_with_indices",
        both(largest(3)),
        [call(apart(2, 3, 4, 3), 2), call(apart(2, 3, 4, 3), 3, 1, 1, ceil_mode=True)],
        refused=[bad(ShapeError, "max_pool3d", real(2, 2, 2), 2)],
    ),
    Row(
        "nn.functional.adaptive_max_pool3d_with_indices",
        both(adaptive(3, np.max)),
        [call(apart(2, 3, 4, 3), 2), call(apart(2, 3, 4, 3), 3)],
        refused=[bad(DTypeError, "complex", complex_(2, 3, 4, 3), 2)],
    ),
    Row(
        "nn.functional.fractional_max_pool2d",
        fractional(2),
        FRACTIONAL[2],
        refused=[
            bad(ArgumentError, "exactly one of", real(1, 2, 5, 5), 2),
            bad(ArgumentError, "between 0 and 1", real(1, 2, 5, 5), 2, output_ratio=1.5),
            bad(ShapeError, "do not fit", real(1, 2, 5, 5), 3, 4),
            bad(ShapeError, "_random_samples", real(1, 2, 5, 5), 2, 2, _random_samples=sample(3)),
            bad(DTypeError, "int64", integer(1, 2, 5, 5), 2, 2),
            bad(DTypeError, "complex", complex_(1, 2, 5, 5), 2, 2),
        ],
        torch=fractional_pooling("fractional_max_pool2d"),
    ),
    Row(
        "nn.functional.fractional_max_pool2d_with_indices",
        fractional(2, True),
        FRACTIONAL[2],
        refused=[
            bad(ArgumentError, "exactly one of", real(1, 2, 5, 5), 2),
            bad(ArgumentError, "between 0 and 1", real(1, 2, 5, 5), 2, output_ratio=1.5),
            bad(ShapeError, "do not fit", real(1, 2, 5, 5), 3, 4),
            bad(ShapeError, "_random_samples", real(1, 2, 5, 5), 2, 2, _random_samples=sample(3)),
            bad(DTypeError, "int64", integer(1, 2, 5, 5), 2, 2),
            bad(DTypeError, "complex", complex_(1, 2, 5, 5), 2, 2),
        ],
        torch=fractional_pooling("fractional_max_pool2d_with_indices"),
    ),
    Row(
        "nn.functional.fractional_max_pool3d",
        fractional(3),
        FRACTIONAL[3],
        refused=[
            bad(ArgumentError, "exactly one of", real(1, 2, 5, 5, 5), 2),
            bad(ArgumentError, "between 0 and 1", real(1, 2, 5, 5, 5), 2, output_ratio=1.5),
            bad(ShapeError, "do not fit", real(1, 2, 5, 5, 5), 3, 4),
            bad(ShapeError, "_random", real(1, 2, 5, 5, 5), 2, 2, _random_samples=sample(3)),
            bad(DTypeError, "int64", integer(1, 2, 5, 5, 5), 2, 2),
            bad(DTypeError, "complex", complex_(1, 2, 5, 5, 5), 2, 2),
        ],
        torch=fractional_pooling("fractional_max_pool3d"),
    ),
    Row(
        "nn.functional.fractional_max_pool3d_with_indices",
        fractional(3, True),
        FRACTIONAL[3],
        refused=[
            bad(ArgumentError, "exactly one of", real(1, 2, 5, 5, 5), 2),
            bad(ArgumentError, "between 0 and 1", real(1, 2, 5, 5, 5), 2, output_ratio=1.5),
            bad(ShapeError, "do not fit", real(1, 2, 5, 5, 5), 3, 4),
            bad(ShapeError, "_random", real(1, 2, 5, 5, 5), 2, 2, _random_samples=sample(3)),
            bad(DTypeError, "int64", integer(1, 2, 5, 5, 5), 2, 2),
            bad(DTypeError, "complex", complex_(1, 2, 5, 5, 5), 2, 2),
        ],
        torch=fractional_pooling("fractional_max_pool3d_with_indices"),
    ),
]
