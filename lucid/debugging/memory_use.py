"""memory: the peak memory of a compiled program, by line and scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lucid.compiler.fusion.groups import Group
from lucid.compiler.inspect.stages import lower_graph
from lucid.debugging.recording import recorded
from lucid.ir.graph import Literal, Var
from lucid.ops.core.arguments import public_function


@dataclass(frozen=True)
class Memory:
    """Bytes of a compiled program: arguments, results, temporaries, and the peak with its lines."""

    arguments: int
    results: int
    arena: int
    peak: int
    step: str
    rows: tuple[tuple[int, str, str], ...]  # bytes, type and operation, line

    def __repr__(self) -> str:
        lines = [
            f"peak {size(self.peak)} at {self.step}",
            f"  arguments {size(self.arguments)}, results {size(self.results)}, "
            f"temporaries {size(self.arena)} (one arena)",
        ]
        for nbytes, what, where in self.rows:
            lines.append(f"  {size(nbytes):>10}  {what}{f'   [{where}]' if where else ''}")
        return "\n".join(lines)


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
    """Return the memory use of a compiled function: its peak, and the values alive at that point.

    >>> import lucid
    >>> found = lucid.memory(lambda x: (lucid.exp(x) @ x).sum(), lucid.ones(100, 100))
    >>> found.arguments, found.results, found.peak >= 80_000
    (40000, 4, True)
    """
    graph, _ = recorded(f, args)
    lowering = lower_graph(graph)
    graph = lowering.graph
    given = sum(nbytes_of(x) for x in graph.inputs)
    made = sum(nbytes_of(x) for x in graph.outputs)
    arena = sum(layout.top for layout in lowering.layouts)
    best: tuple[int, str, list[Var]] = (given, "the start", [])
    for layout in lowering.layouts:
        first, last = layout.lifetimes()
        ends = {x for x in graph.outputs if not isinstance(x, Literal)}
        for number, step in enumerate(layout.segment.steps):
            alive = [
                x
                for x, begin in first.items()
                if begin <= number and (number <= last.get(x, begin) or x in ends)
            ]
            total = given + sum(map(nbytes_of, alive))
            if total > best[0]:
                best = (total, step_text(step), alive)
    producer = {v: eqn for eqn in graph.equations for v in eqn.outputs}
    rows = [
        (nbytes_of(v), f"{v.type} {producer[v].op.name}", str(producer[v].source or ""))
        for v in sorted(best[2], key=nbytes_of, reverse=True)
    ]
    return Memory(given, made, arena, best[0], best[1], tuple(rows))


def step_text(step: Any) -> str:
    equations = step.equations if isinstance(step, Group) else [step.equation]
    names = " ".join(dict.fromkeys(eqn.op.name for eqn in equations))
    where = next((str(eqn.source) for eqn in equations if eqn.source), "")
    return f"{names}   [{where}]" if where else names
