"""Borders: both ends of a long row, where comparisons of the index are decided.

A pad reads zeros before and after an array, and a concatenate selects its parts by index. Such a
comparison differs for a few elements at one end of a row and is the same for all others, so the
others run in a loop without it:

    for i in [3, n - 2):                y[i] = x[i - 3] + x[i + 2]
    for i in [0, 3) and [n - 2, n):     y[i] = (x[i - 3] if i >= 3 else 0) + ...

The first loop is vectorized; the second is scalar and computes the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lucid.compiler.kernels.nest import Nest, Structure, Value

LOW, HIGH = "low", "high"  # the param of a comparison: the end of the row that it differs at
MIN_ROW = 512  # elements; splitting a row costs about ten iterations of scalar code
BORDER = 64  # an end of a row is at most one part in so many of it


def mark_borders(nest: Nest) -> Nest:
    """Mark the comparisons of a map that differ at one end of its rows."""
    if nest.structure.mode != "map" or not MIN_ROW <= nest.sizes[-1] < 2**31:
        return nest
    values = [
        v._replace(param=end) if v.op in ("lt", "ge") and (end := end_of(nest, v)) else v
        for v in nest.values
    ]
    return replace(nest, values=tuple(values))


def end_of(nest: Nest, comparison: Value) -> str:
    """The end of a row that the index is compared with; "" if something else is compared."""
    index, bound = (nest.values[a] for a in comparison.args)
    n = nest.sizes[-1]
    if index[::3] != ("iota", len(nest.sizes) - 1) or index.dtype not in ("i32", "i64"):
        return ""
    if bound.op != "const":
        return ""
    if bound.param * BORDER <= n:
        return LOW
    return HIGH if (n - bound.param) * BORDER <= n else ""


class Borders:
    """The part of the Emitter that writes a row as its interior and its borders."""

    structure: Structure
    loop: Any
    branch: Any
    write: Any

    def borders(self, wanted: Sequence[int], env: dict[int, str]) -> list[int]:
        """The marked comparisons that are needed for values."""
        values = self.structure.values
        marked = {v for v, x in enumerate(values) if x.op in ("lt", "ge") and x.param}
        return [v for v in self.structure.closure(wanted, env) if v in marked] if marked else []

    def split_row(
        self, borders: Sequence[int], env: dict[int, str], start: str, stop: str, row: Any
    ) -> None:
        """Write `row(env, start, stop)` for the interior, and as scalar code for both ends."""
        low, high, known = self.interior(borders, env, start, stop)
        with self.branch(self.write(f"icmp slt i64 {low}, {high}")):
            row({**env, **known}, low, high)
        with self.loop("0", "2", innermost=False, scalar=True) as end:
            after = self.write(f"icmp ne i64 {end}, 0")
            first = self.write(f"select i1 {after}, i64 {high}, i64 {start}")
            last = self.write(f"select i1 {after}, i64 {stop}, i64 {low}")
            with self.branch(self.write(f"icmp slt i64 {first}, {last}")):
                row(env, first, last, scalar=True)

    def interior(
        self, borders: Sequence[int], env: dict[int, str], start: str, stop: str
    ) -> tuple[str, str, dict[int, str]]:
        """The part of [start, stop) where all comparisons are decided, and their values there."""
        low, high, known = start, stop, {}
        for v in borders:
            op, (_, bound), _, end = self.structure.values[v]
            limit = env[bound]
            if self.structure.values[bound].dtype == "i32":
                limit = self.write(f"sext i32 {limit} to i64")
            if end == LOW:
                low = self.choose("sgt", low, limit)
            else:
                high = self.choose("slt", high, limit)
            known[v] = "true" if (op == "ge") == (end == LOW) else "false"
        low = self.choose("slt", low, stop)
        return low, self.choose("sgt", high, low), known

    def choose(self, comparison: str, a: str, b: str) -> str:
        """The larger ("sgt") or the smaller ("slt") of two integers."""
        first = self.write(f"icmp {comparison} i64 {a}, {b}")
        return self.write(f"select i1 {first}, i64 {a}, i64 {b}")
