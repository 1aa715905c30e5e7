"""emit: the Structure of a Nest -> LLVM IR of `void kernel(void **args, int64 lo, int64 hi)`.

Loops over kept axes are outermost and run over [lo, hi); loops over reduced axes are inside, once
for each stage of reductions. Memory accesses of the innermost loop are marked as independent, so
LLVM vectorizes it without overlap checks; only sums and products of reductions are reassociated.
A long row of a map runs as its interior and its borders (`borders.py`), and a map that reads
transposed arrays runs in tiles (`transposed.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.borders import Borders
from lucid.compiler.kernels.columns import Columns
from lucid.compiler.kernels.indexing import Indexing
from lucid.compiler.kernels.llvm_lines import LineWriter
from lucid.compiler.kernels.nest import GENERAL, Structure, values_of
from lucid.compiler.kernels.reductions import Reductions
from lucid.compiler.kernels.scalar_code import LLVM, STORED, constant
from lucid.compiler.kernels.transposed import Tiles

VERSION = 11


class Emitter(LineWriter, Borders, Reductions, Columns, Tiles, Indexing):
    """Writes one kernel."""

    def __init__(self, structure: Structure, name: str, first_id: int = 5) -> None:
        self.scans = [v for v, value in enumerate(structure.values) if value.op == "scan"]
        ordered = self.scans or any(store.at for store in structure.stores)
        super().__init__(structure, first_id, not (ordered and structure.mode == "rows"))
        self.name = name
        self.slots: dict[int, str] = {}

    # Values

    def compute(
        self,
        values: Iterable[int],
        env: dict[int, str],
        bases: Sequence[str],
        index: dict[int, str],
    ) -> None:
        """Emit the values, in order, and add their names to `env`."""
        for v in values:
            self.value, value = v, self.structure.values[v]
            if value.op == "load":
                env[v] = self.load(bases[value.param], value.dtype)
            elif value.op == "const":
                env[v] = constant(value.param, value.dtype)
            elif value.op == "number":
                env[v] = f"%c{value.param}"
            elif value.op == "iota":
                env[v] = self.scalar.cast(index[value.param], "i64", value.dtype)
            elif value.op == "offset":
                env[v] = self.offset(v, env)
            elif value.op == "at":
                offsets = [env[a] for a in value.args]
                address = self.pointer(bases[value.param], value.dtype, offsets)
                env[v] = self.load(address, value.dtype)
            elif value.op == "guarded":
                env[v] = self.guarded(env[value.args[0]], bases[value.param], value.dtype)
            elif value.op == "scan":
                env[v] = self.scan(v, env, bases)
            else:
                operand = self.structure.values[value.args[-1]].dtype
                args = [env[a] for a in value.args]
                env[v] = self.scalar.operation(value.op, value.dtype, operand, args)

    def nest(
        self,
        axes: Sequence[int],
        env: dict[int, str],
        bases: Sequence[str],
        index: dict[int, str],
        wanted: Sequence[int],
        body: Any,
        bounds: tuple[str, str] | None = None,
    ) -> None:
        """Loops over `axes`; values that do not vary along them are computed outside."""
        if not axes:
            env = dict(env)
            self.compute(self.structure.closure(wanted, env), env, bases, index)
            body(env, bases)
            return
        inside = frozenset(axes)
        env = dict(env)
        depends = self.structure.depends
        self.compute(
            [v for v in self.structure.closure(wanted, env) if not depends[v] & inside],
            env,
            bases,
            index,
        )
        start, stop = bounds or ("0", f"%n{axes[0]}")
        innermost = len(axes) == 1

        def row(env: dict[int, str], start: str, stop: str, scalar: bool = False) -> None:
            with self.loop_along(axes[0], start, stop, bases, innermost, scalar) as (i, at):
                self.nest(axes[1:], env, at, {**index, axes[0]: i}, wanted, body)

        borders = self.borders(wanted, env) if innermost else ()
        if borders:
            self.split_row(borders, env, start, stop, row)
        else:
            row(env, start, stop)

    # The kernel

    def run(self) -> str:
        s = self.structure
        self.arguments()
        bases = [f"%b{i}" for i in range(len(s.buffers))]
        kept = [a for a, r in enumerate(s.reduced) if not r]
        reduced = [a for a, r in enumerate(s.reduced) if r]
        if s.mode == "rows":
            self.outer(
                kept,
                bases,
                lambda env, at, index: self.reduce_rows(env, at, index, reduced),
                partial=not kept,
            )
        elif s.mode == "map":
            outer, last = kept[:-1], kept[-1:]
            stored = values_of(s.stores)
            if s.tiled:
                self.tiles(kept, bases)
            elif not outer:
                self.nest(last, {}, bases, {}, stored, self.store_all, ("%lo", "%hi"))
            else:
                self.outer(
                    outer,
                    bases,
                    lambda env, at, index: self.nest(last, env, at, index, stored, self.store_all),
                )
        else:
            self.columns(kept, reduced, bases)
        if s.indexed_axes:
            self.report()
        return self.text()

    def arguments(self) -> None:
        s = self.structure
        position = 0

        def word(kind: str, name: str) -> None:
            nonlocal position
            self.entry.append(f"  {name}.p = getelementptr i64, ptr %args, i64 {position}")
            self.entry.append(f"  {name} = load {kind}, ptr {name}.p")
            position += 1

        for i in range(len(s.buffers)):
            word("ptr", f"%b{i}")
        for axis in range(len(s.reduced)):
            word("i64", f"%n{axis}")
        for i, (_, classes) in enumerate(s.buffers):
            for axis, kind in enumerate(classes):
                if kind == GENERAL:
                    stride = f"%s{i}_{axis}"
                    word("i64", stride)
                    if s.collects and axis == len(classes) - 1:
                        stride = self.unspecialized(stride)
                    self.stride_names[i, axis] = stride
        numbers = [value for value in s.values if value.op == "number"]
        for value in sorted(numbers, key=lambda value: value.param):
            word(LLVM[value.dtype], f"%c{value.param}")
        if s.partial or all(s.reduced):
            word("i64", "%grain")
        if s.indexed_axes:
            word("ptr", "%status")
            self.entry += ["  %wrong = alloca i64", "  store i64 0, ptr %wrong"]
        for k in range(s.indexed_axes):
            for name in ("size", "stride", "code"):
                word("i64", f"%{name}{k}")

    def unspecialized(self, stride: str) -> str:
        """A stride as a sum: LLVM vectorizes for strides of 1 alone, as which it takes no sum."""
        self.entry.append(f'  {stride}.zero = call i64 asm "", "=r,0"(i64 0)')
        self.entry.append(f"  {stride}.sum = add i64 {stride}, {stride}.zero")
        return f"{stride}.sum"

    def outer(
        self, axes: Sequence[int], bases: Sequence[str], body: Any, partial: bool = False
    ) -> None:
        """The loop over [lo, hi) of the flattened kept axes."""
        if not axes:
            body({}, self.chunk_outputs(bases, "1") if partial else list(bases), {})
            return
        with self.loop("%lo", "%hi", innermost=False) as o:
            index: dict[int, str] = {}
            rest = o
            for axis in reversed(axes[1:]):
                index[axis] = self.write(f"urem i64 {rest}, %n{axis}")
                rest = self.write(f"udiv i64 {rest}, %n{axis}")
            index[axes[0]] = rest
            at = list(bases)
            for axis in axes:
                at = self.step(at, axis, index[axis])
            body({}, at, index)

    def chunk_outputs(self, bases: Sequence[str], size: str) -> list[str]:
        """The addresses of all buffers; partial results go to this chunk's `size` elements."""
        number = self.write(f"mul i64 {self.write('sdiv i64 %lo, %grain')}, {size}")
        out = list(bases)
        for store in self.structure.stores:
            if self.structure.values[store.value].op == "reduce":
                element = STORED[self.structure.buffers[store.buffer][0]]
                base = out[store.buffer]
                out[store.buffer] = self.write(f"getelementptr {element}, ptr {base}, i64 {number}")
        return out

    def store_all(self, env: dict[int, str], bases: Sequence[str]) -> None:
        for store in self.structure.stores:
            self.put(store, env, bases)

    def reduce_rows(
        self, env: dict[int, str], bases: Sequence[str], index: dict[int, str], axes: Sequence[int]
    ) -> None:
        """All stages for one point of the kept axes."""
        s = self.structure
        full = s.full_stores(axes)
        for stage in range(max(s.stage, default=0) + 1):
            found = s.reductions(stage)
            stores = [s.stores[k] for k, at in full if at == stage]
            if not found and not stores:
                continue
            slots = {v: self.accumulator(v) for v in found}

            def body(
                inner: dict[int, str], at: Sequence[str], stores: Any = stores, slots: Any = slots
            ) -> None:
                for v, slot in slots.items():
                    self.accumulate(v, slot, inner[s.values[v].args[0]])
                for store in stores:
                    self.put(store, inner, at)

            wanted = [s.values[v].args[0] for v in found] + values_of(stores)
            self.start_scans(wanted, env)
            bounds = ("%lo", "%hi") if all(s.reduced) else None
            self.nest(axes, env, bases, index, wanted, body, bounds)
            for v, slot in slots.items():
                env[v] = self.accumulated(v, slot)
        done = {k for k, _ in full}
        rest = [store for k, store in enumerate(s.stores) if k not in done]
        self.compute(self.structure.closure(values_of(rest), env), env, bases, index)
        for store in rest:
            self.put(store, env, bases)

    def start_scans(self, wanted: Sequence[int], env: dict[int, str]) -> None:
        """Allocate and initialize the states of scans."""
        for v in self.structure.closure(wanted, env):
            if v in self.scans:
                self.slots[v] = f"%state{v}"
                slot = f"  {self.slots[v]} = alloca {STORED[self.structure.values[v].dtype]}"
                if slot not in self.entry:
                    self.entry.append(slot)
                self.start_scan(v, self.slots[v])

    def text(self) -> str:
        return "\n".join(
            [
                f"define void @{self.name}(ptr %args, i64 %lo, i64 %hi) nounwind {{",
                "entry:",
                *self.entry,
                "  br label %start",
                "start:",
                *self.lines,
                "  ret void",
                "}",
            ]
        )


def emit(kernels: dict[str, Structure]) -> tuple[str, ...]:
    """LLVM modules, as text, that define the kernels by name, to be linked in this order."""
    bodies, declared, used = [], set(), set()
    metadata = [
        "!0 = distinct !{}",
        '!1 = !{!"llvm.loop.parallel_accesses", !0}',
        '!2 = !{!"llvm.loop.vectorize.enable", i1 false}',
        '!3 = !{!"llvm.loop.unroll.disable"}',
        '!4 = !{!"llvm.loop.unroll.count", i32 4}',
    ]
    for name, structure in kernels.items():
        emitter = Emitter(structure, name, len(metadata))
        bodies.append(emitter.run())
        declared |= emitter.declared
        used |= emitter.used
        metadata += [f"!{i} = distinct !{{!{i}, {kinds}}}" for i, kinds in emitter.loop_ids]
    first = "\n".join([*bodies, *sorted(declared), *metadata, ""])
    return (first, *[scalars.bitcode(op, code) for op, code in sorted(used)])
