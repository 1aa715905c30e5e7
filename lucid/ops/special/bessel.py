"""Bessel functions of integer order and the Airy function, with derivatives by recurrence.

Orders above 1 of I and J appear only in derivatives: (I₀ + I₂) / 2 needs no division, so it is
exact at 0, where I₀ - I₁ / x is not. K and Y are infinite at 0, so their derivatives may divide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ops.core.apply import dtype_error, floating
from lucid.ops.core.promote import to_floating
from lucid.ops.elementwise.logarithms import unnormalized_sinc_at_inf
from lucid.ops.elementwise.rounding import sign
from lucid.ops.special.from_scipy import FromScipy
from lucid.public.declare import public
from lucid.tape.bind import bind


class I0(FromScipy):
    """The modified Bessel function of the first kind, of order 0."""

    function, saves = "i0", "x"
    scalar = "i0"

    def eval(self, *xs: np.ndarray) -> Any:
        return np.where(np.isinf(xs[0]), np.abs(xs[0]), super().eval(*xs))  # SciPy gives nan there

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (i1(x),)


class I1(FromScipy):
    """The modified Bessel function of the first kind, of order 1."""

    function, saves = "i1", "x"
    scalar = "i1"

    def eval(self, *xs: np.ndarray) -> Any:
        return np.where(np.isinf(xs[0]), xs[0], super().eval(*xs))

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return ((i0(x) + bind(BesselI(2), x)) * 0.5,)


class BesselI(FromScipy):
    """The modified Bessel function of the first kind, of another order than 0 and 1."""

    order: float
    function, saves = "iv", "x"

    def arguments(self, *xs: Any) -> tuple[Any, ...]:
        return (float(self.order), *xs)

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        below = i1(x) if self.order == 2 else bind(BesselI(self.order - 1), x)
        return ((below + bind(BesselI(self.order + 1), x)) * 0.5,)


class I0e(FromScipy):
    """e**(-|x|) i0(x)."""

    function, saves = "i0e", "xy"
    scalar = "i0e"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (i1e(x) - sign(x) * y,)


class I1e(FromScipy):
    """e**(-|x|) i1(x)."""

    function, saves = "i1e", "xy"
    scalar = "i1e"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return ((i0e(x) + bind(ScaledBesselI(2), x)) * 0.5 - sign(x) * y,)


class ScaledBesselI(FromScipy):
    """e**(-|x|) times BesselI."""

    order: float
    function, saves = "ive", "xy"

    def arguments(self, *xs: Any) -> tuple[Any, ...]:
        return (float(self.order), *xs)

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        below = i1e(x) if self.order == 2 else bind(ScaledBesselI(self.order - 1), x)
        above = bind(ScaledBesselI(self.order + 1), x)
        return ((below + above) * 0.5 - sign(x) * y,)


class J0(FromScipy):
    """The Bessel function of the first kind, of order 0."""

    function, saves = "j0", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-bessel_j1(x),)


class J1(FromScipy):
    """The Bessel function of the first kind, of order 1."""

    function, saves = "j1", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return ((bessel_j0(x) - bind(BesselJ(2), x)) * 0.5,)


class BesselJ(FromScipy):
    """The Bessel function of the first kind, of another order than 0 and 1."""

    order: float
    function, saves = "jv", "x"

    def arguments(self, *xs: Any) -> tuple[Any, ...]:
        return (float(self.order), *xs)

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        below = bessel_j1(x) if self.order == 2 else bind(BesselJ(self.order - 1), x)
        return ((below - bind(BesselJ(self.order + 1), x)) * 0.5,)


class Y0(FromScipy):
    """The Bessel function of the second kind, of order 0."""

    function, saves = "y0", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-bessel_y1(x),)


class Y1(FromScipy):
    """The Bessel function of the second kind, of order 1."""

    function, saves = "y1", "xy"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (bessel_y0(x) - y / x,)


class K0(FromScipy):
    """The modified Bessel function of the second kind, of order 0."""

    function, saves = "k0", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-modified_bessel_k1(x),)


class K1(FromScipy):
    """The modified Bessel function of the second kind, of order 1."""

    function, saves = "k1", "xy"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-modified_bessel_k0(x) - y / x,)


class K0e(FromScipy):
    """e**x k0(x)."""

    function, saves = "k0e", "xy"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (y - scaled_modified_bessel_k1(x),)


class K1e(FromScipy):
    """e**x k1(x)."""

    function, saves = "k1e", "xy"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (y - scaled_modified_bessel_k0(x) - y / x,)


class AiryAi(FromScipy):
    """The solution of y'' = x y that vanishes at infinity."""

    function, saves = "airy", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (bind(AIRY_SLOPE, x),)


class AirySlope(FromScipy):
    """The derivative of airy_ai."""

    function, output, saves = "airy", 1, "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (x * airy_ai(x),)


I_0, I_1, I_0E, I_1E, J_0, J_1 = I0(), I1(), I0e(), I1e(), J0(), J1()
Y_0, Y_1, K_0, K_1, K_0E, K_1E = Y0(), Y1(), K0(), K1(), K0e(), K1e()
AIRY_AI, AIRY_SLOPE = AiryAi(), AirySlope()


@public("special", name="modified_bessel_i0")
@public("lucid", "Tensor", "special", inplace_function=True)
def i0(input: Any) -> Any:
    """The modified Bessel function of the first kind, of order 0, elementwise.

    >>> import lucid
    >>> lucid.i0(lucid.tensor([0.0, 1.0]))
    Tensor([1.       , 1.2660658])
    """
    return floating(I_0, input)


@public("special", aliases=("modified_bessel_i1",))
def i1(input: Any) -> Any:
    """The modified Bessel function of the first kind, of order 1, elementwise."""
    return floating(I_1, input)


@public("special")
def i0e(input: Any) -> Any:
    """e**(-|x|) i0(x), elementwise, finite where i0 overflows."""
    return floating(I_0E, input)


@public("special")
def i1e(input: Any) -> Any:
    """e**(-|x|) i1(x), elementwise, finite where i1 overflows."""
    return floating(I_1E, input)


@public("special")
def bessel_j0(input: Any) -> Any:
    """The Bessel function of the first kind, of order 0, elementwise."""
    return floating(J_0, input)


@public("special")
def bessel_j1(input: Any) -> Any:
    """The Bessel function of the first kind, of order 1, elementwise."""
    return floating(J_1, input)


@public("special")
def bessel_y0(input: Any) -> Any:
    """The Bessel function of the second kind, of order 0, elementwise; nan below 0."""
    return floating(Y_0, input)


@public("special")
def bessel_y1(input: Any) -> Any:
    """The Bessel function of the second kind, of order 1, elementwise; nan below 0."""
    return floating(Y_1, input)


@public("special")
def modified_bessel_k0(input: Any) -> Any:
    """The modified Bessel function of the second kind, of order 0, elementwise; nan below 0."""
    return floating(K_0, input)


@public("special")
def modified_bessel_k1(input: Any) -> Any:
    """The modified Bessel function of the second kind, of order 1, elementwise; nan below 0."""
    return floating(K_1, input)


@public("special")
def scaled_modified_bessel_k0(x: Any) -> Any:
    """e**x modified_bessel_k0(x), elementwise."""
    return floating(K_0E, x)


@public("special")
def scaled_modified_bessel_k1(x: Any) -> Any:
    """e**x modified_bessel_k1(x), elementwise."""
    return floating(K_1E, x)


@public("special")
def airy_ai(x: Any) -> Any:
    """The Airy function Ai, elementwise."""
    return floating(AIRY_AI, x)


@public("special")
def spherical_bessel_j0(x: Any) -> Any:
    """sin(x) / x, elementwise, and 1 at 0: the spherical Bessel function of order 0."""
    x = to_floating(x)
    if x.dtype.kind == "c":
        raise dtype_error("spherical_bessel_j0", x.dtype, "it takes floating dtypes")
    return unnormalized_sinc_at_inf(x)
