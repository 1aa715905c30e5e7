"""Rows of functions of two elements or more."""

import numpy as np
from scipy import special

from lucid.errors import ArgumentError, DTypeError, ShapeError
from tests.cases.case import boolean, complex_, integer, real
from tests.table.families import binary
from tests.table.row import Row, bad, call

AWAY = {"avoid": 0.3}
POSITIVE = {"low": 0.3, "high": 3.0}
COMPLEX = call(complex_(2, 1), complex_(3))
INTEGERS = call(integer(2, 3), integer(3))
MIXED = call(real(3), integer(3))
NO_ORDER = bad(DTypeError, "complex", complex_(2), complex_(2))


def scaled(function):
    return lambda x, other, alpha=1: function(x, other if alpha == 1 else alpha * other)


def divided(x, other, rounding_mode=None):
    rounds = {None: lambda y: y, "floor": np.floor, "trunc": np.trunc}[rounding_mode]
    return rounds(np.true_divide(x, other))


def where(condition, x=None, y=None):
    return np.where(condition, x, y)


def clamp(x, min=None, max=None):
    return np.clip(x, min, max)


def heaviside(x, values):
    return np.where(x == 0, values, (x > 0).astype(x.dtype))


def lerp(x, end, weight):
    return x + weight * (end - x)


def closeness(x, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    return np.isclose(x, other, rtol, atol, equal_nan)


def comparison(name, function):
    calls = [INTEGERS, MIXED, call(boolean(3), boolean(3)), call(integer(3), 0)]
    refused = [] if name in ("eq", "ne") else [NO_ORDER]
    return binary(name, function, *calls, smooth=False, refused=refused)


def logical(name, function):
    calls = [INTEGERS, MIXED, call(boolean(2, 3), boolean(3)), call(boolean(3), True)]
    return binary(name, function, *calls, smooth=False, numbers_in_torch=False)


def bits(name, function, **domain):
    calls = [call(integer(3, dtype="int8", **domain), integer(3, dtype="int8", **domain))]
    if "shift" not in name:
        calls.append(call(boolean(2, 1), boolean(3)))
    refused = [bad(DTypeError, "float", real(2), real(2))]
    return binary(
        name, function, *calls, make=integer, number=3, smooth=False, refused=refused, **domain
    )


SMALL = {"low": 0, "high": 5}
WHOLE = {"make": integer, "number": 6, "smooth": False}

ROWS = [
    binary(
        "add",
        scaled(np.add),
        call(real(3), real(2, 3), alpha=2.5),
        COMPLEX,
        INTEGERS,
        MIXED,
        call(boolean(3), boolean(3)),
    ),
    binary(
        "sub",
        scaled(np.subtract),
        call(real(3), real(2, 3), alpha=-2),
        COMPLEX,
        INTEGERS,
        MIXED,
        refused=[bad(DTypeError, "subtracting booleans", boolean(2), boolean(2))],
    ),
    binary(
        "rsub",
        lambda x, other, alpha=1: other - alpha * x,
        call(real(3), real(2, 3), alpha=2.5),
        COMPLEX,
        INTEGERS,
    ),
    binary("mul", np.multiply, COMPLEX, INTEGERS, MIXED, call(boolean(3), boolean(3))),
    binary(
        "div",
        divided,
        call(complex_(2, 2), complex_(2, avoid=0.5)),
        call(real(4, **AWAY), real(4, **AWAY), rounding_mode="floor"),
        call(real(4, **AWAY), real(4, **AWAY), rounding_mode="trunc"),
        call(integer(4), integer(4, low=1, high=4), rounding_mode="floor").but(
            expected=lambda x, y, rounding_mode: x // y
        ),
        call(integer(4), integer(4, low=1, high=4), rounding_mode="trunc").but(
            expected=lambda x, y, rounding_mode: np.trunc(x / y).astype(int)
        ),
        call(integer(4), 2),
        **AWAY,
    ),
    binary("floor_divide", np.floor_divide, call(integer(5), integer(low=1, high=4)), **AWAY),
    binary("remainder", np.remainder, call(integer(5), integer(low=1, high=4)), **AWAY),
    binary("fmod", np.fmod, call(integer(5), integer(low=1, high=4)), **AWAY),
    binary(
        "pow",
        np.power,
        call(real(3, **POSITIVE), 2),
        call(real(3), 3),
        call(complex_(3, **POSITIVE), complex_(3)),
        call(integer(3), 2),
        call(2.0, real(3)),
        refused=[bad(DTypeError, "power -1", integer(2), -1)],
        **POSITIVE,
    ),
    Row(
        "float_power",
        lambda x, y: np.float_power(x, y),
        [
            call(real(3, dtype="float64", **POSITIVE), real(2, 3, dtype="float64")),
            call(real(dtype="float64", **POSITIVE), 2),
            call(integer(3, low=1, high=4), integer(3)),
            call(complex_(2, dtype="complex128", **POSITIVE), 2.5),
            call(real(0, dtype="float64"), 2.0, label="empty"),
        ],
        [bad(ShapeError, "(3,) and (2,)", real(3), real(2))],
    ),
    binary("copysign", np.copysign, call(real(3, **AWAY), -1.0), **AWAY),
    binary("atan2", np.arctan2, numbers_in_torch=False, **AWAY),
    binary("hypot", np.hypot, numbers_in_torch=False, **AWAY),
    binary(
        "logaddexp",
        np.logaddexp,
        call(real(3, low=-900, high=900), real(3)),
        call(complex_(3, low=-1, high=1), complex_(2, 3, low=-1, high=1)).but(
            expected=lambda a, b: np.log(np.exp(a) + np.exp(b))
        ),
        numbers_in_torch=False,
    ),
    binary(
        "logaddexp2",
        np.logaddexp2,
        call(real(3, low=-900, high=900), real(3)),
        numbers_in_torch=False,
    ),
    binary(
        "xlogy", special.xlogy, call(integer(3, low=0, high=1), real(3, **POSITIVE)), **POSITIVE
    ),
    binary(
        "maximum",
        np.maximum,
        INTEGERS,
        call(boolean(3), boolean(3)),
        numbers_in_torch=False,
        refused=[NO_ORDER],
    ),
    binary(
        "minimum",
        np.minimum,
        INTEGERS,
        call(boolean(3), boolean(3)),
        numbers_in_torch=False,
        refused=[NO_ORDER],
    ),
    binary(
        "fmax",
        np.fmax,
        INTEGERS,
        refused=[NO_ORDER],
        numbers_in_torch=False,
    ),
    binary(
        "fmin",
        np.fmin,
        INTEGERS,
        refused=[NO_ORDER],
        numbers_in_torch=False,
    ),
    binary(
        "heaviside",
        heaviside,
        call(integer(4, low=-1, high=2), integer(4)),
        call(integer(4, low=0, high=1), integer(4)),
        number=0.5,
        refused=[NO_ORDER],
        numbers_in_torch=False,
        **AWAY,
    ),
    binary(
        "ldexp",
        lambda x, n: x * 2.0**n,
        call(real(3), integer(2, 3)),
        call(integer(3), integer(3)),
        number=3,
        torch=lambda t, x, n: t.ldexp(x, t.as_tensor(n)),
        differs="PyTorch's derivative has 2**n as an integer, which is 0 where n is negative",
    ),
    binary("nextafter", np.nextafter, number=None),
    binary(
        "gcd",
        np.gcd,
        refused=[bad(DTypeError, "gcd", real(2), real(2))],
        numbers_in_torch=False,
        **WHOLE,
    ),
    binary(
        "lcm",
        np.lcm,
        refused=[bad(DTypeError, "lcm", boolean(2), boolean(2))],
        numbers_in_torch=False,
        **WHOLE,
    ),
    comparison("eq", np.equal),
    comparison("ne", np.not_equal),
    comparison("lt", np.less),
    comparison("le", np.less_equal),
    comparison("gt", np.greater),
    comparison("ge", np.greater_equal),
    logical("logical_and", np.logical_and),
    logical("logical_or", np.logical_or),
    logical("logical_xor", np.logical_xor),
    bits("bitwise_and", np.bitwise_and),
    bits("bitwise_or", np.bitwise_or),
    bits("bitwise_xor", np.bitwise_xor),
    bits("bitwise_left_shift", np.left_shift, **SMALL),
    bits("bitwise_right_shift", np.right_shift, **SMALL),
    binary(
        "isclose",
        closeness,
        call(real(4), real(4), 0.5, 0.1),
        call(real(4), real(4), rtol=0.1, atol=1.0, equal_nan=True),
        call(integer(4), integer(4)),
        number=None,
        smooth=False,
    ),
    Row(
        "allclose",
        np.allclose,
        [
            call(real(2, 3), real(3)),
            call(real(3), real(3), rtol=9.0, atol=9.0),
            call(real(), real(), equal_nan=True),
            call(real(0), real(0), label="empty"),
        ],
        [bad(ShapeError, "(3,) and (2,)", real(3), real(2))],
        smooth=False,
        unmapped="it is a Python bool",
    ),
    Row(
        "equal",
        np.array_equal,
        [
            call(integer(2, low=1, high=2), integer(2, low=1, high=2)),
            call(integer(3), integer(3)),
            call(real(0), real(0), label="empty"),
        ],
        [bad(DTypeError, "not numeric", real(2), "text")],
        smooth=False,
        unmapped="it is a Python bool",
    ),
    Row(
        "where",
        where,
        [
            call(boolean(2, 3), real(2, 3), real(3)),
            call(boolean(3), real(2, 1), 2.0),
            call(boolean(3), 1.0, real(3)),
            call(boolean(2), complex_(2), complex_(2)),
            call(boolean(3), integer(3), integer()),
            call(boolean(), real(), real()),
            call(boolean(0), real(0), real(1), label="empty"),
        ],
        [
            bad(ShapeError, "where", boolean(3), real(2), real(2)),
            bad(ArgumentError, "both input and other", boolean(3), real(3)),
        ],
    ),
    Row(
        "clamp",
        clamp,
        [
            call(real(2, 3), -1.05, 1.05),
            call(real(2, 3), min=0.07),
            call(real(2, 3), max=0.07),
            call(real(), -1.0, 1.0),
            call(real(2, 3), real(3, low=-1, high=0), real(2, 1, low=0, high=1)),
            call(integer(5), -2, 2),
            call(real(0, 2), 0.0, 1.0, label="empty"),
        ],
        [
            bad(ArgumentError, "min, max or both", real(3)),
            bad(DTypeError, "complex", complex_(2), 0.0, 1.0),
            bad(ShapeError, "(3,)", real(3), real(2), 1.0),
        ],
    ),
    Row(
        "clamp_min",
        np.maximum,
        [
            call(real(2, 3), 0.07),
            call(real(2, 3), real(3)),
            call(real(), 0.0),
            call(integer(4), 1),
            call(real(0), 1.0, label="empty"),
        ],
        [bad(DTypeError, "complex", complex_(2), 0.0), bad(ShapeError, "(3,)", real(3), real(2))],
    ),
    Row(
        "clamp_max",
        np.minimum,
        [
            call(real(2, 3), 0.07),
            call(real(2, 3), real(3)),
            call(real(), 0.0),
            call(integer(4), 1),
            call(real(0), 1.0, label="empty"),
        ],
        [bad(DTypeError, "complex", complex_(2), 0.0), bad(ShapeError, "(3,)", real(3), real(2))],
    ),
    Row(
        "addcmul",
        lambda x, a, b, value=1: x + value * a * b,
        [
            call(real(2, 3), real(3), real(2, 1)),
            call(real(3), real(3), real(3), value=0.5),
            call(real(), real(), real()),
            call(complex_(2), complex_(2), complex_(2)),
            call(integer(3), integer(3), integer(3), value=2),
            call(real(0, 1), real(3), real(), label="empty"),
        ],
        [
            bad(ShapeError, "(3,) and (2,)", real(3), real(3), real(2)),
            bad(DTypeError, "not numeric", real(3), real(3), "text"),
        ],
    ),
    Row(
        "addcdiv",
        lambda x, a, b, value=1: x + value * a / b,
        [
            call(real(2, 3), real(3), real(2, 1, **AWAY)),
            call(real(3), real(3), real(3, **AWAY), value=0.5),
            call(real(), real(), real(**AWAY)),
            call(complex_(2), complex_(2), complex_(2, **AWAY)),
            call(real(0, 1), real(3), real(), label="empty"),
        ],
        [bad(ShapeError, "(3,) and (2,)", real(3), real(3), real(2))],
    ),
    Row(
        "lerp",
        lerp,
        [
            call(real(2, 3), real(3), 0.3),
            call(real(2, 3), real(3), 0.7),
            call(real(2, 3), real(3), real(2, 1, low=0, high=1)),
            call(real(), real(), real()),
            call(complex_(3), complex_(3), complex_(3)),
            call(real(0), real(0), 0.5, label="empty"),
        ],
        [
            bad(DTypeError, ("lerp", "int64"), integer(3), integer(3), 0.5),
            bad(ShapeError, "(2,) and (3,)", real(3), real(2), 0.5),
        ],
    ),
    Row(
        "complex",
        lambda a, b: a + 1j * b,
        [
            call(real(2, 3), real(3)),
            call(real(), real()),
            call(real(3), 1.0),
            call(real(0), real(0), label="empty"),
        ],
        [
            bad(DTypeError, "both parts", complex_(2), real(2)),
            bad(ShapeError, "(3,) and (2,)", real(3), real(2)),
        ],
        torch=lambda t, a, b: t.complex(*t.broadcast_tensors(a, t.as_tensor(b).to(a))),
    ),
    Row(
        "polar",
        lambda r, angle: r * np.exp(1j * angle),
        [
            call(real(2, 3, **POSITIVE), real(3)),
            call(real(**POSITIVE), real()),
            call(real(0), real(0), label="empty"),
        ],
        [bad(ShapeError, "(3,) and (2,)", real(3), real(2))],
        torch=lambda t, r, angle: t.polar(*t.broadcast_tensors(r, angle)),
    ),
]
