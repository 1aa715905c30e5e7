"""Checkpoint: a Graph whose intermediate values are recomputed when a derivative needs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ir.facts import Points
from lucid.ir.graph import Graph
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.kinds import Linear
from lucid.ops.higher_order.call import program_of_call
from lucid.ops.higher_order.custom_derivative import apply_derivative
from lucid.tape.bind import bind


class OptimizationBarrier(Linear):
    """The identity on `x`, which keeps a recomputation apart from the first computation.

    No pass merges computations across it, and in a compiled program no step that reads
    `optimization_barrier x ct` runs before `ct` is computed.
    """

    saves = "x"
    moves = orders = True
    complex_rule = "lucid.compiler.passes.expand.lower_complex:optimization_barrier"

    def infer(self, x: Type, *after: Type) -> Type:
        return x

    def view(self, x: Any) -> Any:
        return x

    def axes_read(self, x: Type) -> Points:
        return tuple(range(x.ndim))

    def eval(self, x: np.ndarray, *after: np.ndarray) -> np.ndarray:
        return np.array(x, order="K")

    def adjoint(self, ct: Any, x: Any, *after: Any) -> Any:
        return ct

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, *after: Any) -> Any:
        return bind(self, x if batched[0] else x.expand((n, *x.shape)), *after)


class Named(Linear):
    """The identity, with a label by which a `checkpoint` policy can save the value."""

    label: str
    moves, forwards = True, "last"

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return np.array(x, order="K")

    def adjoint(self, ct: Any, x: Any) -> Any:
        return ct

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


class Checkpoint(Primitive):
    """The outputs of a Graph; those after the first `n_out` are residuals of the derivative."""

    graph: Graph
    n_out: int
    value_graph = "graph"

    def infer(self, *xs: Type) -> tuple[Type, ...]:
        return self.graph.out_types

    def eval(self, *xs: np.ndarray) -> tuple[Any, ...]:
        return tuple(program_of_call(self.graph)([np.asarray(x) for x in xs]))

    def jvp(self, ts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.jvp import jvp

        derivative = jvp(self.graph, self.graph.inputs, [t is not None for t in ts])
        return tuple(apply_derivative(derivative, self.graph, xs, ys, ts))

    def vjp(self, cts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vjp import vjp

        derivative = vjp(self.graph, self.graph.inputs, [ct is not None for ct in cts])
        seeds = [ct for ct in cts if ct is not None]
        inputs = [bind(OptimizationBarrier(), x, *seeds) for x in xs]
        saved = [None] * self.n_out + list(ys[self.n_out :])
        return tuple(apply_derivative(derivative, self.graph, inputs, saved, cts))

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vmap import batch_graph

        return bind(Checkpoint(batch_graph(self.graph, n, batched), self.n_out), *xs)
