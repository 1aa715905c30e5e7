"""Scalar operations of a kernel as LLVM instructions: an operation and operands in, lines out.

Arithmetic is IEEE 754 without fast-math flags, so it equals NumPy's to the bit. Functions such as
exp are those of `scalars`. What is not `supported` for a dtype is left to NumPy. A float16 is the
integer of its bits, which is only moved and converted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.compiler.kernels import integer_code, scalars

LLVM = {
    "bool": "i1", "i8": "i8", "u8": "i8", "i16": "i16", "u16": "i16", "i32": "i32", "u32": "i32",
    "i64": "i64", "u64": "i64", "f16": "i16", "f32": "float", "f64": "double",
}  # fmt: skip
STORED = {**LLVM, "bool": "i8"}
BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}
FORMATS = {"f32": "f4", "f64": "f8"}
_SUFFIX = {"f32": "f32", "f64": "f64"}

FLOAT_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
INTEGER_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
COMPARE = {
    "eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"), "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge"),
}  # fmt: skip
INTRINSICS = {
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven",
    "sqrt": "sqrt", "abs": "fabs",
}  # fmt: skip
BOOL_BINARY = {
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "add": "or",
    "mul": "and",
}
SELECTIONS = ("where", "clamp", "relu", "maximum", "minimum", "sign", "scale", "copysign")
TESTS = ("isnan", "isinf", "isfinite")
CHAIN = 3  # operations `scale`, one of the other, after which their product is a chain of its own


def supported(op: str, dtype: str, operand: str) -> bool:
    """True if there is code for `op` with operands of dtype `operand` and a result of `dtype`."""
    if dtype not in LLVM or operand not in LLVM:
        return False
    if op in ("cast", "copy", "where"):
        return True
    if "f16" in (dtype, operand):
        return False
    floating = operand in FORMATS
    if op in COMPARE:
        return True
    if op in TESTS:
        return floating
    if floating:
        if op in scalars.table:
            return dtype == operand
        has_code = op in FLOAT_BINARY or op in INTRINSICS or op in SELECTIONS
        return has_code or op in ("neg", "remainder", "floor_divide", "fmod")
    if operand == "bool":
        return op in BOOL_BINARY or op in ("bitwise_not", "maximum", "minimum")
    return op in INTEGER_BINARY or op in (
        "neg",
        "abs",
        "maximum",
        "minimum",
        "relu",
        "sign",
        "clamp",
        "bitwise_not",
        *integer_code.OPERATIONS,
    )


def constant(value: Any, dtype: str) -> str:
    """A number as LLVM writes it."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype in FORMATS:
        if dtype == "f32":
            value = struct.unpack("f", struct.pack("f", _to_f32(float(value))))[0]
        return f"0x{struct.unpack('Q', struct.pack('d', float(value)))[0]:016X}"
    if dtype == "f16":
        return str(int(np.array(value).astype(np.float16).view(np.int16)))
    return str(int(value))


def _to_f32(value: float) -> float:
    try:
        struct.pack("f", value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return value


class ScalarWriter:
    """Writes instructions: `write(line)` appends `%vN = line` and returns the name.

    `declare` receives function declarations, `use` the functions of `scalars` that are called.
    """

    def __init__(
        self,
        write: Callable[[str], str],
        declare: Callable[[str], None],
        use: Callable[[str, str], None],
    ):
        self.write = write
        self.declare = declare
        self.use = use
        self.scaled: dict[str, tuple[int, str, str]] = {}  # a result of scale: its chain

    def operation(self, op: str, dtype: str, operand: str, args: list[str]) -> str:
        """The result of `op`; `operand` is the dtype of the last argument."""
        t = LLVM[operand]
        floating = operand in FORMATS
        if op == "copy":
            return args[0]
        if op == "cast":
            return self.cast(args[0], operand, dtype)
        if op == "where":
            return self.write(f"select i1 {args[0]}, {t} {args[1]}, {t} {args[2]}")
        if op in COMPARE:
            return self.compare(op, operand, *args)
        if op in TESTS:
            return self.test(op, operand, args[0])
        if operand == "bool":
            return self.boolean(op, args)
        if floating:
            return self.floating(op, operand, args)
        return self.integer(op, operand, args)

    def intrinsic(self, name: str, t: str, *args: str) -> str:
        self.declare(f"declare {t} @{name}({', '.join([t] * len(args))})")
        return self.write(f"call {t} @{name}({', '.join(f'{t} {a}' for a in args)})")

    def compare(self, op: str, operand: str, a: str, b: str) -> str:
        ordered, signed, unsigned = COMPARE[op]
        if operand in FORMATS:
            return self.write(f"fcmp {ordered} {LLVM[operand]} {a}, {b}")
        kind = unsigned if operand[0] in "ub" else signed
        return self.write(f"icmp {kind} {LLVM[operand]} {a}, {b}")

    def test(self, op: str, operand: str, x: str) -> str:
        t = LLVM[operand]
        if op == "isnan":
            return self.write(f"fcmp uno {t} {x}, {x}")
        size = self.intrinsic(f"llvm.fabs.{_SUFFIX[operand]}", t, x)
        kind = "oeq" if op == "isinf" else "olt"
        return self.write(f"fcmp {kind} {t} {size}, {constant(float('inf'), operand)}")

    def boolean(self, op: str, args: list[str]) -> str:
        if op == "bitwise_not":
            return self.write(f"xor i1 {args[0]}, true")
        name = {"maximum": "or", "minimum": "and"}.get(op) or BOOL_BINARY[op]
        return self.write(f"{name} i1 {args[0]}, {args[1]}")

    def floating(self, op: str, dtype: str, args: list[str]) -> str:
        t, suffix = LLVM[dtype], _SUFFIX[dtype]
        zero = constant(0.0, dtype)
        if op in FLOAT_BINARY:
            return self.write(f"{FLOAT_BINARY[op]} {t} {args[0]}, {args[1]}")
        if op in INTRINSICS:
            return self.intrinsic(f"llvm.{INTRINSICS[op]}.{suffix}", t, args[0])
        if op == "neg":
            return self.write(f"fneg {t} {args[0]}")
        if op in ("maximum", "minimum"):
            return self.extremum(op, dtype, args[1], args[0])  # the second of 0 and -0, as NumPy
        if op == "relu":
            below = self.write(f"fcmp olt {t} {args[0]}, {zero}")
            return self.write(f"select i1 {below}, {t} {zero}, {t} {args[0]}")
        if op == "clamp":
            low = self.extremum("maximum", dtype, args[0], args[1])
            return self.extremum("minimum", dtype, low, args[2])
        if op == "scale":
            return self.scale(t, zero, *args)
        if op == "copysign":
            return self.intrinsic(f"llvm.copysign.{suffix}", t, *args)
        if op == "sign":
            one = self.intrinsic(f"llvm.copysign.{suffix}", t, constant(1.0, dtype), args[0])
            plain = self.write(f"fcmp one {t} {args[0]}, {zero}")
            return self.write(f"select i1 {plain}, {t} {one}, {t} {args[0]}")
        if op in ("remainder", "floor_divide"):
            return self.floor_division(op, dtype, *args)
        if op == "fmod":
            return self.write(f"frem {t} {args[0]}, {args[1]}")
        return self.call(op, dtype, args)

    def scale(self, t: str, zero: str, x: str, y: str) -> str:
        """x * y, and zero where x is zero.

        Where x is the result of several others, scale(scale(scale(a, b), c), d), it is zero if it
        was so at any step, or if their product is, with all zeros ignored. So each step of a long
        chain waits for a multiplication alone, not for a comparison and a choice as well.
        """
        links, product, none = self.scaled.get(x, (0, x, ""))
        if links < CHAIN:
            product, none = x, ""
        zeros = self.write(f"fcmp oeq {t} {product}, {zero}")
        none = self.write(f"or i1 {none}, {zeros}") if none else zeros
        product = self.write(f"fmul {t} {product}, {y}")
        out = self.write(f"select i1 {none}, {t} {zero}, {t} {product}")
        self.scaled[out] = (links + 1, product, none)
        return out

    def call(self, op: str, dtype: str, args: list[str]) -> str:
        """A call of a function of `scalars`."""
        code, t = FORMATS[dtype], LLVM[dtype]
        self.use(op, code)
        symbol = scalars.symbol(op, code)
        self.declare(f"declare {t} @{symbol}({', '.join([t] * len(args))})")
        return self.write(f"call {t} @{symbol}({', '.join(f'{t} {a}' for a in args)})")

    def extremum(self, op: str, dtype: str, a: str, b: str) -> str:
        """maximum and minimum that propagate nan; compares and selects always vectorize."""
        t = LLVM[dtype]
        keep = self.write(f"fcmp {'oge' if op == 'maximum' else 'ole'} {t} {a}, {b}")
        nan = self.write(f"fcmp uno {t} {a}, {a}")
        first = self.write(f"or i1 {keep}, {nan}")
        return self.write(f"select i1 {first}, {t} {a}, {t} {b}")

    def floor_division(self, op: str, dtype: str, a: str, b: str) -> str:
        """Python's % and //, from the remainder of C's fmod."""
        t, suffix, zero = LLVM[dtype], _SUFFIX[dtype], constant(0.0, dtype)
        rest = self.write(f"frem {t} {a}, {b}")
        exact = self.write(f"fcmp oeq {t} {rest}, {zero}")
        below = self.write(f"fcmp olt {t} {rest}, {zero}")
        negative = self.write(f"fcmp olt {t} {b}, {zero}")
        differ = self.write(f"xor i1 {below}, {negative}")
        shifted = self.write(f"fadd {t} {rest}, {b}")
        moved = self.write(f"select i1 {differ}, {t} {shifted}, {t} {rest}")
        signed_zero = self.intrinsic(f"llvm.copysign.{suffix}", t, zero, b)
        if op == "remainder":
            return self.write(f"select i1 {exact}, {t} {signed_zero}, {t} {moved}")
        mod = self.write(f"select i1 {exact}, {t} {rest}, {t} {moved}")
        whole = self.write(f"fdiv {t} {self.write(f'fsub {t} {a}, {mod}')}, {b}")
        floor = self.intrinsic(f"llvm.floor.{suffix}", t, whole)
        gap = self.write(f"fsub {t} {whole}, {floor}")
        up = self.write(f"fcmp ogt {t} {gap}, {constant(0.5, dtype)}")
        above = self.write(f"fadd {t} {floor}, {constant(1.0, dtype)}")
        nearest = self.write(f"select i1 {up}, {t} {above}, {t} {floor}")
        quotient = self.write(f"fdiv {t} {a}, {b}")
        none = self.intrinsic(f"llvm.copysign.{suffix}", t, zero, quotient)
        is_zero = self.write(f"fcmp oeq {t} {whole}, {zero}")
        result = self.write(f"select i1 {is_zero}, {t} {none}, {t} {nearest}")
        by_zero = self.write(f"fcmp oeq {t} {b}, {zero}")
        return self.write(f"select i1 {by_zero}, {t} {quotient}, {t} {result}")

    def integer(self, op: str, dtype: str, args: list[str]) -> str:
        t = LLVM[dtype]
        signed = dtype[0] == "i"
        if op in INTEGER_BINARY:
            return self.write(f"{INTEGER_BINARY[op]} {t} {args[0]}, {args[1]}")
        if op in integer_code.OPERATIONS:
            return integer_code.OPERATIONS[op](self, t, signed, *args)
        if op == "neg":
            return self.write(f"sub {t} 0, {args[0]}")
        if op == "bitwise_not":
            return self.write(f"xor {t} {args[0]}, -1")
        if op == "abs":
            if not signed:
                return args[0]
            below = self.write(f"icmp slt {t} {args[0]}, 0")
            return self.write(
                f"select i1 {below}, {t} {self.write(f'sub {t} 0, {args[0]}')}, {t} {args[0]}"
            )
        if op == "sign":
            return self.integer_sign(t, signed, args[0])
        if op == "clamp":
            return self.integer_extremum(
                "minimum",
                t,
                signed,
                self.integer_extremum("maximum", t, signed, args[0], args[1]),
                args[2],
            )
        return (
            self.integer_extremum("maximum", t, signed, args[0], "0")
            if op == "relu"
            else self.integer_extremum(op, t, signed, *args)
        )

    def integer_sign(self, t: str, signed: bool, x: str) -> str:
        above = self.write(f"icmp {'sgt' if signed else 'ugt'} {t} {x}, 0")
        one = self.write(f"zext i1 {above} to {t}") if t != "i1" else above
        if not signed:
            return one
        below = self.write(f"icmp slt {t} {x}, 0")
        return self.write(f"select i1 {below}, {t} -1, {t} {one}")

    def integer_extremum(self, op: str, t: str, signed: bool, a: str, b: str) -> str:
        kind = ("sgt" if signed else "ugt") if op == "maximum" else ("slt" if signed else "ult")
        first = self.write(f"icmp {kind} {t} {a}, {b}")
        return self.write(f"select i1 {first}, {t} {a}, {t} {b}")

    def cast(self, x: str, source: str, target: str) -> str:
        """A conversion as by NumPy's `astype`."""
        if source == target:
            return x
        if source == "f16":
            bits = self.write(f"bitcast i16 {x} to half")
            return self.cast(self.write(f"fpext half {bits} to float"), "f32", target)
        if target == "f16":
            return self.to_float16(x, source)
        a, b = LLVM[source], LLVM[target]
        if target == "bool":
            zero = constant(0, source)
            return self.write(
                f"fcmp une {a} {x}, {zero}" if source in FORMATS else f"icmp ne {a} {x}, 0"
            )
        if source in FORMATS:
            if target in FORMATS:
                return self.write(f"{'fpext' if b == 'double' else 'fptrunc'} {a} {x} to {b}")
            return self.float_to_integer(x, source, target)
        if target in FORMATS:
            kind = "uitofp" if source[0] in "ub" else "sitofp"
            return self.write(f"{kind} {a} {x} to {b}")
        if BYTES[a] == BYTES[b] and a != "i1":
            return x
        if BYTES[b] < BYTES[a]:
            return self.write(f"trunc {a} {x} to {b}")
        return self.write(f"{'zext' if source[0] in 'ub' else 'sext'} {a} {x} to {b}")

    def to_float16(self, x: str, source: str) -> str:
        """The bits of the nearest float16; wide numbers go through a float32 rounded to odd."""
        wide = BYTES[LLVM[source]] > 2 and source != "f32"
        if not wide:
            single = self.cast(x, source, "f32")
        else:
            x = self.cast(x, source, "f64")
            near = self.write(f"fptrunc double {x} to float")
            back = self.write(f"fpext float {near} to double")
            size = [self.intrinsic("llvm.fabs.f64", "double", y) for y in (back, x)]
            above = self.write(f"fcmp ogt double {size[0]}, {size[1]}")
            inexact = self.write(f"fcmp one double {back}, {x}")
            bits = self.write(f"bitcast float {near} to i32")
            less = self.write(f"select i1 {above}, i32 -1, i32 0")
            below = self.write(f"add i32 {bits}, {less}")
            odd = self.write(f"or i32 {below}, {self.write(f'zext i1 {inexact} to i32')}")
            single = self.write(f"bitcast i32 {odd} to float")
        half = self.write(f"fptrunc float {single} to half")
        return self.write(f"bitcast half {half} to i16")

    def float_to_integer(self, x: str, source: str, target: str) -> str:
        """Convert through i64, saturating where C leaves it undefined, then truncate."""
        a, b = LLVM[source], LLVM[target]
        name = f"llvm.fptosi.sat.i64.{_SUFFIX[source]}"
        if target == "u64":
            name = f"llvm.fptoui.sat.i64.{_SUFFIX[source]}"
        self.declare(f"declare i64 @{name}({a})")
        wide = self.write(f"call i64 @{name}({a} {x})")
        return wide if b == "i64" else self.write(f"trunc i64 {wide} to {b}")
