"""Complex functions on pairs of real numbers: rules of `lower_complex`.

exp   e**(a/2) (cos b, sin b) e**(a/2), which overflows only where the result does
log   log |z| and the angle; near |z| = 1 by log1p, which keeps the small real part
sin, cos, sinh, cosh    products of functions of the parts, 0 where a factor is 0
sqrt  t = sqrt((|a| + |z|) / 2) and b / 2t
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid.ir.graph import Atom, Equation, Literal
from lucid.ops.core.kinds import Scale
from lucid.ops.elementwise.arithmetic import Abs, Add, Copysign, Div, Mul, Neg, Sub
from lucid.ops.elementwise.conditional import Maximum, Minimum, Where
from lucid.ops.elementwise.exponential import Exp, Log, Log1p, Sqrt
from lucid.ops.elementwise.logic import BitwiseAnd, Eq, Ge, Gt, Isinf, Lt
from lucid.ops.elementwise.trigonometric import Atan2, Cos, Cosh, Hypot, Sin, Sinh

Pair = tuple[Atom, Atom]


def number(value: float, like: Atom) -> Literal:
    return Literal(value, like.type.dtype)


def exponential(w: Any, eqn: Equation) -> Pair:
    a, b = w.parts(eqn.inputs[0])
    root = w.make(Exp(), w.make(Mul(), a, number(0.5, a)))
    parts = []
    for function in (Cos(), Sin()):
        side = w.make(Mul(), w.make(Scale(), w.make(function, b), root), root)
        parts.append(w.make(Where(), w.make(Eq(), root, number(0.0, a)), number(0.0, a), side))
    level = w.make(Eq(), b, number(0.0, b))  # a real number stays real, infinite or not
    return w.make(Where(), level, w.make(Exp(), a), parts[0]), w.make(Where(), level, b, parts[1])


def logarithm(w: Any, eqn: Equation) -> Pair:
    a, b = w.parts(eqn.inputs[0])
    size_a, size_b = w.make(Abs(), a), w.make(Abs(), b)
    big, small = w.make(Maximum(), size_a, size_b), w.make(Minimum(), size_a, size_b)
    size = w.make(Hypot(), a, b)
    above = w.make(Mul(), w.make(Sub(), big, number(1.0, a)), w.make(Add(), big, number(1.0, a)))
    inside = w.make(Add(), above, w.make(Mul(), small, small))
    near = w.make(Mul(), w.make(Log1p(), inside), number(0.5, a))
    low, high = w.make(Gt(), size, number(0.5, a)), w.make(Lt(), size, number(2.0, a))
    re = w.make(Where(), w.make(BitwiseAnd(), low, high), near, w.make(Log(), size))
    return re, w.make(Atan2(), b, a)


def trigonometric(
    first: Any, second: Any, hyperbolic: bool, negative: bool = False
) -> Callable[..., Pair]:
    """(f(s) g(t), ±f'(s) g'(t)): f, f' circular, g, g' hyperbolic; s is b or a."""

    def rule(w: Any, eqn: Equation) -> Pair:
        a, b = w.parts(eqn.inputs[0])
        s, t = (b, a) if hyperbolic else (a, b)
        re = w.make(Scale(), w.make(first[0], s), w.make(first[1], t))
        im = zero_aware(w, w.make(second[0], s), w.make(second[1], t))
        return re, w.make(Neg(), im) if negative else im

    return rule


def zero_aware(w: Any, x: Atom, y: Atom) -> Atom:
    """x y, and 0 where either is 0, even if the other is infinite."""
    product = w.make(Scale(), x, y)
    return w.make(Where(), w.make(Eq(), y, number(0.0, y)), w.make(Mul(), y, x), product)


def root_parts(w: Any, x: Atom) -> tuple[Atom, Atom, Atom]:
    """The parts of sqrt(z), and |z|."""
    a, b = w.parts(x)
    size, half = w.make(Hypot(), a, b), number(0.5, a)
    total = w.make(Add(), w.make(Mul(), w.make(Abs(), a), half), w.make(Mul(), size, half))
    t = w.make(Sqrt(), total)
    other = w.make(Div(), w.make(Mul(), w.make(Abs(), b), half), t)
    none = w.make(Eq(), t, number(0.0, t))
    other = w.make(Where(), none, number(0.0, t), other)
    infinite = w.make(Isinf(), b)
    other = w.make(Where(), infinite, w.make(Abs(), b), other)
    right = w.make(Ge(), a, number(0.0, a))
    re, im = w.make(Where(), right, t, other), w.make(Where(), right, other, t)
    return re, w.make(Copysign(), im, b), size


def square_root(w: Any, eqn: Equation) -> Pair:
    re, im, _ = root_parts(w, eqn.inputs[0])
    return re, im


def reciprocal_root(w: Any, eqn: Equation) -> Pair:
    """1 / sqrt(z) = conj(sqrt(z)) / |z|."""
    re, im, size = root_parts(w, eqn.inputs[0])
    return w.make(Div(), re, size), w.make(Neg(), w.make(Div(), im, size))


sine = trigonometric((Sin(), Cosh()), (Cos(), Sinh()), hyperbolic=False)
cosine = trigonometric((Cos(), Cosh()), (Sin(), Sinh()), hyperbolic=False, negative=True)
hyperbolic_sine = trigonometric((Cos(), Sinh()), (Sin(), Cosh()), hyperbolic=True)
hyperbolic_cosine = trigonometric((Cos(), Cosh()), (Sin(), Sinh()), hyperbolic=True)
