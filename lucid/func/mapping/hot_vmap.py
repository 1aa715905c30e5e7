"""hot_vmap: an eager vmap that recurs is batched once and runs as one native program.

`vmap_cut` counts Cuts of the tape by their structure. Where something needs single equations, or
until a Cut is hot, the operations of its Graph are batched one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.errors import LucidError
from lucid.ir.graph import Graph, Var
from lucid.ir.types import Type
from lucid.ops.core.promote import get_default_dtype
from lucid.tape.cut import Cut
from lucid.tape.modes import current, local
from lucid.tape.node import GRAD, TRACE, wrap
from lucid.tape.recording.trace import replay, trace_types
from lucid.tape.tiering import VMAP, Tiering, compile_native, table
from lucid.transforms.vmap import Batched, vmap


def vmap_cut(
    section: Cut, name: str, n: int, inputs: Sequence[Batched], axis_name: Any = None
) -> list[Batched]:
    """`vmap` of a Cut, by a native program if Cuts of this structure are hot."""
    program = hot_program(section, n, inputs, axis_name)
    if program is not None:
        try:
            return program(inputs)
        except LucidError:
            pass  # the error of the operation itself names the user's line
    return vmap(section.graph(name), n, inputs, axis_name)


def hot_program(
    section: Cut, n: int, inputs: Sequence[Batched], axis_name: Any
) -> BatchedProgram | None:
    """Return the program of a Cut that is hot; None if it is not, or equations are observed."""
    modes = current()
    if not (Tiering.enabled and modes.no_observers) or modes.interpret:
        return None
    tracked = TRACE | GRAD if modes.grad else TRACE
    for x, _ in inputs:
        if x.raw.__class__ is not np.ndarray or (x.node is not None and x.node.flags & tracked):
            return None
    batched = tuple([b for _, b in inputs])
    try:
        entry = table.entry(
            VMAP, (section.key, n, batched, axis_name, get_default_dtype()), len(section.rows)
        )
    except TypeError:  # a parameter without a hash
        return None
    if entry.program is not None:
        return entry.program
    return entry.count(1, lambda: BatchedProgram.of(section, n, batched, axis_name))


class BatchedProgram:
    """A Graph for `n` examples as a native program, and the views among its results.

    Views are made again on tensors, so that results share memory with arguments and with one
    another as those of single operations do.

    program    arrays of the inputs -> arrays that the results are, or are views of
    views      Graph of inputs and these arrays -> the results
    batched    whether axis 0 of each result is the batch axis
    """

    __slots__ = ("batched", "program", "views")

    def __init__(self, program: Any, views: Graph, batched: list[bool]) -> None:
        self.program = program
        self.views = views
        self.batched = batched

    def __call__(self, inputs: Sequence[Batched]) -> list[Batched]:
        arrays = self.program([x.raw for x, _ in inputs])
        results = replay(self.views, [*[x for x, _ in inputs], *[wrap(y) for y in arrays]])
        return [Batched(y, b) for y, b in zip(results, self.batched)]

    @classmethod
    def of(
        cls, section: Cut, n: int, batched: Sequence[bool], axis_name: Any
    ) -> BatchedProgram | None:
        """Return the program of a Cut, None if it belongs to one call or is not all native."""
        if any([op.single_use or op.ordered for op, *_ in section.rows]):
            return None
        one, flags = section.graph(), list[bool]()

        def batch(*xs: Any) -> list[Any]:
            results = vmap(one, n, [*map(Batched, xs, batched)], axis_name)
            flags[:] = [y.batched for y in results]
            return [y.tensor for y in results]

        types = [
            Type(x.type.dtype, (n, *x.type.shape)) if b else x.type
            for x, b in zip(one.inputs, batched, strict=True)
        ]
        before, local.grad = local.grad, True  # nothing is detached by no_grad around the call
        try:
            graph, _, captured = trace_types(batch, types, {})
        except LucidError:  # a rule that needs values
            return None
        finally:
            local.grad = before
        if captured:
            return None
        program_graph, views = split_views(graph)
        program = compile_native(program_graph) if program_graph.outputs else None
        return None if program is None else cls(program, views, flags)


def split_views(graph: Graph) -> tuple[Graph, Graph]:
    """Return a Graph without the views that lead to outputs, and the Graph of these views.

    The second takes the inputs and the outputs of the first, and returns the outputs of `graph`.
    """
    producer = {y: eqn for eqn in graph.equations for y in eqn.outputs}
    views: set[Var] = set()
    bases: dict[Var, None] = {}
    for y in graph.outputs:
        x: Any = y
        while x in producer and producer[x].op.is_view and len(producer[x].inputs) == 1:
            views.add(x)
            (x,) = producer[x].inputs
        if x in producer:
            bases[x] = None
    tail = tuple([eqn for eqn in graph.equations if eqn.outputs[0] in views])
    return (
        Graph(graph.name, graph.inputs, graph.equations, tuple(bases)),
        Graph("views", (*graph.inputs, *bases), tail, graph.outputs),
    )
