"""Error functions, the logarithm of the gamma function, and their derivatives.

SciPy computes them; it is imported when the first one is evaluated.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError
from lucid.ops.core.apply import floating
from lucid.ops.core.arguments import public_function
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import SLOW, Elementwise
from lucid.ops.core.promote import as_tensor, get_default_dtype, result_type, to_floating
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import exp
from lucid.ops.special.from_scipy import ufunc
from lucid.ops.special.tails import accurate
from lucid.public.declare import public
from lucid.tape.node import wrap

TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)


def from_scipy(name: str) -> Callable[..., Any]:
    """Return the function `name` of scipy.special, with results in the dtype of its operand."""

    def function(x: np.ndarray) -> Any:
        y = ufunc(name)(x)
        return y if y.dtype == x.dtype else y.astype(x.dtype)

    return quiet(function)


class Erf(Elementwise):
    numpy = from_scipy("erf")
    native_from = SLOW
    scalar, saves = "erf", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (TWO_OVER_SQRT_PI * exp(-x * x),)


def erfc_array(x: np.ndarray) -> Any:
    """erfc of an array in its own dtype; SciPy's is not accurate in float64."""
    return accurate("erfc")(x) if x.dtype == np.float64 else from_scipy("erfc")(x)


class Erfc(Elementwise):
    """1 - erf(x), accurate where it is tiny."""

    numpy = staticmethod(erfc_array)
    native_from = SLOW
    scalar, saves = "erfc", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-TWO_OVER_SQRT_PI * exp(-x * x),)


class Erfinv(Elementwise):
    """The inverse of erf: -inf and inf at -1 and 1, where the derivative is inf too."""

    numpy = from_scipy("erfinv")
    native_from = SLOW
    scalar, accepts, saves = "erfinv", "f", "y"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (exp(y * y) / TWO_OVER_SQRT_PI,)


def log_gamma(x: np.ndarray) -> Any:
    """SciPy's gammaln, but inf at -inf, as in C and in compiled programs."""
    y = np.asarray(from_scipy("gammaln")(x))
    np.copyto(y, np.inf, where=x == -np.inf)
    return y


class Lgamma(Elementwise):
    """log |gamma(x)|."""

    numpy = log_gamma
    scalar, accepts, saves = "lgamma", "f", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (digamma(x),)


class Digamma(Elementwise):
    """The derivative of lgamma."""

    numpy = from_scipy("psi")
    native_from = SLOW
    scalar, accepts, saves = "digamma", "f", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (polygamma(1, x),)


LOWEST = -float(1 << 20)  # argument of zeta, which sums that many terms there, in about 40 ms


class Polygamma(Elementwise):
    """The n-th derivative of digamma, n >= 1: (-1)**(n + 1) n! zeta(n + 1, x)."""

    n: int
    accepts, saves = "f", "x"
    decomposition = "lucid.compiler.passes.expand.decompose:polygamma"

    def eval(self, x: np.ndarray) -> Any:
        return _polygamma(self.n, x)

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (polygamma(self.n + 1, x),)


@quiet
def _polygamma(n: int, x: np.ndarray) -> Any:
    from scipy.special import zeta

    wide = np.asarray(x, "float64")
    wide = np.where(wide < LOWEST, math.nan, wide)
    return (polygamma_factor(n) * zeta(n + 1.0, wide)).astype(x.dtype)


def nan_below_lowest(x: Any, q: Any) -> Any:
    """Return the second argument of zeta, with nan (and its derivative) where it is too low."""
    if isinstance(q, (int, float)):
        return q if q >= LOWEST else math.nan
    dtype = result_type(x, q)
    if dtype.kind == "c":
        return q
    q = as_tensor(q, dtype if dtype.kind == "f" else get_default_dtype())
    return where(q < LOWEST, q * math.nan, q)


def polygamma_factor(n: int) -> float:
    """Return the factor (-1)**(n + 1) n! in polygamma(n, x)."""
    size = math.gamma(n + 1) if n < 170 else math.inf
    return size if n % 2 else -size


ERF, ERFC, ERFINV, LGAMMA, DIGAMMA = Erf(), Erfc(), Erfinv(), Lgamma(), Digamma()


@public("lucid", "Tensor", "special", inplace_function=True)
def erf(input: Any) -> Any:
    """The error function, 2 / sqrt(pi) times the integral of e**(-t*t) from 0 to x, elementwise."""
    return floating(ERF, input)


@public("lucid", "Tensor", "special", inplace_function=True)
def erfc(input: Any) -> Any:
    """1 - erf(x), elementwise, accurate where it is tiny."""
    return floating(ERFC, input)


@public("lucid", "Tensor", "special", inplace=True)
def erfinv(input: Any) -> Any:
    """The inverse of erf, elementwise; nan outside [-1, 1]."""
    return floating(ERFINV, input)


@public("lucid", "special", name="gammaln")
@public("lucid", "Tensor", inplace=True)
def lgamma(input: Any) -> Any:
    """The logarithm of |gamma(x)|, elementwise.

    >>> import lucid
    >>> lucid.lgamma(lucid.tensor([1.0, 5.0]))
    Tensor([0.       , 3.1780539])
    """
    return floating(LGAMMA, input)


@public("lucid", "special", name="psi")
@public("lucid", "Tensor", "special", inplace=True)
def digamma(input: Any) -> Any:
    """The derivative of lgamma, elementwise."""
    return floating(DIGAMMA, input)


@public("lucid", "special")
def polygamma(n: int, input: Any) -> Any:
    """The n-th derivative of digamma, elementwise; `polygamma(0, input)` is digamma.

    The derivatives (n >= 1) are nan below -2**20.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise DTypeError(f"polygamma: the order {n!r} is not an integer >= 0")
    return floating(Polygamma(n), input) if n else digamma(input)


@public("special", name="multigammaln")
@public_function("lucid", "Tensor", inplace=True)
def mvlgamma(input: Any, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension `p`, elementwise.

    It is p (p - 1) / 4 log(pi) plus the sum of lgamma(x - i / 2) for i < p, where x > (p - 1) / 2.
    """
    p = operator.index(p)
    if p < 1:
        raise ArgumentError(f"mvlgamma: the dimension p is {p}; it must be at least 1")
    x = to_floating(input)
    steps = wrap((np.arange(p) / 2).astype(x.dtype))
    return lgamma(x.unsqueeze(-1) - steps).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
