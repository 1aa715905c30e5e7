"""The polynomials of the scalars: the Remez exchange algorithm in mpmath, then rounding.

    python tools/fit_scalars.py [exp atan ...]

prints, for each fit, the largest weighted error and the coefficients, lowest power first. The
weight turns an error of the polynomial into a relative error of the function it serves. It needs
mpmath, and nothing imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import mpmath as mp
import numpy as np

Function = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Fit:
    """A polynomial of `terms` coefficients for `function` on [low, high], for one dtype.

    The first `exact` coefficients are rounded one after another, refitting the rest each time, so
    that the others compensate for their rounding.
    """

    name: str
    dtype: str
    function: Function
    low: mp.mpf
    high: mp.mpf
    terms: int
    weight: Function
    exact: int = 0

    def solve(self) -> tuple[list[float], mp.mpf]:
        fixed: list[float] = []
        coefficients, error = remez(self.function, self, 0)
        while len(fixed) < self.exact:
            fixed.append(self._round(coefficients[0]))
            coefficients, error = remez(self._remainder(tuple(fixed)), self, len(fixed))
        return fixed + [self._round(c) for c in coefficients], error

    def _round(self, c: mp.mpf) -> float:
        return float(np.dtype(self.dtype).type(float(c)))

    def _remainder(self, fixed: tuple[float, ...]) -> Function:
        return lambda x: self.function(x) - mp.polyval([mp.mpf(c) for c in fixed[::-1]], x)


def remez(function: Function, fit: Fit, first: int) -> tuple[list[mp.mpf], mp.mpf]:
    """The minimax coefficients of x**first, x**(first+1), ..., and the largest weighted error."""
    terms, grid = fit.terms - first, 601
    middle, half = (fit.high + fit.low) / 2, (fit.high - fit.low) / 2
    points = [middle - half * mp.cos(mp.pi * i / grid) for i in range(grid + 1)]
    weights = [fit.weight(x) for x in points]
    # Where the weight vanishes any value will do, and an equation there would be singular.
    kept = [i for i, w in enumerate(weights) if w > mp.mpf(10) ** -40]
    weights = [weights[i] for i in kept]
    values = [weights[j] * function(points[i]) for j, i in enumerate(kept)]
    rows = [[weights[j] * points[i] ** (first + p) for p in range(terms)]
            for j, i in enumerate(kept)]  # fmt: skip
    # Not symmetric: with an even weight a symmetric start is singular.
    chosen = [round((len(kept) - 1) * ((i + 0.5) / (terms + 1)) ** 1.07) for i in range(terms + 1)]
    best: tuple[list[mp.mpf], mp.mpf] = ([], mp.inf)
    for _ in range(12):
        system = mp.matrix([[*rows[j], (-1) ** r] for r, j in enumerate(chosen)])
        *coefficients, level = mp.lu_solve(system, mp.matrix([values[j] for j in chosen]))
        errors = [mp.fdot(coefficients, row) - v for row, v in zip(rows, values, strict=True)]
        largest = max(abs(e) for e in errors)
        if largest < best[1]:
            best = list(coefficients), largest
        chosen = extremes(errors, terms + 1)
        if largest <= abs(level) * 1.02 or len(chosen) <= terms:
            break
    return best


def extremes(errors: list[mp.mpf], count: int) -> list[int]:
    """The largest error of each run of one sign, without the smallest outermost ones."""
    runs: list[int] = []
    for i, e in enumerate(errors):
        if runs and (errors[runs[-1]] >= 0) == (e >= 0):
            runs[-1] = max(runs[-1], i, key=lambda j: abs(errors[j]))
        else:
            runs.append(i)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


def near_zero(function: Function, limit: Function, below: float = 1e-15) -> Function:
    """`function`, replaced by its limit at 0, where its formula divides 0 by 0."""
    return lambda x: function(x) if abs(x) > below else limit(x)


def odd(function: Function, slope: float, third: float) -> Function:
    """(f(s)/s - slope) / s**2 as a function of z = s**2."""

    def reduced(z: mp.mpf) -> mp.mpf:
        s = mp.sqrt(z)
        return (function(s) / s - slope) / z if z > 1e-18 else mp.mpf(third)

    return reduced


def relative(function: Function) -> Function:
    """The weight for `odd`: it makes the error relative to f(s)."""
    return lambda z: z * mp.sqrt(z) / function(mp.sqrt(z)) if z > 0 else mp.mpf(0)


@cache
def erfinv_ratio(w: mp.mpf) -> mp.mpf:
    """erfinv(x) / x at w = -log(1 - x**2)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x if w > 1e-25 else mp.sqrt(mp.pi) / 2


def erfinv_tail(center: mp.mpf) -> Function:
    """`erfinv_ratio` as a function of t = sqrt(w) - center."""
    return lambda t: erfinv_ratio((t + center) ** 2)


def erfinv_middle(center: mp.mpf, start: float) -> tuple[Function, Function]:
    """(erfinv_ratio(w) - start) / w as a function of t = w - center, and its weight."""
    return (
        lambda t: (erfinv_ratio(t + center) - start) / (t + center),
        lambda t: (t + center) / erfinv_ratio(t + center),
    )


def erfcx_ratio(q: mp.mpf) -> mp.mpf:
    """e**(x**2) erfc(x) (x + 4) / 8 at q = (x - 4) / (x + 4), by its series where x is large."""
    if 1 - q < mp.mpf(10) ** -25:
        return 1 / (8 * mp.sqrt(mp.pi))
    x = 4 * (1 + q) / (1 - q)
    if x < 60:
        return mp.exp(x**2) * mp.erfc(x) * (x + 4) / 8
    total = term = mp.mpf(1)
    for k in range(1, 30):
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / (x * mp.sqrt(mp.pi)) * (x + 4) / 8


def bessel_near(order: int) -> Function:
    """i0(x), or i1(x) / x, as a function of z = x**2."""

    def ratio(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(z)
        return mp.besseli(order, x) / x**order if z > 1e-30 else mp.mpf(1) / (1 + order)

    return ratio


def bessel_far(order: int) -> Function:
    """e**-x sqrt(x) i(x) as a function of u = 16 / x - 1."""

    def ratio(u: mp.mpf) -> mp.mpf:
        if u + 1 < 1e-22:
            return 1 / mp.sqrt(2 * mp.pi)
        x = 16 / (u + 1)
        if x < 200:
            return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)
        total = term = mp.mpf(1)
        for k in range(1, 40):
            term *= -(4 * order**2 - (2 * k - 1) ** 2) / (k * 8 * x)
            total += term
        return total / mp.sqrt(2 * mp.pi)

    return ratio


def reciprocal(function: Function) -> Function:
    """The weight that makes the error of a fit to `function` relative."""
    return lambda t: 1 / function(t)


def fits() -> Iterator[Fit]:
    ln2, root2 = mp.log(2), mp.sqrt(2)
    one = mp.mpf(1)

    r = ln2 / 2 * mp.mpf("1.0005")
    exp = near_zero(lambda r: (mp.expm1(r) - r) / r**2, lambda r: one / 2 + r / 6)
    exp2 = near_zero(lambda r: (2**r - 1) / r, lambda r: ln2 + r * ln2**2 / 2)
    for dtype, terms in (("f4", 5), ("f8", 10)):
        yield Fit("exp", dtype, exp, -r, r, terms, lambda r: r**2, 2)
        yield Fit("expm1", dtype, exp, -r, r, terms + (dtype == "f8"), abs, 2)
        h = mp.mpf("0.5002")
        yield Fit("exp2", dtype, exp2, -h, h, terms + 1, abs, 2)

    log = near_zero(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda f: one / 3, 1e-12)
    yield Fit("log", "f4", log, 1 / root2 - 1, root2 - 1, 9, lambda f: abs(f**3 / mp.log1p(f)), 1)
    log = odd(lambda s: mp.log((1 + s) / (1 - s)), 2, 2 / 3)
    s = ((root2 - 1) / (root2 + 1)) ** 2
    yield Fit("log", "f8", log, 0 * s, s, 7, lambda z: z / 2)
    s *= mp.mpf("1.0001") ** 2
    yield Fit("pow", "f4", log, 0 * s, s, 4, lambda z: z / 2)
    rest = near_zero(lambda z: (log(z) - 2 * one / 3) / z, lambda z: 2 * one / 5)
    yield Fit("pow", "f8", rest, 0 * s, s, 7, lambda z: z**2 / 2)
    yield Fit("cbrt", "f4", lambda m: 1 / mp.cbrt(m), 1 / root2, root2, 5, mp.cbrt)

    q = (mp.pi / 4 * mp.mpf("1.02")) ** 2
    for dtype, terms in (("f4", 3), ("f8", 6)):
        sin = odd(mp.sin, 1, -1 / 6)
        yield Fit("sin", dtype, sin, 0 * q, q, terms, relative(mp.sin), 1)
        cos = near_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: one / 24)
        yield Fit("cos", dtype, cos, 0 * q, q, terms, lambda z: z**2 / mp.cos(mp.sqrt(z)), 1)
    for name, function, third, counts in (
        ("atan", mp.atan, -1 / 3, {"f4": 5, "f8": 12}),
        ("asin", mp.asin, 1 / 6, {"f4": 5, "f8": 12}),
    ):
        for dtype, terms in counts.items():
            curve, weight = odd(function, 1, third), relative(function)
            yield Fit(name, dtype, curve, 0 * q, one / 4, terms, weight, 1)

    q = (ln2 * mp.mpf("1.002")) ** 2
    cosh = near_zero(lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, lambda z: one / 2)
    weight = lambda z: z / mp.cosh(mp.sqrt(z))  # noqa: E731
    for dtype, terms in (("f4", 3), ("f8", 7)):
        yield Fit("sinh", dtype, odd(mp.sinh, 1, 1 / 6), 0 * q, q, terms, relative(mp.sinh), 1)
        yield Fit("cosh", dtype, cosh, 0 * q, q, max(terms, 4), weight, 1)
    yield from special_fits()


def special_fits() -> Iterator[Fit]:
    one = mp.mpf(1)
    erf = near_zero(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: 2 / mp.sqrt(mp.pi) - 1)
    tail = {"f4": (mp.mpf("0.93"), 4 * one, 7), "f8": (mp.mpf("0.88"), 6 * one, 18)}
    scaled = {"f4": (mp.mpf("0.65"), mp.mpf("10.2"), 10, 3), "f8": (0 * one, mp.mpf("27.4"), 22, 0)}
    for dtype, terms in (("f4", 7), ("f8", 12)):
        yield Fit("erf", dtype, erf, 0 * one, one, terms, lambda z: 1 / (1 + erf(z)), 1)
        low, high, terms = tail[dtype]
        log = lambda t: mp.log(mp.erfc(t))  # noqa: E731
        weight = lambda t: mp.erfc(t) / mp.erf(t)  # noqa: E731
        yield Fit("log_erfc", dtype, log, low, high, terms, weight)

        def erfcx(q: mp.mpf) -> mp.mpf:
            x = 4 * (1 + q) / (1 - q)
            return mp.exp(x**2) * mp.erfc(x) * (x + 4) / 8

        low, high, terms, exact = scaled[dtype]
        low, high = ((x - 4) / (x + 4) for x in (low, high))
        yield Fit("erfc", dtype, erfcx, low, high, terms, lambda q: 1 / erfcx(q), exact)

        # Over the whole half line, for erfcx itself and the tails of the normal distribution.
        terms, exact = {"f4": (12, 3), "f8": (26, 0)}[dtype]
        yield Fit("erfcx", dtype, erfcx_ratio, -one, one, terms, reciprocal(erfcx_ratio), exact)

    for order in (0, 1):
        for dtype, near_terms, far_terms in (("f4", 10, 6), ("f8", 15, 24)):
            near, far = bessel_near(order), bessel_far(order)
            weight = reciprocal(near)
            yield Fit(f"i{order}_near", dtype, near, 0 * one, 64 * one, near_terms, weight, 2)
            yield Fit(f"i{order}_far", dtype, far, -one, one, far_terms, reciprocal(far))

    for dtype, least, most, center, terms in (
        ("f4", 5, mp.mpf("16.8"), "3.25", 11),
        ("f8", mp.mpf("6.25"), 16, "3.25", 20),
        ("f8", 16, 37, "5", 19),
    ):
        c = mp.mpf(center)
        ratio = erfinv_tail(c)
        low, high = mp.sqrt(least) - c, mp.sqrt(most) - c
        yield Fit("erfinv_tail", dtype, ratio, low, high, terms, reciprocal(ratio))
    for dtype, terms, c in (("f4", 9, mp.mpf("2.5")), ("f8", 23, mp.mpf("3.125"))):
        start = float(np.dtype(dtype).type(float(mp.sqrt(mp.pi) / 2)))
        ratio, weight = erfinv_middle(c, start)
        yield Fit("erfinv", dtype, ratio, -c * mp.mpf("0.999"), c * mp.mpf("1.001"), terms, weight)

    sinpi = near_zero(lambda z: mp.sin(mp.pi * mp.sqrt(z)) / mp.sqrt(z), lambda z: mp.pi)
    slope = 1 - mp.euler
    lgamma = near_zero(
        lambda d: (mp.loggamma(2 + d) / d - slope) / d, lambda d: (mp.zeta(2) - 1) / 2
    )
    zero = mp.findroot(mp.digamma, 1.4616)
    middle = lambda t: mp.digamma(t + 1.5) / (t + 1.5 - zero)  # noqa: E731

    def stirling(z: mp.mpf) -> mp.mpf:
        x = 1 / mp.sqrt(z)
        series = mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2
        return series * x if z > 1e-12 else one / 12

    def psi_tail(z: mp.mpf) -> mp.mpf:
        x = 1 / mp.sqrt(z)
        return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / z if z > 1e-14 else one / 12

    counts = {"f4": (5, 8, 2, 11, 3), "f8": (9, 17, 6, 22, 6)}
    for dtype, sizes in counts.items():
        half = one / 2
        yield Fit("sinpi", dtype, sinpi, 0 * one, one / 4, sizes[0], lambda z: 1 / sinpi(z), 1)
        weight = lambda d: abs(d / (d * lgamma(d) + slope))  # noqa: E731
        yield Fit("lgamma", dtype, lgamma, -half, half, sizes[1], weight)
        yield Fit(
            "stirling", dtype, stirling, 0 * one, one / 64, sizes[2], lambda z: mp.sqrt(z) / 8
        )
        yield Fit("digamma", dtype, middle, -half, half, sizes[3], lambda t: 1 / middle(t))
        yield Fit("digamma_tail", dtype, psi_tail, 0 * one, one / 64, sizes[4], lambda z: z / 2)


def main() -> None:
    wanted = sys.argv[1:]
    with mp.workdps(60):
        for fit in fits():
            if not wanted or fit.name in wanted:
                coefficients, error = fit.solve()
                print(
                    f"{fit.name} {fit.dtype}: {mp.nstr(error, 3)}\n    {coefficients}", flush=True
                )


if __name__ == "__main__":
    main()
