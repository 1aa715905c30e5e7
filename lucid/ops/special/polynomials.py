"""Chebyshev, Hermite, Laguerre and Legendre polynomials, with degrees in a tensor.

Each belongs to a family that is closed under derivatives (those of the Gegenbauer polynomials with
parameter a have parameter a + 1), so derivatives of any order exist; a degree below 0 gives 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError
from lucid.ir.types import Type
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast, get_default_dtype, result_type, to_floating
from lucid.ops.core.runtime_check import refuse_elements
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.logic import logical_not
from lucid.ops.special.from_scipy import FromScipy
from lucid.tape.bind import bind
from lucid.tape.node import wrap

FAMILIES = {
    "chebyshev": "eval_chebyt",
    "gegenbauer": "eval_gegenbauer",
    "hermite": "eval_hermite",
    "hermite_e": "eval_hermitenorm",
    "laguerre": "eval_genlaguerre",
}
WITH_PARAMETER = ("gegenbauer", "laguerre")
MAX_DEGREE = 1_000_000  # takes some milliseconds per element


class OrthogonalPolynomial(FromScipy):
    """The polynomial of a family of degree n >= 0 at float64 x; `twice` is twice its parameter."""

    family: str
    twice: int = 0
    saves = "x"

    @property
    def function(self) -> str:  # type: ignore[override]
        return FAMILIES[self.family]

    def infer(self, x: Type, n: Type) -> Type:  # type: ignore[override]
        if x.dtype != np.float64 or n.dtype != np.int64:
            facts = f"operands of dtypes {x.dtype} and {n.dtype}; it takes float64 and int64"
            raise DTypeError(f"{self.name}: {facts}")
        return Type(x.dtype, self.broadcast(x, n))

    def arguments(self, *xs: Any) -> tuple[Any, ...]:
        x, n = xs
        return (n, self.twice / 2, x) if self.family in WITH_PARAMETER else (n, x)

    def partials(self, y: Any, x: Any, n: Any) -> tuple[Any, ...]:
        if isinstance(x, float):
            return None, None
        n = wrap(np.array(n)) if isinstance(n, int) else n
        match self.family:
            case "chebyshev":
                return cast(n, "float64") * polynomial("gegenbauer", 2, x, n - 1), None
            case "gegenbauer":
                return polynomial("gegenbauer", self.twice + 2, x, n - 1) * self.twice, None
            case "laguerre":
                return -polynomial("laguerre", self.twice + 2, x, n - 1), None
        factor = 2.0 if self.family == "hermite" else 1.0
        return cast(n, "float64") * factor * polynomial(self.family, 0, x, n - 1), None


def polynomial(family: str, twice: int, x: Any, n: Any) -> Any:
    """Return the polynomial at float64 x, 0 where the degree is negative."""
    y = bind(OrthogonalPolynomial(family, twice), x, clamp(n, 0))
    return where(n < 0, 0.0, y)


def prepare(name: str, x: Any, n: Any) -> tuple[Any, Any, np.dtype]:
    """Return x in float64, the degree as int64, and the dtype of the result."""
    why = f"{name}: a degree exceeds {MAX_DEGREE}, the largest supported one"
    if isinstance(n, (int, float)) and not n <= MAX_DEGREE:
        raise ArgumentError(f"{why} (got {n})")
    dtype = result_type(x, n)
    if dtype.kind == "c":
        raise dtype_error(name, dtype, "it takes real dtypes")
    dtype = dtype if dtype.kind == "f" else get_default_dtype()
    kind = result_type(n)
    n = as_tensor(n, kind if kind == np.uint64 else "float64" if kind.kind == "f" else "int64")
    n = cast(refuse_elements(n, logical_not(n <= MAX_DEGREE), why), "int64")
    return as_tensor(x, "float64"), clamp(n, -1, MAX_DEGREE), dtype


def evaluate(name: str, family: str, twice: int, x: Any, n: Any) -> Any:
    """Return the polynomial of a family at x in the promoted dtype."""
    x, n, dtype = prepare(name, x, n)
    return cast(polynomial(family, twice, x, n), dtype)


def chebyshev_sum(name: str, x: Any, n: Any, sign: float) -> Any:
    """Return U(n) + sign * U(n - 1)."""
    x, n, dtype = prepare(name, x, n)
    u, before = polynomial("gegenbauer", 2, x, n), polynomial("gegenbauer", 2, x, n - 1)
    return cast(u + sign * before, dtype)


def shift(x: Any) -> Any:
    """Map [0, 1] to [-1, 1]."""
    return (x if isinstance(x, (int, float)) else to_floating(x)) * 2.0 - 1.0


@public_function("special")
def chebyshev_polynomial_t(x: Any, n: Any) -> Any:
    """The Chebyshev polynomial of the first kind of degree `n`, elementwise: cos(n t) at cos(t).

    >>> import lucid
    >>> lucid.special.chebyshev_polynomial_t(lucid.tensor([0.0, 0.5]), 2)
    Tensor([-1. , -0.5])
    """
    return evaluate("chebyshev_polynomial_t", "chebyshev", 0, x, n)


@public_function("special")
def chebyshev_polynomial_u(x: Any, n: Any) -> Any:
    """The Chebyshev polynomial of the second kind: sin((n + 1) t) / sin(t) at cos(t)."""
    return evaluate("chebyshev_polynomial_u", "gegenbauer", 2, x, n)


@public_function("special")
def chebyshev_polynomial_v(x: Any, n: Any) -> Any:
    """The Chebyshev polynomial of the third kind: cos((n + 1/2) t) / cos(t / 2) at cos(t)."""
    return chebyshev_sum("chebyshev_polynomial_v", x, n, -1.0)


@public_function("special")
def chebyshev_polynomial_w(x: Any, n: Any) -> Any:
    """The Chebyshev polynomial of the fourth kind: sin((n + 1/2) t) / sin(t / 2) at cos(t)."""
    return chebyshev_sum("chebyshev_polynomial_w", x, n, 1.0)


@public_function("special")
def shifted_chebyshev_polynomial_t(x: Any, n: Any) -> Any:
    """The Chebyshev polynomial of the first kind at 2 x - 1, elementwise."""
    return evaluate("shifted_chebyshev_polynomial_t", "chebyshev", 0, shift(x), n)


@public_function("special")
def shifted_chebyshev_polynomial_u(x: Any, n: Any) -> Any:
    """The Chebyshev polynomial of the second kind at 2 x - 1, elementwise."""
    return evaluate("shifted_chebyshev_polynomial_u", "gegenbauer", 2, shift(x), n)


@public_function("special")
def shifted_chebyshev_polynomial_v(x: Any, n: Any) -> Any:
    """The Chebyshev polynomial of the third kind at 2 x - 1, elementwise."""
    return chebyshev_sum("shifted_chebyshev_polynomial_v", shift(x), n, -1.0)


@public_function("special")
def shifted_chebyshev_polynomial_w(x: Any, n: Any) -> Any:
    """The Chebyshev polynomial of the fourth kind at 2 x - 1, elementwise."""
    return chebyshev_sum("shifted_chebyshev_polynomial_w", shift(x), n, 1.0)


@public_function("special")
def hermite_polynomial_h(x: Any, n: Any) -> Any:
    """The physicists' Hermite polynomial of degree `n`, elementwise: 2 x for n = 1."""
    return evaluate("hermite_polynomial_h", "hermite", 0, x, n)


@public_function("special")
def hermite_polynomial_he(x: Any, n: Any) -> Any:
    """The probabilists' Hermite polynomial of degree `n`, elementwise: x for n = 1."""
    return evaluate("hermite_polynomial_he", "hermite_e", 0, x, n)


@public_function("special")
def laguerre_polynomial_l(x: Any, n: Any) -> Any:
    """The Laguerre polynomial of degree `n`, elementwise: 1 - x for n = 1."""
    return evaluate("laguerre_polynomial_l", "laguerre", 0, x, n)


@public_function("special")
def legendre_polynomial_p(x: Any, n: Any) -> Any:
    """The Legendre polynomial of degree `n`, elementwise: x for n = 1."""
    return evaluate("legendre_polynomial_p", "gegenbauer", 1, x, n)
