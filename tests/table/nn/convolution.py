"""Rows of convolutions, against a loop over every place of every window."""

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from tests.cases.case import complex_, real
from tests.table.row import Row, bad, call


def each(value, axes):
    value = tuple(value) if np.ndim(value) else (value,)
    return value * axes if len(value) == 1 else value


def convolved(axes):
    def expected(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
        batched = x.ndim == axes + 2
        x = x if batched else x[None]
        stride, dilation = each(stride, axes), each(dilation, axes)
        kernel = w.shape[2:]
        extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
        if padding == "same":
            widths = [((e - 1) // 2, e - 1 - (e - 1) // 2) for e in extent]
        else:
            widths = [(p, p) for p in each(0 if padding == "valid" else padding, axes)]
        x = np.pad(x, [(0, 0), (0, 0), *widths])
        size = [(n - e) // s + 1 for n, e, s in zip(x.shape[2:], extent, stride)]
        out = np.zeros((len(x), len(w), *size), x.dtype)
        o, c = len(w) // groups, w.shape[1]
        for q in np.ndindex(*size):
            box = tuple(
                slice(s * i, s * i + e, d) for s, i, e, d in zip(stride, q, extent, dilation)
            )
            for g in range(groups):
                part = x[:, g * c : (g + 1) * c][(..., *box)]
                weights = w[g * o : (g + 1) * o]
                inner = list(range(1, axes + 2))
                out[:, g * o : (g + 1) * o, *q] = np.tensordot(part, weights, (inner, inner))
        if b is not None:
            out = out + b.reshape(-1, *[1] * axes)
        return out if batched else out[0]

    return expected


def spread(axes):
    """conv_transpose: every element adds its multiple of the weights around its place."""

    def expected(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        batched = x.ndim == axes + 2
        x = x if batched else x[None]
        stride, dilation, padding = (each(v, axes) for v in (stride, dilation, padding))
        more = each(output_padding, axes)
        extent = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
        whole = [(n - 1) * s + e for n, s, e in zip(x.shape[2:], stride, extent)]
        room = [n + m for n, m in zip(whole, more)]
        o, c = w.shape[1], len(w) // groups
        out = np.zeros((len(x), o * groups, *room), x.dtype)
        for q in np.ndindex(*x.shape[2:]):
            box = tuple(
                slice(s * i, s * i + e, d) for s, i, e, d in zip(stride, q, extent, dilation)
            )
            for g in range(groups):
                part, weights = x[:, g * c : (g + 1) * c, *q], w[g * c : (g + 1) * c]
                view = out[:, g * o : (g + 1) * o]
                view[(..., *box)] += np.tensordot(part, weights, (1, 0))
        cut = tuple(slice(p, n - p) for p, n in zip(padding, room))
        out = out[(..., *cut)]
        if b is not None:
            out = out + b.reshape(-1, *[1] * axes)
        return out if batched else out[0]

    return expected


CHANNELS = bad(ShapeError, ("3 channels", "(out, in / groups"), real(1, 3, 4, 4), real(2, 2, 3, 3))

ROWS = [
    Row(
        "nn.functional.conv1d",
        convolved(1),
        [
            call(real(2, 3, 7), real(4, 3, 3)),
            call(real(3, 7), real(4, 3, 3), real(4)),
            call(real(1, 2, 9), real(2, 2, 3), stride=2, padding=1, dilation=2),
            call(real(2, 4, 6), real(4, 2, 2), groups=2, padding="same"),
            call(real(0, 2, 5), real(3, 2, 2), label="no images"),
            call(complex_(1, 2, 4), complex_(2, 2, 2)),
        ],
        refused=[
            bad(ShapeError, ("conv1d", "(2, 3, 4, 5)"), real(2, 3, 4, 5), real(4, 3, 3)),
            bad(ShapeError, "do not fit", real(1, 3, 2), real(4, 3, 3)),
            bad(
                ArgumentError,
                "padding must be 'same', 'valid' or integers",
                real(1, 3, 4),
                real(4, 3, 3),
                None,
                1,
                "full",
            ),
        ],
    ),
    Row(
        "nn.functional.conv2d",
        convolved(2),
        [
            call(real(2, 3, 5, 6), real(4, 3, 3, 2), real(4)),
            call(real(3, 5, 6), real(2, 3, 1, 1)),
            call(real(1, 2, 6, 7), real(4, 1, 3, 3), stride=(2, 1), padding=(1, 2), groups=2),
            call(real(1, 2, 8, 7), real(3, 2, 2, 3), dilation=(3, 2), padding=2),
            call(real(1, 2, 4, 5), real(2, 2, 2, 3), real(2), padding="same", dilation=2),
            call(real(1, 2, 4, 5), real(2, 2, 4, 3), padding="valid"),
            call(real(2, 3, 4, 4), real(3, 1, 3, 3), padding=1, groups=3, label="depthwise"),
        ],
        refused=[
            CHANNELS,
            bad(DTypeError, "float64", real(1, 3, 4, 4), real(2, 3, 3, 3, dtype="float32")),
            bad(ShapeError, "stride (0, 1)", real(1, 3, 4, 4), real(2, 3, 3, 3), stride=(0, 1)),
            bad(
                ArgumentError,
                "'same' needs stride 1",
                real(1, 3, 4, 4),
                real(2, 3, 3, 3),
                None,
                2,
                "same",
            ),
            bad(ShapeError, "bias", real(1, 3, 4, 4), real(2, 3, 3, 3), real(3)),
            bad(ArgumentError, "groups", real(1, 3, 4, 4), real(2, 3, 3, 3), groups=0),
        ],
    ),
    Row(
        "nn.functional.conv3d",
        convolved(3),
        [
            call(real(1, 2, 3, 4, 4), real(2, 2, 2, 2, 3), real(2)),
            call(real(2, 3, 4, 3), real(4, 1, 2, 2, 2), stride=(1, 2, 1), padding=1, groups=2),
        ],
        refused=[bad(ShapeError, "conv3d", real(1, 2, 3, 4), real(2, 2, 2, 2))],
    ),
    Row(
        "nn.functional.conv_transpose1d",
        spread(1),
        [
            call(real(2, 3, 4), real(3, 2, 3)),
            call(real(3, 4), real(3, 2, 2), real(2), stride=3, output_padding=2),
            call(real(1, 4, 5), real(4, 2, 3), stride=2, padding=1, groups=2, dilation=2),
        ],
        refused=[
            bad(ShapeError, "(in, out / groups", real(1, 3, 4), real(2, 3, 3)),
            bad(ShapeError, "output_padding 2", real(1, 3, 4), real(3, 2, 3), output_padding=2),
        ],
    ),
    Row(
        "nn.functional.conv_transpose2d",
        spread(2),
        [
            call(real(2, 2, 3, 4), real(2, 3, 3, 2), real(3)),
            call(
                real(1, 4, 3, 2), real(4, 1, 3, 3), stride=2, padding=1, output_padding=1, groups=2
            ),
            call(real(1, 2, 3, 3), real(2, 2, 2, 2), dilation=(2, 1), stride=(1, 3)),
        ],
        refused=[bad(ShapeError, "4 axes", real(1, 3, 4, 4), real(3, 2, 3))],
    ),
    Row(
        "nn.functional.conv_transpose3d",
        spread(3),
        [
            call(real(1, 2, 2, 3, 2), real(2, 1, 2, 2, 2), real(1)),
            call(real(2, 2, 2, 2), real(2, 2, 1, 2, 3), stride=(1, 2, 2), padding=(0, 1, 1)),
        ],
        refused=[bad(ShapeError, "conv_transpose3d", real(2, 2, 2), real(2, 1, 2, 2, 2))],
    ),
]
