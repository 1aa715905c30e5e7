"""listing: a Nest -> readable Python source that computes what its kernel computes.

Each buffer is an array with an axis for every axis of the domain along which it varies, and one for
every indexed axis. The loops are those of the kernel, without its chunks.

    def kernel(b0, b1, n0=32, n1=100):
        for i0 in range(n0):
            v1 = f32(0)
            for i1 in range(n1):
                v1 = v1 + b0[i0, i1]
            b1[i0] = v1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from lucid.compiler.kernels.indexing import SCANS, start_of
from lucid.compiler.kernels.nest import Nest, Store, Value, values_of
from lucid.compiler.kernels.reductions import initial
from lucid.ir.types import DTYPES

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
PREFIX = {"neg": "-", "bitwise_not": "~"}
COMBINED = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "bitwise_or",
            "all": "bitwise_and"}  # fmt: skip
LONG_LINE = 60


def listing(nest: Nest) -> str:
    """The Python text of a Nest's kernel."""
    return Lister(nest).run()


def python_kernel(nest: Nest) -> Callable[..., None]:
    """The function that `listing` writes, on arrays as `buffer_views` describes them."""
    namespace = listing_namespace()
    exec(listing(nest), namespace)
    return namespace["kernel"]


def buffer_views(nest: Nest) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """The dtype, shape and strides (in elements) of the array that stands for each buffer."""
    lister = Lister(nest)
    out = []
    for b, buffer in enumerate(nest.buffers):
        sizes = [n for _, n in buffer.box] or nest.sizes
        axes = [(sizes[a], s) for a, s in enumerate(buffer.strides) if s]
        axes += [nest.indexed_axes[k][:2] for k in lister.indexed_axes_of(b)]
        out.append((buffer.dtype, tuple(n for n, _ in axes), tuple(s for _, s in axes)))
    return out


def listing_namespace() -> dict[str, Any]:
    """The names that a listing may call: dtypes, primitives on scalars, and `wrap_index`."""
    from lucid.ir.primitive import all_primitives

    def on_numbers(eval: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: np.asarray(eval(*[np.asarray(x) for x in xs]))[()]

    found: dict[str, Any] = {"inf": np.inf, "nan": np.nan, "wrap_index": wrap_index}
    for cls in all_primitives().values():
        if cls.scalar and not cls.__match_args__:  # type: ignore[attr-defined]
            op: Any = cls()
            found[function_name(op.scalar)] = on_numbers(op.eval)
    found["round"] = on_numbers(np.rint)
    for short, dtype in DTYPES.items():
        found[short] = lambda x, dtype=dtype: np.asarray(x).astype(dtype)[()]
    return found


def wrap_index(index: Any, size: int) -> int:
    """A nonnegative index; negative ones count from the end."""
    index = int(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for an axis of size {size}")
    return index + size if index < 0 else index


class Lister:
    """Writes one listing: the Emitter's walk over a Nest, in Python."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.s = nest.structure
        self.lines: list[str] = []
        self.depth = 1
        self.uses = [0] * len(nest.values)
        for args in [v.args for v in nest.values] + [tuple(values_of([s])) for s in nest.stores]:
            for a in args:
                self.uses[a] += 1

    def run(self) -> str:
        kept = [a for a, r in enumerate(self.s.reduced) if not r]
        reduced = [a for a, r in enumerate(self.s.reduced) if r]
        if self.s.mode == "map":
            self.sweep(kept, {}, values_of(self.s.stores), self.store_all(self.s.stores))
        elif self.s.mode == "rows":
            self.loops(kept, lambda: self.rows(reduced))
        else:
            self.loops(kept[:-1], lambda: self.columns(reduced, kept[-1]))
        sizes = [f"n{axis}={n}" for axis, n in enumerate(self.nest.sizes)]
        buffers = [f"b{i}" for i in range(len(self.nest.buffers))]
        dtypes = {v.param: v.dtype for v in self.nest.values if v.op == "number"}
        numbers = [f"c{k}={number(x, dtypes[k])}" for k, x in enumerate(self.nest.numbers)]
        given = ", ".join([*buffers, *sizes, *numbers])
        return "\n".join([f"def kernel({given}):", *self.lines])

    # Lines

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def loop(self, axis: int) -> Iterator[None]:
        self.line(f"for i{axis} in range(n{axis}):")
        self.depth += 1
        yield
        self.depth -= 1

    def loops(self, axes: Sequence[int], body: Callable[[], None]) -> None:
        """Perfectly nested loops over `axes`."""
        if not axes:
            body()
            return
        with self.loop(axes[0]):
            self.loops(axes[1:], body)

    # Expressions

    def indexed_axes_of(self, buffer: int) -> list[int]:
        """The numbers of the IndexedAxes of a buffer."""
        for value in self.nest.values:
            if value.op == "at" and value.param == buffer:
                return [self.nest.values[a].param for a in value.args]
        for store in self.nest.stores:
            if store.buffer == buffer and store.at:
                return [self.nest.values[a].param for a in store.at]
        return []

    def element(self, buffer: int, at: Sequence[str] = ()) -> str:
        """The element of a buffer at this point of the domain."""
        found = self.nest.buffers[buffer]
        starts = [start for start, _ in found.box] or [0] * len(found.strides)
        indices = [f"i{a} - {start}" if start else f"i{a}" for a, start in enumerate(starts)]
        axes = [index for index, stride in zip(indices, found.strides) if stride]
        return f"b{buffer}[{', '.join([*axes, *at]) or '()'}]"

    def expression(self, value: Value, args: list[str]) -> str:
        if value.op == "load":
            return self.element(value.param)
        if value.op == "guarded":
            zero = number(0, value.dtype)
            return f"({self.element(value.param)} if {unparenthesized(args[0])} else {zero})"
        if value.op == "at":
            return self.element(value.param, args)
        if value.op == "offset":
            return f"wrap_index({args[0]}, {self.nest.indexed_axes[value.param].size})"
        if value.op == "const":
            return number(value.param, value.dtype)
        if value.op == "number":
            return f"c{value.param}"
        if value.op == "iota":
            return f"{value.dtype}(i{value.param})"
        if value.op == "cast":
            return f"{value.dtype}({unparenthesized(args[0])})"
        return args[0] if value.op == "copy" else apply(value.op, args)

    def compute(self, values: Iterable[int], env: dict[int, str], inline: bool) -> None:
        """Add the values to `env`, as expressions or as names of variables."""
        for v in values:
            value = self.nest.values[v]
            if value.op == "scan":
                self.scan(v, value, env)
                continue
            text = self.expression(value, [env[a] for a in value.args])
            plain = value.op == "const" or text.isidentifier()
            if plain or (inline and self.uses[v] == 1 and len(text) < LONG_LINE):
                env[v] = text
            else:
                self.line(f"v{v} = {unparenthesized(text)}")
                env[v] = f"v{v}"

    # Statements

    def put(self, store: Store, env: dict[int, str]) -> None:
        target = self.element(store.buffer, [env[a] for a in store.at])
        value = unparenthesized(env[store.value])
        if store.combines:
            value = unparenthesized(apply(store.combines, [target, value]))
        self.line(f"{target} = {value}")

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
    ) -> None:
        """Loops over `axes`; values that do not vary along them are computed outside."""
        env = dict(env)
        if not axes:
            self.compute(self.s.closure(wanted, env), env, inline=len(self.nest.stores) == 1)
            body(env)
            return
        inside = frozenset(axes)
        fixed = [v for v in self.s.closure(wanted, env) if not self.s.depends[v] & inside]
        self.compute(fixed, env, inline=False)
        with self.loop(axes[0]):
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
                    [self.nest.values[v].args[0] for v in found] + values_of(stores),
                )

    def full_stores(self, axes: Sequence[int]) -> list[Store]:
        """Stores of values that vary along the reduced axes."""
        return [self.nest.stores[k] for k, _ in self.s.full_stores(axes)]

    def rows(self, axes: Sequence[int]) -> None:
        """All stages at one point of the kept axes, with results in variables."""
        env: dict[int, str] = {}
        for found, stores, wanted in self.stages(axes):
            for v in found:
                self.line(f"v{v} = {self.start(v)}")
            for v in self.scans(wanted, env):
                self.line(f"s{v} = {self.start(v)}")
            self.sweep(axes, env, wanted, self.step(found, stores, {v: f"v{v}" for v in found}))
            env.update({v: f"v{v}" for v in found})
        full = self.full_stores(axes)
        rest = [store for store in self.nest.stores if store not in full]
        self.compute(self.s.closure(values_of(rest), env), env, inline=len(rest) == 1)
        self.store_all(rest)(env)

    def columns(self, axes: Sequence[int], last: int) -> None:
        """All stages at one point of the outer axes, with results in buffers, a row at a time."""
        values = self.nest.values
        held = {s.value: s.buffer for s in self.nest.stores if values[s.value].op == "reduce"}
        holder = {v: self.element(b) for v, b in held.items()}
        for found, stores, wanted in self.stages(axes):
            scans = self.scans(wanted, {})
            if found or scans:
                with self.loop(last):
                    for v in (*found, *scans):
                        self.line(f"{holder.get(v) or self.state(v)} = {self.start(v)}")
            step = self.step(found, stores, holder)
            env_outside = {v: text for v, text in holder.items() if v not in found}
            self.loops(axes, partial(self.row, last, env_outside, wanted, step))
        full = self.full_stores(axes)
        rest = [s for s in self.nest.stores if s not in full and held.get(s.value) != s.buffer]
        if rest:
            self.row(last, holder, values_of(rest), self.store_all(rest))

    def row(self, last: int, env_outside: dict[int, str], wanted: Sequence[int], body: Any) -> None:
        with self.loop(last):
            env = dict(env_outside)
            self.compute(self.s.closure(wanted, env), env, inline=len(self.nest.stores) == 1)
            body(env)

    def step(self, found: Sequence[int], stores: Sequence[Store], held: dict[int, str]) -> Any:
        """The body of a loop: accumulate one point into the reductions, and write its stores."""

        def body(env: dict[int, str]) -> None:
            for v in found:
                value = self.nest.values[v]
                total = apply(COMBINED[value.param], [held[v], env[value.args[0]]])
                self.line(f"{held[v]} = {unparenthesized(total)}")
            self.store_all(stores)(env)

        return body

    def start(self, v: int) -> str:
        value = self.nest.values[v]
        if value.op == "scan":
            return number(start_of(value.param.kind, value.dtype), value.dtype)
        return number(initial(value.param, value.dtype), value.dtype)

    # Scans

    def scans(self, wanted: Sequence[int], env: dict[int, str]) -> list[int]:
        return [v for v in self.s.closure(wanted, env) if self.nest.values[v].op == "scan"]

    def state(self, v: int) -> str:
        buffer = self.nest.values[v].param.buffer
        return f"s{v}" if buffer < 0 else self.element(buffer)

    def scan(self, v: int, value: Value, env: dict[int, str]) -> None:
        state, args = self.state(v), [env[a] for a in value.args]
        if value.param.exclusive:
            self.line(f"v{v} = {state}")
        if value.param.kind == "recurrence":
            new = f"{args[1]} if {state} == 0 else {state} * {args[0]} + {args[1]}"
        else:
            new = unparenthesized(apply(SCANS[value.param.kind], [state, args[0]]))
        self.line(f"{state} = {new}")
        if not value.param.exclusive:
            self.line(f"v{v} = {state}")
        env[v] = f"v{v}"


def apply(op: str, args: Sequence[str]) -> str:
    """The expression of an operation."""
    if op in INFIX and len(args) == 2:
        return f"({args[0]} {INFIX[op]} {args[1]})"
    if op in PREFIX:
        return f"({PREFIX[op]}{args[0]})"
    return f"{function_name(op)}({', '.join(unparenthesized(a) for a in args)})"


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
