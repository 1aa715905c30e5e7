"""lower: the steps of a settled Graph -> plans, with NumPy between for what has no native code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lucid.compiler.fusion.fuse import fuse
from lucid.compiler.fusion.groups import VIEWS, Group, Step
from lucid.compiler.lowering.segment import SegmentLayout
from lucid.compiler.lowering.standalone import step_of
from lucid.compiler.plan.executable import Executable, Segment
from lucid.compiler.runtime.kernel_table import kernels_of
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ops.higher_order.checkpoint_op import Again


def is_native(step: Step) -> bool:
    """Has the step instructions of its own?"""
    if isinstance(step, Group):
        return True
    native = step_of(step.equation.op)
    return native is not None and native.accepts(step.equation)


def at_once(eqn: Equation) -> Equation:
    """The equation without what it only waits for: the order of steps is known by now."""
    waits = isinstance(eqn.op, Again) and len(eqn.inputs) > 1
    return Equation(eqn.op, eqn.inputs[:1], eqn.outputs, eqn.source) if waits else eqn


class Lowering:
    """One settled Graph on its way to an Executable."""

    def __init__(self, graph: Graph, into: Mapping[int, int] | None = None) -> None:
        """`into` says which outputs may be computed in the memory of which inputs."""
        self.graph = graph
        pairs = [(graph.outputs[y], graph.inputs[x]) for y, x in (into or {}).items()]
        self.into: dict[Any, Var] = {y: x for y, x in pairs if y.type == x.type}
        self.steps, self.readings = fuse(graph)
        self.producer: dict[Var, Equation] = {
            v: at_once(eqn) for eqn in graph.equations for v in eqn.outputs
        }
        self.step_of: dict[Var, Step] = {}
        for step in self.steps:
            for eqn in step.equations if isinstance(step, Group) else [step.equation]:
                for var in eqn.outputs:
                    self.step_of[var] = step

    def base(self, x: Var) -> Var:
        """The computed Var or input that `x` is a view of."""
        while (
            x in self.producer
            and isinstance(self.producer[x].op, VIEWS)
            and isinstance(self.producer[x].inputs[0], Var)
        ):
            x = self.producer[x].inputs[0]  # type: ignore[assignment]
        return x

    def is_number(self, x: Var) -> bool:
        """Is `x` one number everywhere, which kernels hold themselves?"""
        return x in self.readings and isinstance(self.readings[x].base, Literal)

    def reads(self, step: Step) -> list[Var]:
        """The bases of what a step reads from outside itself."""
        equations = step.equations if isinstance(step, Group) else [step.equation]
        operands = [x for eqn in equations for x in eqn.inputs if isinstance(x, Var)]
        found = [self.base(x) for x in operands if not self.is_number(x)]
        return list(dict.fromkeys(x for x in found if self.step_of.get(x) is not step))

    def segments(self) -> list[Segment | Equation]:
        """The steps in runs: native ones together, others one by one."""
        out: list[Segment | Equation] = []
        for step in self.steps:
            if not is_native(step):
                out.append(step.equation)  # type: ignore[union-attr]
            elif out and isinstance(out[-1], Segment):
                out[-1].steps.append(step)
            else:
                out.append(Segment([step]))
        self.connect(out)
        return out

    def connect(self, parts: Sequence[Segment | Equation]) -> None:
        """Find what each segment takes and gives."""
        wanted: set[Var] = {self.base(x) for x in self.graph.outputs if isinstance(x, Var)}
        for part in reversed(parts):
            if isinstance(part, Equation):
                wanted |= {self.base(x) for x in part.inputs if isinstance(x, Var)}
                continue
            made = [
                var
                for step in part.steps
                for eqn in (step.equations if isinstance(step, Group) else [step.equation])
                for var in eqn.outputs
            ]
            inside = set(made)
            last = [x for x in self.graph.outputs if x in inside]
            part.outputs = list(dict.fromkeys([*last, *[var for var in made if var in wanted]]))  # type: ignore[list-item]
            reads = dict.fromkeys(x for step in part.steps for x in self.reads(step))
            part.inputs = [x for x in reads if x not in inside]
            wanted |= set(part.inputs)

    def lay_out(self) -> None:
        """Decide on memory and instructions, but compile nothing yet."""
        self.parts = self.segments()
        if len(self.parts) > 1:
            self.into = {}  # another part may still read the input
        self.layouts = [
            SegmentLayout(self, part) for part in self.parts if isinstance(part, Segment)
        ]
        if self.into and any(layout.segment.checks for layout in self.layouts):
            self.into = {}  # an error is found after the run, which must have changed nothing
            self.lay_out()

    def structures(self) -> list[Any]:
        """What the kernels of the program depend on."""
        return [k for layout in self.layouts for work in layout.work for k in work.kernels()]

    def finish(self) -> Executable:
        kernels = kernels_of(self.structures())
        for layout in self.layouts:
            layout.build(kernels)
        return Executable(self.graph, self.parts, self.producer)
