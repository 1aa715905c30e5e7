"""Logarithms of sums and products, and quotients that have a limit at 0: made of other functions.

xlogy, logaddexp2, logit and sinc: each is exact where the plain formula is 0 / 0, 0 * inf or loses
its digits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ops.core.apply import floating_binary, refuse
from lucid.ops.core.arguments import explained
from lucid.ops.core.errstate import quiet
from lucid.ops.core.float16 import in_float32
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import to_floating
from lucid.ops.elementwise.blending import common_floating
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import LN2, LOG, log1p, sigmoid
from lucid.ops.elementwise.trigonometric import sin
from lucid.tape.bind import bind


class Logaddexp2(Elementwise):
    """log2(2**a + 2**b) without overflow."""

    numpy = quiet(np.logaddexp2)
    accepts, saves = "f", "x"

    def partials(self, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return sigmoid((a - b) * LN2), sigmoid((b - a) * LN2)


LOGADDEXP2 = Logaddexp2()


@explained
def logaddexp2(input: Any, other: Any) -> Any:
    """`log2(2**input + 2**other)`, elementwise and without overflow.

    >>> import lucid
    >>> lucid.logaddexp2(lucid.tensor([1000.0]), lucid.tensor([1000.0]))
    Tensor([1001.])
    """
    return floating_binary(LOGADDEXP2, input, other)


@explained
def xlogy(input: Any, other: Any) -> Any:
    """`input * log(other)`, elementwise, which is 0 where `input` is, whatever its logarithm is.

    >>> import lucid
    >>> lucid.xlogy(lucid.tensor([0.0, 2.0]), lucid.tensor([0.0, 1.0]))
    Tensor([0., 0.])
    """
    x, other = common_floating("xlogy", input, other)
    nothing = (x == 0) & ((other <= 0) | (other == math.inf))
    return where(nothing, 0.0, x * bind(LOG, where(nothing, 1.0, other)))


@explained
def logit(input: Any, eps: Any = None) -> Any:
    """log(x / (1 - x)), elementwise, the inverse of sigmoid; x is first held in [eps, 1 - eps].

    >>> import lucid
    >>> lucid.logit(lucid.tensor([0.0, 0.5]), eps=0.5)
    Tensor([0., 0.])
    """
    x = to_floating(input)
    if x.dtype.kind == "c":
        raise refuse("logit", x.dtype, "it takes floating dtypes")
    if eps is not None:
        x = clamp(x, eps, 1 - eps)
    return bind(LOG, x) - log1p(-x)


# sin(u) / u = 1 - u²/3! + u⁴/5! - ...: with |u| < 0.6 the last term is below 2**-53
SINC = [(-1) ** k / math.factorial(2 * k + 1) for k in range(8)]
NEAR = 0.6


@explained
@in_float32
def sinc(input: Any) -> Any:
    """sin(pi x) / (pi x), elementwise, and 1 at 0, with the derivatives that it has there.

    >>> import lucid
    >>> lucid.sinc(lucid.tensor([0.0, 0.5]))
    Tensor([1.        , 0.63661975])
    """
    return sine_over(to_floating(input) * math.pi)


def vanishing(u: Any) -> Any:
    """`sine_over`, and 0 at infinity."""
    far = abs(u) == math.inf
    return where(far, 0.0, sine_over(where(far, 0.0, u)))


def sine_over(u: Any) -> Any:
    """sin(u) / u, and 1 at 0."""
    near = abs(u) < NEAR
    square = where(near, u, 0.0)
    square = square * square
    series = square * SINC[-1]
    for coefficient in SINC[-2:0:-1]:
        series = (series + coefficient) * square
    u = where(near, 1.0, u)
    return where(near, series + SINC[0], sin(u) / u)
