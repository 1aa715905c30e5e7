"""lower: the steps of an optimized Graph -> plans, with NumPy for steps without native code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lucid.compiler.fusion.fuse import fuse
from lucid.compiler.fusion.groups import Group, Step
from lucid.compiler.lowering.segment import SegmentLayout
from lucid.compiler.plan.executable import Executable, Segment
from lucid.compiler.resolve import resolve
from lucid.compiler.runtime.kernel_table import kernels_of
from lucid.ir.graph import Equation, Graph, Literal, Var


def is_native(step: Step) -> bool:
    """True if the step can be lowered to instructions of a plan."""
    if isinstance(step, Group):
        return True
    native = resolve(step.equation.op.lowering)
    return native is not None and native.accepts(step.equation)


def drop_ordering_inputs(eqn: Equation) -> Equation:
    """The equation without the inputs that only order it: the steps are ordered by now."""
    return eqn._replace(inputs=eqn.inputs[:1]) if eqn.op.orders else eqn


class GraphLowering:
    """Lowers one optimized Graph to an Executable."""

    def __init__(self, graph: Graph, into: Mapping[int, int] | None = None) -> None:
        """`into` maps outputs to the inputs whose memory they may be computed in."""
        self.graph = graph
        pairs = [(graph.outputs[y], graph.inputs[x]) for y, x in (into or {}).items()]
        self.into: dict[Any, Var] = {y: x for y, x in pairs if y.type == x.type}
        self.steps, self.readings = fuse(graph)
        self.producer: dict[Var, Equation] = {
            v: drop_ordering_inputs(eqn) for eqn in graph.equations for v in eqn.outputs
        }
        self.checking: set[Step] = set()  # steps that report errors of values
        self.step_of: dict[Var, Step] = {}
        for step in self.steps:
            for eqn in step.equations if isinstance(step, Group) else [step.equation]:
                for var in eqn.outputs:
                    self.step_of[var] = step

    def base(self, x: Var) -> Var:
        """Return the computed Var or input that `x` is a view of."""
        while (
            x in self.producer
            and self.producer[x].op.aliases
            and isinstance(self.producer[x].inputs[0], Var)
        ):
            x = self.producer[x].inputs[0]  # type: ignore[assignment]
        return x

    def is_scalar_constant(self, x: Var) -> bool:
        """True if `x` is one constant everywhere, which kernels hold themselves."""
        return x in self.readings and isinstance(self.readings[x].base, Literal)

    def reads(self, step: Step) -> list[Var]:
        """Return the bases of the values that a step reads from other steps."""
        equations = step.equations if isinstance(step, Group) else [step.equation]
        operands = [x for eqn in equations for x in eqn.inputs if isinstance(x, Var)]
        found = [self.base(x) for x in operands if not self.is_scalar_constant(x)]
        return list(dict.fromkeys(x for x in found if self.step_of.get(x) is not step))

    def segments(self) -> list[Segment | Equation]:
        """Group the steps: consecutive native ones into Segments, others one by one."""
        out: list[Segment | Equation] = []
        for step in self.steps:
            if not is_native(step):
                out.append(step.equation)  # type: ignore[union-attr]
            elif out and isinstance(out[-1], Segment):
                out[-1].steps.append(step)
            else:
                out.append(Segment([step]))
        self.find_segment_io(out)
        return out

    def find_segment_io(self, parts: Sequence[Segment | Equation]) -> None:
        """Find the inputs and outputs of each segment."""
        wanted: set[Var] = {self.base(x) for x in self.graph.outputs if isinstance(x, Var)}
        order = {var: i for i, var in enumerate(self.graph.inputs)}
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
            reads_outside = [x for x in reads if x not in inside]
            part.inputs = sorted(reads_outside, key=lambda x: order.get(x, len(order)))
            wanted |= set(part.inputs)

    def lay_out(self) -> None:
        """Plan memory and instructions without compiling anything yet."""
        self.parts = self.segments()
        if len(self.parts) > 1:
            self.into = {}  # another part may still read the input
        known = len(self.checking)
        self.layouts = [
            SegmentLayout(self, part) for part in self.parts if isinstance(part, Segment)
        ]
        if self.into and len(self.checking) > known:
            # An error must leave the inputs as they were: the plan stops before it changes one,
            # unless something that other ranks wait for would not happen then.
            if any([eqn.op.ordered for eqn in self.graph.equations]):
                self.into = {}
            self.lay_out()

    def kernel_sources(self) -> list[Any]:
        """Return the sources of all kernels of the program."""
        return [k for layout in self.layouts for work in layout.work for k in work.kernels()]

    def finish(self) -> Executable:
        kernels = kernels_of(self.kernel_sources())
        for layout in self.layouts:
            layout.build(kernels)
        return Executable(self.graph, self.parts, self.producer)
