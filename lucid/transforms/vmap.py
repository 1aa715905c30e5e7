"""vmap: run a Graph over a leading batch axis. A value is batched (axis 0) or shared."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from lucid.ir.graph import Equation, Graph, Literal
from lucid.ir.types import Type
from lucid.ops.reduce.named_axes import NamedAxis, mentions_axis
from lucid.tape.bind import bind, record_constant
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import Trace, is_traced, leaf, wrap
from lucid.tape.recording.trace import replay


class Batched(NamedTuple):
    """A tensor, and whether its axis 0 is the batch axis."""

    tensor: Any
    batched: bool


_axis_name: ContextVar[Any] = ContextVar("lucid_axis_name", default=None)  # of the running vmap
current_axis_name = _axis_name.get


def vmap(graph: Graph, n: int, inputs: Sequence[Batched], axis_name: Any = None) -> list[Batched]:
    """Return the outputs of a Graph for `n` examples at once, without a loop over examples.

    An op's `batch` returns tensors with the batch in axis 0, or Batched where some have none.
    A collective over `axis_name` reads the batch axis, inside the Graphs of operations too.
    """
    before = _axis_name.set(axis_name)
    try:
        return vmap_inside(graph, n, inputs)
    finally:
        _axis_name.reset(before)


def vmap_inside(graph: Graph, n: int, inputs: Sequence[Batched]) -> list[Batched]:
    """`vmap` of a Graph that an operation holds, which belongs to the vmap of that operation."""
    tracing = any([is_traced(x.tensor) for x in inputs])
    axis_name = current_axis_name()

    def apply(eqn: Equation, xs: Sequence[Any]) -> list[Batched]:
        if tracing and all([x.__class__ is Literal for x in xs]):
            return [Batched(record_constant(eqn.op, xs), False)]
        xs = [Batched(x, False) if isinstance(x, Literal) else x for x in xs]
        batched = tuple(x.batched for x in xs)
        tensors = [x.tensor for x in xs]
        any_batched = any(batched)
        if axis_name is not None and mentions_axis(eqn.op, axis_name):
            if isinstance(eqn.op, NamedAxis):
                return [Batched(*eqn.op.collect(batched[0], tensors[0]))]
            any_batched = True
        out = eqn.op.batch(n, batched, *tensors) if any_batched else bind(eqn.op, *tensors)
        outs = out if isinstance(out, tuple) else (out,)
        return [y if isinstance(y, Batched) else Batched(y, any_batched) for y in outs]

    outs = replay(graph, inputs, apply)
    return [Batched(y, False) if isinstance(y, Literal) else y for y in outs]


def batch_graph(
    graph: Graph, n: int, batched: Sequence[bool], summed: Sequence[bool] = ()
) -> Graph:
    """Return the batched Graph: batched inputs and all outputs have `n` examples in axis 0.

    Outputs marked in `summed` are summed over the examples instead.
    """
    trace = Trace("vmap")
    before, local.staging = local.staging, trace
    try:
        inputs = [
            leaf(Type(var.type.dtype, (n, *var.type.shape)) if b else var.type, trace)
            for var, b in zip(graph.inputs, batched, strict=True)
        ]
        sums = [*summed, *[False] * (len(graph.outputs) - len(summed))]
        outs = []
        for y, summed_over in zip(
            vmap_inside(graph, n, [Batched(x, b) for x, b in zip(inputs, batched)]), sums
        ):
            x = wrap(y.tensor.array) if isinstance(y.tensor, Literal) else y.tensor
            x = x if y.batched else x.expand((n, *x.shape))
            outs.append(x.sum(dim=0) if summed_over else x)
        section = cut(inputs, outs, effects=trace.effects)
    finally:
        local.staging, trace.active = before, False
    assert not section.captured, "the Graph of an operation captures nothing"
    return section.graph(graph.name)
