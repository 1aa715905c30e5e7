"""Reductions in the loops of a kernel: their initial values, and how they accumulate.

Extrema of floats are computed on integer keys of the same order, with nan beyond all.
"""

from __future__ import annotations

from typing import Any

from lucid.compiler.kernels.nest import Structure, Value
from lucid.compiler.kernels.scalar_code import LLVM, constant

INF = float("inf")
_LIMITS = {
    "i8": (-(2**7), 2**7 - 1), "i16": (-(2**15), 2**15 - 1), "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1), "u8": (0, 2**8 - 1), "u16": (0, 2**16 - 1), "u32": (0, 2**32 - 1),
    "u64": (0, 2**64 - 1), "f32": (-INF, INF), "f64": (-INF, INF), "bool": (False, True),
}  # fmt: skip
BITS = {"f32": "i32", "f64": "i64"}
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")


def initial(kind: str, dtype: str) -> Any:
    """The initial value of a reduction."""
    low, high = _LIMITS[dtype]
    return {"sum": 0, "prod": 1, "max": low, "min": high, "any": False, "all": True}[kind]


def ordered_as_integers(value: Value) -> bool:
    """True if this is an extremum of floats, which compares integer keys."""
    return value.param in ("max", "min") and value.dtype in BITS


class Reductions:
    """The part of the Emitter that accumulates."""

    structure: Structure
    entry: list[str]
    write: Any
    line: Any
    scalar: Any
    value: int

    def accumulator(self, v: int) -> str:
        """Allocate and initialize the accumulator of a reduction."""
        self.value, value = v, self.structure.values[v]
        name = f"%acc{len(self.entry)}"
        start = constant(initial(value.param, value.dtype), value.dtype)
        t = LLVM[value.dtype]
        if ordered_as_integers(value):
            t = BITS[value.dtype]
            start = constant(initial(value.param, t), t)
        self.entry.append(f"  {name} = alloca {t}")
        self.line(f"store {t} {start}, ptr {name}")
        return name

    def accumulate(self, v: int, slot: str, x: str) -> None:
        self.value, value = v, self.structure.values[v]
        t, kind = LLVM[value.dtype], value.param
        if ordered_as_integers(value):
            x, t = self.ordered_key(x, value), BITS[value.dtype]
            old = self.write(f"load {t}, ptr {slot}")
            total = self.scalar.integer_extremum(
                "maximum" if kind == "max" else "minimum", t, True, x, old
            )
        else:
            old = self.write(f"load {t}, ptr {slot}")
            total = self.combine(kind, value.dtype, old, x)
        self.line(f"store {t} {total}, ptr {slot}")

    def accumulated(self, v: int, slot: str) -> str:
        """The final value of a reduction."""
        self.value, value = v, self.structure.values[v]
        if not ordered_as_integers(value):
            return self.write(f"load {LLVM[value.dtype]}, ptr {slot}")
        bits = BITS[value.dtype]
        key = self.write(f"load {bits}, ptr {slot}")
        return self.write(f"bitcast {bits} {self.flip_negatives(key, bits)} to {LLVM[value.dtype]}")

    def ordered_key(self, x: str, value: Value) -> str:
        """An integer key with the order of a float, and nan beyond all for this extremum.

        Integers have fast vector extrema in any order; llvm.maximum takes four times as long.
        """
        t, bits = LLVM[value.dtype], BITS[value.dtype]
        key = self.flip_negatives(self.write(f"bitcast {t} {x} to {bits}"), bits)
        nan = self.write(f"fcmp uno {t} {x}, {x}")
        beyond = initial("min" if value.param == "max" else "max", bits)
        return self.write(f"select i1 {nan}, {bits} {beyond}, {bits} {key}")

    def flip_negatives(self, key: str, bits: str) -> str:
        """Flip all bits but the sign of negative numbers; its own inverse."""
        sign = self.write(f"ashr {bits} {key}, {31 if bits == 'i32' else 63}")
        return self.write(f"xor {bits} {key}, {self.write(f'lshr {bits} {sign}, 1')}")

    def combine(self, kind: str, dtype: str, a: str, b: str) -> str:
        t = LLVM[dtype]
        floating = dtype in ("f32", "f64")
        if dtype == "bool" and kind in ("sum", "prod"):
            kind = "any" if kind == "sum" else "all"
        if kind == "sum":
            return self.write(f"fadd reassoc {t} {a}, {b}" if floating else f"add {t} {a}, {b}")
        if kind == "prod":
            return self.write(f"fmul reassoc {t} {a}, {b}" if floating else f"mul {t} {a}, {b}")
        if kind in ("any", "all"):
            return self.write(f"{'or' if kind == 'any' else 'and'} i1 {a}, {b}")
        name = "maximum" if kind == "max" else "minimum"
        if floating:
            return self.scalar.extremum(name, dtype, a, b)
        return (
            self.scalar.boolean(name, [a, b])
            if dtype == "bool"
            else self.scalar.integer(name, dtype, [a, b])
        )
