"""listing: a Nest -> readable Python source that computes what its kernel computes.

Each buffer is an array with an axis for every axis of the domain along which it varies, and one for
every indexed axis. The loops are those of the kernel, which computes the part [lo, hi) of its
extent; the Numba backend compiles this very text.

    def kernel(b0, b1, n0=32, n1=100, lo=0, hi=32):
        for i0 in range(lo, hi):
            v1 = f32(0)
            for i1 in range(n1):
                v1 += b0[i0, i1]
            b1[i0] = v1

`+=` and `*=` on floats are sums and products that may be computed in any order. Extrema of floats
are found on integer keys of the same order (`max_key`, `from_key`), with nan beyond all. A buffer
that covers a part of the domain is indexed from its start; compiled code shifts its address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from lucid.compiler.kernels.build import extent_of
from lucid.compiler.kernels.indexing import SCANS, start_of
from lucid.compiler.kernels.nest import Nest, Store, Structure, Value, values_of
from lucid.compiler.kernels.reductions import BITS, initial, ordered_as_integers

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
PREFIX = {"neg": "-", "bitwise_not": "~"}
COMBINED = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "bitwise_or",
            "all": "bitwise_and"}  # fmt: skip
ANY_ORDER = {"sum": "+=", "prod": "*="}
LONG_LINE = 60
WRAPPED = ("i8", "u8", "i16", "u16", "i32", "u32", "u64")  # Numba computes these in 64 bits


def listing(nest: Nest) -> str:
    """The Python text of a Nest's kernel."""
    return Lister(nest.structure, nest).run()


def values_of_lines(nest: Nest) -> list[list[int]]:
    """The values that each line of a listing computes or stores; a loop has those of its body."""
    lister = Lister(nest.structure, nest)
    lister.run()
    return [[], *[sorted(found) for found in lister.owners]]


def structure_listing(structure: Structure) -> str:
    """The Python text of every kernel of a Structure: no argument has a default."""
    return Lister(structure).run()


def buffer_views(nest: Nest, chunks: int = 1) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """The dtype, shape and strides (in elements) of the array that stands for each buffer."""
    lister = Lister(nest.structure, nest)
    out = []
    for b, buffer in enumerate(nest.buffers):
        sizes = [n for _, n in buffer.box] or nest.sizes
        axes = [(sizes[a], s) for a, s in enumerate(buffer.strides) if s]
        axes += [nest.indexed_axes[k][:2] for k in lister.indexed_axes_of(b)]
        if b in lister.chunked:
            axes.insert(0, (chunks, nest.sizes[-1] if nest.partial else 1))
        out.append((buffer.dtype, tuple(n for n, _ in axes), tuple(s for _, s in axes)))
    return out


class Lister:
    """Writes one listing: the Emitter's walk over a Nest, in Python."""

    def __init__(self, structure: Structure, nest: Nest | None = None) -> None:
        self.s = structure
        self.nest = nest
        self.values = structure.values
        self.lines: list[str] = []
        self.owners: list[set[int]] = []  # the values of each line
        self.inlined: dict[
            int, set[int]
        ] = {}  # for a value that is not a variable, those in its text
        self.depth = 1
        self.uses = [0] * len(self.values)
        for args in [v.args for v in self.values] + [
            tuple(values_of([s])) for s in structure.stores
        ]:
            for a in args:
                self.uses[a] += 1
        self.chunked: set[int] = set()  # buffers with a result for each chunk
        if structure.partial or all(structure.reduced):
            reduced = (s for s in structure.stores if self.values[s.value].op == "reduce")
            self.chunked = {s.buffer for s in reduced}

    def run(self) -> str:
        kept = [a for a, r in enumerate(self.s.reduced) if not r]
        reduced = [a for a, r in enumerate(self.s.reduced) if r]
        if self.s.mode == "map":
            write = self.store_all(self.s.stores)
            wanted = values_of(self.s.stores)
            if len(kept) == 1:
                self.sweep(kept, {}, wanted, write, parts=True)
            else:
                self.outer(kept[:-1], lambda: self.sweep(kept[-1:], {}, wanted, write))
        elif self.s.mode == "rows":
            self.outer(kept, lambda: self.rows(reduced))
        else:
            self.outer(kept[:-1] if not self.s.partial else (), lambda: self.columns(reduced, kept))
        return "\n".join([f"def kernel({', '.join(self.parameters())}):", *self.lines])

    def parameters(self) -> list[str]:
        """The parameters, with the values of the Nest as defaults."""
        names = [f"b{i}" for i in range(len(self.s.buffers))]
        if self.nest is None:
            return names + self.scalar_parameters()
        dtypes = {v.param: v.dtype for v in self.values if v.op == "number"}
        extent, _ = extent_of(self.nest)
        given = [
            *self.nest.sizes,
            *[number(x, dtypes[k]) for k, x in enumerate(self.nest.numbers)],
            *[axis.size for axis in self.nest.indexed_axes],
            *[0, extent, extent],
        ]
        return names + [f"{name}={x}" for name, x in zip(self.scalar_parameters(), given)]

    def scalar_parameters(self) -> list[str]:
        """Sizes of axes, numbers, sizes of indexed axes, the part to compute, its length."""
        numbers = sum(v.op == "number" for v in self.values)
        names = [f"n{axis}" for axis in range(len(self.s.reduced))]
        names += [f"c{k}" for k in range(numbers)]
        names += [f"m{k}" for k in range(self.s.indexed_axes)]
        return names + ["lo", "hi"] + ["grain"] * (self.s.partial or all(self.s.reduced))

    # Lines

    def line(self, text: str, *values: int) -> None:
        """Add a line that computes or stores these values."""
        self.lines.append("    " * self.depth + text)
        self.owners.append(set(values).union(*[self.inlined.get(v, ()) for v in values]))

    @contextmanager
    def loop(self, axis: int, parts: bool = False) -> Iterator[None]:
        """A loop over an axis, or over its part [lo, hi)."""
        self.line(f"for i{axis} in range({'lo, hi' if parts else f'n{axis}'}):")
        head = self.owners[-1]
        begin = len(self.owners)
        self.depth += 1
        yield
        self.depth -= 1
        head.update(*self.owners[begin:])

    def loops(self, axes: Sequence[int], body: Callable[[], None], parts: bool = False) -> None:
        """Perfectly nested loops over `axes`."""
        if not axes:
            body()
            return
        with self.loop(axes[0], parts):
            self.loops(axes[1:], body)

    def outer(self, axes: Sequence[int], body: Callable[[], None]) -> None:
        """The loop over [lo, hi) of the flattened kept axes."""
        if len(axes) < 2:
            self.loops(axes, body, parts=True)
            return
        self.line("for o in range(lo, hi):")
        head = self.owners[-1]
        begin = len(self.owners)
        self.depth += 1
        rest = "o"
        for axis in reversed(axes[1:]):
            self.line(f"i{axis} = {rest} % n{axis}")
            rest = f"{rest} // n{axis}"
        self.line(f"i{axes[0]} = {rest}")
        body()
        self.depth -= 1
        head.update(*self.owners[begin:])

    # Expressions

    def indexed_axes_of(self, buffer: int) -> list[int]:
        """The numbers of the IndexedAxes of a buffer."""
        for value in self.values:
            if value.op == "at" and value.param == buffer:
                return [self.values[a].param for a in value.args]
        for store in self.s.stores:
            if store.buffer == buffer and store.at:
                return [self.values[a].param for a in store.at]
        return []

    def element(self, buffer: int, at: Sequence[str] = ()) -> str:
        """The element of a buffer at this point of the domain."""
        classes = self.s.buffers[buffer][1]
        box = self.nest.buffers[buffer].box if self.nest is not None else ()
        starts = [start for start, _ in box] or [0] * len(classes)
        indices = [f"i{a} - {start}" if start else f"i{a}" for a, start in enumerate(starts)]
        axes = [index for index, stride in zip(indices, classes) if stride]
        chunk = ["lo // grain"] if buffer in self.chunked else []
        return f"b{buffer}[{', '.join([*chunk, *axes, *at]) or '()'}]"

    def expression(self, value: Value, args: list[str]) -> str:
        if value.op == "load":
            return self.element(value.param)
        if value.op == "guarded":
            zero = number(0, value.dtype)
            return f"({self.element(value.param)} if {unparenthesized(args[0])} else {zero})"
        if value.op == "at":
            return self.element(value.param, args)
        if value.op == "offset":
            return f"wrap_index({unparenthesized(args[0])}, m{value.param})"
        if value.op == "const":
            return number(value.param, value.dtype)
        if value.op == "number":
            return f"c{value.param}"
        if value.op == "iota":
            return f"{value.dtype}(i{value.param})"
        if value.op == "cast":
            return f"{value.dtype}({unparenthesized(args[0])})"
        return args[0] if value.op == "copy" else apply(value.op, args, value.dtype)

    def compute(self, values: Iterable[int], env: dict[int, str], inline: bool) -> None:
        """Add the values to `env`, as expressions or as names of variables."""
        for v in values:
            value = self.values[v]
            if value.op == "scan":
                self.scan(v, value, env)
                continue
            text = self.expression(value, [env[a] for a in value.args])
            plain = value.op == "const" or text.isidentifier()
            inside = {v}.union(*[self.inlined.get(a, ()) for a in value.args])
            if plain or (inline and self.uses[v] == 1 and len(text) < LONG_LINE):
                env[v] = text
                self.inlined[v] = inside
            else:
                self.line(f"v{v} = {unparenthesized(text)}", *inside)
                env[v] = f"v{v}"
                self.inlined.pop(v, None)

    # Statements

    def put(self, store: Store, env: dict[int, str]) -> None:
        target = self.element(store.buffer, [env[a] for a in store.at])
        value = unparenthesized(env[store.value])
        if store.combines:
            dtype = self.s.buffers[store.buffer][0]
            value = unparenthesized(apply(store.combines, [target, env[store.value]], dtype))
        self.line(f"{target} = {value}", *values_of([store]))

    def store_all(self, stores: Sequence[Store]) -> Callable[[dict[int, str]], None]:
        def write(env: dict[int, str]) -> None:
            for store in stores:
                self.put(store, env)

        return write

    def sweep(
        self,
        axes: Sequence[int],
        env: dict[int, str],
        wanted: Sequence[int],
        body: Callable[[dict[int, str]], None],
        parts: bool = False,
    ) -> None:
        """Loops over `axes`; values that do not vary along them are computed outside."""
        env = dict(env)
        if not axes:
            self.compute(self.s.closure(wanted, env), env, inline=len(self.s.stores) == 1)
            body(env)
            return
        inside = frozenset(axes)
        fixed = [v for v in self.s.closure(wanted, env) if not self.s.depends[v] & inside]
        self.compute(fixed, env, inline=False)
        with self.loop(axes[0], parts):
            self.sweep(axes[1:], env, wanted, body)

    def stages(self, axes: Sequence[int]) -> Iterator[tuple[list[int], list[Store], list[int]]]:
        """For each stage: its reductions, the stores inside its loops, and the values both need."""
        full = self.full_stores(axes)
        for stage in range(max(self.s.stage, default=0) + 1):
            found = self.s.reductions(stage)
            stores = [s for s in full if self.s.stage[s.value] == stage]
            if found or stores:
                yield (
                    found,
                    stores,
                    [self.values[v].args[0] for v in found] + values_of(stores),
                )

    def full_stores(self, axes: Sequence[int]) -> list[Store]:
        """Stores of values that vary along the reduced axes."""
        return [self.s.stores[k] for k, _ in self.s.full_stores(axes)]

    def rows(self, axes: Sequence[int]) -> None:
        """All stages at one point of the kept axes, with results in variables."""
        env: dict[int, str] = {}
        for found, stores, wanted in self.stages(axes):
            held = {v: f"{'k' if ordered_as_integers(self.values[v]) else 'v'}{v}" for v in found}
            for v in found:
                self.begin(v, held[v])
            for v in self.scans(wanted, env):
                self.line(f"s{v} = {self.start(v)}", v)
            body = self.step(found, stores, held)
            self.sweep(axes, env, wanted, body, parts=all(self.s.reduced))
            for v in found:
                self.finish(v, held[v])
            env.update({v: f"v{v}" for v in found})
        full = self.full_stores(axes)
        rest = [store for store in self.s.stores if store not in full]
        self.compute(self.s.closure(values_of(rest), env), env, inline=len(rest) == 1)
        self.store_all(rest)(env)

    def columns(self, axes: Sequence[int], kept: Sequence[int]) -> None:
        """All stages at one point of the outer axes, with results in buffers, a row at a time."""
        last, parts = kept[-1], len(kept) == 1 and not self.s.partial
        held = {s.value: s.buffer for s in self.s.stores if self.values[s.value].op == "reduce"}
        holder = {v: self.element(b) for v, b in held.items()}
        for found, stores, wanted in self.stages(axes):
            scans = self.scans(wanted, {})
            if found or scans:
                with self.loop(last, parts):
                    for v in (*found, *scans):
                        self.line(f"{holder.get(v) or self.state(v)} = {self.start(v)}", v)
            step = self.step(found, stores, holder)
            outside = {v: text for v, text in holder.items() if v not in found}
            row = partial(self.row, last, outside, wanted, step, parts)
            self.loops(axes, row, self.s.partial)
        full = self.full_stores(axes)
        rest = [s for s in self.s.stores if s not in full and held.get(s.value) != s.buffer]
        if rest:
            self.row(last, holder, values_of(rest), self.store_all(rest), parts)

    def row(
        self, last: int, outside: dict[int, str], wanted: Sequence[int], body: Any, parts: bool
    ) -> None:
        """The loop over adjacent columns; values that are the same in all are computed before."""
        env = dict(outside)
        fixed = [
            v
            for v in self.s.closure(wanted, env)
            if last not in self.s.depends[v] and self.s.stage[v] == 0
        ]
        self.compute(fixed, env, inline=False)
        with self.loop(last, parts):
            env = dict(env)
            self.compute(self.s.closure(wanted, env), env, inline=len(self.s.stores) == 1)
            body(env)

    def step(self, found: Sequence[int], stores: Sequence[Store], held: dict[int, str]) -> Any:
        """The body of a loop: accumulate one point into the reductions, and write its stores."""

        def body(env: dict[int, str]) -> None:
            for v in found:
                self.accumulate(v, held[v], env)
            self.store_all(stores)(env)

        return body

    def begin(self, v: int, held: str) -> None:
        """The variable of a reduction before its loop."""
        self.line(f"{held} = {self.start(v, rows=True)}", v)

    def finish(self, v: int, held: str) -> None:
        """The result of a reduction after its loop."""
        if held != f"v{v}":
            self.line(f"v{v} = from_key({held})", v)

    def accumulate(self, v: int, held: str, env: dict[int, str]) -> None:
        """One step of a reduction."""
        value = self.values[v]
        x, kind = env[value.args[0]], value.param
        inside = self.inlined.get(value.args[0], ())
        if kind in ANY_ORDER and value.dtype in BITS:
            self.line(f"{held} {ANY_ORDER[kind]} {unparenthesized(x)}", v, *inside)
            return
        if held.startswith("k"):
            x = f"{kind}_key({unparenthesized(x)})"
        new = unparenthesized(apply(COMBINED[kind], [held, x], value.dtype))
        self.line(f"{held} = {new}", v, *inside)

    def start(self, v: int, rows: bool = False) -> str:
        value = self.values[v]
        if value.op == "scan":
            return number(start_of(value.param.kind, value.dtype), value.dtype)
        dtype = BITS[value.dtype] if rows and ordered_as_integers(value) else value.dtype
        return number(initial(value.param, dtype), dtype)

    # Scans

    def scans(self, wanted: Sequence[int], env: dict[int, str]) -> list[int]:
        return [v for v in self.s.closure(wanted, env) if self.values[v].op == "scan"]

    def state(self, v: int) -> str:
        buffer = self.values[v].param.buffer
        return f"s{v}" if buffer < 0 else self.element(buffer)

    def scan(self, v: int, value: Value, env: dict[int, str]) -> None:
        state, args = self.state(v), [env[a] for a in value.args]
        if value.param.exclusive:
            self.line(f"v{v} = {state}", v)
        if value.param.kind == "recurrence":
            new = f"{args[1]} if {state} == 0 else {state} * {args[0]} + {args[1]}"
        else:
            new = unparenthesized(apply(SCANS[value.param.kind], [state, args[0]], value.dtype))
        inside = set().union(*[self.inlined.get(a, ()) for a in value.args])
        self.line(f"{state} = {new}", v, *inside)
        if not value.param.exclusive:
            self.line(f"v{v} = {state}", v)
        env[v] = f"v{v}"


def apply(op: str, args: Sequence[str], dtype: str) -> str:
    """The expression of an operation with a result of this dtype."""
    if dtype == "bool":
        op = {"add": "bitwise_or", "mul": "bitwise_and"}.get(op, op)
    if op == "bitwise_not" and dtype == "bool":
        return f"(not {args[0]})"
    if op in INFIX and len(args) == 2:
        text = f"({args[0]} {INFIX[op]} {args[1]})"
    elif op in PREFIX:
        text = f"({PREFIX[op]}{args[0]})"
    else:
        return f"{function_name(op)}({', '.join(unparenthesized(a) for a in args)})"
    return f"{dtype}{text}" if dtype in WRAPPED else text


def function_name(op: str) -> str:
    """The name of a function in listings, where i0, n1 and the like are variables."""
    return f"{op}_" if op[0] in "bcinsv" and op[1:].isdigit() else op


def unparenthesized(text: str) -> str:
    """An expression without its outer parentheses."""
    if not text.startswith("("):
        return text
    open_brackets = 0
    for i, c in enumerate(text):
        open_brackets += (c == "(") - (c == ")")
        if open_brackets == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text


def number(value: Any, dtype: str) -> str:
    return repr(bool(value)) if dtype == "bool" else f"{dtype}({value!r})"
