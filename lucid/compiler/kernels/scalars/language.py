"""The language of the scalars: Python arithmetic in, LLVM text out.

A scalar is a Python function of `Value`s. Calling it once with symbolic arguments writes one LLVM
instruction for every operation, so it is compiled by running it, without analyzing bytecode. Python
numbers take the type of the value they meet, `x.format` holds the constants of x's precision, and
`select` replaces `if`, so that a loop over any scalar is branch-free code that LLVM vectorizes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

Number = int | float


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: its name, its integer type and the sizes of its fields."""

    name: str
    llvm: str
    suffix: str
    integer: str
    mantissa: int
    bias: int

    @property
    def magic(self) -> float:
        """1.5 * 2**mantissa: adding it rounds to an integer and leaves that in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def epsilon(self) -> float:
        return 2.0**-self.mantissa

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def huge(self) -> float:
        """The largest finite number."""
        return (2.0 - self.epsilon) * 2.0**self.bias

    @property
    def sign(self) -> int:
        """The sign bit, as a signed integer."""
        return -(1 << (31 if self.name == "f4" else 63))

    def round(self, number: Number) -> float:
        """The nearest number of this format."""
        return struct.unpack("f", struct.pack("f", number))[0] if self.name == "f4" else number

    def bits(self, number: Number) -> int:
        """The bit pattern of a number, as a signed integer."""
        floating, integer = ("f", "i") if self.name == "f4" else ("d", "q")
        return struct.unpack(integer, struct.pack(floating, number))[0]

    def split(self, count: int, *words: float) -> tuple[float, ...]:
        """A constant, given as float64 parts, as `count` parts of this format."""
        parts: list[float] = []
        for _ in range(count):
            parts.append(self.round(math.fsum([*words, *(-part for part in parts)])))
        return tuple(parts)


F4 = Format("f4", "float", "f32", "i4", 23, 127)
F8 = Format("f8", "double", "f64", "i8", 52, 1023)
FORMATS = {"f4": F4, "f8": F8}
_LLVM = {"f4": "float", "f8": "double", "i4": "i32", "i8": "i64", "b1": "i1"}
_SAME_SIZE = {"f4": "i4", "f8": "i8", "i4": "f4", "i8": "f8"}


class Code:
    """The instructions written so far, and the intrinsics they call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.attachments: dict[str, str] = {}

    def attach(self, symbol: str, text: Callable[[], str]) -> None:
        """Add the definition of a symbol that the instructions refer to."""
        if symbol not in self.attachments:
            self.attachments[symbol] = text()

    def write(self, type: str, instruction: str) -> Value:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return Value(self, type, name)

    def call(self, intrinsic: str, type: str, *operands: str) -> Value:
        llvm = _LLVM[type]
        self.declarations.add(f"declare {llvm} @{intrinsic}({', '.join([llvm] * len(operands))})")
        arguments = ", ".join(f"{llvm} {operand}" for operand in operands)
        return self.write(type, f"call {llvm} @{intrinsic}({arguments})")


def literal(type: str, number: Number) -> str:
    """A number as LLVM writes it."""
    if type in FORMATS:
        return f"0x{struct.unpack('Q', struct.pack('d', FORMATS[type].round(number)))[0]:016X}"
    if type == "b1":
        return "true" if number else "false"
    return str(int(number))


class Value:
    """One SSA value of a scalar: an f4, f8, i4, i8 or b1."""

    __slots__ = ("code", "name", "type")

    def __init__(self, code: Code, type: str, name: str) -> None:
        self.code, self.type, self.name = code, type, name

    @property
    def format(self) -> Format:
        return FORMATS[self.type]

    def like(self, number: Number) -> Value:
        """A constant of the same type."""
        return Value(self.code, self.type, literal(self.type, number))

    def _operand(self, other: Value | Number) -> str:
        if not isinstance(other, Value):
            return literal(self.type, other)
        if other.type != self.type:
            raise TypeError(
                f"scalar: cannot mix {self.type} with {other.type}; convert one of them"
            )
        return other.name

    def _binary(
        self,
        floating: str | None,
        integer: str | None,
        other: Value | Number,
        swap: bool = False,
        result: str | None = None,
    ) -> Value:
        a, b = self.name, self._operand(other)
        if swap:
            a, b = b, a
        operation = floating if self.type in FORMATS else integer
        if operation is None:
            raise TypeError(f"scalar: operation not defined for {self.type}")
        return self.code.write(result or self.type, f"{operation} {_LLVM[self.type]} {a}, {b}")

    def __add__(self, other: Value | Number) -> Value:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: Value | Number) -> Value:
        return self._binary("fadd", "add", other, swap=True)

    def __sub__(self, other: Value | Number) -> Value:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Value | Number) -> Value:
        return self._binary("fsub", "sub", other, swap=True)

    def __mul__(self, other: Value | Number) -> Value:
        return self._binary("fmul", "mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Value | Number) -> Value:
        return self._binary("fdiv", None, other)

    def __rtruediv__(self, other: Value | Number) -> Value:
        return self._binary("fdiv", None, other, swap=True)

    def __neg__(self) -> Value:
        if self.type not in FORMATS:
            return 0 - self
        return self.code.write(self.type, f"fneg {_LLVM[self.type]} {self.name}")

    def __abs__(self) -> Value:
        return self.code.call(f"llvm.fabs.{self.format.suffix}", self.type, self.name)

    def __and__(self, other: Value | Number) -> Value:
        return self._binary(None, "and", other)

    def __or__(self, other: Value | Number) -> Value:
        return self._binary(None, "or", other)

    def __xor__(self, other: Value | Number) -> Value:
        return self._binary(None, "xor", other)

    def __invert__(self) -> Value:
        return self._binary(None, "xor", -1 if self.type != "b1" else True)

    def __lshift__(self, other: Value | Number) -> Value:
        return self._binary(None, "shl", other)

    def __rshift__(self, other: Value | Number) -> Value:
        """The logical shift: zeros come in from the left (AVX2 has no arithmetic one for i8)."""
        return self._binary(None, "lshr", other)

    def __lt__(self, other: Value | Number) -> Value:
        return self._binary("fcmp olt", "icmp slt", other, result="b1")

    def __le__(self, other: Value | Number) -> Value:
        return self._binary("fcmp ole", "icmp sle", other, result="b1")

    def __gt__(self, other: Value | Number) -> Value:
        return self._binary("fcmp ogt", "icmp sgt", other, result="b1")

    def __ge__(self, other: Value | Number) -> Value:
        return self._binary("fcmp oge", "icmp sge", other, result="b1")

    def __eq__(self, other: Value | Number) -> Value:
        return self._binary("fcmp oeq", "icmp eq", other, result="b1")

    def __ne__(self, other: Value | Number) -> Value:
        return self._binary("fcmp une", "icmp ne", other, result="b1")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("scalar: a symbolic value has no truth value; use select(c, a, b)")


def select(condition: Value, a: Value | Number, b: Value | Number) -> Value:
    """`a` where the condition holds, else `b`; both are computed."""
    like = a if isinstance(a, Value) else b
    assert isinstance(like, Value), "a or b must be a Value, which gives the type"
    llvm = _LLVM[like.type]
    yes, no = like._operand(a), like._operand(b)
    return like.code.write(like.type, f"select i1 {condition.name}, {llvm} {yes}, {llvm} {no}")


def _unary(intrinsic: str) -> Callable[[Value], Value]:
    return lambda x: x.code.call(f"llvm.{intrinsic}.{x.format.suffix}", x.type, x.name)


rint, floor, root = _unary("rint"), _unary("floor"), _unary("sqrt")


def fma(a: Value, b: Value | Number, c: Value | Number) -> Value:
    """a * b + c with one rounding."""
    operands = a.name, a._operand(b), a._operand(c)
    return a.code.call(f"llvm.fma.{a.format.suffix}", a.type, *operands)


def copysign(magnitude: Value, sign: Value) -> Value:
    suffix = magnitude.format.suffix
    return magnitude.code.call(f"llvm.copysign.{suffix}", magnitude.type, magnitude.name, sign.name)


def bits(x: Value) -> Value:
    """The bit pattern of a float as an integer of its size."""
    other = _SAME_SIZE[x.type]
    return x.code.write(other, f"bitcast {_LLVM[x.type]} {x.name} to {_LLVM[other]}")


def from_bits(i: Value) -> Value:
    """The float with the bit pattern of an integer."""
    return bits(i)


def clamp(x: Value, low: Number, high: Number) -> Value:
    """x clamped to [low, high]; nan stays nan."""
    x = select(x < low, low, x)
    return select(x > high, high, x)


def poly(x: Value, *coefficients: Number | Value) -> Value:
    """c0 + x * (c1 + x * (c2 + ...)), each step one fma."""
    last = coefficients[-1]
    total = last if isinstance(last, Value) else x.like(last)
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, c)
    return total


def nearest(x: Value) -> tuple[Value, Value]:
    """The nearest integer as a float, and as the low bits of an integer; |x| < 2**(mantissa-2)."""
    shifted = x + x.format.magic
    return shifted - x.format.magic, bits(shifted)


def scaled_one(low_bits: Value, format: Format) -> Value:
    """2**k for the k in the low bits of an integer; 1 - bias <= k <= bias."""
    return from_bits((low_bits << format.mantissa) + format.bits(1.0))


def unsigned_to_float(i: Value) -> Value:
    """An integer in [0, 2**mantissa) as a float, by its bits: AVX2 has no conversion of i8."""
    format = FORMATS[_SAME_SIZE[i.type]]
    power = 2.0**format.mantissa
    return from_bits(i | format.bits(power)) - power


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded sum and its exact error."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def fast_two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded sum and its exact error, where |a| >= |b| or a is 0."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Value, b: Value | Number) -> tuple[Value, Value]:
    """The rounded product and its exact error."""
    product = a * b
    return product, fma(a, b, -product)


def to_float(i: Value) -> Value:
    """A signed integer as a float of its size, rounded."""
    return i.code.write(
        other := _SAME_SIZE[i.type], f"sitofp {_LLVM[i.type]} {i.name} to {_LLVM[other]}"
    )


def funnel(a: Value, b: Value, shift: Value) -> Value:
    """The upper word of the double word (a, b) shifted left; shift is below the size of a word."""
    return a.code.call(f"llvm.fshl.{_LLVM[a.type]}", a.type, a.name, b.name, shift.name)


def multiply_high(a: Value, b: Value) -> Value:
    """The upper word of the unsigned product of two i8; does not vectorize."""
    wide = [a.code.write("i16", f"zext i64 {v.name} to i128").name for v in (a, b)]
    product = a.code.write("i16", f"mul i128 {wide[0]}, {wide[1]}")
    high = a.code.write("i16", f"lshr i128 {product.name}, 64")
    return a.code.write("i8", f"trunc i128 {high.name} to i64")


def load(symbol: str, words: tuple[int, ...], index: Value) -> Value:
    """A word of a constant table of i8; does not vectorize."""
    items = ", ".join(f"i64 {word}" for word in words)
    llvm = f"[{len(words)} x i64]"
    index.code.attach(
        symbol, lambda: f"@{symbol} = linkonce_odr hidden unnamed_addr constant {llvm} [{items}]"
    )
    address = f"getelementptr {llvm}, ptr @{symbol}, i64 0, i64 {index.name}"
    pointer = index.code.write("ptr", address)
    return index.code.write("i8", f"load i64, ptr {pointer.name}")


PURE = "nounwind willreturn memory(none)"


def define(
    module: Code, symbol: str, body: Callable[..., Value], type: str, arity: int, attributes: str
) -> str:
    """Define a function in a module, sharing its declarations and attachments."""
    code = Code()
    code.declarations, code.attachments = module.declarations, module.attachments
    result = body(*(Value(code, type, f"%x{i}") for i in range(arity)))
    if not isinstance(result, Value) or result.type != type:
        found = f"a value of type {result.type}" if isinstance(result, Value) else repr(result)
        raise TypeError(f"it returns {found}, not an {type} computed from its arguments")
    llvm = _LLVM[type]
    parameters = ", ".join(f"{llvm} %x{i}" for i in range(arity))
    return "\n".join(
        [
            f"define linkonce_odr hidden {llvm} @{symbol}({parameters}) {attributes} {{",
            *code.lines,
            f"  ret {llvm} {result.name}",
            "}",
        ]
    )


def assemble(symbol: str, body: Callable[..., Value], type: str, arity: int) -> str:
    """The LLVM module of one scalar at one precision, under `symbol`."""
    module = Code()
    function = define(module, symbol, body, type, arity, f"alwaysinline {PURE}")
    attached = module.attachments.values()
    return "\n".join([function, *attached, *sorted(module.declarations), ""])
