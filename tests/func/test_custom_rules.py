"""custom_vjp and custom_jvp: the rule is used, in every transform, eager and jitted."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import ArgumentError, GraphError
from lucid.ir.pytree import flatten
from tests.compiled import compiled

X = lucid.tensor(np.linspace(0.1, 1.0, 4))
Y = lucid.tensor(np.linspace(1.0, 2.0, 4))


def plain(x, y):
    return lucid.sin(x) * y


@F.custom_jvp
def by_jvp(x, y):
    return lucid.sin(x) * y


@by_jvp.defjvp
def rule(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    return by_jvp(x, y), lucid.cos(x) * y * tx + lucid.sin(x) * ty


@F.custom_vjp
def by_vjp(x, y):
    return lucid.sin(x) * y


by_vjp.defvjp(
    lambda x, y: (by_vjp(x, y), (x, y)),
    lambda saved, ct: (ct * lucid.cos(saved[0]) * saved[1], ct * lucid.sin(saved[0])),
)


def close(actual, expected) -> None:
    for a, e in zip(flatten(actual)[0], flatten(expected)[0], strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-10, atol=1e-12)


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: F.grad(lambda x, y: f(x, y).sum(), (0, 1)),
    "hessian": lambda f: F.hessian(lambda x, y: f(x, y).sum(), (0, 1)),
    "jvp": lambda f: lambda x, y: F.jvp(f, (x, y), (y, x)),
    "vmap": F.vmap,
    "vmap of grad": lambda f: F.vmap(F.grad(f, (0, 1))),
    "grad of vmap": lambda f: F.grad(lambda x, y: F.vmap(f)(x, y).sum(), (0, 1)),
    "vmap over one argument": lambda f: lambda x, y: F.vmap(f, in_dims=(0, None))(x, y[0]),
    "jacfwd of jacrev": lambda f: F.jacfwd(F.jacrev(f)),
    "grad of grad, mapped": lambda f: F.vmap(F.grad(F.grad(f))),
    "vmap of vmap": lambda f: lambda x, y: F.vmap(lambda a: F.vmap(lambda b: f(a, b))(y))(x),
    "jvp of vmap of grad": lambda f: lambda x, y: F.jvp(F.vmap(F.grad(f)), (x, y), (y, x)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("f", [by_jvp, by_vjp], ids=["custom_jvp", "custom_vjp"])
def test_a_right_rule_gives_what_no_rule_gives(f, name):
    transform = TRANSFORMS[name]
    expected = transform(plain)(X, Y)
    close(transform(f)(X, Y), expected)
    close(compiled(transform(f))(X, Y), expected)


def straight_through_by_jvp():
    @F.custom_jvp
    def f(x):
        return lucid.round(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return f


def straight_through_by_vjp():
    @F.custom_vjp
    def f(x):
        return lucid.round(x)

    f.defvjp(lambda x: (lucid.round(x), None), lambda saved, ct: (ct,))
    return f


@pytest.mark.parametrize("make", [straight_through_by_jvp, straight_through_by_vjp])
def test_the_rule_and_not_the_slope_is_used(make):
    f = make()
    ones = np.ones(4)
    np.testing.assert_array_equal(F.grad(lambda x: f(x).sum())(X), ones)
    np.testing.assert_array_equal(F.jvp(f, (X,), (lucid.ones_like(X),))[1], ones)
    np.testing.assert_array_equal(F.vmap(F.grad(f))(X), ones)
    leaf = X.clone().requires_grad_()
    f(leaf).sum().backward()
    np.testing.assert_array_equal(leaf.grad, ones)
    np.testing.assert_array_equal(f(X), np.round(np.asarray(X)))


def test_rules_take_pytrees_and_static_arguments():
    @F.custom_vjp
    def f(d, n):
        return {"out": d["a"] * d["b"] ** n}

    g = F.custom_vjp(f.function, nondiff_argnums=(1,))
    g.defvjp(
        lambda d, n: (g(d, n), d),
        lambda n, d, ct: ({"a": ct["out"] * d["b"] ** n, "b": ct["out"] * d["a"] * n * d["b"]},),
    )
    found = F.grad(lambda d: g(d, 2)["out"].sum())({"a": X, "b": Y})
    np.testing.assert_allclose(found["a"], np.asarray(Y) ** 2)
    np.testing.assert_allclose(found["b"], 2 * np.asarray(X) * np.asarray(Y))


def test_defjvps_adds_the_parts():
    @F.custom_jvp
    def f(x, y):
        return x * y

    f.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: x * t)
    close(F.grad(lambda x, y: f(x, y).sum(), (0, 1))(X, Y), (Y, X))


def test_a_rule_inside_a_jitted_step_with_captured_parameters():
    w = lucid.tensor([1.0, 2.0], requires_grad=True)

    @lucid.jit
    def step(z):
        w.grad = None
        loss = by_vjp(w, z).sum()
        loss.backward()
        return loss

    for z in (lucid.ones(2), 2 * lucid.ones(2), 3 * lucid.ones(2)):
        step(z)
        np.testing.assert_allclose(w.grad, np.cos([1.0, 2.0]) * np.asarray(z), rtol=1e-6)


def test_errors_say_what_is_missing():
    bare = F.custom_vjp(plain)
    with pytest.raises(GraphError, match=r"plain: no rule was given; call plain.defvjp"):
        bare(X, Y)
    one = F.custom_vjp(plain)
    one.defvjp(lambda x, y: (plain(x, y), None), lambda saved, ct: (ct,))
    with pytest.raises(GraphError, match="returned 1 derivatives, not 2"):
        F.grad(lambda x: one(x, Y).sum())(X)
    wrong = F.custom_jvp(plain)
    wrong.defjvp(lambda primals, tangents: plain(*primals))
    with pytest.raises(GraphError, match="the rule must return"):
        F.jvp(lambda x: wrong(x, Y), (X,), (X,))
    with pytest.raises(ArgumentError, match="plain: missing a required argument"):
        one(X)
