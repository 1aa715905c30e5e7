"""Fused steps of a Graph for modules outside Lucid: every value that is stored has its own array.

A step is a Kernel, with the arrays that its buffers are views of, or one equation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lucid.compiler.fusion.groups import Group
from lucid.compiler.kernels.build import NestBuilder, extent_of
from lucid.compiler.kernels.listing import buffer_views
from lucid.compiler.kernels.nest import Nest
from lucid.compiler.lowering.lower import GraphLowering
from lucid.compiler.passes.pipeline import stages
from lucid.compiler.plan.arrays import Array, array_of
from lucid.compiler.plan.instructions import Cell, Ref
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.types import Type


@dataclass(frozen=True)
class View:
    """A part of an array: its variable, the first element, shape and strides in elements."""

    base: Any
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Kernel:
    """A fused kernel: its Nest, a View for each buffer, and the scratch arrays that it needs."""

    nest: Nest
    views: list[View]
    scratch: dict[str, Type]
    equations: tuple[Equation, ...]

    @property
    def extent(self) -> int:
        return extent_of(self.nest)[0]

    @property
    def is_empty(self) -> bool:
        """True if it has nothing to compute."""
        return not self.nest.size


class Layout:
    """The layout that `NestBuilder` needs, with an array for every stored value."""

    def __init__(self, lowering: GraphLowering, stored: set[Var]) -> None:
        self.lowering = lowering
        self.owner: dict[Cell, Any] = {}
        self.arrays: dict[Var, Array] = {}
        self.scratches: dict[str, Type] = {}
        for var in stored:
            self.arrays[var] = Array.of(self.place(var), var.type)

    def place(self, owner: Any) -> Ref:
        cell = Cell()
        self.owner[cell] = owner
        return Ref(cell)

    def array(self, x: Var) -> Array:
        return array_of(x, self.arrays, self.lowering.producer)

    def scratch(self, type: Type) -> Array:
        name = f"s{len(self.scratches)}"
        self.scratches[name] = type
        return Array.of(self.place(name), type)

    status = None  # kernels report errors in their own way
    wide_sums = True  # float32 is added in float64: modules add in order, kernels in many parts

    def add_check(self, eqn: Equation, indices: Any = ()) -> int:
        return 1


def fused_steps(graph: Graph) -> tuple[Graph, Layout, Iterator[Kernel | Equation]]:
    """The optimized Graph, where its values are, and its steps in order."""
    graph = stages(graph)["copies_inserted"]
    lowering = GraphLowering(graph)
    stored = {*graph.inputs, *[lowering.base(x) for x in graph.outputs if isinstance(x, Var)]}
    for step in lowering.steps:
        stored |= {x for x in lowering.reads(step) if isinstance(x, Var)}
        if not isinstance(step, Group):
            stored |= set(step.equation.outputs)
    layout = Layout(lowering, stored)

    def steps() -> Iterator[Kernel | Equation]:
        for step in lowering.steps:
            if not isinstance(step, Group):
                yield step.equation
                continue
            layout.scratches = {}
            nest, arrays = NestBuilder(layout, step).run()
            found = buffer_views(nest) if nest.size else []
            views = [
                View(layout.owner[array.ref.cell], array.offset, shape, strides, dtype)
                for array, (dtype, shape, strides) in zip(arrays, found)
            ]
            yield Kernel(nest, views, dict(layout.scratches), tuple(step.equations))

    return graph, layout, steps()


def operand_view(layout: Layout, x: Any) -> View | Literal:
    """An operand of an equation as a part of a stored array."""
    if isinstance(x, Literal):
        return x
    array = layout.array(x)
    owner = layout.owner[array.ref.cell]
    return View(owner, array.offset, array.shape, array.strides, array.dtype)


def work_kernel(layout: Layout, work: Any, eqn: Equation, scratch: dict[str, Type]) -> Kernel:
    """The kernel of a work whose lowering is a Nest."""
    views = [
        View(layout.owner[array.ref.cell], array.offset, shape, strides, dtype)
        for array, (dtype, shape, strides) in zip(work.arrays, buffer_views(work.nest))
    ]
    return Kernel(work.nest, views, scratch, (eqn,))
