"""What a compiled program is made of, for people: stages, kernels, instructions, and times."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lucid.compiler import codegen
from lucid.compiler.emit import emit
from lucid.compiler.executable import Executable, Segment
from lucid.compiler.fused_text import fused_text
from lucid.compiler.lower import Lowering
from lucid.compiler.nest import Structure
from lucid.compiler.pipeline import STAGES, stages
from lucid.ir.graph import Graph

TEXTS = ("fused", "planned")
SAME = {"differentiated": "traced"}  # a recorded run has its derivatives in it already

_dumps = itertools.count()


@dataclass(frozen=True)
class KernelText:
    """One kernel: what it computes, as Python to read, as LLVM IR and as machine code."""

    name: str
    label: str
    listing: str
    llvm: str
    assembly: str

    def __repr__(self) -> str:
        return f"<kernel {self.label}>\n{self.listing}"


def stage_of(graph: Graph, name: str) -> Graph | str:
    """The Graph after a stage of the compiler; the stages "fused" and "planned" are texts."""
    name = SAME.get(name, name)
    known = ["traced", *STAGES, *TEXTS]
    if name not in known:
        raise ValueError(f"there is no stage {name!r}; the stages are {', '.join(known)}")
    found = stages(graph)
    if name == "fused":
        return fused_text(found["settled"])
    return planned_text(graph) if name == "planned" else found[name]


def laid_out(graph: Graph) -> Lowering:
    lowering = Lowering(stages(graph)["settled"])
    lowering.lay_out()
    return lowering


def planned_text(graph: Graph) -> str:
    """The instructions of a program in order, with the bytes of the arena they share."""
    lowering = laid_out(graph)
    layouts = iter(lowering.layouts)
    lines = []
    for part in lowering.parts:
        if not isinstance(part, Segment):
            lines.append(f"numpy   {part.op!r}")
            continue
        layout = next(layouts)
        lines.append(
            f"plan    {len(part.inputs)} in, {len(part.outputs)} out, arena {layout.top} bytes"
        )
        lines += instructions(layout.work, "    ")
    return "\n".join(lines)


def instructions(works: Sequence[Any], indent: str) -> list[str]:
    """A line for each instruction; those inside of branches and loops stand below, indented."""
    lines = []
    for work in works:
        lines.append(f"{indent}{getattr(work, 'label', type(work).__name__)}")
        for name, inside in getattr(work, "blocks", lambda: ())():
            lines.append(f"{indent}  {name}")
            lines += instructions(inside, indent + "    ")
    return lines


def leaves(works: Sequence[Any]) -> Iterator[Any]:
    """The works that hold no others."""
    for work in works:
        inside = getattr(work, "blocks", None)
        if inside is None:
            yield work
        else:
            yield from leaves(work.before)
            for _, block in inside():
                yield from leaves(block)


def kernels_of_graph(graph: Graph) -> list[KernelText]:
    """The kernels of a program."""
    from lucid.compiler.kernels import name_of
    from lucid.compiler.listing import listing

    out, seen = [], set()
    for layout in laid_out(graph).layouts:
        for work in leaves(layout.work):
            for source in work.kernels():
                if source.key in seen:
                    continue
                seen.add(source.key)
                nest = getattr(work, "nest", None)
                if isinstance(source, Structure):
                    texts = emit({name_of(source): source})
                    name, shown = name_of(source), "" if nest is None else listing(nest)
                else:
                    texts, name, shown = (source.text,), source.name, ""
                out.append(KernelText(name, work.label, shown, texts[0], codegen.assembly(*texts)))
    return out


def dump(graph: Graph, folder: str) -> None:
    """Write every stage and every kernel of a program into a new folder."""
    name = re.sub(r"\W", "", graph.name) or "graph"
    place = Path(folder) / f"{os.getpid()}-{next(_dumps):04d}-{name}"
    place.mkdir(parents=True, exist_ok=True)
    for stage in ("traced", *STAGES, *TEXTS):
        (place / f"{stage}.txt").write_text(str(stage_of(graph, stage)) + "\n")
    for kernel in kernels_of_graph(graph):
        for ending in ("listing", "llvm", "assembly"):
            suffix = {"listing": "py", "llvm": "ll", "assembly": "s"}[ending]
            (place / f"{kernel.name}.{suffix}").write_text(getattr(kernel, ending) + "\n")


class Row:
    """One instruction while a profile ran: how often, and how long."""

    __slots__ = ("calls", "label", "nanoseconds")

    def __init__(self, label: str, calls: int, nanoseconds: int) -> None:
        self.label = label
        self.calls = calls
        self.nanoseconds = nanoseconds


class Profile:
    """What `lucid.profile()` has seen: `rows`, slowest first, and a table as its text."""

    def __init__(self) -> None:
        self.programs: list[Executable] = []

    @property
    def rows(self) -> list[Row]:
        found: dict[str, Row] = {}
        for program in self.programs:
            for plan in program.plans():
                for label, calls, spent in plan.timings():
                    row = found.setdefault(label, Row(label, 0, 0))
                    row.calls += calls
                    row.nanoseconds += spent
        return sorted((r for r in found.values() if r.calls), key=lambda r: -r.nanoseconds)

    def __str__(self) -> str:
        lines = [f"{'µs':>12} {'calls':>8} {'µs a call':>10}  instruction"]
        for row in self.rows:
            total = row.nanoseconds / 1000
            lines.append(f"{total:12.1f} {row.calls:8d} {total / row.calls:10.2f}  {row.label}")
        return "\n".join(lines)

    __repr__ = __str__


@contextmanager
def profile() -> Iterator[Profile]:
    """Time every instruction of the compiled programs that run inside the block.

    with lucid.profile() as p:
        step(x, y)
    print(p)
    """
    from lucid.compiler import executable

    seen = Profile()
    for program in list(executable.LIVE):
        seen.programs.append(program)
        for plan in program.plans():
            plan.profile(True)

    def started(program: Any) -> None:
        seen.programs.append(program)
        for plan in program.plans():
            plan.profile(True)

    executable.WATCHERS.append(started)
    try:
        yield seen
    finally:
        executable.WATCHERS.remove(started)
        for program in seen.programs:
            for plan in program.plans():
                plan.profile(False)
