"""vmap: a Graph over a leading batch axis. A value is either batched (axis 0) or shared by all examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lucid.ir.graph import Equation, Graph, Literal
from lucid.ir.tape import bind
from lucid.ir.tracing import replay


class Batched(NamedTuple):
    """A tensor, and whether its axis 0 runs over the examples."""

    tensor: Any
    batched: bool


def vmap(graph: Graph, n: int, inputs: Sequence[Batched]) -> list[Batched]:
    """The outputs of a Graph for `n` examples at once: one pass, no loop over examples."""

    def apply(eqn: Equation, xs: Sequence[Any]) -> list[Batched]:
        xs = [Batched(x, False) if isinstance(x, Literal) else x for x in xs]
        batched = tuple(x.batched for x in xs)
        tensors = [x.tensor for x in xs]
        some = any(batched)
        out = eqn.op.batch(n, batched, *tensors) if some else bind(eqn.op, *tensors)
        return [Batched(y, some) for y in (out if isinstance(out, tuple) else (out,))]

    outs = replay(graph, inputs, apply)
    return [Batched(y, False) if isinstance(y, Literal) else y for y in outs]
