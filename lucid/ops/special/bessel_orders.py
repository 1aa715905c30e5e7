"""Bessel functions of any real order, a number, with derivatives in x by recurrence."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ops.core.apply import floating
from lucid.ops.core.arguments import public_function
from lucid.ops.special import bessel
from lucid.ops.special.from_scipy import FromScipy
from lucid.tape.bind import bind
from lucid.tape.node import Traced


class BesselY(FromScipy):
    """The Bessel function of the second kind, of another order than 0 and 1."""

    order: float
    function, saves = "yv", "x"

    def arguments(self, *xs: Any) -> tuple[Any, ...]:
        return (float(self.order), *xs)

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return ((yv(self.order - 1, x) - bind(BesselY(self.order + 1), x)) * 0.5,)


def order_of(name: str, v: Any) -> Any:
    """Return an order as an int or a float; there is no derivative in it."""
    if isinstance(v, Traced) or np.ndim(v):
        facts = "the order is one Python number, without a derivative; pass v.item() of a tensor"
        raise ArgumentError(f"{name}: {facts}")
    return int(v) if float(v).is_integer() else float(v)


@public_function("special")
def jv(v: float, x: Any) -> Any:
    """The Bessel function of the first kind of the real order `v`, elementwise.

    >>> import lucid
    >>> lucid.special.jv(0.5, lucid.tensor([1.0, 2.0])).round(decimals=4)
    Tensor([0.6714, 0.513 ])
    """
    order = order_of("jv", v)
    known = {0: bessel.J_0, 1: bessel.J_1}
    return floating(known.get(order) or bessel.BesselJ(order), x)


@public_function("special")
def yv(v: float, x: Any) -> Any:
    """The Bessel function of the second kind of the real order `v`, elementwise."""
    order = order_of("yv", v)
    known = {0: bessel.Y_0, 1: bessel.Y_1}
    return floating(known.get(order) or BesselY(order), x)


@public_function("special")
def iv(v: float, x: Any) -> Any:
    """The modified Bessel function of the first kind of the real order `v`, elementwise."""
    order = order_of("iv", v)
    known = {0: bessel.I_0, 1: bessel.I_1}
    return floating(known.get(order) or bessel.BesselI(order), x)


@public_function("special")
def ive(v: float, x: Any) -> Any:
    """e**(-|x|) iv(v, x), elementwise, which does not overflow."""
    order = order_of("ive", v)
    known = {0: bessel.I_0E, 1: bessel.I_1E}
    return floating(known.get(order) or bessel.ScaledBesselI(order), x)
