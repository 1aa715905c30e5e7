"""erf, erfc, erfinv, lgamma and digamma.

The bounds hold for lgamma and digamma at x > 0. Below 0 the reflection formulas subtract two
terms, which cancel at the zeros between the poles: there the error is at most 8 ulps of the larger
term or of 1, not of the result.
"""

from __future__ import annotations

import math

from .declare import scalar
from .exponential import exp_parts, moderate_exp_parts, scale
from .language import (
    Value,
    clamp,
    copysign,
    fast_two_sum,
    fma,
    poly,
    rint,
    root,
    scaled_one,
    select,
    two_product,
    two_sum,
)
from .logarithm import log, log_curve, split_normal
from .power import log_pair

# erf(x) = x + x * (c0 + c1 x**2 + ...) for |x| <= 1; log(erfc(x)) = c0 + c1 x + ... above 0.9.
ERF = {
    "f4": (
        0.12837916612625122, -0.3761262595653534, 0.11283593624830246,
        -0.026854107156395912, 0.005188813898712397, -0.0008014047634787858,
        7.865628867875785e-05,
    ),
    "f8": (
        0.12837916709551256, -0.3761263890318344, 0.11283791670941694, -0.02686617064277707,
        0.0052239776036650185, -0.0008548325820328369, 0.0001205529048697774,
        -1.4924655160800887e-05, 1.6446445570664318e-06, -1.620116271180933e-07,
        1.3689013210298318e-08, -7.738874938880114e-10,
    ),
}  # fmt: skip
_LOG_ERFC = {
    "f4": (
        -0.0002111586945829913, -1.1276118755340576, -0.6372893452644348, -0.10383783280849457,
        0.022181812673807144, -0.003031920874491334, 0.00019478719332255423,
    ),
    "f8": (
        -2.0701684863153592e-07, -1.1283769327656454, -0.6366309432841718,
        -0.10273831794031597, 0.0190563624654185, 0.00031867326311096867,
        -0.001819095527150779, 0.0006916790447796897, -8.459822890132418e-05,
        -4.566815231745826e-05, 3.289939531210316e-05, -1.179883601455925e-05,
        2.8887510620925683e-06, -5.104835923349663e-07, 6.470359963513231e-08,
        -5.613611711199443e-09, 2.994563889351167e-10, -7.41737271796147e-12,
    ),
}  # fmt: skip
# Where erf is 1 to the last bit, and erfc(x) is 0.
_ERF_HIGH = {"f4": 4.0, "f8": 6.0}
_ERFC_HIGH = {"f4": 10.2, "f8": 27.4}
# With q = (x - c) / (x + c): e**(x**2) erfc(x) = 2 c / (x + c) * (c0 + c1 q + ...) for x >= 0.7.
_ERFC_CENTER = 4.0
_ERFC = {
    "f4": (
        0.1369994580745697, -0.12206858396530151, 0.09665102511644363, -0.06760713458061218,
        0.04135780781507492, -0.02174450270831585, 0.009539064019918442, -0.0033417008817195892,
        0.0007694361847825348, 7.24711426300928e-05,
    ),
    "f8": (
        0.13699945762506138, -0.1220685911351103, 0.09665108778315509, -0.06760672891414839,
        0.04135644848472397, -0.021751367155188068, 0.009547689364275476,
        -0.0032962566645286127, 0.0007640069502809513, -3.5119884250549254e-05,
        -5.688154500100895e-05, 2.2101741311381825e-05, -4.545392434452833e-07,
        -2.358085817704708e-06, 5.870894745616349e-07, 1.7906713263976012e-07,
        -1.0605817415879298e-07, -1.0862707667825302e-08, 1.553536385498242e-08,
        1.2012422378674346e-09, -1.726448593794454e-09, -3.44466860781591e-10,
    ),
}  # fmt: skip
# With w = -log(1 - x**2): erfinv(x) / x is sqrt(pi)/2 + w * (c0 + c1 (w - center) + ...) for small
# w, then c0 + c1 (sqrt(w) - center) + ...; a row is (least w, center, coefficients).
_ERFINV = {
    "f4": (
        (0.0, 2.5, (
            0.24607296288013458, 0.00022686929150950164, -0.0017616875702515244,
            0.00020370539277791977, 5.843707640451612e-06, -4.394833922560792e-06,
            3.7588267787214136e-07, 5.1297156744567474e-08, -1.1466179117292086e-08,
        )),
        (5.0, 3.25, (
            3.083885669708252, 1.0052590370178223, 0.0053711640648543835, -0.003752040211111307,
            0.0024884738959372044, -0.0016830057138577104, 0.0009659263305366039,
            -0.0003691877645906061, 7.231739687085792e-07, 8.68104471010156e-05,
            -2.948928340629209e-05,
        )),
    ),
    "f8": (
        (0.0, 3.125, (
            0.24557684391371032, -0.001733971676199032, -0.0013759037424733072,
            0.0002032643866619816, -5.289657163566243e-06, -2.749717193682181e-06,
            4.4295936210691e-07, -6.233774623064254e-09, -7.3077138764847216e-09,
            1.0224172421603434e-09, 9.216004870801908e-12, -2.0274971561303223e-11,
            2.3354773196469032e-12, 9.444235009247792e-14, -5.621838800391716e-14,
            5.177948567574526e-15, 4.562044560405421e-16, -1.5786640945491444e-16,
            8.681218248571356e-18, 2.1266471021918197e-18, -3.044105477411023e-19,
            -1.1075618277381463e-20, 3.0321665131123968e-21,
        )),
        (6.25, 3.25, (
            3.0838856104922208, 1.0052589676941657, 0.005370914553570938,
            -0.0037512085082629203, 0.002491442097017385, -0.0016882755342518196,
            0.0009532893630889816, -0.0003550378308314925, 2.403126302356472e-05,
            6.82872488403393e-05, -4.731901506097131e-05, 1.2464432916368052e-05,
            2.92582271913158e-06, -3.984076663704098e-06, 1.498548372858643e-06,
            -3.026691668207236e-08, -2.711887415848566e-07, 1.3394315998445154e-07,
            6.350800905525576e-10, -1.61877646084184e-08,
        )),
        (16.0, 5.0, (
            4.849906401408584, 1.0103004648645455, -0.000138719318376983,
            -0.00021503011984006233, 7.59952780067479e-05, -1.9681770531214202e-05,
            4.526053495037997e-06, -9.930304378632287e-07, 2.2904766464526583e-07,
            -6.755270570963952e-08, 2.9033884372763543e-08, -1.5261639080511982e-08,
            7.79518206637544e-09, -3.4642926804944644e-09, 1.3422090853584587e-09,
            -4.415483720230299e-10, 5.551007383354441e-11, 4.379508690754156e-11,
            -1.725997403865223e-11,
        )),
    ),
}  # fmt: skip
# sin(pi d) / d = c0 + c1 d**2 + ... for |d| <= 1/2
_SINPI = {
    "f4": (
        3.1415927410125732, -5.167720794677734, 2.550265073776245, -0.599406361579895,
        0.07977361977100372,
    ),
    "f8": (
        3.141592653589793, -5.16771278004991, 2.5501640398725027, -0.5992645291701111,
        0.08214588429320616, -0.007370411461993834, 0.0004662114099410059,
        -2.1689254769925888e-05, 5.58431601303637e-07,
    ),
}  # fmt: skip
# lgamma(2 + d) = (1 - euler) d + d**2 * (c0 + c1 d + ...) for |d| <= 1/2
_ONE_MINUS_EULER = (0.42278433509846713, 4.942915152430645e-18)
_LGAMMA = {
    "f4": (
        0.32246702909469604, -0.06735224276781082, 0.020581522956490517, -0.007387201301753521,
        0.0028795995749533176, -0.001178734004497528, 0.0005686846561729908,
        -0.0002686713123694062,
    ),
    "f8": (
        0.3224670334241133, -0.06735230105319646, 0.02058080842776854, -0.007385551028885216,
        0.002890510331746675, -0.0011927539023477121, 0.0005096694968005077,
        -0.0002231549585449796, 9.945792769984311e-05, -4.492387654567105e-05,
        2.050363689531631e-05, -9.45562508885257e-06, 4.393221479246412e-06,
        -1.975869827206998e-06, 9.004089323511349e-07, -5.796252902433781e-07,
        2.973604833866672e-07,
    ),
}  # fmt: skip
# lgamma(x) = (x - 1/2) log(x) - x + log(2 pi)/2 + (c0 + c1 x**-2 + ...) / x for x >= 8
_STIRLING = {
    "f4": (
        0.08333327621221542, -0.0027624720241874456,
    ),
    "f8": (
        0.0833333333333331, -0.0027777777773586422, 0.0007936505764880317,
        -0.0005951896852689543, 0.0008364587376827709, -0.0016334353460805767,
    ),
}  # fmt: skip
# digamma(x) = log(x) - 1/(2x) - (c0 + c1 x**-2 + ...) / x**2 for x >= 8
_DIGAMMA_TAIL = {
    "f4": (
        0.0833333283662796, -0.008332258090376854, 0.0038479240611195564,
    ),
    "f8": (
        0.08333333333332583, -0.008333333323899359, 0.0039682500063734924,
        -0.004165897922770534, 0.0074995310557490055, -0.017270686619254717,
    ),
}  # fmt: skip
# digamma(x) / (x - root) = c0 + c1 (x - 3/2) + ... for 1 <= x <= 2
_DIGAMMA = {
    "f4": (
        0.9510558843612671, -0.42362749576568604, 0.24054262042045593, -0.14839878678321838,
        0.0949820727109909, -0.06205710023641586, 0.04087943583726883,
        -0.025780891999602318, 0.016979996114969254, -0.01638430915772915,
        0.011119268834590912,
    ),
    "f8": (
        0.951055876031833, -0.4236274212814606, 0.24054248424077396, -0.14840492305389066,
        0.09498872445497442, -0.061922133274655615, 0.04076083381070907,
        -0.02697579669257407, 0.017907252484269633, -0.011908219395060978,
        0.007926943972637426, -0.005279946529138199, 0.0035190125632033795,
        -0.0023454188736229072, 0.0015565968987576403, -0.0010368505433280813,
        0.0007234456500734033, -0.0004847077550671788, 0.0002270082402615589,
        -0.00014701134371294123, 0.0002598653844687426, -0.00017654172966837667,
    ),
}  # fmt: skip
_DIGAMMA_ROOT = (1.4616321449683622, 9.549995429965697e-17)
_STIRLING_FROM = 8


@scalar("scipy.special.erf", ulps=4)
def erf(x: Value) -> Value:
    """The error function."""
    a = abs(x)
    z = a * a
    near = fma(a, poly(z, *ERF[x.type]), a)
    m, k_bits = moderate_exp_parts(poly(clamp(a, 0, _ERF_HIGH[x.type]), *_LOG_ERFC[x.type]))
    power = scaled_one(k_bits, x.format)
    far = (1 - power) - m * power
    return copysign(select(a < 0.95, near, far), x)


@scalar("scipy.special.erfc", ulps=4)
def erfc(x: Value) -> Value:
    """1 - erf(x), to the last bits where it is small."""
    a = clamp(abs(x), 0, _ERFC_HIGH[x.type])
    bottom, bottom_low = two_sum(a, x.like(_ERFC_CENTER))
    # 2 c / (a + c) and its error, which counts three times: here and in q = 1 - t.
    inverse = 1 / bottom
    t = 2 * _ERFC_CENTER * inverse
    t_low = fma(-inverse, bottom_low, fma(-inverse, bottom, 1)) * t
    q = (1 - t) - t_low
    square, square_low = two_product(a, a)
    m, k, k_bits = exp_parts(-square, -square_low)
    p = poly(q, *_ERFC[x.type])
    y = fma(t, p, t_low * p)
    y = scale(fma(m, y, y), k, k_bits)
    y = select(x < 0, 2 - y, y)
    near = 1 - fma(x, poly(square, *ERF[x.type]), x)
    return select(a < 0.7, near, y)


@scalar("scipy.special.erfinv", ulps=4)
def erfinv(x: Value) -> Value:
    """The inverse of erf on [-1, 1]."""
    k, m = split_normal(fma(-x, x, 1))
    f = m - 1
    w = fma(k, -math.log(2), -f - log_curve(f))
    s = root(w)
    (_, center, coefficients), *tails = _ERFINV[x.type]
    y = fma(w, poly(w - center, *coefficients), math.sqrt(math.pi) / 2)
    for least, center, coefficients in tails:
        y = select(w >= least, poly(s - center, *coefficients), y)
    y = select(abs(x) == 1, math.inf, y) * x
    return select(abs(x) <= 1, y, math.nan)


def _sinpi(d: Value) -> Value:
    """sin(pi d) for |d| <= 1/2."""
    return d * poly(d * d, *_SINPI[d.type])


@scalar("scipy.special.gammaln", ulps=4)
def lgamma(x: Value) -> Value:
    """log|gamma(x)|: Stirling's series, or a product that leads to [1.5, 2.5)."""
    reflected = x < 0
    b = select(reflected, 1 - x, x)
    first, second, large = b < 1.5, b < 0.5, b >= _STIRLING_FROM
    d, product = select(first, b - 1, b - 2), select(first, b, 1)
    d, product = select(second, b, d), select(second, fma(b, b, b), product)
    for i in range(1, _STIRLING_FROM - 1):
        factor = b - i
        more = factor >= 1.5
        d, product = select(more, factor - 2, d), select(more, product * factor, product)
    log_high, log_low = log_pair(select(large, b, product))

    log_high, log_low = select(first, -log_high, log_high), select(first, -log_low, log_low)
    slope, slope_low = x.format.split(2, *_ONE_MINUS_EULER)
    line, line_low = two_product(d, slope)
    y, error = two_sum(log_high, line)
    curve = fma(d * d, poly(d, *_LGAMMA[x.type]), fma(d, slope_low, line_low))
    y = y + (curve + (log_low + error))

    inverse = 1 / b
    h, h_low = fast_two_sum(log_high, x.like(-1))
    p, p_low = two_product(h, b - 0.5)
    series = inverse * poly(inverse * inverse, *_STIRLING[x.type])
    rest = fma(b - 0.5, h_low + log_low, p_low) + (series + (math.log(2 * math.pi) - 1) / 2)
    y = select(large, select(p < math.inf, p + rest, p), y)

    sine = abs(_sinpi(x - rint(x)))
    y = select(reflected, -log(sine * (1 / math.pi)) - y, y)
    y = select((reflected & (sine == 0)) | (x == 0) | (abs(x) == math.inf), math.inf, y)
    return select(x == x, y, x)


@scalar("scipy.special.digamma", ulps=4)
def digamma(x: Value) -> Value:
    """The derivative of lgamma: an asymptotic series, or a sum that leads to [1, 2]."""
    reflected = x < 0
    b = select(reflected, 1 - x, x)
    large = b >= _STIRLING_FROM
    first = b < 1
    u, top, bottom = select(first, b + 1, b), select(first, x.like(-1), 0), select(first, b, 1)
    for i in range(1, _STIRLING_FROM - 1):
        term = b - i
        more = term >= 1
        u = select(more, term, u)
        top, bottom = (
            select(more, fma(top, term, bottom), top),
            select(more, bottom * term, bottom),
        )
    quotient = select(large, 1, top) / select(large, b, bottom)

    root_high, root_low = x.format.split(2, *_DIGAMMA_ROOT)
    y = fma((u - root_high) - root_low, poly(u - 1.5, *_DIGAMMA[x.type]), quotient)

    z = quotient * quotient
    tail = fma(z, poly(z, *_DIGAMMA_TAIL[x.type]), 0.5 * quotient)
    y = select(large, log(b) - tail, y)

    d = x - rint(x)
    cotangent = _sinpi(0.5 - abs(d)) / _sinpi(d)
    y = select(reflected, fma(cotangent, -math.pi, y), y)
    return select(reflected & ~(abs(d) > 0), math.nan, y)
