"""checkpoint: the same values and derivatives, with less kept in between."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import ArgumentError
from lucid.ir.pytree import flatten

POLICIES = ["nothing", "dots", "everything", ["z"], lambda eqn: eqn.op.name == "sigmoid"]
X = lucid.tensor(np.random.default_rng(1).normal(size=(3, 4)))


def network(wrap, w):
    def block(x):
        return lucid.tanh(F.checkpoint_name(x @ w, "z")) * lucid.sigmoid(x)

    def loss(x):
        for _ in range(4):
            x = wrap(block)(x)
        return (x * x).sum()

    return loss


def close(actual, expected) -> None:
    for a, e in zip(flatten(actual)[0], flatten(expected)[0], strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-9, atol=1e-12)


TRANSFORMS = {
    "grad": F.grad,
    "hessian": F.hessian,
    "jvp of grad": lambda f: lambda x: F.jvp(F.grad(f), (x,), (x,)),
    "vmap of grad": lambda f: F.vmap(F.grad(f)),
    "grad of vmap": lambda f: F.grad(lambda x: F.vmap(f)(x).sum()),
}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p if isinstance(p, str) else type(p).__name__)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_are_those_without_a_checkpoint(policy, name):
    w = lucid.tensor(np.random.default_rng(0).normal(size=(4, 4)) / 2)
    expected = TRANSFORMS[name](network(lambda f: f, w))(X)
    function = TRANSFORMS[name](network(F.checkpoint(policy=policy), w))
    close(function(X), expected)
    close(lucid.jit(function)(X), expected)


def test_tensors_closed_over_get_their_gradient():
    w = lucid.tensor(np.random.default_rng(0).normal(size=(4, 4)), requires_grad=True)
    network(lambda f: f, w)(X).backward()
    expected, w.grad = w.grad, None
    network(F.checkpoint, w)(X).backward()
    np.testing.assert_allclose(w.grad, expected, rtol=1e-9)


@pytest.mark.parametrize("jit", [lambda f: f, lucid.jit], ids=["eager", "jitted"])
def test_dropout_draws_the_same_again(jit):
    def layer(x):
        return lucid.nn.functional.dropout(lucid.sin(x), 0.5)

    def three_steps(wrap):
        lucid.manual_seed(3)
        step = jit(lambda x: F.value_and_grad(lambda x: wrap(layer)(x).sum())(x))
        return [step(X) for _ in range(3)]

    close(three_steps(F.checkpoint), three_steps(lambda f: f))


def test_a_function_that_looks_at_values_is_checkpointed_too():
    @F.checkpoint
    def f(x):
        return lucid.sin(x) if x.sum() > 0 else lucid.cos(x)

    np.testing.assert_allclose(F.grad(lambda x: f(x).sum())(abs(X)), np.cos(abs(np.asarray(X))))


def deep(wrap):
    def segment(x):
        for _ in range(6):
            x = lucid.sin(lucid.cumsum(x, 1) * 1e-3) + x
        return x

    def loss(x):
        for _ in range(4):
            x = wrap(segment)(x)
        return x.sum()

    return loss


def test_saved_residuals_name_bytes_and_lines():
    plain = F.saved_residuals(deep(lambda f: f), lucid.ones(5, 5))
    less = F.saved_residuals(deep(F.checkpoint), lucid.ones(5, 5))
    assert [x.nbytes for x in less] == [100] * 4
    assert plain.nbytes >= 24 * 100
    assert "test_checkpoint.py:" in less[1].source
    assert repr(less).splitlines()[-1].split() == ["400", "all"]


def test_a_policy_that_there_is_not():
    with pytest.raises(ArgumentError, match="nothing, dots, everything"):
        F.checkpoint(lambda x: x, policy="some")


def arena(wrap, loss) -> int:
    gradient = lucid.jit(F.grad(loss(wrap)))
    gradient(lucid.ones(50, 50))
    (path,) = [path for paths in gradient.paths.values() for path in paths]
    return path.program.plan.arena_bytes


def test_a_compiled_gradient_needs_less_memory():
    assert arena(F.checkpoint, deep) < 0.6 * arena(lambda f: f, deep)
