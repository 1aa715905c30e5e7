"""The Hurwitz zeta function, with its derivative in x by Euler-Maclaurin summation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ops.core.apply import floating_binary
from lucid.ops.elementwise.exponential import exp, log
from lucid.ops.special.error_and_gamma import nan_below_lowest
from lucid.ops.special.from_scipy import FromScipy
from lucid.public.declare import public
from lucid.tape.node import wrap

TERMS = 10  # summed directly before the Euler-Maclaurin remainder
BERNOULLI = (  # numerators and denominators
    (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510),
    (43867, 798), (-174611, 330),
)  # fmt: skip


class Zeta(FromScipy):
    """The sum of (q + k)**-x over k = 0, 1, 2, ..."""

    function, saves = "_zeta", "x"

    def partials(self, y: Any, x: Any, q: Any) -> tuple[Any, ...]:
        in_x = None if isinstance(x, float) else zeta_grad_x(x, q)
        in_q = None if isinstance(q, float) else -x * zeta(x + 1.0, q)
        return in_x, in_q


ZETA = Zeta()


def zeta_grad_x(x: Any, q: Any) -> Any:
    """Return the derivative of zeta in x > 1, for q > 0, to about 2e-14 in float64.

    With w = q + N: minus the sum of log(q + k) (q + k)**-x for k < N, and the derivatives of
    w**(1 - x) / (x - 1) + w**-x / 2 + sum over j of B(2j) / (2j)! x (x + 1) ... w**(-x - 2j + 1).
    """
    q = wrap(np.array(q, x.dtype)) if isinstance(q, float) else q
    total = None
    for k in range(TERMS):
        logarithm = log(q + float(k))
        term = logarithm * exp(-x * logarithm)
        total = term if total is None else total + term
    w = q + float(TERMS)
    logarithm = log(w)
    power = exp(-x * logarithm)
    above = x - 1.0
    total = total + power * (w * (logarithm / above + 1.0 / (above * above)) + 0.5 * logarithm)
    rising, log_slope, scaled = x, 1.0 / x, power / w
    for j, (numerator, denominator) in enumerate(BERNOULLI, 1):
        coefficient = numerator / (denominator * math.factorial(2 * j))
        total = total + coefficient * rising * scaled * (logarithm - log_slope)
        for i in (2 * j - 1, 2 * j):
            rising, log_slope = rising * (x + float(i)), log_slope + 1.0 / (x + float(i))
        scaled = scaled / (w * w)
    return -total


@public("special")
def zeta(input: Any, other: Any) -> Any:
    """The sum of `(other + k)**-input` for k = 0, 1, ..., elementwise; nan if other < -2**20.

    >>> import lucid
    >>> lucid.special.zeta(lucid.tensor([2.0, 4.0]), 1.0)
    Tensor([1.644934 , 1.0823232])
    """
    return floating_binary(ZETA, input, nan_below_lowest(input, other))
