"""emit: the Structure of a Nest -> LLVM text of `void kernel(void **args, int64 lo, int64 hi)`.

Loops over kept axes are outside and run over [lo, hi); loops over reduced axes are inside, once for
each stage of reductions. Memory accesses of the innermost loop are marked as independent, so LLVM
vectorises it without checking for overlap; sums may be reassociated, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from lucid.compiler import scalars
from lucid.compiler.nest import GENERAL, Store, Structure, Value
from lucid.compiler.places import Places
from lucid.compiler.scalar_code import LLVM, STORED, ScalarWriter, constant

VERSION = 6

INF = float("inf")
_LIMITS = {
    "i8": (-(2**7), 2**7 - 1), "i16": (-(2**15), 2**15 - 1), "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1), "u8": (0, 2**8 - 1), "u16": (0, 2**16 - 1), "u32": (0, 2**32 - 1),
    "u64": (0, 2**64 - 1), "f32": (-INF, INF), "f64": (-INF, INF), "bool": (False, True),
}  # fmt: skip
BITS = {"f32": "i32", "f64": "i64"}
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")


def initial(kind: str, dtype: str) -> Any:
    """The number that a reduction starts from."""
    low, high = _LIMITS[dtype]
    return {"sum": 0, "prod": 1, "max": low, "min": high, "any": False, "all": True}[kind]


def ordered_as_integers(value: Value) -> bool:
    """Is this an extremum of floats?"""
    return value.param in ("max", "min") and value.dtype in BITS


class Emitter(Places):
    """Writes one kernel."""

    def __init__(self, structure: Structure, name: str, first_id: int = 2) -> None:
        self.structure = structure
        self.name = name
        self.first_id = first_id
        self.loop_ids: list[int] = []
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.used: set[tuple[str, str]] = set()
        self.number = 0
        self.block = "start"
        self.innermost = False
        self.loops = 0
        self.scalar = ScalarWriter(
            self.write, self.declared.add, lambda op, code: self.used.add((op, code))
        )
        self.stride_names: dict[tuple[int, int], str] = {}
        self.slots: dict[int, str] = {}
        self.scans = [v for v, value in enumerate(structure.values) if value.op == "scan"]
        ordered = self.scans or any(store.at for store in structure.stores)
        self.parallel = not (ordered and structure.mode == "rows")

    # Lines

    def fresh(self) -> str:
        self.number += 1
        return f"%v{self.number}"

    def write(self, instruction: str) -> str:
        name = self.fresh()
        self.lines.append(f"  {name} = {instruction}")
        return name

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    @contextmanager
    def loop(self, start: str, stop: str, innermost: bool):  # type: ignore[no-untyped-def]
        """A loop from `start` to `stop`, never empty; gives the name of its index."""
        innermost = innermost and self.parallel
        self.loops += 1
        tag = f"l{self.loops}"
        before, index, following = self.block, f"%l{self.loops}.i", f"%l{self.loops}.next"
        self.line(f"br label %{tag}")
        self.label(tag)
        head = len(self.lines)
        outer, self.innermost = self.innermost, innermost
        yield index
        self.innermost = outer
        self.line(f"{following} = add nuw nsw i64 {index}, 1")
        more = self.write(f"icmp slt i64 {following}, {stop}")
        mark = f", !llvm.loop !{self.identify()}" if innermost else ""
        self.line(f"br i1 {more}, label %{tag}, label %{tag}.exit{mark}")
        phi = f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{self.block} ]"
        self.lines.insert(head, phi)
        self.label(f"{tag}.exit")

    def identify(self) -> int:
        """A number for the metadata of one loop: LLVM notes there that the loop is vectorised."""
        self.loop_ids.append(len(self.loop_ids) + self.first_id)
        return self.loop_ids[-1]

    # Memory

    def access(self) -> str:
        return ", !llvm.access.group !0" if self.innermost else ""

    def step(self, bases: Sequence[str], axis: int, index: str) -> list[str]:
        """The addresses of all buffers at `index` along `axis`."""
        out = []
        for i, base in enumerate(bases):
            dtype, classes = self.structure.buffers[i]
            kind = classes[axis]
            if kind == 0:
                out.append(base)
                continue
            offset = (
                index
                if kind == 1
                else self.write(f"mul nsw i64 {index}, {self.stride_names[i, axis]}")
            )
            out.append(self.write(f"getelementptr {STORED[dtype]}, ptr {base}, i64 {offset}"))
        return out

    def load(self, pointer: str, dtype: str) -> str:
        value = self.write(f"load {STORED[dtype]}, ptr {pointer}{self.access()}")
        return self.write(f"icmp ne i8 {value}, 0") if dtype == "bool" else value

    def guarded(self, condition: str, pointer: str, dtype: str) -> str:
        """What lies at an address where a condition holds, else 0: LLVM makes it a masked load."""
        before, tag = self.block, f"g{self.number}"
        self.line(f"br i1 {condition}, label %{tag}, label %{tag}.exit")
        self.label(tag)
        found = self.load(pointer, dtype)
        self.line(f"br label %{tag}.exit")
        self.label(f"{tag}.exit")
        zero = constant(0, dtype)
        return self.write(f"phi {LLVM[dtype]} [ {zero}, %{before} ], [ {found}, %{tag} ]")

    def store(self, pointer: str, dtype: str, value: str) -> None:
        if dtype == "bool":
            value = self.write(f"zext i1 {value} to i8")
        self.line(f"store {STORED[dtype]} {value}, ptr {pointer}{self.access()}")

    # Values

    def closure(self, wanted: Iterable[int], env: dict[int, str]) -> list[int]:
        """The values that must be computed for `wanted`, in order."""
        seen: set[int] = set()
        stack = [v for v in wanted if v not in env]
        while stack:
            v = stack.pop()
            if v in seen or v in env:
                continue
            seen.add(v)
            stack.extend(self.structure.values[v].args)
        return sorted(seen)

    def compute(
        self,
        values: Iterable[int],
        env: dict[int, str],
        bases: Sequence[str],
        index: dict[int, str],
    ) -> None:
        """Write the values, whose arguments are in `env`, into `env`."""
        for v in values:
            value = self.structure.values[v]
            if value.op == "load":
                env[v] = self.load(bases[value.param], value.dtype)
            elif value.op == "const":
                env[v] = constant(value.param, value.dtype)
            elif value.op == "number":
                env[v] = f"%c{value.param}"
            elif value.op == "iota":
                env[v] = self.scalar.cast(index[value.param], "i64", value.dtype)
            elif value.op == "place":
                env[v] = self.place(v, env)
            elif value.op == "at":
                places = [env[a] for a in value.args]
                address = self.pointer(bases[value.param], value.dtype, places)
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
        """Loops over `axes`; what does not vary along them is computed outside."""
        if not axes:
            env = dict(env)
            self.compute(self.closure(wanted, env), env, bases, index)
            body(env, bases)
            return
        inside = frozenset(axes)
        env = dict(env)
        depends = self.structure.depends
        self.compute(
            [v for v in self.closure(wanted, env) if not depends[v] & inside], env, bases, index
        )
        start, stop = bounds or ("0", f"%n{axes[0]}")
        with self.loop(start, stop, innermost=len(axes) == 1) as i:
            self.nest(
                axes[1:], env, self.step(bases, axes[0], i), {**index, axes[0]: i}, wanted, body
            )

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
                lambda env, at, index: self.rows(env, at, index, reduced),
                partial=not kept,
            )
        elif s.mode == "map":
            outer, last = kept[:-1], kept[-1:]
            stored = needs(s.stores)
            if not outer:
                self.nest(last, {}, bases, {}, stored, self.store_all, ("%lo", "%hi"))
            else:
                self.outer(
                    outer,
                    bases,
                    lambda env, at, index: self.nest(last, env, at, index, stored, self.store_all),
                )
        else:
            self.columns(kept, reduced, bases)
        if s.places:
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
                    self.stride_names[i, axis] = f"%s{i}_{axis}"
                    word("i64", f"%s{i}_{axis}")
        numbers = [value for value in s.values if value.op == "number"]
        for value in sorted(numbers, key=lambda value: value.param):
            word(LLVM[value.dtype], f"%c{value.param}")
        if s.mode == "rows" and all(s.reduced):
            word("i64", "%grain")
        if s.places:
            word("ptr", "%status")
            self.entry += ["  %wrong = alloca i64", "  store i64 0, ptr %wrong"]
        for k in range(s.places):
            for name in ("size", "apart", "code"):
                word("i64", f"%{name}{k}")

    def outer(
        self, axes: Sequence[int], bases: Sequence[str], body: Any, partial: bool = False
    ) -> None:
        """The loop over [lo, hi) of the flattened kept axes."""
        if not axes:
            if partial:
                chunk = self.write("sdiv i64 %lo, %grain")
                bases = list(bases)
                for store in self.structure.stores:
                    if self.structure.values[store.value].op != "reduce":
                        continue
                    dtype = self.structure.buffers[store.buffer][0]
                    bases[store.buffer] = self.write(
                        f"getelementptr {STORED[dtype]}, ptr {bases[store.buffer]}, i64 {chunk}"
                    )
            body({}, list(bases), {})
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

    def store_all(self, env: dict[int, str], bases: Sequence[str]) -> None:
        for store in self.structure.stores:
            self.put(store, env, bases)

    def reductions(self, stage: int) -> list[int]:
        s = self.structure
        return [
            v
            for v, value in enumerate(s.values)
            if value.op == "reduce" and s.stage[value.args[0]] == stage
        ]

    def full_stores(self, axes: Sequence[int]) -> list[tuple[int, int]]:
        """Stores of values that vary along the reduced axes, with their stages."""
        s = self.structure
        inside = frozenset(axes)
        classes = [s.buffers[store.buffer][1] for store in s.stores]
        return [
            (k, s.stage[store.value])
            for k, store in enumerate(s.stores)
            if any(s.depends[v] & inside for v in needs([store]))
            or any(classes[k][a] for a in axes)
        ]

    def rows(
        self, env: dict[int, str], bases: Sequence[str], index: dict[int, str], axes: Sequence[int]
    ) -> None:
        """All stages for one point of the kept axes."""
        s = self.structure
        full = self.full_stores(axes)
        for stage in range(max(s.stage, default=0) + 1):
            found = self.reductions(stage)
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

            wanted = [s.values[v].args[0] for v in found] + needs(stores)
            self.start_scans(wanted, env)
            bounds = ("%lo", "%hi") if all(s.reduced) else None
            self.nest(axes, env, bases, index, wanted, body, bounds)
            for v, slot in slots.items():
                env[v] = self.accumulated(v, slot)
        done = {k for k, _ in full}
        rest = [store for k, store in enumerate(s.stores) if k not in done]
        self.compute(self.closure(needs(rest), env), env, bases, index)
        for store in rest:
            self.put(store, env, bases)

    def start_scans(self, wanted: Sequence[int], env: dict[int, str]) -> None:
        """Local variables for running results, at their start."""
        for v in self.closure(wanted, env):
            if v in self.scans:
                self.slots[v] = f"%state{v}"
                slot = f"  {self.slots[v]} = alloca {STORED[self.structure.values[v].dtype]}"
                if slot not in self.entry:
                    self.entry.append(slot)
                self.start_scan(v, self.slots[v])

    def accumulator(self, v: int) -> str:
        """A local variable that holds what a reduction came to so far."""
        value = self.structure.values[v]
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
        value = self.structure.values[v]
        t, kind = LLVM[value.dtype], value.param
        if ordered_as_integers(value):
            x, t = self.ordered(x, value), BITS[value.dtype]
            old = self.write(f"load {t}, ptr {slot}")
            total = self.scalar.pick("maximum" if kind == "max" else "minimum", t, True, x, old)
        else:
            old = self.write(f"load {t}, ptr {slot}")
            total = self.combine(kind, value.dtype, old, x)
        self.line(f"store {t} {total}, ptr {slot}")

    def accumulated(self, v: int, slot: str) -> str:
        """What a reduction came to."""
        value = self.structure.values[v]
        if not ordered_as_integers(value):
            return self.write(f"load {LLVM[value.dtype]}, ptr {slot}")
        bits = BITS[value.dtype]
        key = self.write(f"load {bits}, ptr {slot}")
        return self.write(f"bitcast {bits} {self.turned(key, bits)} to {LLVM[value.dtype]}")

    def ordered(self, x: str, value: Value) -> str:
        """An integer in the place that a float has in order, with nan beyond all for this extremum.

        Integers have fast vector extrema in any order; llvm.maximum takes four times as long.
        """
        t, bits = LLVM[value.dtype], BITS[value.dtype]
        key = self.turned(self.write(f"bitcast {t} {x} to {bits}"), bits)
        nan = self.write(f"fcmp uno {t} {x}, {x}")
        beyond = initial("min" if value.param == "max" else "max", bits)
        return self.write(f"select i1 {nan}, {bits} {beyond}, {bits} {key}")

    def turned(self, key: str, bits: str) -> str:
        """Negative numbers with all bits but the sign flipped: its own inverse."""
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

    def columns(self, kept: Sequence[int], reduced: Sequence[int], bases: Sequence[str]) -> None:
        """The last axis is kept: partial results stand in memory, a row of them at a time."""
        last = kept[-1]
        outer = list(kept[:-1])
        if outer:
            self.outer(
                outer,
                bases,
                lambda env, at, index: self.column_block(env, at, index, reduced, last, None),
            )
        else:
            self.column_block({}, list(bases), {}, reduced, last, ("%lo", "%hi"))

    def column_block(
        self,
        env: dict[int, str],
        bases: Sequence[str],
        index: dict[int, str],
        reduced: Sequence[int],
        last: int,
        bounds: tuple[str, str] | None,
    ) -> None:
        """Every reduction of a column kernel is stored: `stores` name the buffers that hold it."""
        s = self.structure
        holder = {
            store.value: store.buffer for store in s.stores if s.values[store.value].op == "reduce"
        }
        start, stop = bounds or ("0", f"%n{last}")
        full = self.full_stores(reduced)
        for stage in range(max(s.stage, default=0) + 1):
            found = self.reductions(stage)
            stores = [s.stores[k] for k, at in full if at == stage]
            if not found and not stores:
                continue
            wanted = [s.values[v].args[0] for v in found] + needs(stores)
            scans = [v for v in self.closure(wanted, env) if v in self.scans]
            if found or scans:
                with self.loop(start, stop, innermost=True) as i:
                    at = self.step(bases, last, i)
                    for v in scans:
                        self.start_scan(v, at[s.values[v].param.buffer])
                    for v in found:
                        value = s.values[v]
                        self.store(
                            at[holder[v]],
                            value.dtype,
                            constant(initial(value.param, value.dtype), value.dtype),
                        )
            self.sweep(
                list(reduced), env, bases, index, wanted, found, stores, holder, last, (start, stop)
            )
        done = {k for k, _ in full} | {
            k
            for k, store in enumerate(s.stores)
            if store.value in holder and store.buffer == holder[store.value]
        }
        rest = [store for k, store in enumerate(s.stores) if k not in done]
        if rest:
            with self.loop(start, stop, innermost=True) as i:
                at = self.step(bases, last, i)
                inner = dict(env)
                self.read_reductions(inner, at, holder, needs(rest))
                self.compute(
                    self.closure(needs(rest), inner),
                    inner,
                    at,
                    {**index, last: i},
                )
                for store in rest:
                    self.put(store, inner, at)

    def read_reductions(
        self, env: dict[int, str], at: Sequence[str], holder: dict[int, int], wanted: Sequence[int]
    ) -> None:
        """Reductions that `wanted` need, from the memory that holds them."""
        for v in self.closure(wanted, env):
            if v in holder and v not in env:
                env[v] = self.load(at[holder[v]], self.structure.values[v].dtype)

    def sweep(
        self,
        axes: list[int],
        env: dict[int, str],
        bases: Sequence[str],
        index: dict[int, str],
        wanted: Sequence[int],
        found: Sequence[int],
        stores: Sequence[Any],
        holder: dict[int, int],
        last: int,
        bounds: tuple[str, str],
    ) -> None:
        """Loops over the reduced axes outside and the columns inside."""
        s = self.structure
        if axes:
            with self.loop("0", f"%n{axes[0]}", innermost=False) as i:
                at = self.step(bases, axes[0], i)
                inner = {**index, axes[0]: i}
                self.sweep(axes[1:], env, at, inner, wanted, found, stores, holder, last, bounds)
            return
        outside = dict(env)
        fixed = [
            v
            for v in self.closure(wanted, outside)
            if last not in s.depends[v] and not self.needs_reduction(v)
        ]
        self.compute(fixed, outside, bases, index)
        with self.loop(*bounds, innermost=True) as i:
            at = self.step(bases, last, i)
            inner_env = dict(outside)
            self.read_reductions(inner_env, at, holder, wanted)
            self.compute(self.closure(wanted, inner_env), inner_env, at, {**index, last: i})
            for v in found:
                value = s.values[v]
                old = self.load(at[holder[v]], value.dtype)
                total = self.combine(value.param, value.dtype, old, inner_env[value.args[0]])
                self.store(at[holder[v]], value.dtype, total)
            for store in stores:
                self.put(store, inner_env, at)

    def needs_reduction(self, v: int) -> bool:
        return self.structure.stage[v] > 0

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


def needs(stores: Iterable[Store]) -> list[int]:
    """The values that stores write, and those that say where."""
    return [v for store in stores for v in (store.value, *store.at)]


def emit(kernels: dict[str, Structure]) -> tuple[str, ...]:
    """LLVM texts that define the kernels by name, to be linked in this order."""
    bodies, declared, used = [], set(), set()
    metadata = ["!0 = distinct !{}", '!1 = !{!"llvm.loop.parallel_accesses", !0}']
    for name, structure in kernels.items():
        emitter = Emitter(structure, name, len(metadata))
        bodies.append(emitter.run())
        declared |= emitter.declared
        used |= emitter.used
        metadata += [f"!{i} = distinct !{{!{i}, !1}}" for i in emitter.loop_ids]
    first = "\n".join([*bodies, *sorted(declared), *metadata, ""])
    return (first, *[scalars.bitcode(op, code) for op, code in sorted(used)])
