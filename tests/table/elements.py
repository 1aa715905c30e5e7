"""Rows of functions of one element."""

import math

import numpy as np
from scipy import special

from lucid.errors import DTypeError
from tests.cases.case import boolean, complex_, integer, real
from tests.table.families import unary
from tests.table.row import Row, bad, call


def kept_if_whole(function):
    """Rounding leaves integers as they are."""
    return lambda x: x if x.dtype.kind == "i" else function(x)


def sgn(x):
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)


def frexp(x):
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent.astype("int32")


def logit(x, eps=None):
    x = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


def is_the_signed_infinity(sign):
    return lambda x: x == sign * math.inf


HALF = {"low": -0.9, "high": 0.9}
POSITIVE = {"low": 0.1, "high": 3.0}
AWAY = {"avoid": 0.2}

ROWS = [
    unary("abs", np.abs, takes="fci", **AWAY),
    unary("neg", np.negative, takes="fci", refused=[bad(DTypeError, "neg", boolean(2))]),
    unary("positive", np.positive, takes="fci"),
    unary("sgn", sgn, takes="fci", **AWAY),
    unary("sign", np.sign, takes="fi", **AWAY),
    unary("floor", kept_if_whole(np.floor), takes="fi"),
    unary("ceil", kept_if_whole(np.ceil), takes="fi"),
    unary("trunc", kept_if_whole(np.trunc), takes="fi"),
    unary("frac", lambda x: x - np.trunc(x)),
    unary(
        "round",
        lambda x, decimals=0: np.round(x, decimals),
        call(real(2, 3), decimals=1),
        call(real(4, low=-99, high=99), decimals=-1),
        takes="fi",
        refused=[bad(DTypeError, "decimals 1.5", real(2), decimals=1.5)],
    ),
    unary("exp", np.exp, takes="fc0"),
    unary("exp2", np.exp2, takes="fci"),
    unary("expm1", np.expm1, takes="fc0"),
    unary("log", np.log, takes="fc1", **POSITIVE),
    unary("log2", np.log2, takes="fc1", **POSITIVE),
    unary("log10", np.log10, takes="fc1", **POSITIVE),
    unary("log1p", np.log1p, takes="fc0", **POSITIVE),
    unary("sqrt", np.sqrt, takes="fc1", **POSITIVE),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), takes="fc1", **POSITIVE),
    unary("cbrt", np.cbrt, takes="f1", torch=None, **AWAY),
    unary("sigmoid", lambda x: 1 / (1 + np.exp(-x)), takes="fc0"),
    unary(
        "logit",
        logit,
        call(real(5, low=-0.5, high=1.5), 0.2),
        call(real(3, low=0.1, high=0.9), eps=1e-6),
        low=0.1,
        high=0.9,
    ),
    unary("sin", np.sin, takes="fc0"),
    unary("cos", np.cos, takes="fc0"),
    unary("tan", np.tan, takes="fc0", low=-1.2, high=1.2),
    unary("asin", np.arcsin, takes="fc0", **HALF),
    unary("acos", np.arccos, takes="fc1", **HALF),
    unary("atan", np.arctan, takes="fc0", **HALF),
    unary("sinh", np.sinh, takes="fc0"),
    unary("cosh", np.cosh, takes="fc0"),
    unary("tanh", np.tanh, takes="fc0", **HALF),
    unary("asinh", np.arcsinh, takes="fc0", **HALF),
    unary("acosh", np.arccosh, takes="fc1", low=1.1, high=3.0),
    unary("atanh", np.arctanh, takes="fc0", **HALF),
    unary("deg2rad", np.deg2rad, takes="f0", low=-180.0, high=180.0),
    unary("rad2deg", np.rad2deg, takes="f0"),
    unary(
        "sinc",
        np.sinc,
        call(real(3, low=-0.01, high=0.01)),
        call(real(3, low=-9.0, high=9.0)),
        takes="fc0",
    ),
    unary("erf", special.erf, takes="fc0"),
    unary("erfc", special.erfc, takes="fc0"),
    unary("erfinv", special.erfinv, takes="f0", **HALF),
    unary("lgamma", special.gammaln, takes="f1", **POSITIVE),
    unary("digamma", special.psi, low=0.3, high=3.0),
    Row(
        "polygamma",
        special.polygamma,
        [
            call(1, real(2, 3, low=0.4, high=3.0)),
            call(2, real(low=0.4, high=3.0)),
            call(0, real(2, low=0.4, high=3.0)),
            call(3, real(0), label="empty"),
        ],
        [bad(DTypeError, "order -1", -1, real(2)), bad(DTypeError, "order 1.5", 1.5, real(2))],
    ),
    unary("square", np.square, takes="fci"),
    unary("reciprocal", np.reciprocal, takes="fc", **AWAY),
    unary("relu", lambda x: np.maximum(x, 0), takes="fi", **AWAY),
    unary("isnan", np.isnan, takes="fci", smooth=False),
    unary("isinf", np.isinf, takes="fci", smooth=False),
    unary("isfinite", np.isfinite, takes="fci", smooth=False),
    unary("isposinf", is_the_signed_infinity(1), takes="fi", smooth=False),
    unary("isneginf", is_the_signed_infinity(-1), takes="fi", smooth=False),
    unary("isreal", np.isreal, takes="fci", smooth=False),
    unary("signbit", lambda x: x < 0, takes="fi", smooth=False),
    unary("logical_not", np.logical_not, call(boolean(3)), takes="fci", smooth=False),
    Row(
        "bitwise_not",
        np.bitwise_not,
        [call(integer(2, 3)), call(boolean(4)), call(integer()), call(integer(0, dtype="int8"))],
        [bad(DTypeError, "bitwise_not", real(2)), bad(DTypeError, "not numeric", "text")],
        smooth=False,
    ),
    Row(
        "frexp",
        frexp,
        [
            call(real(2, 3, **AWAY)),
            call(real(**AWAY)),
            call(real(4, low=-1e3, high=1e3)),
            call(real(0, 2), label="empty"),
        ],
        [bad(DTypeError, ("frexp", "int64"), integer(2)), bad(DTypeError, "frexp", complex_(2))],
    ),
    Row(
        "nan_to_num",
        np.nan_to_num,
        [
            call(real(2, 3)),
            call(real()),
            call(complex_(3)),
            call(integer(3)),
            call(real(3), nan=1.0, posinf=2.0, neginf=3.0),
            call(real(0), label="empty"),
        ],
        [bad(DTypeError, "not numeric", "text")],
        torch=lambda t, x, **words: t.nan_to_num(x.clone(), **words),
    ),
    unary("real", np.real, takes="fci", torch=lambda t, x: t.real(x)),
    Row(
        "imag",
        np.imag,
        [call(complex_(2, 3)), call(complex_()), call(complex_(0)), call(real(2)), call(integer())],
        [bad(DTypeError, "not numeric", "text")],
        torch=lambda t, x: t.imag(x) if x.is_complex() else t.zeros_like(x),
    ),
    unary("conj", np.conj, takes="fci"),
    Row(
        "angle",
        np.angle,
        [call(complex_(2, 3)), call(complex_()), call(real(2, 3, **AWAY)), call(complex_(0))],
        [bad(DTypeError, "not numeric", "text")],
    ),
    unary("clone", np.copy, takes="fci"),
    unary("detach", np.asarray, takes="fci", smooth=False),
    unary("resolve_conj", np.asarray, takes="fci"),
    unary("resolve_neg", np.asarray, takes="fci"),
]
