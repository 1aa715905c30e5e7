"""Solutions of equations: their derivatives, of both modes and any order, mapped and jitted."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import ArgumentError, ShapeError
from lucid.ir.pytree import flatten
from tests.compiled import compiled

rng = np.random.default_rng(0)
A = lucid.tensor(rng.normal(size=(5, 5)) + 5 * np.eye(5))
S = lucid.tensor((lambda m: m @ m.T + 5 * np.eye(5))(rng.normal(size=(5, 5))))
B = lucid.tensor(rng.normal(size=5))
SOLVERS = ["dense", "gmres", "bicgstab"]


def close(actual, expected, rtol=1e-7) -> None:
    for a, e in zip(flatten(actual)[0], flatten(expected)[0], strict=True):
        a, e = (lucid.as_tensor(x).numpy() for x in (a, e))
        np.testing.assert_allclose(a, e, rtol=rtol, atol=rtol)


def free(solver, **options):
    return lambda a, b: F.linear_solve(lambda x: a @ x, b, solver=solver, **options)


def exact(a, b):
    return lucid.linalg.solve(a, b)


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: F.grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1)),
    "jvp": lambda f: lambda a, b: F.jvp(f, (a, b), (a * 0.3, b + 1.0)),
    "hessian": lambda f: F.hessian(lambda a, b: lucid.sin(f(a, b)).sum(), (0, 1)),
    "jacrev": lambda f: F.jacrev(f, (0, 1)),
    "vmap": lambda f: lambda a, b: F.vmap(f, (None, 0))(a, lucid.stack([b, 2 * b])),
    "vmap of grad": lambda f: (
        lambda a, b: F.vmap(F.grad(lambda a, b: f(a, b).sum()), (0, None))(
            lucid.stack([a, a.T + lucid.eye(5)]), b
        )
    ),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_linear_solve_is_linalg_solve(solver, name):
    transform = TRANSFORMS[name]
    expected = transform(exact)(A, B)
    close(transform(free(solver))(A, B), expected)
    if name != "hessian":
        close(compiled(transform(free(solver)))(A, B), expected)


@pytest.mark.parametrize("name", ["value", "grad", "jvp", "hessian"])
def test_conjugate_gradients_for_symmetric_matrices(name):
    def symmetric(f):
        return lambda a, b: f((a + a.T) / 2, b)

    transform = TRANSFORMS[name]
    expected = transform(symmetric(exact))(S, B)
    close(transform(symmetric(free("cg", symmetric=True)))(S, B), expected)


def test_linear_solve_over_pytrees_and_closures_with_backward():
    w = lucid.tensor([2.0, 4.0], dtype="float64", requires_grad=True)
    b = {"x": lucid.tensor([1.0, 2.0], dtype="float64"), "y": lucid.tensor(3.0, dtype="float64")}
    found = F.linear_solve(lambda v: {"x": w * v["x"] + v["y"], "y": 2.0 * v["y"]}, b)
    close(found, {"x": np.array([-0.25, 0.125]), "y": 1.5})
    found["x"].sum().backward()
    close(w.grad, np.array([0.125, -0.03125]))


def test_a_large_system_without_its_matrix():
    n = 2000
    b = lucid.tensor(rng.normal(size=n))

    def laplace(x):
        return 3.0 * x - lucid.pad(x[1:], (0, 1)) - lucid.pad(x[:-1], (1, 0))

    for solver in ("cg", "gmres", "bicgstab"):
        x = F.linear_solve(laplace, b, solver=solver, symmetric=solver == "cg")
        close(laplace(x), b, 1e-6)


def cube_root(a):
    return F.root(lambda x: x**3 - a, lucid.ones_like(a))


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_root_has_derivatives_of_every_order(order):
    f, g = cube_root, lambda a: a ** (1 / 3)
    for _ in range(order):
        f, g = F.grad(f), F.grad(g)
    a = lucid.tensor(2.5, dtype="float64")
    close(f(a), g(a))
    forward, plain = cube_root, lambda a: a ** (1 / 3)
    for _ in range(order):
        forward, plain = F.jacfwd(forward), F.jacfwd(plain)
    close(forward(a), plain(a))


def test_root_of_a_system_mapped_and_jitted():
    def circle_and_line(p):
        start = {"x": p[0] * 0 + 1.0, "y": p[0] * 0 + 0.5}
        return F.root(
            lambda u: {"x": u["x"] ** 2 + u["y"] ** 2 - p[0], "y": u["x"] - p[1] * u["y"]}, start
        )

    def exact(p):
        y = (p[0] / (1 + p[1] ** 2)) ** 0.5
        return {"x": p[1] * y, "y": y}

    p = lucid.tensor(rng.uniform(1, 2, size=(4, 2)))
    close(circle_and_line(p[0]), exact(p[0]))
    close(F.vmap(circle_and_line)(p), F.vmap(exact)(p))
    close(F.vmap(F.jacrev(circle_and_line))(p), F.vmap(F.jacrev(exact))(p))
    close(compiled(F.jacfwd(circle_and_line))(p[0]), F.jacfwd(exact)(p[0]))


def test_fixed_point_of_a_contraction():
    w = lucid.tensor(rng.normal(size=(4, 4)) / 6)
    b = lucid.tensor(rng.normal(size=4))

    def layer(w, b):
        return F.fixed_point(lambda z: lucid.tanh(w @ z + b), lucid.zeros(4, dtype="float64"))

    def unrolled(w, b):
        z = lucid.zeros(4, dtype="float64")
        for _ in range(100):
            z = lucid.tanh(w @ z + b)
        return z

    close(layer(w, b), unrolled(w, b))
    loss = [lambda w, b, f=f: (f(w, b) ** 2).sum() for f in (layer, unrolled)]
    close(F.grad(loss[0], (0, 1))(w, b), F.grad(loss[1], (0, 1))(w, b))
    close(F.hessian(loss[0], 1)(w, b), F.hessian(loss[1], 1)(w, b))


def test_a_solver_of_ones_own_is_not_differentiated():
    def bisection(f, x0):
        def step(bounds):
            low, high = bounds
            middle = (low + high) / 2
            return F.cond(f(middle) < 0, lambda: (middle, high), lambda: (low, middle))

        low, high = F.fori_loop(0, 60, lambda i, s: step(s), (x0, x0 + 10.0))
        return (low + high) / 2

    def f(a):
        return F.root(lambda x: x * x - a, lucid.tensor(0.0, dtype="float64"), solver=bisection)

    a = lucid.tensor(2.0, dtype="float64")
    close((f(a), F.grad(f)(a), F.grad(F.grad(f))(a)), (2**0.5, 0.5 * 2**-0.5, -0.25 * 2**-1.5))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.root(lambda x: x.sum(), B), ShapeError, "the types must match"),
        (lambda: F.fixed_point(lambda x: x.sum(), B), ShapeError, "fixed_point: .* must match"),
        (lambda: F.fixed_point(lambda x: (x, x), B), ShapeError, "structures and types must match"),
        (
            lambda: F.fixed_point(lambda x: [x["a"]], {"a": B}),
            ShapeError,
            "the structures and types",
        ),
        (lambda: F.fixed_point(lambda x: None, B), ShapeError, "returns nothing"),
        (lambda: F.root(3, B), ArgumentError, "3 is not callable"),
        (lambda: F.linear_solve(lambda x: x, B, solver="magic"), ArgumentError, "auto, cg, gmres"),
        (lambda: F.root(lambda x: x, B, linear_solver=["cg"]), ArgumentError, "auto, cg, gmres"),
        (lambda: F.root(lambda x: x, B, solver="secant"), ArgumentError, "'newton' or a function"),
        (lambda: F.linear_solve(lambda x: x, B, tol="small"), ArgumentError, "tol='small'"),
        (lambda: F.root(lambda x: x, B, max_steps=-1), ArgumentError, "max_steps=-1"),
        (lambda: F.linear_solve(lambda x: x, ()), ArgumentError, "no unknowns to solve for"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("solve", [F.root, F.fixed_point])
def test_no_unknowns_are_solved_for_at_once(solve):
    found = solve(lambda x: x * 0.5, lucid.zeros(0))
    assert (found.shape, found.dtype) == ((0,), lucid.float32)
