"""The steps of a Graph as text: the equations of each kernel, its domain and its results."""

from __future__ import annotations

from typing import Any

from lucid.compiler.fusion.fuse import fuse
from lucid.compiler.fusion.groups import Group, Standalone, Step
from lucid.compiler.passes.subgraph_passes import subgraphs
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.text import to_text


def fused_text(graph: Graph) -> str:
    """Each step with its equations; a dot marks a view, which is part of how a kernel reads.

    >>> import lucid
    >>> graph = lucid.ir.parse('''graph f(x: f32[4,3]):
    ...     %0: f32[4]   = sum[axes=(1,)] x
    ...     %1: f32[4,1] = reshape[shape=(4,1)] %0
    ...     %2: f32[4,3] = div x %1
    ...     return %2''')
    >>> print(fused_text(graph))
    kernel over 4 x 3, reducing axis 1, gives %2
        %0: f32[4]   = sum[axes=(1,)] x
      · %1: f32[4,1] = reshape[shape=(4,1)] %0
        %2: f32[4,3] = div x %1
    """
    steps, _ = fuse(graph)
    writer = _Writer(graph, steps)
    lines = []
    for step in steps:
        lines += writer.step(step)
        for i, body in enumerate(subgraphs(step.equation) if isinstance(step, Standalone) else []):
            lines.append(f"  body {i}")
            lines += ["    " + line for line in fused_text(body).splitlines()]
    return "\n".join(lines)


def count_steps(graph: Graph) -> tuple[int, int]:
    """The number of kernels and of standalone equations of a Graph."""
    steps, _ = fuse(graph)
    kernels = sum(isinstance(step, Group) for step in steps)
    return kernels, len(steps) - kernels


class _Writer:
    def __init__(self, graph: Graph, steps: list[Step]) -> None:
        lines = to_text(graph.stripped()).splitlines()[1:]
        self.lines = dict(zip(graph.equations, lines))
        self.views = {eqn.outputs[0]: eqn for eqn in graph.equations if eqn.op.aliases}
        self.names = {
            var: part.split(":")[0].strip()
            for eqn, line in self.lines.items()
            for var, part in zip(eqn.outputs, line.split(" = ")[0].split(", "))
        }
        self.readers: dict[Var, set[int]] = {x: {-1} for x in map(self.base, graph.outputs)}
        for number, step in enumerate(steps):
            for eqn in equations(step):
                for x in eqn.inputs:
                    self.readers.setdefault(self.base(x), set()).add(number)
        self.number = {step: number for number, step in enumerate(steps)}

    def base(self, x: Any) -> Any:
        while x in self.views:
            x = self.views[x].inputs[0]
        return x

    def step(self, step: Step) -> list[str]:
        out = [self.title(step)]
        shown: set[Equation] = set()
        for eqn in equations(step):
            for view in self.views_of(eqn, shown):
                out.append("  · " + self.lines[view].strip())
            out.append(self.lines[eqn])
        return out

    def title(self, step: Step) -> str:
        if isinstance(step, Standalone):
            return f"{step.equation.op.name} alone"
        text = "kernel over " + (" x ".join(map(str, step.sizes)) or "one point")
        if step.reduced:
            axes = sorted(step.reduced)
            text += f", reducing {'axis' if len(axes) == 1 else 'axes'} {', '.join(map(str, axes))}"
        mine = [var for eqn in step.equations for var in eqn.outputs]
        given = [v for v in mine if self.readers.get(v, set()) - {self.number[step]}]
        return f"{text}, gives {', '.join(self.names[v] for v in given)}"

    def views_of(self, eqn: Equation, shown: set[Equation]) -> list[Equation]:
        """The views through which an equation reads that were not shown yet, in order."""
        found: list[Equation] = []
        stack = list(eqn.inputs)
        while stack:
            view = self.views.get(stack.pop())  # type: ignore[arg-type]
            if view is not None and view not in shown:
                shown.add(view)
                found.append(view)
                stack.append(view.inputs[0])
        return found[::-1]


def equations(step: Step) -> list[Equation]:
    return step.equations if isinstance(step, Group) else [step.equation]
