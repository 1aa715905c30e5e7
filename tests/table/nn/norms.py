"""Rows of the norms and the dropout family of nn.functional."""

import numpy as np

from lucid.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tests.cases.case import complex_, integer, real
from tests.table.row import Row, bad, call

F = "nn.functional."
X, IMAGE = real(4, 3), real(2, 4, 3, 2)
POSITIVE = real(3, low=0.5, high=2)


def over(x, axes, eps):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)


def affine(y, weight, bias, shape):
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    ones = (-1, *[1] * (x.ndim - 2))
    if training:
        y = over(x, (0, *range(2, x.ndim)), eps)
    else:
        y = (x - running_mean.reshape(ones)) / np.sqrt(running_var.reshape(ones) + eps)
    return affine(y, weight, bias, ones)


def instance_norm(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    ones = (-1, *[1] * (x.ndim - 2))
    if use_input_stats:
        y = over(x, tuple(range(2, x.ndim)), eps)
    else:
        y = (x - running_mean.reshape(ones)) / np.sqrt(running_var.reshape(ones) + eps)
    return affine(y, weight, bias, ones)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    y = over(x, axes, eps)
    return affine(y, weight, bias, normalized_shape)


def rms_norm(x, normalized_shape, weight=None, eps=None):
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    eps = np.finfo(x.dtype).eps if eps is None else eps
    y = x / np.sqrt((x**2).mean(axes, keepdims=True) + eps)
    return y if weight is None else y * weight


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    y = over(x.reshape(x.shape[0], num_groups, -1), 2, eps).reshape(x.shape)
    return affine(y, weight, bias, (-1, *[1] * (x.ndim - 2)))


def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    y = np.empty_like(x)
    channels = x.shape[1]
    for c in range(channels):
        near = x[:, max(c - size // 2, 0) : min(c + (size - 1) // 2 + 1, channels)]
        y[:, c] = x[:, c] / (k + alpha * (near**2).sum(1) / size) ** beta
    return y


def normalize(x, p=2.0, dim=1, eps=1e-12):
    length = np.linalg.norm(x, p, dim, keepdims=True)
    return x / np.maximum(length, eps)


def unchanged(x, p=0.5, training=True, inplace=False):
    return x if p == 0 or not training else np.zeros_like(x)


def dropping(name, shape, **options):
    """The calls of a dropout that leave nothing to chance."""
    x = real(*shape)
    quiet = [call(x, 0.0, True), call(x, 0.3, training=False), call(x, p=0.0, training=True)]
    refused = [
        bad(ArgumentError, ("p=1.5", "between 0 and 1"), x, 1.5),
        bad(ArgumentError, "p='a'", x, "a"),
    ]
    return Row(F + name, unchanged, quiet, [*refused, *options.get("refused", [])])


NORMS = [
    Row(
        F + "batch_norm",
        batch_norm,
        [
            call(X, None, None, training=True),
            call(X, real(3), POSITIVE),
            call(X, real(3), POSITIVE, real(3), real(3), False, 0.1, 1e-3),
            call(IMAGE, None, None, real(4), real(4), True),
            call(IMAGE, None, None, weight=real(4), training=True, momentum=0.5, eps=0.1),
            call(real(2, 3, 4), None, None, bias=real(3), training=True),
            call(real(0, 3), real(3), POSITIVE),
        ],
        [
            bad(ArgumentError, "needed in evaluation", X, None, None),
            bad(ShapeError, "one value per channel", real(1, 3), None, None, training=True),
            bad(ShapeError, "weight of shape (2,)", X, None, None, real(2), training=True),
            bad(ShapeError, "(batch, channels, ...)", real(3), None, None, training=True),
            bad(DTypeError, "floating", X, integer(3), POSITIVE),
        ],
    ),
    Row(
        F + "instance_norm",
        instance_norm,
        [
            call(IMAGE),
            call(real(2, 3, 5), weight=real(3), bias=real(3), eps=0.01),
            call(IMAGE, real(4), real(4, low=0.5), use_input_stats=False),
        ],
        [
            bad(ArgumentError, "use_input_stats is false", IMAGE, use_input_stats=False),
            bad(ShapeError, "one value", real(2, 3, 1)),
        ],
    ),
    Row(
        F + "layer_norm",
        layer_norm,
        [
            call(X, (3,)),
            call(X, (3,), real(3), real(3)),
            call(IMAGE, (3, 2), real(3, 2), bias=real(3, 2), eps=0.01),
            call(IMAGE, (2,), weight=real(2)),
            call(real(5), (5,), eps=0.1),
            call(real(0, 3), (3,)),
        ],
        [
            bad(ShapeError, "agree in the last axes", X, (4,)),
            bad(ShapeError, "weight of shape (4,)", X, (3,), real(4)),
            bad(ShapeError, "not a shape", X, ("a",)),
        ],
    ),
    Row(
        F + "rms_norm",
        rms_norm,
        [
            call(X, (3,)),
            call(X, (3,), real(3), 1e-3),
            call(IMAGE, (3, 2), weight=real(3, 2), eps=0.1),
            call(real(0, 3), (3,)),
            call(complex_(2, 3), (3,), complex_(3)),
        ],
        [bad(ShapeError, "agree in the last axes", X, (2, 3))],
    ),
    Row(
        F + "group_norm",
        group_norm,
        [
            call(IMAGE, 2),
            call(IMAGE, 4, real(4), real(4)),
            call(real(3, 6), 3, weight=real(6), bias=real(6), eps=0.01),
            call(real(2, 4, 3), num_groups=1),
        ],
        [
            bad(ShapeError, "not divisible into 3 groups", IMAGE, 3),
            bad(ArgumentError, "at least 1", IMAGE, 0),
            bad(ArgumentError, "not an integer", IMAGE, 1.5),
        ],
    ),
    Row(
        F + "local_response_norm",
        local_response_norm,
        [
            call(real(2, 5, 3), 3),
            call(real(2, 5, 3, 2), 4, 0.5, 0.6, 2.0),
            call(real(1, 3, 2), size=1, alpha=0.3, beta=1.0, k=1.0),
            call(real(1, 2, 2), 7, alpha=0.3),
        ],
        [
            bad(ShapeError, "at least 3 axes", X, 3),
            bad(ArgumentError, "at least 1", real(2, 5, 3), 0),
        ],
    ),
    Row(
        F + "normalize",
        normalize,
        [
            call(X),
            call(real(3, 4, avoid=0.1), 1.0, 0),
            call(real(3, 4), p=3.0, dim=-1),
            call(X, eps=10.0),
            call(real(5), dim=0),
            call(X, axis=0).but(expected=lambda x, axis: normalize(x, dim=axis)),
        ],
        [bad(AxisError, "axis 2", X, 2.0, 2), bad(ArgumentError, "eps", X, eps="a")],
    ),
]

DROPOUT = [
    dropping("dropout", (3, 4)),
    dropping("alpha_dropout", (3, 4)),
    dropping(
        "feature_alpha_dropout", (2, 3, 4), refused=[bad(ShapeError, "channels", real(3), 0.2)]
    ),
    dropping("dropout1d", (2, 3, 4), refused=[bad(ShapeError, "2 or 3 axes", real(3), 0.2)]),
    dropping("dropout2d", (2, 3, 2, 2), refused=[bad(ShapeError, "3 or 4 axes", real(3), 0.2)]),
    dropping("dropout3d", (2, 3, 2, 2, 2), refused=[bad(ShapeError, "4 or 5 axes", X, 0.2)]),
]

ROWS = [*NORMS, *DROPOUT]
