"""The functions that a listing calls, as Numba intrinsics: dtypes, `exp`, `maximum`, `where`, ...

Each is a call of an LLVM function that `ScalarWriter` writes, so it computes what the same
operation computes in the LLVM backend, to the bit. What is called during one compilation is
collected by `Definitions`, and linked when the kernel is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lucid.compiler.backends.numba.buffers import NUMBA, SHORT, IndexedAxis
from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.reductions import BITS, initial
from lucid.compiler.kernels.scalar_code import COMPARE, LLVM, TESTS, ScalarWriter
from lucid.support.caches import memoize

KEYS = ("max_key", "min_key", "from_key")
_local = threading.local()


class Definitions:
    """The LLVM functions that kernels call: of operations by symbol, of scalars by name."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}
        self.declared: set[str] = set()
        self.used: set[tuple[str, str]] = set()

    def define(self, op: str, dtype: str, operands: tuple[str, ...]) -> str:
        """The symbol of an operation on these dtypes."""
        symbol = f"lucid_{op}_{'_'.join((dtype, *operands))}"
        if symbol not in self.functions:
            self.functions[symbol] = self.text(symbol, op, dtype, operands)
        return symbol

    def text(self, symbol: str, op: str, dtype: str, operands: tuple[str, ...]) -> str:
        lines: list[str] = []

        def write(instruction: str) -> str:
            lines.append(f"  %v{len(lines)} = {instruction}")
            return f"%v{len(lines) - 1}"

        writer = ScalarWriter(write, self.declared.add, lambda op, code: self.used.add((op, code)))
        names = [f"%x{i}" for i in range(len(operands))]
        if op in KEYS:
            result = key_code(write, op, dtype, operands[0], names[0])
        else:
            result = writer.operation(op, dtype, operands[-1], names)
        given = ", ".join(f"{LLVM[t]} {x}" for t, x in zip(operands, names))
        t = LLVM[dtype]
        head = f"define linkonce_odr hidden {t} @{symbol}({given}) alwaysinline nounwind {{"
        return "\n".join([head, *lines, f"  ret {t} {result}", "}"])

    def modules(self) -> list[str]:
        """LLVM modules that define everything that was called."""
        mine = "\n".join([*self.functions.values(), *sorted(self.declared), ""])
        return [mine, *[scalars.bitcode(op, code) for op, code in sorted(self.used)]]


@contextmanager
def collecting() -> Iterator[Definitions]:
    """Context in which the functions that Numba code calls are collected."""
    before = getattr(_local, "definitions", None)
    _local.definitions = found = Definitions()
    try:
        yield found
    finally:
        _local.definitions = before


def key_code(write: Callable[[str], str], op: str, dtype: str, operand: str, x: str) -> str:
    """`max_key`, `min_key` and `from_key`, as in `reductions.py`."""

    def flipped(key: str, t: str) -> str:
        sign = write(f"ashr {t} {key}, {31 if t == 'i32' else 63}")
        return write(f"xor {t} {key}, {write(f'lshr {t} {sign}, 1')}")

    if op == "from_key":
        return write(f"bitcast {operand} {flipped(x, operand)} to {LLVM[dtype]}")
    t, bits = LLVM[operand], dtype
    key = flipped(write(f"bitcast {t} {x} to {bits}"), bits)
    nan = write(f"fcmp uno {t} {x}, {x}")
    beyond = initial("min" if op == "max_key" else "max", bits)
    return write(f"select i1 {nan}, {bits} {beyond}, {bits} {key}")


def result_dtype(op: str, operands: tuple[str, ...]) -> str:
    """The dtype of an operation's result."""
    if op in COMPARE or op in TESTS:
        return "bool"
    if op in ("max_key", "min_key"):
        return BITS[operands[0]]
    if op == "from_key":
        return {"i32": "f32", "i64": "f64"}[operands[0]]
    return operands[-1]


def call(op: str, dtype: str, operands: tuple[str, ...]) -> Any:
    """The signature and the code generator of a call."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        symbol = _local.definitions.define(op, dtype, operands)
        result, given = context.get_value_type(sig.return_type), [a.type for a in args]
        kind = ir.FunctionType(result, given)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), args)

    return NUMBA[dtype](*[NUMBA[t] for t in operands]), generate


def dtypes_of(args: tuple[Any, ...]) -> tuple[str, ...] | None:
    found = tuple(SHORT.get(types.unliteral(a), "") for a in args)
    return found if all(found) else None


@memoize()
def operation(op: str, arity: int) -> Any:
    """The intrinsic of an operation; operands other than the condition of `where` are alike."""

    def typed(*args: Any) -> Any:
        operands = dtypes_of(args)
        if operands is None:
            return None
        if op == "where":
            operands = ("bool", operands[2], operands[2])
        return call(op, result_dtype(op, operands), operands)

    def unary(context: Any, x: Any) -> Any:
        return typed(x)

    def binary(context: Any, x: Any, y: Any) -> Any:
        return typed(x, y)

    def ternary(context: Any, x: Any, y: Any, z: Any) -> Any:
        return typed(x, y, z)

    return intrinsic((unary, binary, ternary)[arity - 1])


@memoize()
def cast(dtype: str) -> Any:
    """The intrinsic that converts a number to a dtype, as NumPy's `astype` does."""

    def convert(context: Any, x: Any) -> Any:
        operands = dtypes_of((x,))
        return None if operands is None else call("cast", dtype, operands)

    return intrinsic(convert)


@intrinsic
def wrap_index(context: Any, index: Any, axis: Any) -> Any:
    """A nonnegative index; one out of bounds is noted, and 0 is read or written instead."""
    if not isinstance(axis, IndexedAxis) or not isinstance(index, types.Integer | types.Boolean):
        return None

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        i, fields = args[0], context.make_helper(builder, axis, args[1])
        zero = i.type(0)
        negative = builder.icmp_signed("<", i, zero)
        counted = builder.add(i, builder.select(negative, fields.size, zero))
        inside = builder.icmp_unsigned("<", counted, fields.size)
        wrong = builder.bitcast(fields.wrong, i.type.as_pointer())
        builder.store(builder.select(inside, builder.load(wrong), fields.code), wrong)
        return builder.select(inside, counted, zero)

    return types.int64(types.int64, axis), generate
