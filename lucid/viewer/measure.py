"""measure: the instructions of a program, their kernels, memory and times, as plain data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.compiler.fusion.groups import Group, Step
from lucid.compiler.inspect.line_links import readable_assembly, values_of_texts
from lucid.compiler.inspect.stages import KernelText, kernel_text, leaves
from lucid.compiler.kernels.nest import Nest
from lucid.compiler.lowering.lower import GraphLowering
from lucid.compiler.passes.subgraph_passes import subgraphs
from lucid.compiler.plan.executable import Executable, Segment
from lucid.errors import LucidError
from lucid.ir.graph import Equation, Graph, Var
from lucid.viewer.subjects import Program

if TYPE_CHECKING:
    from lucid.viewer.collect import Table

SECONDS = 0.3  # of measuring, after a first run
RUNS = 50


def compiled(graph: Graph, program: Program, table: Table) -> dict[str, Any]:
    """Lower an optimized Graph; return its instructions, kernels, memory and measured times."""
    lowering = GraphLowering(graph, program.into)
    lowering.lay_out()
    executable = lowering.finish()
    runs = measured_runs(executable, program.values)
    kernels = Kernels(table, views_of(graph))
    instructions: list[dict[str, Any]] = []
    memory: list[dict[str, Any]] = []
    layouts = iter(lowering.layouts)
    for part in lowering.parts:
        if isinstance(part, Segment):
            layout = next(layouts)
            memory.append(arena(layout, table))
            instructions += plan_instructions(layout, kernels, table, runs)
        else:
            rows = [table.row(part)]
            spent = _numpy_time(executable, part) if runs else 0
            instructions.append(_instruction(f"numpy {part.op.name}", rows, {}, spent, runs))
    return {
        "instructions": instructions,
        "kernels": kernels.found,
        "memory": memory,
        "runs": runs,
    }


def measured_runs(executable: Executable, values: Sequence[np.ndarray] | None) -> int:
    """Run a program on copies of values while it is profiled; return how often, 0 if it cannot."""
    if values is None:
        return 0
    arrays = [np.array(x) for x in values]
    try:
        executable(arrays)
        for plan in executable.plans():
            plan.profile(True)
        executable.numpy_times = {}
        end, runs = time.perf_counter() + SECONDS, 0
        while runs < RUNS and (not runs or time.perf_counter() < end):
            arrays = [np.array(x) for x in values]
            executable(arrays)
            runs += 1
    except LucidError:
        return 0
    finally:
        for plan in executable.plans():
            plan.profile(False)
    return runs


class Kernels:
    """The distinct kernels of a program as text, and the values that each of their lines has."""

    def __init__(self, table: Table, views: dict[Var, Equation]) -> None:
        self.table = table
        self.views = views
        self.found: list[dict[str, Any]] = []
        self.number: dict[Any, int] = {}

    def of(self, work: Any) -> dict[int, list[list[int]]]:
        """Return the kernels of a work, those inside loops and branches too, by number.

        With each are the rows of equations that its values come from: equal kernels compute
        different equations in different instructions.
        """
        found: dict[int, list[list[int]]] = {}
        for leaf in leaves([work]):
            for source in leaf.kernels():
                if source.key not in self.number:
                    self.number[source.key] = len(self.found)
                    self.found.append(kernel_data(kernel_text(leaf, source)))
                rows = found.setdefault(self.number[source.key], [])
                for v, eqns in enumerate(getattr(leaf, "nest", NO_NEST).equations):
                    rows += [[] for _ in range(v + 1 - len(rows))]
                    new = [self.table.row(eqn) for eqn in with_views(eqns, self.views)]
                    rows[v] = list(dict.fromkeys(rows[v] + new))
        return found


NO_NEST = Nest((), (), (), (), ())


def kernel_data(text: KernelText) -> dict[str, Any]:
    """Return the texts of a kernel, and the values of their lines."""
    return {
        "name": text.name,
        "label": text.label.split("  [")[0],
        "listing": text.listing,
        "llvm": text.llvm,
        "assembly": readable_assembly(text.assembly),
        "values": values_of_texts(text),
    }


def views_of(graph: Graph) -> dict[Var, Equation]:
    """Return the views of a Graph, and of the Graphs inside, by their results."""
    found = {}
    for eqn in graph.equations:
        if eqn.op.aliases:
            found[eqn.outputs[0]] = eqn
        for body in subgraphs(eqn):
            found.update(views_of(body))
    return found


def plan_instructions(
    layout: Any, kernels: Kernels, table: Table, runs: int
) -> list[dict[str, Any]]:
    """Return the instructions of a plan: a loop or a branch is one."""
    timings = layout.segment.plan.timings() if runs else []
    out = []
    for number, work in enumerate(layout.instructions):
        steps = layout.steps_of.get(id(work), [])
        rows = [table.row(eqn) for eqn in with_views(equations_of(steps), kernels.views)]
        spent = timings[number][2] if number < len(timings) else 0
        nbytes, flops = layout.segment.plan.traffic[number]
        label = getattr(work, "label", type(work).__name__).split("  [")[0]
        made = _instruction(label, rows, kernels.of(work), spent, runs)
        made.update(bytes=nbytes, flops=flops, steps=step_numbers(layout, work))
        out.append(made)
    return out


def step_numbers(layout: Any, work: Any) -> list[int]:
    numbers = {step: number for number, step in enumerate(layout.segment.steps)}
    return [numbers[step] for step in layout.steps_of.get(id(work), []) if step in numbers]


def equations_of(steps: Sequence[Step]) -> list[Equation]:
    return [
        eqn
        for step in steps
        for eqn in (step.equations if isinstance(step, Group) else [step.equation])
    ]


def with_views(eqns: Sequence[Equation], views: dict[Var, Equation]) -> list[Equation]:
    """Return equations, and the views through which these read."""
    found: dict[Equation, None] = {}
    for eqn in eqns:
        waiting = [eqn]
        while waiting:
            top = waiting.pop()
            found[top] = None
            waiting += [views[x] for x in top.inputs if x in views and views[x] not in found]  # type: ignore[index]
    return list(found)


def _instruction(
    label: str, rows: list[int], kernels: dict[int, Any], spent: int, runs: int
) -> dict[str, Any]:
    nanoseconds = round(spent / runs) if runs else 0
    return {
        "label": label,
        "rows": rows,
        "kernels": list(kernels),
        "values": list(kernels.values()),
        "ns": nanoseconds,
    }


def _numpy_time(executable: Executable, eqn: Equation) -> int:
    source = f"  [{eqn.source}]" if eqn.source else ""
    times = executable.numpy_times or executable.saved_times
    return times.get(f"numpy {eqn.op.name}{source}", [0, 0])[1]


def arena(layout: Any, table: Table) -> dict[str, Any]:
    """Return the planned buffers of a plan: where they lie in the arena, and how long they live."""
    producer = layout.lowering.producer
    buffers = []
    for var, offset, life in layout.buffers:
        rows = [table.row(producer[var])] if var in producer else []
        buffers.append([table.name(var), rows, offset, life.nbytes, life.first, life.last])
    return {"bytes": layout.top, "steps": len(layout.segment.steps), "buffers": buffers}
