"""measure: the instructions of a program, their kernels, memory and times, as plain data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.compiler.fusion.groups import Group, Step
from lucid.compiler.inspect.stages import kernel_text, leaves
from lucid.compiler.lowering.lower import GraphLowering
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
    kernels = Kernels()
    instructions: list[dict[str, Any]] = []
    memory: list[dict[str, Any]] = []
    layouts = iter(lowering.layouts)
    views = {eqn.outputs[0]: eqn for eqn in graph.equations if eqn.op.aliases}
    for part in lowering.parts:
        if isinstance(part, Segment):
            layout = next(layouts)
            memory.append(arena(layout, table))
            instructions += plan_instructions(layout, kernels, views, table, runs)
        else:
            rows = [table.row(part)]
            spent = _numpy_time(executable, part) if runs else 0
            instructions.append(_instruction(f"numpy {part.op.name}", rows, [], spent, runs))
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
    """The distinct kernels of a program as text."""

    def __init__(self) -> None:
        self.found: list[dict[str, str]] = []
        self.number: dict[Any, int] = {}

    def of(self, work: Any) -> list[int]:
        """Return the numbers of the kernels of a work, those inside loops and branches too."""
        found = []
        for leaf in leaves([work]):
            for source in leaf.kernels():
                if source.key not in self.number:
                    self.number[source.key] = len(self.found)
                    text = kernel_text(leaf, source)
                    self.found.append(
                        {
                            "name": text.name,
                            "label": text.label.split("  [")[0],
                            "listing": text.listing,
                            "llvm": text.llvm,
                            "assembly": readable_assembly(text.assembly),
                        }
                    )
                found.append(self.number[source.key])
        return list(dict.fromkeys(found))


def readable_assembly(text: str) -> str:
    """Return assembly without directives."""
    noise = (
        ".cfi_",
        ".p2align",
        ".type",
        ".size",
        ".section",
        ".globl",
        ".file",
        ".text",
        ".ident",
    )
    return "\n".join(
        line for line in text.expandtabs(8).splitlines() if not line.strip().startswith(noise)
    )


def plan_instructions(
    layout: Any, kernels: Kernels, views: dict[Var, Equation], table: Table, runs: int
) -> list[dict[str, Any]]:
    """Return the instructions of a plan: a loop or a branch is one."""
    timings = layout.segment.plan.timings() if runs else []
    out = []
    for number, work in enumerate(layout.instructions):
        rows = [table.row(eqn) for eqn in equations_of(layout.steps_of.get(id(work), []), views)]
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


def equations_of(steps: Sequence[Step], views: dict[Var, Equation]) -> list[Equation]:
    """Return the equations of steps, and the views through which these read."""
    found: dict[Equation, None] = {}
    for step in steps:
        for eqn in step.equations if isinstance(step, Group) else [step.equation]:
            waiting = [eqn]
            while waiting:
                top = waiting.pop()
                found[top] = None
                waiting += [views[x] for x in top.inputs if x in views and views[x] not in found]  # type: ignore[index]
    return list(found)


def _instruction(
    label: str, rows: list[int], kernels: list[int], spent: int, runs: int
) -> dict[str, Any]:
    nanoseconds = round(spent / runs) if runs else 0
    return {"label": label, "rows": rows, "kernels": kernels, "ns": nanoseconds}


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
