"""Rows of lucid.special, and of the same functions where they stand at the top level."""

import mpmath
import numpy as np
import scipy.special as sp

from lucid.errors import ArgumentError, DTypeError, ShapeError
from tests.cases.case import complex_, integer, real
from tests.table.row import Row, bad, call

anywhere = real(2, 3, low=-4.0, high=4.0, avoid=0.1)
positive = real(2, 3, low=0.4, high=5.0)
inside = real(2, 3, low=0.1, high=0.9)
moderate = real(2, 3, low=1.0, high=5.0)
UNDERIVED = "it has a derivative"


def unary(name, expected, arg=anywhere, whole=1, **options):
    """A function of real numbers alone; at `whole` it is exact in float32."""
    return Row(
        name,
        expected,
        [
            call(arg),
            call(real(low=0.4, high=0.9)),
            call(real(0, 2)),
            call(integer(3, low=whole, high=whole + 1), label="integers").but(
                expected=lambda x: np.float32(expected(x.astype(float))), smooth=False
            ),
        ],
        refused=[
            bad(DTypeError, ("complex128", "floating"), complex_(2)),
            bad(DTypeError, "not numeric", "text"),
        ],
        **options,
    )


def multigammaln(x, p):
    return p * (p - 1) / 4 * np.log(np.pi) + sum(sp.gammaln(x - i / 2) for i in range(p))


def exact(function):
    """A function of mpmath, for every element."""
    return lambda *xs: np.vectorize(lambda *v: float(function(*v)), otypes=[float])(*xs)


def scaled_k(order):
    return exact(lambda x: mpmath.exp(x) * mpmath.besselk(order, x))


def angle(function):
    """A polynomial of Chebyshev's by its angle."""
    return lambda x, n: np.where(n < 0, 0.0, function(np.arccos(np.float64(x)), np.float64(n)))


def at_shifted(expected):
    return lambda x, n: expected(2 * np.asarray(x) - 1, n)


CHEBYSHEV = {
    "t": angle(lambda t, n: np.cos(n * t)),
    "u": angle(lambda t, n: np.sin((n + 1) * t) / np.sin(t)),
    "v": angle(lambda t, n: np.cos((n + 0.5) * t) / np.cos(t / 2)),
    "w": angle(lambda t, n: np.sin((n + 0.5) * t) / np.sin(t / 2)),
}
POLYNOMIALS = {
    **{f"chebyshev_polynomial_{kind}": f for kind, f in CHEBYSHEV.items()},
    **{f"shifted_chebyshev_polynomial_{kind}": at_shifted(f) for kind, f in CHEBYSHEV.items()},
    "hermite_polynomial_h": exact(lambda x, n: mpmath.hermite(n, x)),
    "hermite_polynomial_he": exact(lambda x, n: 2 ** (-n / 2) * mpmath.hermite(n, x / 2**0.5)),
    "laguerre_polynomial_l": exact(lambda x, n: mpmath.laguerre(n, 0, x)),
    "legendre_polynomial_p": exact(lambda x, n: mpmath.legendre(n, x)),
}


def of_degree(name, expected):
    return Row(
        f"special.{name}",
        expected,
        [
            call(inside, 3),
            call(real(low=0.2, high=0.8), 0),
            call(real(2, 3, low=0.1, high=0.9), integer(3, low=0, high=6)),
            call(real(2, 1, low=0.1, high=0.9), integer(2, 2, low=1, high=3)),
            call(inside, 1),
        ],
        refused=[
            bad(DTypeError, ("complex128", "real"), complex_(2), 2),
            bad(ShapeError, "sizes 3 and 2", real(3), integer(2)),
        ],
        differs=UNDERIVED,
    )


ROWS = [
    *[of_degree(name, expected) for name, expected in POLYNOMIALS.items()],
    unary("special.airy_ai", exact(mpmath.airyai), differs=UNDERIVED),
    unary("special.bessel_j0", exact(mpmath.j0), differs=UNDERIVED),
    unary("special.bessel_j1", exact(mpmath.j1), differs=UNDERIVED),
    unary("special.bessel_y0", exact(lambda x: mpmath.bessely(0, x)), positive, differs=UNDERIVED),
    unary("special.bessel_y1", exact(lambda x: mpmath.bessely(1, x)), positive, differs=UNDERIVED),
    unary("special.i0e", exact(lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x)), whole=3),
    unary("special.i1", exact(lambda x: mpmath.besseli(1, x))),
    unary("special.i1e", exact(lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x))),
    unary(
        "special.modified_bessel_k0",
        exact(lambda x: mpmath.besselk(0, x)),
        positive,
        differs=UNDERIVED,
    ),
    unary(
        "special.modified_bessel_k1",
        exact(lambda x: mpmath.besselk(1, x)),
        positive,
        differs=UNDERIVED,
    ),
    unary("special.scaled_modified_bessel_k0", scaled_k(0), positive, differs=UNDERIVED),
    unary("special.scaled_modified_bessel_k1", scaled_k(1), positive, differs=UNDERIVED),
    unary("special.spherical_bessel_j0", exact(mpmath.sinc), whole=0, differs=UNDERIVED),
    unary("special.entr", lambda x: -x * np.log(x), inside),
    unary("special.erfcx", exact(lambda x: mpmath.exp(x**2) * mpmath.erfc(x))),
    unary("special.log_ndtr", exact(lambda x: mpmath.log(mpmath.ncdf(x)))),
    unary("special.ndtr", exact(mpmath.ncdf), whole=0),
    unary("special.ndtri", lambda x: np.sqrt(2) * sp.erfinv(2 * x - 1), inside),
    unary("i0", exact(lambda x: mpmath.besseli(0, x)), whole=3),
    Row(
        "special.xlog1py",
        lambda x, y: x * np.log1p(y),
        [
            call(real(3), inside),
            call(real(2, 1), real(4, low=0.1, high=2.0)),
            call(real(), 0.5),
            call(2.0, real(3, low=0.1, high=2.0)),
            call(real(0), real(2, 1)),
        ],
        refused=[
            bad(ShapeError, "sizes 3 and 2", real(3), real(2)),
            bad(DTypeError, "complex128", complex_(2), real(2)),
        ],
    ),
    Row(
        "special.zeta",
        exact(mpmath.zeta),
        [
            call(real(2, 3, low=1.5, high=6.0), positive),
            call(real(2, 1, low=1.5, high=6.0), positive),
            call(real(low=1.5, high=6.0), 1.0),
            call(3.0, positive),
            call(real(0, low=2.0, high=3.0), 1.0),
        ],
        refused=[
            bad(ShapeError, "sizes 3 and 2", real(3), real(2)),
            bad(DTypeError, "complex128", complex_(2), real(2)),
        ],
    ),
    Row(
        "igamma",
        exact(lambda a, x: mpmath.gammainc(a, 0, x, regularized=True)),
        [
            call(positive, positive),
            call(positive, inside),
            call(inside, positive),
            call(real(2, 1, low=1.0, high=30.0), real(3, low=1.0, high=30.0)),
            call(2.5, positive),
            call(positive, 1.5),
            call(real(0), real(2, 1)),
        ],
        refused=[
            bad(ShapeError, "sizes 3 and 2", real(3), real(2)),
            bad(DTypeError, "complex128", complex_(2), real(2)),
        ],
        differs="it has a derivative in its first operand",
    ),
    Row(
        "igammac",
        exact(lambda a, x: mpmath.gammainc(a, x, regularized=True)),
        [
            call(positive, positive),
            call(inside, positive),
            call(real(2, 1, low=1.0, high=30.0), real(3, low=1.0, high=30.0)),
            call(2.5, positive),
            call(real(), 1.5).but(expected=lambda a, x: sp.gammaincc(a, x), smooth=False),
        ],
        refused=[bad(ShapeError, "sizes 3 and 2", real(3), real(2))],
        differs="it has a derivative in its first operand",
    ),
    unary("special.gamma", sp.gamma, positive, torch=None),
    unary("special.rgamma", sp.rgamma, positive, torch=None),
    unary("special.erfcinv", sp.erfcinv, inside, whole=1, torch=None),
    Row(
        "special.gammasgn",
        sp.gammasgn,
        [call(anywhere), call(real(0)), call(np.array([0.0, -0.0, -1.0, -1.5]))],
        refused=[bad(DTypeError, "complex128", complex_(2))],
        smooth=False,
        torch=None,
    ),
    *[
        Row(
            f"special.{name}",
            function,
            [call(moderate, inside), call(2.5, inside), call(moderate, 0.5)],
            refused=[bad(ShapeError, "sizes 3 and 2", real(3), real(2))],
            torch=None,
        )
        for name, function in {
            "beta": sp.beta,
            "betaln": sp.betaln,
            "gammaincinv": sp.gammaincinv,
            "stdtr": sp.stdtr,
            "stdtrit": sp.stdtrit,
        }.items()
    ],
    *[
        Row(
            f"special.{name}",
            function,
            [
                call(positive, positive, inside),
                call(2.5, positive, inside),
                call(inside, inside, 0.5),
            ],
            refused=[bad(ShapeError, "sizes 3 and 2", real(3), real(3), real(2))],
            torch=None,
        )
        for name, function in {"betainc": sp.betainc, "betaincinv": sp.betaincinv}.items()
    ],
    Row(
        "special.pdtrik",
        sp.pdtrik,
        [call(real(3, low=0.5, high=0.9), real(2, 3, low=1.0, high=2.0))],
        refused=[bad(ShapeError, "sizes 3 and 2", real(3), real(2))],
        torch=None,
    ),
    *[
        Row(
            f"special.{name}",
            function,
            [call(v, positive) for v in (0, 1, 2, 0.5, -1.5)],
            refused=[bad(ArgumentError, "order", real(2), real(2))],
            torch=None,
        )
        for name, function in {"jv": sp.jv, "yv": sp.yv, "iv": sp.iv, "ive": sp.ive}.items()
    ],
    Row(
        "mvlgamma",
        multigammaln,
        [
            call(positive, 1),
            call(real(2, 3, low=1.5, high=5.0), 3),
            call(real(low=1.5, high=5.0), p=2),
            call(real(0), 2),
        ],
        refused=[
            bad(ArgumentError, "at least 1", real(2), 0),
            bad(ArgumentError, "mvlgamma", real(2), 1.5),
            bad(DTypeError, "complex128", complex_(2), 1),
        ],
    ),
]
