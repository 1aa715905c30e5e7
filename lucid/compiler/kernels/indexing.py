"""Reads and writes at computed indices, and scans, in the loops of a kernel.

Negative indices count from the end. An index out of bounds is recorded in a word of the plan, which
raises the error when the plan has finished; index 0 is read or written instead.
"""

from __future__ import annotations

from typing import Any

from lucid.compiler.kernels.nest import Scan, Store, Structure
from lucid.compiler.kernels.reductions import initial
from lucid.compiler.kernels.scalar_code import STORED, constant


class Indexing:
    """The part of the Emitter that writes the values "offset", "at" and "scan", and stores."""

    structure: Structure
    entry: list[str]
    slots: dict[int, str]
    write: Any
    line: Any
    label: Any
    load: Any
    store: Any
    combine: Any
    scalar: Any
    value: int

    def offset(self, v: int, env: dict[int, str]) -> str:
        """The offset of an index, in elements."""
        value = self.structure.values[v]
        k, arg = value.param, value.args[0]
        index = self.scalar.cast(env[arg], self.structure.values[arg].dtype, "i64")
        negative = self.write(f"icmp slt i64 {index}, 0")
        shift = self.write(f"select i1 {negative}, i64 %size{k}, i64 0")
        counted = self.write(f"add i64 {index}, {shift}")
        inside = self.write(f"icmp ult i64 {counted}, %size{k}")
        old = self.write("load i64, ptr %wrong")
        error = self.write(f"select i1 {inside}, i64 {old}, i64 %code{k}")
        self.line(f"store i64 {error}, ptr %wrong")
        safe = self.write(f"select i1 {inside}, i64 {counted}, i64 0")
        return self.write(f"mul nsw i64 {safe}, %stride{k}")

    def pointer(self, base: str, dtype: str, offsets: Any) -> str:
        for offset in offsets:
            base = self.write(f"getelementptr {STORED[dtype]}, ptr {base}, i64 {offset}")
        return base

    def put(self, store: Store, env: dict[int, str], bases: Any) -> None:
        """Store a value, or combine it with the element that is there."""
        self.value = store.value
        dtype = self.structure.buffers[store.buffer][0]
        pointer = self.pointer(bases[store.buffer], dtype, [env[a] for a in store.at])
        value = env[store.value]
        if store.combines:
            operands = [self.load(pointer, dtype), value]
            value = self.scalar.operation(store.combines, dtype, dtype, operands)
        self.store(pointer, dtype, value)

    def start_scan(self, v: int, pointer: str) -> None:
        self.value, value = v, self.structure.values[v]
        kind = value.param.kind
        self.store(pointer, value.dtype, constant(start_of(kind, value.dtype), value.dtype))

    def scan(self, v: int, env: dict[int, str], bases: Any) -> str:
        """One step of a scan: its new state, or the previous one if exclusive."""
        value = self.structure.values[v]
        scan: Scan = value.param
        pointer = self.slots[v] if scan.buffer < 0 else bases[scan.buffer]
        old = self.load(pointer, value.dtype)
        new = self.next_state(scan.kind, value.dtype, old, [env[a] for a in value.args])
        self.store(pointer, value.dtype, new)
        return old if scan.exclusive else new

    def next_state(self, kind: str, dtype: str, old: str, args: list[str]) -> str:
        operation = self.scalar.operation
        if kind == "recurrence":  # a state of zero ignores its factor, even if that is inf
            product = operation("mul", dtype, dtype, [old, args[0]])
            total = operation("add", dtype, dtype, [product, args[1]])
            none = operation("eq", "bool", dtype, [old, constant(0.0, dtype)])
            return operation("where", dtype, dtype, [none, args[1], total])
        return operation(SCANS[kind], dtype, dtype, [old, args[0]])

    def report(self) -> None:
        """Write the code of an out-of-bounds index to the status word of the plan."""
        self.value = -1
        wrong = self.write("load i64, ptr %wrong")
        some = self.write(f"icmp ne i64 {wrong}, 0")
        self.line(f"br i1 {some}, label %report, label %done")
        self.label("report")
        self.line(f"store atomic i64 {wrong}, ptr %status monotonic, align 8")
        self.line("br label %done")
        self.label("done")


SCANS = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "logsumexp": "logaddexp"}


def start_of(kind: str, dtype: str) -> Any:
    """The state of a scan before the first step."""
    if kind == "recurrence":
        return 0
    if kind == "sum" and dtype in ("f32", "f64"):
        return -0.0  # so that the first sum is the first element, even if that is -0
    return initial("max" if kind == "logsumexp" else kind, dtype)
