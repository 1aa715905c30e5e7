"""Implicit differentiation: linear_solve, root and fixed_point over pytrees.

The function is traced to a Graph, the solver is a program of loops over it, and both form one
equation with the implicit derivative of the solution (lucid/ops/higher_order/implicit_solve.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.func.control_flow import Body, trace_body, while_loop
from lucid.func.solvers.krylov import SOLVERS
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import Type
from lucid.ops.core.promote import as_tensor, result_type, to_floating
from lucid.ops.higher_order.custom_derivative import apply_derivative
from lucid.ops.higher_order.implicit_solve import LinearSolve, Root
from lucid.ops.shape.joining import cat
from lucid.public.declare import public
from lucid.tape.bind import bind

MAX_DENSE_SIZE = 256


class Vector:
    """Conversion between a pytree of tensors and one vector."""

    def __init__(self, what: str, tree: Any) -> None:
        leaves, self.tree = flatten(tree)
        if not leaves:
            raise ArgumentError(f"{what}: there are no unknowns to solve for")
        self.leaves = [to_floating(as_tensor(x)) for x in leaves]
        self.types = [x.type for x in self.leaves]
        self.dtype = result_type(*[x.dtype for x in self.leaves])

    @property
    def size(self) -> int:
        return sum(t.size for t in self.types)

    def ravel(self, tree: Any) -> Any:
        leaves = [as_tensor(x) for x in flatten(tree)[0]]
        return cat([x.reshape(-1).to(self.dtype) for x in leaves])

    def unravel(self, vector: Any) -> Any:
        leaves, start = [], 0
        for t in self.types:
            leaves.append(vector[start : start + t.size].reshape(t.shape).to(t.dtype))
            start += t.size
        return unflatten(self.tree, leaves)

    def on_vector(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a function of the pytree `f` as a function of the vector."""
        return lambda vector: self.ravel(f(self.unravel(vector)))


def tolerance(dtype: Any, given: float | None) -> float:
    return float(np.finfo(dtype).eps) ** 0.75 if given is None else given


def check_options(what: str, f: Any, linear: Any, tol: Any, max_steps: Any) -> None:
    """Raise an error for an invalid function, solver, tolerance or number of steps."""
    if not callable(f):
        raise ArgumentError(f"{what}: {f!r} is not callable")
    if not isinstance(linear, str) or linear not in ("auto", *SOLVERS):
        raise ArgumentError(
            f"{what}: the linear solver {linear!r} is not one of auto, {', '.join(SOLVERS)}"
        )
    if tol is not None and not (isinstance(tol, (int, float)) and tol >= 0):
        raise ArgumentError(f"{what}: tol={tol!r} must be a non-negative number")
    if max_steps is not None and not (isinstance(max_steps, int) and max_steps >= 0):
        raise ArgumentError(f"{what}: max_steps={max_steps!r} must be a non-negative integer")


@public("func")
def linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    *,
    solver: str = "auto",
    symmetric: bool = False,
    tol: float | None = None,
    max_steps: int | None = None,
) -> Any:
    """Solve `matvec(x) = b` for x, where `matvec` is a linear function of pytrees.

    solver       "cg" (symmetric and positive definite), "gmres", "bicgstab", "dense" (forms
                 the matrix), or "auto": dense up to 256 unknowns, then cg if symmetric, else gmres
    symmetric    True if matvec is its own transpose

    It is differentiable in both modes, to any order, with respect to b and to tensors that
    `matvec` closes over.

    >>> import lucid
    >>> a = lucid.tensor([[4.0, 1.0], [1.0, 3.0]])
    >>> lucid.func.linear_solve(lambda x: a @ x, lucid.tensor([6.0, 7.0]), symmetric=True)
    Tensor([1., 2.])
    """
    check_options("linear_solve", matvec, solver, tol, max_steps)
    vector = Vector("linear_solve", b)
    run = select_solver(solver, symmetric, vector.size)
    bound = tolerance(vector.dtype, tol)

    def make_solver(product: Callable[[Any], Any]) -> Callable[..., Any]:
        def solve(*leaves: Any) -> Any:
            given = vector.ravel(unflatten(vector.tree, leaves))
            return vector.unravel(run(vector.on_vector(product), given, bound, max_steps))

        return solve

    def adjoint(ct: Any) -> Any:
        from lucid.func import vjp

        at = unflatten(vector.tree, [x * 0.0 for x in flatten(ct)[0]])
        return vjp(matvec, at)[1](ct)[0]

    transposed = matvec if symmetric else adjoint
    bodies = [
        trace_leaves("linear_solve", lambda *xs: matvec(unflatten(vector.tree, xs)), vector),
        trace_leaves("linear_solve", lambda *xs: transposed(unflatten(vector.tree, xs)), vector),
        trace_leaves("linear_solve", make_solver(matvec), vector),
        trace_leaves("linear_solve", make_solver(transposed), vector),
    ]
    (product, adjoint_, solve_graph, adjoint_solve), consts = with_shared_consts(
        bodies, len(vector.types)
    )
    op = LinearSolve(product, adjoint_, solve_graph, adjoint_solve, len(consts))
    return unflatten(vector.tree, bind(op, *consts, *vector.leaves))


def select_solver(name: str, symmetric: bool, size: int) -> Any:
    if name == "auto":
        name = "dense" if size <= MAX_DENSE_SIZE else "cg" if symmetric else "gmres"
    return SOLVERS[name]


UNKNOWN_STEPS = "the solver calls this function as often as it needs; return values instead"


def trace_leaves(what: str, f: Callable[..., Any], vector: Vector) -> Body:
    """Trace a function from the leaves of a pytree to leaves of the same types."""
    tree = flatten(tuple(vector.leaves))[1]
    body = trace_body(what, f, tree, vector.types, refused=UNKNOWN_STEPS)
    found = [(t.dtype, t.shape) for t in body.outputs]
    if found != [(t.dtype, t.shape) for t in vector.types]:
        raise ShapeError(
            f"{what}: the function returns {types_text(body.outputs)} for "
            f"{types_text(vector.types)}; the types must match"
        )
    return body


def types_text(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def with_shared_consts(bodies: Sequence[Body], n: int) -> tuple[list[Any], list[Any]]:
    """Return the Graphs of bodies, each with the constants of all bodies as first inputs."""
    consts = [x for body in bodies for x in body.captured]
    graphs, first = [], 0
    for body in bodies:
        graphs.append(body.with_inputs(n, consts, first, ()))
        first += len(body.captured)
    return graphs, consts


def solve_linearized(
    residual: Any, consts: Sequence[Any], xs: Sequence[Any], rhs: Sequence[Any], linear: str,
    transpose: bool,
) -> list[Any]:  # fmt: skip
    """Return (∂f/∂x)⁻¹ rhs at x, or with the transposed matrix, for the rules of Root."""
    from lucid.transforms.jvp import jvp
    from lucid.transforms.vjp import vjp

    n, at = len(consts), [*consts, *xs]

    def product(leaves: Sequence[Any]) -> Any:
        if transpose:
            derivative = vjp(residual, residual.inputs[n:], [True] * len(leaves))
            return zeros_for_none(apply_derivative(derivative, residual, at, [], leaves), xs)
        flags = [False] * n + [True] * len(leaves)
        derivative = jvp(residual, residual.inputs, flags)
        return zeros_for_none(
            apply_derivative(derivative, residual, at, [], [*[None] * n, *leaves]), xs
        )

    return list(linear_solve(product, list(rhs), solver=linear))


def zeros_for_none(values: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    return [x * 0.0 if v is None else v for v, x in zip(values, like)]


@public("func")
def root(
    f: Callable[[Any], Any],
    x0: Any,
    *,
    solver: Any = "newton",
    linear_solver: str = "auto",
    tol: float | None = None,
    max_steps: int = 100,
) -> Any:
    """Solve `f(x) = 0` for x, starting at x0, with implicit derivatives.

    solver           "newton", or a function `solver(f, x0)` that returns x
    linear_solver    for Newton's steps and the derivative, as in `linear_solve`

    >>> import lucid
    >>> def cube_root(a):
    ...     return lucid.func.root(lambda x: x**3 - a, lucid.tensor(1.0))
    >>> lucid.func.value_and_grad(cube_root)(lucid.tensor(8.0))
    (Tensor(2.), Tensor(0.08333334))
    """
    check_options("root", f, linear_solver, tol, max_steps)
    vector = Vector("root", x0)
    bound = tolerance(vector.dtype, tol)

    def solve(*leaves: Any) -> Any:
        start = unflatten(vector.tree, leaves)
        if callable(solver):
            return solver(f, start)
        return vector.unravel(newton(vector, f, start, linear_solver, bound, max_steps))

    if not callable(solver) and solver != "newton":
        raise ArgumentError(f"root: solver must be 'newton' or a function, not {solver!r}")
    return implicit("root", f, solve, vector, linear_solver)


@public("func")
def fixed_point(
    f: Callable[[Any], Any],
    x0: Any,
    *,
    solver: Any = "iterate",
    linear_solver: str = "auto",
    tol: float | None = None,
    max_steps: int = 1000,
) -> Any:
    """Solve `f(x) = x` for x by iteration from x0, with implicit derivatives.

    solver    "iterate", "newton", or a function `solver(f, x0)` that returns x

    >>> import lucid
    >>> round(lucid.func.fixed_point(lucid.cos, lucid.tensor(0.5)).item(), 4)
    0.7391
    """
    check_options("fixed_point", f, linear_solver, tol, max_steps)
    vector = Vector("fixed_point", x0)
    bound = tolerance(vector.dtype, tol)

    def residual(x: Any) -> Any:
        leaves, tree = flatten(f(x))
        ys = [as_tensor(y) for y in leaves]
        if tree != vector.tree or [y.shape for y in ys] != [t.shape for t in vector.types]:
            raise ShapeError(
                f"fixed_point: the function returns {types_text([y.type for y in ys])} for "
                f"{types_text(vector.types)}; the structures and types must match"
            )
        return unflatten(tree, [y - b for y, b in zip(ys, flatten(x)[0])])

    def solve(*leaves: Any) -> Any:
        start = unflatten(vector.tree, leaves)
        if callable(solver):
            return solver(f, start)
        if solver == "newton":
            return vector.unravel(newton(vector, residual, start, linear_solver, bound, max_steps))
        return vector.unravel(fixed_point_iteration(vector, f, start, bound, max_steps))

    if not callable(solver) and solver not in ("iterate", "newton"):
        raise ArgumentError(
            f"fixed_point: solver must be 'iterate', 'newton' or a function, not {solver!r}"
        )
    return implicit("fixed_point", residual, solve, vector, linear_solver)


def implicit(what: str, f: Any, solve: Any, vector: Vector, linear: str) -> Any:
    if not vector.size:
        return unflatten(vector.tree, vector.leaves)
    bodies = [
        trace_leaves(what, lambda *xs: f(unflatten(vector.tree, xs)), vector),
        trace_leaves(what, solve, vector),
    ]
    (residual, found), consts = with_shared_consts(bodies, len(vector.types))
    op = Root(residual, found, len(consts), linear)
    return unflatten(vector.tree, bind(op, *consts, *vector.leaves))


def newton(vector: Vector, f: Any, start: Any, linear: str, tol: float, max_steps: int) -> Any:
    """Run Newton's method on the vector of all unknowns."""
    from lucid.func import linearize

    on_vector = vector.on_vector(f)
    run = select_solver(linear, False, vector.size)

    def not_converged(state: Any) -> Any:
        x, value, count = state
        return (value.abs().max() > tol * (1.0 + x.abs().max())) & (count < max_steps)

    def step(state: Any) -> Any:
        x, _, count = state
        value, push = linearize(on_vector, x)
        x = x - run(push, value, tol, None)
        return x, on_vector(x), count + 1

    x = vector.ravel(start)
    return while_loop(not_converged, step, (x, on_vector(x), as_tensor(0)))[0]


def fixed_point_iteration(vector: Vector, f: Any, start: Any, tol: float, max_steps: int) -> Any:
    """Iterate x, f(x), f(f(x)), ... until convergence."""
    on_vector = vector.on_vector(f)

    def not_converged(state: Any) -> Any:
        x, change, count = state
        return (change > tol * (1.0 + x.abs().max())) & (count < max_steps)

    def step(state: Any) -> Any:
        x, _, count = state
        y = on_vector(x)
        return y, (y - x).abs().max(), count + 1

    x = vector.ravel(start)
    first = as_tensor(np.array(np.inf, vector.dtype))
    return while_loop(not_converged, step, (x, first, as_tensor(0)))[0]
