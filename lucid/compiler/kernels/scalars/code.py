"""The functions for scalar code, besides arithmetic and comparisons (`lucid.extend.code`)."""

from __future__ import annotations

from .bessel import i0, i0e, i1, i1e
from .exponential import exp, exp2, expm1, sigmoid
from .hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from .language import clamp, copysign, fma, poly, select
from .logarithm import log, log1p, log2, log10, logaddexp
from .normal import entr, erfcx, log_ndtr, ndtr, xlog1py
from .power import cbrt, hypot, pow, rsqrt, sqrt
from .special import digamma, erf, erfc, erfinv, lgamma
from .trigonometric import acos, asin, atan, atan2, cos, sin, tan

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "clamp", "copysign", "cos",
    "cosh", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp", "exp2", "expm1", "fma",
    "hypot", "i0", "i0e", "i1", "i1e", "lgamma", "log", "log1p", "log2", "log10", "log_ndtr",
    "logaddexp", "ndtr", "poly", "pow", "rsqrt", "select", "sigmoid", "sin", "sinh", "sqrt", "tan",
    "tanh", "xlog1py",
]  # fmt: skip
