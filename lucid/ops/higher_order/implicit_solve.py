"""Solutions of equations as primitives: the derivative comes from the equation, not the solver.

    linear_solve    A x = b      A dx = db - dA x        b̄ = A⁻ᵀ x̄,  Ā by  -x b̄ᵀ
    root            f(x, c) = 0  ∂f/∂x dx = -∂f/∂c dc    c̄ = -(∂f/∂c)ᵀ (∂f/∂x)⁻ᵀ x̄

All Graphs take the captured constants first. The rules bind the same primitives again, so
derivatives of any order exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.ir.graph import Graph
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.higher_order.call import program_of_call
from lucid.ops.higher_order.custom_derivative import apply_derivative, zeros
from lucid.tape.bind import bind


def constants_jvp(graph: Graph, n: int, at: Sequence[Any], ts: Sequence[Any]) -> list[Any]:
    """Return the tangents of a Graph's outputs for tangents of its first `n` inputs."""
    from lucid.transforms.jvp import jvp

    k = len(graph.inputs) - n
    seeds = [*ts[:n], *[None] * k]
    if not any(t is not None for t in seeds):
        return [None] * len(graph.outputs)
    derivative = jvp(graph, graph.inputs, [t is not None for t in seeds])
    return apply_derivative(derivative, graph, at, [], seeds)


def constants_vjp(graph: Graph, n: int, at: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """Return the cotangents of a Graph's first `n` inputs."""
    from lucid.transforms.vjp import vjp

    if not n:
        return []
    derivative = vjp(graph, graph.inputs[:n], [ct is not None for ct in cts])
    return apply_derivative(derivative, graph, at, [], cts)


def fill_zeros(values: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    return [zeros(x) if v is None else v for v, x in zip(values, like)]


def expand_batch(n: int, flags: Sequence[bool], xs: Sequence[Any]) -> list[Any]:
    """Return every operand with the batch in axis 0."""
    return [x if flag else x.expand((n, *x.shape)) for flag, x in zip(flags, xs)]


class Solve(Primitive, abstract=True):
    """What the Graph `solve` computes: operands are `n_consts` constants, then others."""

    value_graph = "solve"

    def infer(self: Any, *xs: Type) -> tuple[Type, ...]:
        return self.solve.out_types

    def eval(self: Any, *xs: np.ndarray) -> tuple[Any, ...]:
        return tuple(program_of_call(self.solve)([np.asarray(x) for x in xs]))

    def batch(self: Any, n: int, batched: tuple[bool, ...], *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vmap import batch_graph

        k = self.n_consts
        flags = (*batched[:k], *[True] * (len(xs) - k))
        fields = [getattr(self, name) for name in self.__match_args__]
        op = type(self)(*[batch_graph(x, n, flags) if isinstance(x, Graph) else x for x in fields])
        return bind(op, *xs[:k], *expand_batch(n, batched[k:], xs[k:]))


class LinearSolve(Solve):
    """The x with matvec(x) = b: operands are `n_consts` constants, then b.

    matvec, adjoint          (constants, x) -> A x, Aᵀ x
    solve, solve_adjoint     (constants, b) -> A⁻¹ b, A⁻ᵀ b
    """

    matvec: Graph
    adjoint: Graph
    solve: Graph
    solve_adjoint: Graph
    n_consts: int

    def jvp(self, ts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        consts, b = xs[: self.n_consts], xs[self.n_consts :]
        moved = constants_jvp(self.matvec, self.n_consts, [*consts, *ys], ts)
        rhs = [subtract_optional(tb, m) for tb, m in zip(ts[self.n_consts :], moved)]
        return bind(self, *consts, *fill_zeros(rhs, b))

    def vjp(self, cts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        consts = xs[: self.n_consts]
        flipped = LinearSolve(
            self.adjoint, self.matvec, self.solve_adjoint, self.solve, self.n_consts
        )
        lam = bind(flipped, *consts, *fill_zeros(cts, ys))
        pulled = constants_vjp(self.matvec, self.n_consts, [*consts, *ys], [-x for x in lam])
        return (*pulled, *lam)


class Root(Solve):
    """The x with residual(x) = 0: operands are `n_consts` constants, then the initial guess.

    residual    (constants, x) -> f(x)
    solve       (constants, start) -> x
    linear      the method that `linear_solve` uses for the equations of the derivative
    """

    residual: Graph
    solve: Graph
    n_consts: int
    linear: str

    def jvp(self, ts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.func.solvers.implicit import solve_linearized

        consts = xs[: self.n_consts]
        moved = constants_jvp(self.residual, self.n_consts, [*consts, *ys], ts)
        if not any(m is not None for m in moved):
            return (None,) * len(ys)
        rhs = [-m for m in fill_zeros(moved, ys)]
        return tuple(solve_linearized(self.residual, consts, ys, rhs, self.linear, transpose=False))

    def vjp(self, cts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.func.solvers.implicit import solve_linearized

        consts, start = xs[: self.n_consts], xs[self.n_consts :]
        lam = solve_linearized(
            self.residual, consts, ys, fill_zeros(cts, ys), self.linear, transpose=True
        )
        pulled = constants_vjp(self.residual, self.n_consts, [*consts, *ys], [-x for x in lam])
        return (*pulled, *[None] * len(start))


def subtract_optional(a: Any, b: Any) -> Any:
    if b is None:
        return a
    return -b if a is None else a - b
