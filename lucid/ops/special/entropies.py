"""entr and xlog1py: products with a logarithm that are 0 where the other factor is 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ops.core.apply import floating, floating_binary
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import log, log1p
from lucid.ops.special.from_scipy import FromScipy
from lucid.public.declare import public
from lucid.tape.node import wrap


class Entr(FromScipy):
    """-x log(x): 0 at 0, -inf below 0."""

    function, saves = "entr", "x"
    scalar = "entr"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-log(x) - 1.0,)


class Xlog1py(FromScipy):
    """x log(1 + y): 0 where x is 0, unless y is nan."""

    function, saves = "xlog1py", "x"
    scalar = "xlog1py"

    def partials(self, out: Any, x: Any, y: Any) -> tuple[Any, ...]:
        in_x = None if isinstance(x, float) else _log1p_or_zero(x, y)
        if isinstance(y, float):
            return in_x, None
        return in_x, where((x == 0) & (y == -1), 0.0, x / (y + 1.0))


def _log1p_or_zero(x: Any, y: Any) -> Any:
    """Return log(1 + y), and 0 where x is 0 and the logarithm is not finite."""
    if isinstance(y, float):
        y = wrap(np.array(y, x.dtype))
    return where((x == 0) & (y <= -1), 0.0, log1p(y))


ENTR, XLOG1PY = Entr(), Xlog1py()


@public("special")
def entr(input: Any) -> Any:
    """-x log(x), elementwise: 0 at 0 and -inf below 0.

    >>> import lucid
    >>> lucid.special.entr(lucid.tensor([0.0, 0.5, -1.0]))
    Tensor([0.       , 0.3465736,      -inf])
    """
    return floating(ENTR, input)


@public("special")
def xlog1py(input: Any, other: Any) -> Any:
    """`input * log(1 + other)`, elementwise; 0 where `input` is 0, even if the log is not finite.

    >>> import lucid
    >>> lucid.special.xlog1py(lucid.tensor([0.0, 2.0]), lucid.tensor([-1.0, 0.0]))
    Tensor([0., 0.])
    """
    return floating_binary(XLOG1PY, input, other)
