"""CustomVjp and CustomJvp: a Graph whose derivative is another Graph, given by the user.

CustomVjp: the forward Graph returns the outputs, then the residuals; the backward Graph takes the
residuals and the cotangents of the outputs. Forward mode is the transpose of the backward Graph,
which is linear in its cotangents; batching batches both Graphs. CustomJvp is its mirror image: the
user gives the rule for tangents, and reverse mode is its transpose.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.interpret import program_of
from lucid.ir.primitive import Primitive
from lucid.ir.rewrite import dce
from lucid.ir.types import Type, is_differentiable
from lucid.ops.shape.derivative_seeds import zeros_like
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.node import wrap
from lucid.tape.recording.trace import replay
from lucid.tape.views import tensor_of as node_tensor


class CustomVjp(Primitive):
    """Operands: `n_in` arguments, then the values captured by the forward and backward Graphs.

    forward     (arguments, captured) -> (outputs, saved)
    backward    (saved, cotangents of the outputs, captured) -> cotangents of arguments in `returns`
    """

    forward: Graph
    backward: Graph
    n_in: int
    n_out: int
    returns: tuple[int, ...]
    value_graph = "forward"

    def _split(self, xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Split the operands into those of the forward Graph and those the backward captured."""
        n = len(self.forward.inputs)
        return list(xs[:n]), list(xs[n:])

    def infer(self, *xs: Type) -> tuple[Type, ...]:
        return self.forward.out_types

    def eval(self, *xs: np.ndarray) -> tuple[Any, ...]:
        given = self._split(xs)[0]
        return copy_aliased(program_of(self.forward)(given), given)

    def vjp(self, cts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vjp import vjp

        args, captured = self._split(xs)
        results: list[Any] = [None] * len(xs)
        if any(ct is not None for ct in cts[: self.n_out]):
            full = [zeros(y) if ct is None else ct for ct, y in zip(cts[: self.n_out], ys)]
            pulled = replay(self.backward, [*ys[self.n_out :], *full, *captured])
            for i, ct in zip(self.returns, pulled):
                results[i] = literal_to_tensor(ct)
        seeded = [False] * self.n_out + [ct is not None for ct in cts[self.n_out :]]
        if any(seeded):
            derivative = vjp(self.forward, self.forward.inputs, seeded)
            for i, ct in enumerate(apply_derivative(derivative, self.forward, args, ys, cts)):
                results[i] = (
                    ct if results[i] is None else results[i] if ct is None else results[i] + ct
                )
        return tuple(results)

    def jvp(self, ts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.jvp import jvp
        from lucid.transforms.vjp import vjp

        args, captured = self._split(xs)
        n_saved = len(ys) - self.n_out
        cotangents = self.backward.inputs[n_saved : n_saved + self.n_out]
        transpose = vjp(self.backward, cotangents, [ts[i] is not None for i in self.returns])
        at = [*ys[self.n_out :], *[zeros(y) for y in ys[: self.n_out]], *captured]
        outputs = apply_derivative(transpose, self.backward, at, [], [ts[i] for i in self.returns])
        seeded = [t is not None for t in ts[: len(args)]]
        g = self.forward
        saving = dce(Graph(g.name, g.inputs, g.equations, g.outputs[self.n_out :]))
        saved = apply_derivative(jvp(saving, g.inputs, seeded), g, args, ys, ts)
        return (*outputs, *saved)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vmap import batch_graph

        n_forward = len(self.forward.inputs)
        forward = batch_graph(self.forward, n, batched[:n_forward])
        n_given = len(self.backward.inputs) - (len(xs) - n_forward)
        inside = (*[True] * n_given, *batched[n_forward:])
        backward = batch_graph(self.backward, n, inside, [not batched[i] for i in self.returns])
        return bind(CustomVjp(forward, backward, self.n_in, self.n_out, self.returns), *xs)


class CustomFunction(CustomVjp):
    """A CustomVjp with its own rules for tangents or batches.

    rules    where it has_jvp, .tangents(ts, saved, outputs) gives tangents of them; where it
             has_vmap, .batch(n, flags, arguments) gives the outputs of a batch
    """

    rules: Any

    def jvp(self, ts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        if not self.rules.has_jvp:
            return super().jvp(ts, ys, *xs)
        saved = super().jvp(ts, ys, *xs)[self.n_out :]
        full = [
            zeros(x) if t is None and is_differentiable(x.dtype) else t
            for x, t in zip(xs, ts[: self.n_in])
        ]
        return (*self.rules.tangents(full, ys[self.n_out :], ys[: self.n_out]), *saved)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> tuple[Any, ...]:
        results = super().batch(n, batched, *xs)
        if not self.rules.has_vmap:
            return results
        mapped = self.rules.batch(n, batched[: self.n_in], xs[: self.n_in])
        return (*mapped, *results[self.n_out :])


class CustomJvp(Primitive):
    """A Graph with a rule for its tangents: `n_in` arguments, then the values it captured.

    rule        .tangents(arguments, their tangents) gives tangents of the outputs, None for zero;
                .batched(n, flags) is the rule over a batch. It runs when a derivative is taken, so
                a rule may call the function it belongs to.
    """

    forward: Graph
    rule: Any
    n_in: int

    saves = "x"
    value_graph = "forward"

    def infer(self, *xs: Type) -> tuple[Type, ...]:
        return self.forward.out_types

    def eval(self, *xs: np.ndarray) -> tuple[Any, ...]:
        return copy_aliased(program_of(self.forward)(list(xs)), xs)

    def jvp(self, ts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        args = xs[: self.n_in]
        if not any(t is not None for t in ts[: self.n_in]):
            return (None,) * len(ys)
        tangents = [
            zeros(x) if t is None and is_differentiable(x.dtype) else t for x, t in zip(args, ts)
        ]
        return tuple(self.rule.tangents(args, tangents))

    def vjp(self, cts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vjp import vjp

        args = xs[: self.n_in]
        moves = [i for i, x in enumerate(args) if is_differentiable(x.dtype)]
        section, moved = self.rule.traced(args, moves)
        given = [cts[i] for i in moved]
        graph = section.graph("tangent")
        transpose = vjp(graph, graph.inputs[: len(moves)], [ct is not None for ct in given])
        captured = [node_tensor(section.slots[slot]) for slot in section.captured]
        at = [*[zeros(args[i]) for i in moves], *captured]
        results: list[Any] = [None] * len(xs)
        for i, ct in zip(moves, apply_derivative(transpose, graph, at, [], given)):
            results[i] = ct
        return tuple(results)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vmap import batch_graph

        forward = batch_graph(self.forward, n, batched)
        rule = self.rule.batched(n, tuple(batched[: self.n_in]))
        return bind(CustomJvp(forward, rule, self.n_in), *xs)


def copy_aliased(outs: Sequence[Any], xs: Sequence[Any]) -> tuple[Any, ...]:
    """Copy outputs that share memory with an operand."""
    return tuple([y.copy() if any(np.may_share_memory(y, x) for x in xs) else y for y in outs])


def apply_derivative(
    derivative: Any, graph: Graph, inputs: Sequence[Any], outputs: Sequence[Any], seeds: Any
) -> list[Any]:
    """Evaluate a Derivative of `graph` at `inputs`; missing residuals are found by replaying it.

    outputs    known outputs of the Graph; None for one that is unknown or must not be used
    """
    known = {
        var: y
        for var, y in zip(graph.outputs, outputs)
        if y is not None and not isinstance(var, Literal)
    }
    known.update(zip(graph.inputs, inputs))
    missing = tuple([var for var in derivative.residuals if var not in known])
    if missing:
        extended = dce(Graph(graph.name, tuple(known), equations_of_rest(graph, known), missing))
        known.update(zip(missing, replay(extended, list(known.values()))))
    chosen = [seeds[i] for i in derivative.seeds]
    constants = [wrap(array) for array in derivative.constants]
    outs = replay(
        derivative.graph, [*[known[var] for var in derivative.residuals], *chosen, *constants]
    )
    return derivative.with_zeros([literal_to_tensor(y) for y in outs])


def equations_of_rest(graph: Graph, known: Container[Any]) -> tuple[Equation, ...]:
    """Return the equations that compute what is not known, and nothing that is known a second time.

    A loop of which one result is known may be needed for another. What is known stays what was
    computed first: a maximum that is known is compared with the values that it is one of.
    """
    return tuple(
        [
            eqn._replace(outputs=tuple([Var(y.type) if y in known else y for y in eqn.outputs]))
            for eqn in graph.equations
            if not all(y in known for y in eqn.outputs)
        ]
    )


def literal_to_tensor(y: Any) -> Any:
    return wrap(y.array) if isinstance(y, Literal) else y


def zeros(like: Any) -> Any:
    return zeros_like(like, local.staging is not None)
