"""Rows of the activations of nn.functional."""

import math

import numpy as np
from scipy import special

from lucid.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tests.cases.case import complex_, integer, real
from tests.table.row import Row, bad, call

F = "nn.functional."
X = real(3, 4, low=-4, high=4, avoid=0.05)
SHAPES = [call(X), call(real(avoid=0.05)), call(real(0)), call(real(2, 3, 2, avoid=0.05))]
NO_NUMBERS = bad(DTypeError, "not numeric", "text")
ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805


def refuses_complex(name):
    return bad(DTypeError, name, complex_(3))


def leaky_relu(x, negative_slope=0.01, inplace=False):
    return np.maximum(x, 0) + negative_slope * np.minimum(x, 0)


def elu(x, alpha=1.0, inplace=False):
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0))


def selu(x, inplace=False):
    return SCALE * elu(x, ALPHA)


def celu(x, alpha=1.0, inplace=False):
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0) / alpha)


def hardtanh(x, min_val=-1.0, max_val=1.0, inplace=False):
    return np.clip(x, min_val, max_val)


def threshold(x, threshold, value, inplace=False):
    return np.where(x > threshold, x, np.asarray(value, x.dtype))


def rrelu(x, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    return leaky_relu(x, (lower + upper) / 2)


def gelu(x, approximate="none"):
    if approximate == "none":
        return x * special.ndtr(x)
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def glu(x, dim=-1):
    first, second = np.split(x, 2, dim)
    return first * special.expit(second)


def softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, 700))) / beta)


def prelu(x, weight):
    if weight.size > 1:
        weight = weight.reshape(-1, *[1] * (x.ndim - 2))
    elif x.ndim == 0:
        weight = weight.reshape(())
    return np.where(x > 0, x, weight * x)


WITH_IN_PLACE = [
    Row(
        F + "relu",
        lambda x, inplace=False: np.maximum(x, 0),
        [*SHAPES, call(integer(3)), call(X, False)],
        [refuses_complex("relu"), bad(ArgumentError, "cannot be written", [1.0], inplace=True)],
    ),
    Row(
        F + "leaky_relu",
        leaky_relu,
        [*SHAPES, call(X, 0.2), call(X, negative_slope=-0.5)],
        [refuses_complex("leaky_relu"), bad(ArgumentError, "negative_slope", X, "a")],
    ),
    Row(
        F + "elu",
        elu,
        [*SHAPES, call(X, 0.5), call(X, alpha=2.0)],
        [refuses_complex("elu"), bad(ArgumentError, "alpha=None", X, None)],
    ),
    Row(F + "selu", selu, SHAPES, [refuses_complex("selu")]),
    Row(
        F + "celu",
        celu,
        [*SHAPES, call(X, 0.5), call(X, alpha=2.0)],
        [refuses_complex("celu"), bad(ArgumentError, "alpha must not be 0", X, 0)],
    ),
    Row(
        F + "hardtanh",
        hardtanh,
        [*SHAPES, call(X, -2.0, 0.5), call(X, min_val=0.0, max_val=3.0), call(integer(4), -2, 2)],
        [refuses_complex("hardtanh"), bad(ArgumentError, "greater", X, 2.0, 1.0)],
    ),
    Row(
        F + "threshold",
        threshold,
        [call(X, 0.0, 0.5), call(X, 1.0, -3.0), call(real(), 0.3, 2.0), call(integer(4), 1, 9)],
        [
            bad(ArgumentError, "threshold='a'", X, "a", 1.0),
            bad(DTypeError, "threshold", complex_(3), 0.0, 1.0),
        ],
    ),
    Row(
        F + "rrelu",
        rrelu,
        [*SHAPES, call(X, 0.1, 0.5), call(X, lower=0.2, upper=0.2)],
        [bad(ArgumentError, "greater than upper", X, 0.5, 0.1)],
    ),
]


def stored(row: Row) -> Row:
    """The row of the form that writes into its operand; tests/nn has its derivatives."""
    plain = [c for c in row.calls if c.args[-1] is not False]
    refused = [bad(ArgumentError, "cannot be written in place", 1.0, *plain[0].args[1:])]
    return Row(
        row.name + "_",
        row.expected,
        plain,
        refused,
        smooth=False,
        unjitted="the first run changes the arguments",
    )


PLAIN = [
    Row(
        F + "relu6",
        lambda x: np.clip(x, 0, 6),
        [*SHAPES, call(real(8, low=-3, high=12, avoid=0.05)), call(integer(3))],
        [refuses_complex("relu6")],
    ),
    Row(
        F + "prelu",
        prelu,
        [
            call(X, real(1)),
            call(X, real(4)),
            call(real(2, 3, 2, avoid=0.05), real(3)),
            call(real(4, avoid=0.05), real(1)),
            call(real(avoid=0.05), real(1)),
            call(real(0, 2), real(2)),
        ],
        [
            bad(ShapeError, ("prelu", "4 channels"), X, real(3)),
            bad(DTypeError, "cast one", X, real(4, dtype="float32")),
        ],
    ),
    Row(
        F + "gelu",
        gelu,
        [
            *SHAPES,
            call(X, approximate="tanh"),
            call(X, approximate="none"),
            call(real(5, low=-20, high=20)),
        ],
        [bad(ArgumentError, "approximate='erf'", X, "erf"), refuses_complex("gelu")],
        rtol={"float32": 5e-5},  # of erfc at -14, which is 1e-44
    ),
    Row(
        F + "glu",
        glu,
        [call(X), call(real(4)), call(real(4, 3, 2), 0), call(real(3, 2, 2), dim=1), call(real(0))],
        [
            bad(ShapeError, "even", real(3)),
            bad(ShapeError, "cannot be halved", real()),
            bad(AxisError, "axis 4", real(2), 4),
        ],
    ),
    Row(
        F + "silu",
        lambda x: x / (1 + np.exp(-x)),
        [*SHAPES, call(complex_(2, 3))],
        [NO_NUMBERS],
        differs="PyTorch's jvp at complex numbers has the conjugate of the derivative",
    ),
    Row(
        F + "mish",
        lambda x: x * np.tanh(np.logaddexp(x, 0)),
        [*SHAPES, call(real(5, low=-50, high=50))],
        [refuses_complex("mish")],
    ),
    Row(
        F + "hardswish",
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
        [*SHAPES, call(real(9, low=-6, high=6))],
        [refuses_complex("hardswish")],
    ),
    Row(
        F + "hardsigmoid",
        lambda x: np.clip(x + 3, 0, 6) / 6,
        [*SHAPES, call(real(9, low=-6, high=6))],
        [refuses_complex("hardsigmoid")],
    ),
    Row(
        F + "hardshrink",
        lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0),
        [*SHAPES, call(X, 1.5), call(X, lambd=0.0)],
        [refuses_complex("hardshrink")],
    ),
    Row(
        F + "softshrink",
        lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0),
        [*SHAPES, call(X, 1.5), call(X, lambd=0.0)],
        [bad(ArgumentError, "must not be negative", X, -1.0)],
    ),
    Row(F + "tanhshrink", lambda x: x - np.tanh(x), [*SHAPES, call(complex_(2, 3))], [NO_NUMBERS]),
    Row(
        F + "softplus",
        softplus,
        [
            *SHAPES,
            call(X, 2.0),
            call(X, beta=0.5, threshold=1.0),
            call(X, 1.0, -1.0),
            call(real(6, low=-90, high=90)),
        ],
        [bad(ArgumentError, "beta must not be 0", X, 0)],
    ),
    Row(
        F + "softsign",
        lambda x: x / (1 + np.abs(x)),
        [*SHAPES, call(complex_(2, 3))],
        [NO_NUMBERS],
    ),
    Row(
        F + "logsigmoid",
        special.log_expit,
        [*SHAPES, call(real(6, low=-90, high=90))],
        [refuses_complex("logsigmoid")],
    ),
    Row(
        F + "softmin",
        lambda x, dim, dtype=None: special.softmax(-x, dim),
        [call(X, 1), call(real(3), 0), call(real(2, 3, 2), dim=-2), call(real(2, 0), 0)],
        [bad(ArgumentError, "give dim", X), bad(AxisError, "axis 3", X, 3)],
    ),
    Row(
        F + "gumbel_softmax",
        lambda x, tau=1, hard=False, eps=1e-10, dim=-1: np.ones(x.shape) / x.shape[-1],
        [call(X), call(X, 0.5), call(real(2, 3, 2), tau=2.0, hard=True, dim=-1)],
        [bad(ArgumentError, "tau must not be 0", X, 0), bad(AxisError, "axis 5", X, dim=5)],
        result=lambda y: y.sum(-1),
        unmapped="it draws random numbers",
    ),
]

ROWS = [*WITH_IN_PLACE, *[stored(row) for row in WITH_IN_PLACE], *PLAIN]
