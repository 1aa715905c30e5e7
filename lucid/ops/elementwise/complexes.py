"""Complex numbers: real and imaginary parts, conjugates, angles, and construction from parts.

Cotangents follow PyTorch: that of z = x + iy is dL/dx + i dL/dy, the direction of steepest ascent.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ir.graph import Literal
from lucid.ops.core.apply import dtype_error, unary
from lucid.ops.core.kinds import Elementwise, sum_to
from lucid.ops.core.promote import as_tensor, cast, complex_dtype, promote, to_floating
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.logic import isnan
from lucid.ops.elementwise.trigonometric import atan2
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.node import wrap


class Real(Elementwise):
    """The real part of complex numbers, in their memory."""

    accepts, result, saves = "c", "real", ""
    is_view = True
    complex_rule = "lucid.compiler.passes.expand.lower_complex:real_part"

    def eval(self, x: np.ndarray) -> Any:
        return x.real

    def view(self, x: Any) -> Any:
        return x.parts()[0]

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return None if ts[0] is None else bind(self, ts[0])

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (cast(ct, x.dtype),)

    def insert(self, base: Any, part: Any) -> Any:
        return bind(COMPLEX, part, bind(IMAG, base))


class Imag(Elementwise):
    """The imaginary part of complex numbers, in their memory."""

    accepts, result, saves = "c", "real", ""
    is_view = True
    complex_rule = "lucid.compiler.passes.expand.lower_complex:imaginary_part"

    def eval(self, x: np.ndarray) -> Any:
        return x.imag

    def view(self, x: Any) -> Any:
        return x.parts()[1]

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return None if ts[0] is None else bind(self, ts[0])

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (bind(COMPLEX, Literal(0.0, ct.dtype), ct),)

    def insert(self, base: Any, part: Any) -> Any:
        return bind(COMPLEX, bind(REAL, base), part)


class Conj(Elementwise):
    """The complex conjugate."""

    numpy = np.conjugate
    accepts, saves = "c", ""
    complex_rule = "lucid.compiler.passes.expand.lower_complex:conjugate"

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return None if ts[0] is None else bind(self, ts[0])

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (bind(self, ct),)


class Complex(Elementwise):
    """a + ib from real a and b; float16 parts give complex64, the smallest complex dtype."""

    accepts, saves = "f", ""
    complex_rule = "lucid.compiler.passes.expand.lower_complex:make_complex"
    lowering = "lucid.compiler.lowering.index.concatenate_pad:ComplexLowering"

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        return complex_dtype(dtype)

    def eval(self, a: Any, b: Any) -> Any:
        shape = np.broadcast_shapes(np.shape(a), np.shape(b))
        out = np.empty(shape, complex_dtype(np.result_type(a, b)))
        out.real, out.imag = a, b
        return out

    def jvp(self, ts: tuple[Any, ...], y: Any, a: Any, b: Any) -> Any:
        zero = Literal(0.0, a.dtype)
        ta, tb = [zero if t is None else t for t in ts]
        t = None if ta is tb else bind(self, ta, tb)
        return t if t is None or t.shape == y.shape else t.expand(y.shape)

    def vjp(self, ct: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        parts = cast(bind(REAL, ct), a.dtype), cast(bind(IMAG, ct), a.dtype)
        return sum_to(parts[0], a.shape), sum_to(parts[1], b.shape)


REAL, IMAG, CONJ, COMPLEX = Real(), Imag(), Conj(), Complex()


@public(numpy="real")
def real(input: Any) -> Any:
    """The real part, elementwise, as a view; a real tensor is returned unchanged.

    >>> import lucid
    >>> lucid.real(lucid.tensor([1 + 2j]))
    Tensor([1.])
    """
    x = as_tensor(input)
    return bind(REAL, x) if x.dtype.kind == "c" else x


@public(numpy="imag")
def imag(input: Any) -> Any:
    """The imaginary part, elementwise, as a view; zeros for a real tensor."""
    x = as_tensor(input)
    return bind(IMAG, x) if x.dtype.kind == "c" else wrap(np.zeros(x.shape, x.dtype))


@public("lucid", "Tensor", name="conjugate")
@public("lucid", "Tensor", name="conj_physical", inplace_function=True)
@public("lucid", "Tensor", inplace=True, numpy="conjugate")
def conj(input: Any) -> Any:
    """The complex conjugate, elementwise; a real tensor is returned unchanged."""
    x = as_tensor(input)
    return unary(CONJ, x) if x.dtype.kind == "c" else x


@public("lucid", "Tensor")
def angle(input: Any) -> Any:
    """The angle of complex numbers in [-pi, pi], elementwise; 0 or pi for real numbers.

    The derivative at 0 is 0.

    >>> import lucid
    >>> lucid.angle(lucid.tensor([1j, -1 + 0j]))
    Tensor([1.5707964, 3.1415927])
    """
    x = to_floating(input)
    if x.dtype.kind == "c":
        return atan2(imag(x), real(x))
    zero = wrap(np.zeros((), x.dtype))
    return where(isnan(x), x, where(x < 0, math.pi, zero))


@public()
def complex(real: Any, imag: Any) -> Any:
    """Complex numbers from their real and imaginary parts, elementwise.

    >>> import lucid
    >>> lucid.complex(lucid.tensor([1.0, 2.0]), 1.0)
    Tensor([1.+1.j, 2.+1.j], dtype=complex64)
    """
    a, b = promote(real, imag, floating=True)
    if a.dtype.kind == "c":
        raise dtype_error("complex", a.dtype, "both parts must be real")
    return bind(COMPLEX, a, b)


@public()
def polar(abs: Any, angle: Any) -> Any:
    """Complex numbers from their absolute values and angles, elementwise."""
    from lucid.ops.elementwise.trigonometric import cos, sin

    abs = to_floating(abs)
    return complex(abs * cos(angle), abs * sin(angle))
