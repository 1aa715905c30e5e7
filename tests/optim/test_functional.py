"""Pure rules: the trajectories of the optimizers, under jit, vmap and grad."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.func import grad, vmap
from lucid.optim import functional
from tests.optim.settings import OPTIMIZERS

STEPS = 6


def ids(case):
    return f"{case[0]}-{','.join(case[1])}"


def steps_of(rule, params, all_grads, update=None):
    state, update = rule.init(params), update or rule.update
    for grads in all_grads:
        params, state = update(grads, state, params)
    return params, state


def problem(rng, kind="float64"):
    params = {"w": rng.normal(size=(4, 3)), "v": [rng.normal(size=(3, 2))]}
    grads = [{"w": rng.normal(size=(4, 3)), "v": [rng.normal(size=(3, 2))]} for _ in range(STEPS)]

    def made(tree):
        return {"w": lucid.tensor(tree["w"].astype(kind)),
                "v": [lucid.tensor(tree["v"][0].astype(kind))]}  # fmt: skip

    return made(params), [made(g) for g in grads]


@pytest.mark.parametrize("case", OPTIMIZERS, ids=ids)
@pytest.mark.parametrize("compiled", [False, True])
def test_pure_rule_is_the_optimizer(case, compiled, rng):
    name, settings = case
    params, grads = problem(rng)
    rule = getattr(functional, name.lower())(**settings)
    found, _ = steps_of(rule, params, grads, lucid.jit(rule.update) if compiled else None)
    w, v = params["w"].clone().requires_grad_(), params["v"][0].clone().requires_grad_()
    optimizer = getattr(lucid.optim, name)([w, v], **settings)
    for g in grads:
        w.grad, v.grad = g["w"], g["v"][0]
        optimizer.step()
    np.testing.assert_allclose(found["w"].numpy(), w.detach().numpy(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found["v"][0].numpy(), v.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", OPTIMIZERS, ids=ids)
def test_an_ensemble_under_vmap_is_its_members_one_by_one(case, rng):
    name, settings = case
    rule = getattr(functional, name.lower())(**settings)
    start, target = lucid.tensor(rng.normal(size=(3, 4, 2))), lucid.tensor(rng.normal(size=(4, 2)))

    def train(p):
        state = rule.init(p)
        for i in range(3):
            g = grad(lambda p, i=i: ((p - target) ** 2).sum() * (1 + i))(p)
            p, state = rule.update(g, state, p)
        return p

    found = vmap(train)(start)
    expected = np.stack([train(p).numpy() for p in start])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-12)


def test_a_learning_rate_is_learned_through_an_update():
    """p - lr · 2p with loss p²: d/dlr (p (1 - 2 lr))² = -4 p² (1 - 2 lr)."""
    rule, p = functional.sgd(lr=0.1), lucid.tensor(3.0, dtype="float64")

    def after(lr):
        g = grad(lambda p: p * p)(p)
        new, _ = rule.update(g, rule.init(p), p, lr=lr)
        return new * new

    slope = grad(after)(lucid.tensor(0.2, dtype="float64"))
    assert slope.item() == pytest.approx(-4 * 9 * (1 - 0.4))


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "nadam", "rmsprop", "adagrad", "adamax"])
def test_gradient_through_updates_is_that_of_finite_differences(name, rng):
    rule, p = getattr(functional, name)(), lucid.tensor(rng.normal(size=3) + 2.0)

    def after(lr):
        q, state = p, rule.init(p)
        for _ in range(3):
            q, state = rule.update(grad(lambda q: (q**3).sum())(q), state, q, lr=lr)
        return (q**2).sum()

    at, h = 0.05, 1e-6
    slope = grad(after)(lucid.tensor(at, dtype="float64")).item()
    numeric = (after(at + h).item() - after(at - h).item()) / (2 * h)
    assert slope == pytest.approx(numeric, rel=1e-6)


def test_a_changed_rate_inside_jit_is_an_argument_and_compiles_nothing(rng):
    rule = functional.adam(lr=0.1)
    params, grads = problem(rng)
    update = lucid.jit(lambda g, s, p, lr: rule.update(g, s, p, lr=lr))
    one, _ = update(grads[0], rule.init(params), params, lucid.tensor(0.1, dtype="float64"))
    two, _ = update(grads[0], rule.init(params), params, lucid.tensor(0.2, dtype="float64"))
    moved = (two["w"] - params["w"]) / (one["w"] - params["w"])
    np.testing.assert_allclose(moved.numpy(), 2.0, rtol=1e-6)
    assert len(update.paths) == 1


def test_integers_among_parameters_stay_as_they_are():
    rule = functional.adam()
    params = {"w": lucid.ones(2), "count": lucid.tensor(3)}
    new, _ = rule.update({"w": lucid.ones(2), "count": lucid.tensor(0)}, rule.init(params), params)
    assert new["count"].item() == 3 and new["w"].dtype == lucid.float32


def test_params_are_not_written(rng):
    params, grads = problem(rng)
    before = params["w"].numpy().copy()
    steps_of(functional.sgd(lr=0.1, momentum=0.9), params, grads)
    np.testing.assert_array_equal(params["w"].numpy(), before)


def test_misuse_is_told():
    rule = functional.sgd(lr=0.1)
    p = {"w": lucid.ones(2)}
    with pytest.raises(ArgumentError, match="unknown setting rate"):
        rule.update(p, rule.init(p), p, rate=1.0)
    with pytest.raises(ArgumentError, match="0 gradients"):
        rule.update({}, rule.init(p), p)
    with pytest.raises(ArgumentError, match="lr cannot be -1"):
        functional.sgd(lr=-1)
