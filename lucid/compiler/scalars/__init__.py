"""The scalar functions of compiled kernels, as LLVM text that inlines and vectorises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from . import exponential, hyperbolic, logarithm, trigonometric
from .language import Value, assemble


@dataclass(frozen=True)
class Scalar:
    name: str
    body: Callable[..., Value]
    arity: int = 1


def _unary(*bodies):
    return {b.__name__: Scalar(b.__name__, b) for b in bodies}


TABLE: dict[str, Scalar] = {
    **_unary(exponential.exp, exponential.exp2, exponential.expm1, exponential.sigmoid),
    **_unary(logarithm.log, logarithm.log2, logarithm.log10, logarithm.log1p),
    **_unary(hyperbolic.tanh, hyperbolic.sinh, hyperbolic.cosh),
    **_unary(hyperbolic.asinh, hyperbolic.acosh, hyperbolic.atanh),
    **_unary(trigonometric.sin, trigonometric.cos, trigonometric.tan),
    **_unary(trigonometric.asin, trigonometric.acos, trigonometric.atan),
    "atan2": Scalar("atan2", trigonometric.atan2, 2),
}


def symbol(name: str, dtype: str) -> str:
    return f"lucid_{name}_{dtype}"


@cache
def bitcode(name: str, dtype: str) -> str:
    scalar = TABLE[name]
    return assemble(symbol(name, dtype), scalar.body, dtype, scalar.arity)
