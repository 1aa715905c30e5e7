"""Readable stages, kernels and instructions of a compiled program."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lucid.compiler.backends import selection
from lucid.compiler.inspect.fused_text import fused_text
from lucid.compiler.kernels.nest import Structure
from lucid.compiler.passes.pipeline import STAGES, lower_graph, stages
from lucid.compiler.plan.executable import Segment
from lucid.compiler.runtime import codegen
from lucid.ir.graph import Graph

TEXT_STAGES = ("fused", "planned")
STAGE_ALIASES = {"differentiated": "traced"}  # a traced graph already contains its derivatives

_dumps = itertools.count()


@dataclass(frozen=True)
class KernelText:
    """One kernel as readable Python, as LLVM IR and as assembly."""

    name: str
    label: str
    listing: str
    llvm: str
    assembly: str
    source: Any = field(repr=False, compare=False, default=None)  # its Structure or TextKernel
    nest: Any = field(repr=False, compare=False, default=None)

    def __repr__(self) -> str:
        return f"<kernel {self.label}>\n{self.listing}"


def stage_of(
    graph: Graph, name: str, into: Mapping[int, int] | None = None, budget: int | None = None
) -> Graph | str:
    """The Graph after a stage of the compiler; the stages "fused" and "planned" are text."""
    name = STAGE_ALIASES.get(name, name)
    names = ["traced", *STAGES, *TEXT_STAGES]
    if name not in names:
        raise ValueError(f"unknown stage {name!r}; the stages are {', '.join(names)}")
    found = stages(graph)
    if name == "fused":
        optimized = found["copies_inserted"]
        return fused_text(optimized if budget is None else lower_graph(graph, into, budget).graph)
    return planned_text(graph, into, budget) if name == "planned" else found[name]


def planned_text(
    graph: Graph, into: Mapping[int, int] | None = None, budget: int | None = None
) -> str:
    """The instructions of a program in order, with the size of their arena."""
    lowering = lower_graph(graph, into, budget)
    layouts = iter(lowering.layouts)
    lines = []
    for part in lowering.parts:
        if not isinstance(part, Segment):
            lines.append(f"numpy   {part.op!r}")
            continue
        layout = next(layouts)
        where = f", {len(part.into)} of them in the memory of inputs" if part.into else ""
        lines.append(
            f"plan    {len(part.inputs)} in, {len(part.outputs)} out{where}, "
            f"arena {layout.top} bytes"
        )
        lines += instructions(layout.work, "    ")
    return "\n".join(lines)


def instructions(works: Sequence[Any], indent: str) -> list[str]:
    """A line for each instruction; those inside branches and loops follow, indented."""
    lines = []
    for work in works:
        lines.append(f"{indent}{getattr(work, 'label', type(work).__name__)}")
        for name, inside in getattr(work, "blocks", lambda: ())():
            lines.append(f"{indent}  {name}")
            lines += instructions(inside, indent + "    ")
    return lines


def leaves(works: Sequence[Any]) -> Iterator[Any]:
    """The works that contain no others."""
    for work in works:
        inside = getattr(work, "blocks", None)
        if inside is None:
            yield work
        else:
            yield from leaves(work.before)
            for _, block in inside():
                yield from leaves(block)


def kernels_of_graph(graph: Graph) -> list[KernelText]:
    """The kernels of a program, as the current backend compiles them."""
    found: dict[Any, KernelText] = {}
    for layout in lower_graph(graph).layouts:
        for work in leaves(layout.work):
            for source in work.kernels():
                if source.key not in found:
                    found[source.key] = kernel_text(work, source)
    return list(found.values())


def kernel_text(work: Any, source: Any) -> KernelText:
    """The text of one kernel of a work, as the current backend compiles it."""
    from lucid.compiler.kernels.listing import listing
    from lucid.compiler.runtime.kernel_table import modules_of, name_of

    nest = getattr(work, "nest", None)
    backend = selection.current()
    texts = modules_of(source, backend)
    shown = ""
    if isinstance(source, Structure):
        shown = backend.replaced.get(source.key) or ("" if nest is None else listing(nest))
    assembly = codegen.assembly(*texts)
    return KernelText(name_of(source), work.label, shown, str(texts[0]), assembly, source, nest)


def dump(graph: Graph, folder: str, into: Mapping[int, int] | None = None) -> None:
    """Write every stage and every kernel of a program into a new folder."""
    name = re.sub(r"\W", "", graph.name) or "graph"
    target = Path(folder) / f"{os.getpid()}-{next(_dumps):04d}-{name}"
    target.mkdir(parents=True, exist_ok=True)
    for stage in ("traced", *STAGES, *TEXT_STAGES):
        (target / f"{stage}.txt").write_text(str(stage_of(graph, stage, into)) + "\n")
    for kernel in kernels_of_graph(graph):
        for text, ending in ((kernel.listing, "py"), (kernel.llvm, "ll"), (kernel.assembly, "s")):
            if text:  # some kernels, such as those of sort, have no listing
                (target / f"{kernel.name}.{ending}").write_text(text + "\n")
