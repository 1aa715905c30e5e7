"""Integer operations that LLVM leaves undefined for some operands, as NumPy defines them.

Each takes the writer of a kernel, an integer type, whether it is signed, and operands; it returns
the name of the result. Divisors of 0 and shifts by the full width or more are replaced beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def quotient(w: Any, t: str, signed: bool, a: str, b: str, kind: str) -> tuple[str, str]:
    """a / b toward zero, or its remainder, if b is neither 0 nor -1; and whether b is 0."""
    zero = w.write(f"icmp eq {t} {b}, 0")
    unsafe = zero
    if signed:
        unsafe = w.write(f"or i1 {zero}, {w.write(f'icmp eq {t} {b}, -1')}")
    divisor = w.write(f"select i1 {unsafe}, {t} 1, {t} {b}")
    return w.write(f"{'s' if signed else 'u'}{kind} {t} {a}, {divisor}"), zero


def truncating_divide(w: Any, t: str, signed: bool, a: str, b: str) -> tuple[str, str]:
    """a / b toward zero, and whether b is 0."""
    whole, zero = quotient(w, t, signed, a, b, "div")
    if not signed:
        return whole, zero
    is_minus_one = w.write(f"icmp eq {t} {b}, -1")
    negated = w.write(f"sub {t} 0, {a}")
    return w.write(f"select i1 {is_minus_one}, {t} {negated}, {t} {whole}"), zero


def rounds_down(w: Any, t: str, rest: str, b: str) -> str:
    """True if a remainder is not 0 and its sign differs from that of b."""
    some = w.write(f"icmp ne {t} {rest}, 0")
    differ = w.write(f"icmp slt {t} {w.write(f'xor {t} {rest}, {b}')}, 0")
    return w.write(f"and i1 {some}, {differ}")


def floor_divide(w: Any, t: str, signed: bool, a: str, b: str) -> str:
    whole, zero = truncating_divide(w, t, signed, a, b)
    if signed:
        rest, _ = quotient(w, t, signed, a, b, "rem")
        less = w.write(f"sub {t} {whole}, 1")
        whole = w.write(f"select i1 {rounds_down(w, t, rest, b)}, {t} {less}, {t} {whole}")
    return w.write(f"select i1 {zero}, {t} 0, {t} {whole}")


def remainder(w: Any, t: str, signed: bool, a: str, b: str) -> str:
    rest, zero = quotient(w, t, signed, a, b, "rem")
    if signed:
        more = w.write(f"add {t} {rest}, {b}")
        rest = w.write(f"select i1 {rounds_down(w, t, rest, b)}, {t} {more}, {t} {rest}")
    return w.write(f"select i1 {zero}, {t} 0, {t} {rest}")


def fmod(w: Any, t: str, signed: bool, a: str, b: str) -> str:
    rest, zero = quotient(w, t, signed, a, b, "rem")
    return w.write(f"select i1 {zero}, {t} 0, {t} {rest}")


def left_shift(w: Any, t: str, signed: bool, a: str, b: str) -> str:
    inside = w.write(f"icmp ult {t} {b}, {t[1:]}")
    by = w.write(f"select i1 {inside}, {t} {b}, {t} 0")
    shifted = w.write(f"shl {t} {a}, {by}")
    return w.write(f"select i1 {inside}, {t} {shifted}, {t} 0")


def right_shift(w: Any, t: str, signed: bool, a: str, b: str) -> str:
    width = int(t[1:])
    inside = w.write(f"icmp ult {t} {b}, {width}")
    by = w.write(f"select i1 {inside}, {t} {b}, {t} {width - 1}")
    if signed:
        return w.write(f"ashr {t} {a}, {by}")
    shifted = w.write(f"lshr {t} {a}, {by}")
    return w.write(f"select i1 {inside}, {t} {shifted}, {t} 0")


def power(w: Any, t: str, signed: bool, a: str, b: str) -> str:
    """a**b by squaring; a negative exponent gives the integer part of 1 / a**-b, and 0 for 0."""
    exponent = b
    if signed:
        negative = w.write(f"icmp slt {t} {b}, 0")
        odd = w.write(f"and {t} {b}, 1")
        exponent = w.write(f"select i1 {negative}, {t} {odd}, {t} {b}")
    result, square = "1", a
    for bit in range(int(t[1:]) - signed):
        here = w.write(f"and {t} {exponent}, {1 << bit}")
        taken = w.write(f"icmp ne {t} {here}, 0")
        product = w.write(f"mul {t} {result}, {square}")
        result = w.write(f"select i1 {taken}, {t} {product}, {t} {result}")
        square = w.write(f"mul {t} {square}, {square}")
    if not signed:
        return result
    one = w.write(f"icmp eq {t} {a}, 1")
    unit = w.write(f"or i1 {one}, {w.write(f'icmp eq {t} {a}, -1')}")
    vanishes = w.write(f"and i1 {negative}, {w.write(f'xor i1 {unit}, true')}")
    return w.write(f"select i1 {vanishes}, {t} 0, {t} {result}")


OPERATIONS: dict[str, Callable[..., str]] = {
    "floor_divide": floor_divide,
    "remainder": remainder,
    "fmod": fmod,
    "left_shift": left_shift,
    "pow": power,
    "right_shift": right_shift,
}
