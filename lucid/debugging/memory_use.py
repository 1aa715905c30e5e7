"""memory: the peak memory of a compiled program, by line and scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lucid.compiler.fusion.groups import Group
from lucid.compiler.jit.jitted import Jitted
from lucid.compiler.passes.pipeline import lower_graph
from lucid.compiler.passes.recompute_budget import arena_of
from lucid.ir.graph import Equation, Var
from lucid.ops.core.arguments import public_function


class Row(NamedTuple):
    """A value that is alive at the peak."""

    nbytes: int
    what: str
    line: str
    scope: str

    @staticmethod
    def of(var: Var, eqn: Equation) -> Row:
        scope = getattr(eqn.source, "scope", None)
        text = f"{var.type} {eqn.op.name}"
        return Row(nbytes_of(var), text, str(eqn.source or ""), "" if scope is None else str(scope))


@dataclass(frozen=True)
class Memory:
    """Bytes of a compiled program.

    arguments    what it is given
    results      what it returns
    arena        the one memory of all temporaries
    peak         the most that is alive at once, at the instruction `step`
    rows         the values that are alive there, the largest first
    """

    arguments: int
    results: int
    arena: int
    peak: int
    step: str
    rows: tuple[Row, ...]

    @property
    def by_line(self) -> dict[str, int]:
        """Bytes alive at the peak by the line that computes them, the largest first."""
        return totals(self.rows, "line")

    @property
    def by_scope(self) -> dict[str, int]:
        """Bytes alive at the peak by module or `named_scope`, "" outside, the largest first."""
        return totals(self.rows, "scope")

    def __repr__(self) -> str:
        lines = [
            f"peak {size(self.peak)} at {self.step}",
            f"  arguments {size(self.arguments)}, results {size(self.results)}, "
            f"temporaries {size(self.arena)} (one arena)",
        ]
        for nbytes, what, where, scope in self.rows:
            place = "  ".join(part for part in (where, scope) if part)
            lines.append(f"  {size(nbytes):>10}  {what}{f'   [{place}]' if place else ''}")
        if any(self.by_scope):
            lines.append("by scope")
            for scope, nbytes in self.by_scope.items():
                lines.append(f"  {size(nbytes):>10}  {scope or 'outside'}")
        return "\n".join(lines)


def totals(rows: Sequence[Row], name: str) -> dict[str, int]:
    """The bytes of rows by one of their fields, the largest first."""
    found: dict[str, int] = {}
    for row in rows:
        found[getattr(row, name)] = found.get(getattr(row, name), 0) + row.nbytes
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def size(nbytes: int) -> str:
    for unit in ("B", "KB", "MB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024  # type: ignore[assignment]
    return f"{nbytes:.2f} GB"


def nbytes_of(x: Any) -> int:
    return x.type.size * x.type.dtype.itemsize


@public_function()
def memory(f: Callable[..., Any], *args: Any) -> Memory:
    """Return the memory of a function as compiled code: its peak, and what is alive there.

    It is that of the compiler's plan: values that are written over others are counted once, and
    `lucid.memory_budget` holds. What is alive at the peak is listed by value, line and scope.

    >>> import lucid
    >>> found = lucid.memory(lambda x: (lucid.exp(x) @ x).sum(), lucid.ones(100, 100))
    >>> found.arguments, found.results, found.peak >= 80_000
    (40000, 4, True)
    """
    jitted: Any = f if isinstance(f, Jitted) else Jitted(f)
    path = jitted.path_for(args, {})
    lowering = lower_graph(path.graph, path.into, path.budget)
    graph = lowering.graph
    producer = {v: eqn for eqn in graph.equations for v in eqn.outputs}
    given = sum(map(nbytes_of, graph.inputs))
    best: tuple[int, str, list[Var]] = (given, "the start", [])
    for layout in lowering.layouts:
        reused = set(layout.segment.into)
        first, _ = layout.lifetimes()
        made = [(y, first.get(y, 0)) for y in layout.segment.outputs if y not in reused]
        for number, step in enumerate(layout.segment.steps):
            alive = [x for x, _, span in layout.buffers if span.first <= number <= span.last]
            alive += [y for y, begin in made if begin <= number]
            total = given + sum(map(nbytes_of, alive))
            if total > best[0]:
                best = (total, step_text(step), alive)
    rows = [Row.of(v, producer[v]) for v in sorted(best[2], key=nbytes_of, reverse=True)]
    results = sum(nbytes_of(y) for y in graph.outputs)
    return Memory(given, results, arena_of(lowering), best[0], best[1], tuple(rows))


def step_text(step: Any) -> str:
    equations = step.equations if isinstance(step, Group) else [step.equation]
    names = " ".join(dict.fromkeys(eqn.op.name for eqn in equations))
    where = next((str(eqn.source) for eqn in equations if eqn.source), "")
    return f"{names}   [{where}]" if where else names
