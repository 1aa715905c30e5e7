"""Kernels that reduce columns: the last axis is kept, and results are in memory, a row at a time.

The loops over the reduced axes are outermost, and the innermost loop runs over adjacent elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.compiler.kernels.nest import Structure, values_of
from lucid.compiler.kernels.reductions import initial
from lucid.compiler.kernels.scalar_code import constant


class Columns:
    """The part of the Emitter that writes column kernels."""

    structure: Structure
    scans: list[int]
    outer: Any
    chunk_outputs: Any
    loop: Any
    loop_along: Any
    step: Any
    load: Any
    store: Any
    put: Any
    compute: Any
    combine: Any
    start_scan: Any
    value: int

    def columns(self, kept: Sequence[int], reduced: Sequence[int], bases: Sequence[str]) -> None:
        """Emit a kernel whose last axis is kept, with results in memory, a row at a time."""
        last = kept[-1]
        outer = list(kept[:-1])
        if self.structure.partial:
            own = self.chunk_outputs(bases, f"%n{last}")
            self.reduce_columns({}, own, {}, reduced, last, None)
        elif outer:
            self.outer(
                outer,
                bases,
                lambda env, at, index: self.reduce_columns(env, at, index, reduced, last, None),
            )
        else:
            self.reduce_columns({}, list(bases), {}, reduced, last, ("%lo", "%hi"))

    def reduce_columns(
        self,
        env: dict[int, str],
        bases: Sequence[str],
        index: dict[int, str],
        reduced: Sequence[int],
        last: int,
        bounds: tuple[str, str] | None,
    ) -> None:
        """Emit all stages for one point of the outer axes; reductions are stored in buffers."""
        s = self.structure
        holder = {
            store.value: store.buffer for store in s.stores if s.values[store.value].op == "reduce"
        }
        start, stop = bounds or ("0", f"%n{last}")
        full = s.full_stores(reduced)
        for stage in range(max(s.stage, default=0) + 1):
            found = s.reductions(stage)
            stores = [s.stores[k] for k, at in full if at == stage]
            if not found and not stores:
                continue
            wanted = [s.values[v].args[0] for v in found] + values_of(stores)
            scans = [v for v in self.structure.closure(wanted, env) if v in self.scans]
            if found or scans:
                with self.loop(start, stop, innermost=True) as i:
                    at = self.step(bases, last, i)
                    for v in scans:
                        self.start_scan(v, at[s.values[v].param.buffer])
                    for v in found:
                        self.value, value = v, s.values[v]
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
                self.read_reductions(inner, at, holder, values_of(rest))
                self.compute(
                    self.structure.closure(values_of(rest), inner),
                    inner,
                    at,
                    {**index, last: i},
                )
                for store in rest:
                    self.put(store, inner, at)

    def read_reductions(
        self, env: dict[int, str], at: Sequence[str], holder: dict[int, int], wanted: Sequence[int]
    ) -> None:
        """Load the reductions that `wanted` need from the buffers that hold them."""
        for v in self.structure.closure(wanted, env):
            if v in holder and v not in env:
                self.value = v
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
        """Loops over the reduced axes, with the columns innermost."""
        s = self.structure
        if axes:
            first = s.partial and axes[0] == 0
            limits = ("%lo", "%hi") if first else ("0", f"%n{axes[0]}")
            with self.loop(*limits, innermost=False) as i:
                at = self.step(bases, axes[0], i)
                inner = {**index, axes[0]: i}
                self.sweep(axes[1:], env, at, inner, wanted, found, stores, holder, last, bounds)
            return
        outside = dict(env)
        fixed = [
            v
            for v in self.structure.closure(wanted, outside)
            if last not in s.depends[v] and not self.needs_reduction(v)
        ]
        self.compute(fixed, outside, bases, index)
        with self.loop_along(last, *bounds, bases) as (i, at):
            inner_env = dict(outside)
            self.read_reductions(inner_env, at, holder, wanted)
            self.compute(
                self.structure.closure(wanted, inner_env), inner_env, at, {**index, last: i}
            )
            for v in found:
                self.value, value = v, s.values[v]
                old = self.load(at[holder[v]], value.dtype)
                total = self.combine(value.param, value.dtype, old, inner_env[value.args[0]])
                self.store(at[holder[v]], value.dtype, total)
            for store in stores:
                self.put(store, inner_env, at)

    def needs_reduction(self, v: int) -> bool:
        return self.structure.stage[v] > 0
