"""Cases for convolutions and the largest elements of windows, against loops over every place."""

import numpy as np

from lucid.ops.nn.convolution import Convolution, ConvolutionTranspose, ConvolutionWeight
from lucid.ops.nn.max_pool import MaxPool
from tests.cases.case import Case, complex_, integer, real


def products(op, kernel, places, size):
    """Every (q, k, place in x) that the form has a product for."""
    for q in np.ndindex(*places):
        for k in np.ndindex(*kernel):
            at = [
                s * i + d * j - p for i, j, s, d, p in zip(q, k, op.stride, op.dilation, op.padding)
            ]
            if all(0 <= i < n for i, n in zip(at, size)):
                yield q, k, tuple(at)


def by_group(op, *arrays):
    """The arrays with an axis of groups beside the channels: in axis 1, of weights in axis 0."""
    return [
        a.reshape(a.shape[0], op.groups, a.shape[1] // op.groups, *a.shape[2:])
        if images
        else a.reshape(op.groups, a.shape[0] // op.groups, *a.shape[1:])
        for a, images in arrays
    ]


def convolved(op):
    def expected(x, w):
        out = np.zeros((len(x), op.groups, len(w) // op.groups, *op.size), x.dtype)
        x, w = by_group(op, (x, True), (w, False))
        for q, k, i in products(op, w.shape[3:], op.size, x.shape[3:]):
            out[:, :, :, *q] += np.einsum("ngc,goc->ngo", x[:, :, :, *i], w[:, :, :, *k])
        return out.reshape(len(out), out.shape[1] * out.shape[2], *op.size)

    return expected


def transposed(op):
    def expected(y, w):
        out = np.zeros((len(y), op.groups, w.shape[1], *op.size), y.dtype)
        y, w = by_group(op, (y, True), (w, False))
        for q, k, i in products(op, w.shape[3:], y.shape[3:], op.size):
            out[:, :, :, *i] += np.einsum("ngo,goc->ngc", y[:, :, :, *q], w[:, :, :, *k])
        return out.reshape(len(out), out.shape[1] * out.shape[2], *op.size)

    return expected


def correlated(op):
    def expected(x, y):
        channels = x.shape[1] // op.groups
        out = np.zeros((op.groups, y.shape[1] // op.groups, channels, *op.size), x.dtype)
        x, y = by_group(op, (x, True), (y, True))
        for q, k, i in products(op, op.size, y.shape[3:], x.shape[3:]):
            out[:, :, :, *k] += np.einsum("ngc,ngo->goc", x[:, :, :, *i], y[:, :, :, *q])
        return out.reshape(out.shape[0] * out.shape[1], channels, *op.size)

    return expected


def three(size, kernel, places, stride, padding, dilation, groups=1, c=2, o=2, n=2, arg=real):
    """Cases of all three derivatives of one form; c and o are the channels of a group."""
    forms = (stride, padding, dilation, groups)
    x, w, y = arg(n, groups * c, *size), arg(groups * o, c, *kernel), arg(n, groups * o, *places)
    forward, back = Convolution(places, *forms), ConvolutionTranspose(size, *forms)
    weight = ConvolutionWeight(kernel, *forms)
    return [
        Case(forward, (x, w), convolved(forward)),
        Case(back, (y, w), transposed(back)),
        Case(weight, (x, y), correlated(weight)),
    ]


def largest(op):
    def expected(x):
        outer, sizes = x.shape[: x.ndim - len(op.size)], x.shape[x.ndim - len(op.size) :]
        values = np.full((*outer, *op.size), -np.inf)
        indices = np.zeros((*outer, *op.size), np.int64)
        for q in np.ndindex(*op.size):
            for k in np.ndindex(*op.window):
                i = tuple(
                    s * a + d * b - p
                    for a, b, s, d, p in zip(q, k, op.stride, op.dilation, op.padding)
                )
                if all(0 <= a < n for a, n in zip(i, sizes)):
                    more = x[..., *i] > values[..., *q]
                    values[..., *q] = np.where(more, x[..., *i], values[..., *q])
                    flat = np.ravel_multi_index(i, sizes)
                    indices[..., *q] = np.where(more, flat, indices[..., *q])
        return values.astype(x.dtype), indices

    return expected


def pool(size, window, stride, padding, dilation, arg, label=""):
    op = MaxPool(size, window, stride, padding, dilation)
    return Case(op, (arg,), largest(op), label=label)


def apart(*shape):
    return real(*shape, distinct=True)


CASES = [
    *three((5,), (3,), (5,), (1,), (1,), (1,)),
    *three((4, 5), (3, 2), (4, 4), (1, 1), (1, 0), (1, 1), c=3, o=2),
    *three((7, 6), (3, 3), (3, 3), (2, 2), (0, 1), (1, 1), groups=2, c=1, o=2),
    *three((9, 4), (2, 3), (3, 2), (3, 1), (2, 1), (2, 2), n=1),
    *three((3, 4, 3), (2, 2, 2), (2, 2, 3), (1, 2, 1), (0, 1, 1), (1, 1, 1), n=1),
    *three((10,), (3,), (9,), (1,), (0,), (1,), groups=3, c=1, o=1),
    *three((4,), (2,), (3,), (4,), (3,), (1,), n=1),
    *three((6,), (2,), (2,), (2,), (-1,), (1,), n=1),
    *three((4,), (3,), (4,), (1,), (1,), (1,), arg=complex_),
    *three((0,), (2,), (2,), (1,), (1,), (1,)),
    *three((4,), (2,), (0,), (1,), (0,), (1,)),
    *three((3,), (2,), (2,), (1,), (0,), (1,), arg=integer),
    pool((2, 2), (2, 2), (2, 2), (0, 0), (1, 1), apart(2, 4, 4)),
    pool((3, 3), (3, 2), (1, 2), (1, 1), (1, 1), apart(1, 2, 3, 4)),
    pool((2,), (2,), (2,), (1,), (2,), apart(2, 5)),
    pool((2, 1, 2), (2, 2, 1), (1, 1, 2), (0, 0, 0), (1, 1, 1), apart(3, 2, 4)),
    pool((0,), (2,), (1,), (0,), (1,), apart(2, 1), label="empty"),
    pool((2,), (2,), (1,), (0,), (1,), integer(2, 3)),
]
