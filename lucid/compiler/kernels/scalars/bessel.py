"""i0 and i1, and their products with e**-|x|.

Up to |x| = 8 they are series in x**2 with positive terms, beyond that e**|x| / sqrt(|x|) times a
polynomial in 16 / |x| - 1. The exponential is applied last, so nothing overflows before the result.
"""

from __future__ import annotations

import math

from .declare import scalar
from .exponential import exp_parts, scale
from .language import Value, clamp, copysign, fma, poly, root, select, two_sum

NEAR = 8.0
INFINITE = {"f4": 93.0, "f8": 715.0}  # beyond these, i0 and i1 are inf
# i0(x) = c0 + c1 x**2 + ...; i1(x) = x * (c0 + c1 x**2 + ...)
_I0_NEAR = {
    "f4": (
        1.0, 0.2500000298023224, 0.01562496367841959, 0.0004340409650467336, 6.779599516448798e-06,
        6.798932616902675e-08, 4.6284293064857707e-10, 2.625400331163208e-12,
        5.898919133246134e-15, 5.683692322983332e-17,
    ),
    "f8": (
        1.0, 0.24999999999999953, 0.015625000000001023, 0.0004340277777770444,
        6.781684028030107e-06, 6.781684022837225e-08, 4.709502857574172e-10,
        2.4028070584514694e-12, 9.385994361466097e-15, 2.896796519516423e-17,
        7.245200660862006e-20, 1.4906664048967673e-22, 2.6722546935346e-25, 3.2130839665065296e-28,
        7.919581914347433e-31,
    ),
}  # fmt: skip
_I1_NEAR = {
    "f4": (
        0.5, 0.0625, 0.002604165580123663, 5.4254029237199575e-05, 6.780736043765501e-07,
        5.659390733825376e-09, 3.3264543897182364e-11, 1.603718243273211e-13,
        3.6340852753070246e-16, 2.7014370501583422e-18,
    ),
    "f8": (
        0.5, 0.062499999999999965, 0.0026041666666667324, 5.425347222218021e-05,
        6.781684027909156e-07, 5.6514033541105284e-09, 3.363930596395866e-11,
        1.5017545119180701e-13, 5.214437010352645e-16, 1.44841111859193e-18, 3.293005703070618e-21,
        6.214895553890088e-24, 1.0243103767768614e-26, 1.1662423269702809e-29,
        2.59520545607595e-32,
    ),
}  # fmt: skip
# e**-x sqrt(x) i0(x) = c0 + c1 u + ... and the same of i1, with u = 16 / x - 1
_I0_FAR = {
    "f4": (
        0.40217649936676025, 0.00336055806837976, 0.00013615652278531343, 1.1102879398094956e-05,
        1.6386325114581268e-06, 3.6999773556090076e-07,
    ),
    "f8": (
        0.4021765094450081, 0.0033605519836678453, 0.00013621607439017472, 1.1143033792367648e-05,
        1.4838476519991027e-06, 2.9735982103490967e-07, 8.872054881953849e-08,
        3.9326302125327803e-08, 2.1564610813340507e-08, 7.55160474056136e-09,
        -6.841680744573902e-09, -1.3396240389384447e-08, -5.060382466166017e-09,
        7.519181421912874e-09, 6.601749491184087e-09, -3.4483227167666846e-09,
        -4.625479926512677e-09, 1.455263959704086e-09, 2.2340869034702894e-09,
        -5.258456471589393e-10, -6.789873355939345e-10, 1.344035463367605e-10,
        9.649747456378928e-11, -1.704768788911222e-11,
    ),
}  # fmt: skip
_I1_FAR = {
    "f4": (
        0.389398455619812, -0.009749584831297398, -0.00021916875266470015, -1.4990881936682854e-05,
        -2.0091208625672152e-06, -4.3141781702615845e-07,
    ),
    "f8": (
        0.38939845902587233, -0.009749577193235725, -0.00021923576383205826,
        -1.5038547201544397e-05, -1.8349102225630044e-06, -3.4838555062695326e-07,
        -1.0001116436949697e-07, -4.312948390701714e-08, -2.3390842942694225e-08,
        -8.425715379344252e-09, 6.832394561701724e-09, 1.4025857738518132e-08,
        5.615882755696305e-09, -7.62039591338247e-09, -7.025866793297153e-09,
        3.388387812891405e-09, 4.860996830076189e-09, -1.3962779100747046e-09,
        -2.3345336472645982e-09, 4.996743104051381e-10, 7.075018379405485e-10,
        -1.2812230403363754e-10, -1.0039390318280971e-10, 1.642280917681093e-11,
    ),
}  # fmt: skip
# ln 256 in two parts: e**x is 256 e**(x - ln 256), where e**x alone might overflow.
_LN_256 = (5.545177444479562, 1.8552374510770396e-16)


def _far(a: Value, coefficients: tuple[float, ...]) -> Value:
    """e**-a times a Bessel function of a >= 8, finite or not."""
    a = clamp(a, NEAR, a.format.huge)
    return poly(16 / a - 1, *coefficients) / root(a)


def _times_exp(y: Value, a: Value) -> Value:
    """y e**a for 0 <= y <= 1."""
    first, second = a.format.split(2, *_LN_256)
    high, low = two_sum(a, a.like(-first))
    m, k, k_bits = exp_parts(high, low - second)
    return select(a > INFINITE[a.type], math.inf, scale(fma(m, y, y) * 256, k, k_bits))


def _scaled(near: Value, far: Value, a: Value) -> Value:
    """The function times e**-a, from its value near 0 and its scaled value far away."""
    held = clamp(a, 0, NEAR)
    m, k, k_bits = exp_parts(-held, held * 0)
    return select(a <= NEAR, scale(fma(m, near, near), k, k_bits), select(a == math.inf, 0, far))


@scalar("scipy.special.i0", ulps=4)
def i0(x: Value) -> Value:
    """The modified Bessel function of the first kind, of order 0."""
    a = abs(x)
    y = _times_exp(_far(a, _I0_FAR[x.type]), a)
    return select(a <= NEAR, poly(x * x, *_I0_NEAR[x.type]), select(a > NEAR, y, x))


@scalar("scipy.special.i1", ulps=4)
def i1(x: Value) -> Value:
    """The modified Bessel function of the first kind, of order 1."""
    a = abs(x)
    y = _times_exp(_far(a, _I1_FAR[x.type]), a)
    y = copysign(y, x)
    return select(a <= NEAR, x * poly(x * x, *_I1_NEAR[x.type]), select(a > NEAR, y, x))


@scalar("scipy.special.i0e", ulps=4)
def i0e(x: Value) -> Value:
    """e**-|x| i0(x)."""
    a = abs(x)
    y = _scaled(poly(x * x, *_I0_NEAR[x.type]), _far(a, _I0_FAR[x.type]), a)
    return select(x == x, y, x)


@scalar("scipy.special.i1e", ulps=4)
def i1e(x: Value) -> Value:
    """e**-|x| i1(x)."""
    a = abs(x)
    y = _scaled(a * poly(x * x, *_I1_NEAR[x.type]), _far(a, _I1_FAR[x.type]), a)
    return select(x == x, copysign(y, x), x)
