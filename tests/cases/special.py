"""Cases of special functions: Bessel, Airy, normal distribution, incomplete gamma, zeta."""

import numpy as np
import scipy.special as sp

from lucid.ops.special import bessel as b
from lucid.ops.special import bessel_orders as o
from lucid.ops.special import beta_functions as beta
from lucid.ops.special import entropies as e
from lucid.ops.special import incomplete_gamma as g
from lucid.ops.special import normal as n
from lucid.ops.special import zeta as z
from lucid.ops.special.polynomials import OrthogonalPolynomial
from tests.cases.case import Case, integer, real


def unary(op, expected, *args):
    return [Case(op, (arg,), expected) for arg in args]


positive, near_one = real(2, 3, low=0.3, high=6.0), real(2, 3, low=0.1, high=0.9)
around, scalar, empty = real(2, 3, low=-6.0, high=6.0, avoid=0.2), real(avoid=0.2), real(0, 2)

X, N = real(2, 3, low=-0.9, high=0.9, dtype="float64"), integer(2, 3, low=0, high=7)


def of_degree(family, twice, expected):
    op = OrthogonalPolynomial(family, twice)
    return [Case(op, (X, N), expected), Case(op, (X, integer(3, low=0, high=4)), expected)]


CASES = [
    *of_degree("chebyshev", 0, lambda x, n: np.cos(n * np.arccos(x))),
    *of_degree("gegenbauer", 1, lambda x, n: sp.eval_legendre(n, x)),
    *of_degree("gegenbauer", 4, lambda x, n: sp.eval_gegenbauer(n, 2.0, x)),
    *of_degree("hermite", 0, lambda x, n: 2 ** (n / 2) * sp.eval_hermitenorm(n, x * 2**0.5)),
    *of_degree("hermite_e", 0, lambda x, n: 2 ** (-n / 2) * sp.eval_hermite(n, x * 2**-0.5)),
    *of_degree("laguerre", 0, lambda x, n: sp.eval_laguerre(n, x)),
    *of_degree("laguerre", 2, lambda x, n: sp.eval_genlaguerre(n, 1.0, x)),
    *unary(b.I_0, lambda x: sp.i0(x), around, scalar, empty),
    *unary(b.I_1, lambda x: sp.i1(x), around, scalar),
    *unary(b.BesselI(2), lambda x: sp.iv(2, x), around, empty),
    *unary(b.BesselI(3), lambda x: sp.iv(3, x), around),
    *unary(b.I_0E, lambda x: sp.i0e(x), around, scalar),
    *unary(b.I_1E, lambda x: sp.i1e(x), around, scalar),
    *unary(b.ScaledBesselI(2), lambda x: sp.ive(2, x), around),
    *unary(b.ScaledBesselI(3), lambda x: sp.ive(3, x), around),
    *unary(b.J_0, lambda x: sp.j0(x), around, scalar, empty),
    *unary(b.J_1, lambda x: sp.j1(x), around, scalar),
    *unary(b.BesselJ(2), lambda x: sp.jv(2, x), around),
    *unary(b.BesselJ(3), lambda x: sp.jv(3, x), around),
    *unary(b.Y_0, lambda x: sp.y0(x), positive),
    *unary(b.Y_1, lambda x: sp.y1(x), positive),
    *unary(b.K_0, lambda x: sp.k0(x), positive),
    *unary(b.K_1, lambda x: sp.k1(x), positive),
    *unary(b.K_0E, lambda x: sp.k0e(x), positive),
    *unary(b.K_1E, lambda x: sp.k1e(x), positive),
    *unary(b.AIRY_AI, lambda x: sp.airy(x)[0], around, scalar, empty),
    *unary(b.AIRY_SLOPE, lambda x: sp.airy(x)[1], around),
    *unary(n.ERFCX, lambda x: sp.erfcx(x), real(2, 3), real(4, low=2.0, high=20.0), empty),
    *unary(n.NDTR, lambda x: sp.ndtr(x), around, scalar),
    *unary(n.LOG_NDTR, lambda x: sp.log_ndtr(x), around, real(4, low=-40.0, high=-5.0)),
    *unary(n.NDTRI, lambda x: sp.ndtri(x), near_one),
    *unary(e.ENTR, lambda x: sp.entr(x), near_one, empty),
    Case(e.XLOG1PY, (real(2, 3), near_one), lambda x, y: x * np.log1p(y)),
    Case(e.XLOG1PY, (real(2, 1), near_one), lambda x, y: x * np.log1p(y)),
    Case(g.GAMMAINC, (positive, positive), lambda a, x: sp.gammainc(a, x)),
    Case(g.GAMMAINC, (positive, near_one), lambda a, x: sp.gammainc(a, x)),
    Case(g.GAMMAINC, (real(3, low=1.0, high=9.0), positive), lambda a, x: sp.gammainc(a, x)),
    Case(g.GAMMAINC, (real(2, 0), real(0)), lambda a, x: sp.gammainc(a, x), label="empty"),
    Case(g.GAMMAINCC, (positive, positive), lambda a, x: sp.gammaincc(a, x)),
    Case(g.GAMMAINCC, (near_one, positive), lambda a, x: sp.gammaincc(a, x)),
    *unary(beta.GAMMA, lambda x: sp.gamma(x), positive, around, empty),
    *unary(beta.RGAMMA, lambda x: sp.rgamma(x), positive, around),
    *unary(n.ERFCINV, lambda x: sp.erfcinv(x), near_one),
    Case(beta.BETA, (positive, positive), lambda a, b: sp.beta(a, b)),
    Case(beta.BETALN, (positive, near_one), lambda a, b: sp.betaln(a, b)),
    Case(beta.BETAINC, (positive, positive, near_one), lambda a, b, x: sp.betainc(a, b, x)),
    Case(beta.BETAINC, (near_one, real(3, low=1.0, high=9.0), near_one), sp.betainc),
    Case(beta.BETAINCINV, (positive, positive, near_one), sp.betaincinv),
    Case(beta.GAMMAINCINV, (positive, near_one), lambda a, p: sp.gammaincinv(a, p)),
    Case(beta.STDTR, (positive, around), lambda df, t: sp.stdtr(df, t)),
    Case(beta.STDTRIT, (positive, near_one), lambda df, p: sp.stdtrit(df, p)),
    Case(beta.PDTRIK, (real(3, low=0.5, high=0.9), real(2, 3, low=1.0, high=2.0)), sp.pdtrik),
    *unary(o.BesselY(2), lambda x: sp.yv(2, x), positive),
    *unary(o.BesselY(0.5), lambda x: sp.yv(0.5, x), positive),
    *unary(b.BesselJ(-1.5), lambda x: sp.jv(-1.5, x), positive),
    *unary(b.BesselI(0.25), lambda x: sp.iv(0.25, x), positive),
    *unary(b.ScaledBesselI(2.5), lambda x: sp.ive(2.5, x), positive),
    Case(z.ZETA, (real(2, 3, low=1.5, high=9.0), positive), lambda x, q: sp.zeta(x, q)),
    Case(z.ZETA, (real(2, 1, low=1.5, high=9.0), positive), lambda x, q: sp.zeta(x, q)),
]
