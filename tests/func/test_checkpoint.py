"""checkpoint: the same values and derivatives, with less kept in between."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import ArgumentError
from lucid.ir.pytree import flatten
from tests.compiled import compiled

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


def named(policy) -> str:
    return policy if isinstance(policy, str) else type(policy).__name__


@pytest.mark.parametrize("policy", POLICIES, ids=named)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_are_those_without_a_checkpoint(policy, name):
    w = lucid.tensor(np.random.default_rng(0).normal(size=(4, 4)) / 2)
    expected = TRANSFORMS[name](network(lambda f: f, w))(X)
    function = TRANSFORMS[name](network(F.checkpoint(policy=policy), w))
    close(function(X), expected)
    close(compiled(function)(X), expected)


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


def test_the_memory_of_products_and_of_long_chains_is_less_too():
    weights = [lucid.ones(50, 50) / 50] * 8

    def products(wrap):
        def block(x, *ws):
            for w in ws:
                x = lucid.nn.functional.gelu(x @ w)
            return x

        def loss(x):
            for i in range(0, 8, 2):
                x = wrap(block)(x, *weights[i : i + 2])
            return (x * x).sum()

        return loss

    def chain(wrap):
        def block(x):
            for _ in range(30):
                x = lucid.sin(lucid.tanh(x)) + x
            return x

        def loss(x):
            for _ in range(4):
                x = wrap(block)(x)
            return (x * x).sum()

        return loss

    assert arena(F.checkpoint, products) < 0.6 * arena(lambda f: f, products)
    assert arena(F.checkpoint, chain) < 0.4 * arena(lambda f: f, chain)


def network_of_modules():
    lucid.manual_seed(0)
    nn = lucid.nn
    return nn.Sequential(
        nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2)
    )


@pytest.mark.parametrize("segments", [1, 2, 5])
def test_modules_are_checkpointed_as_in_pytorch(segments):
    from lucid.utils.checkpoint import checkpoint, checkpoint_sequential

    def gradients(run):
        net = network_of_modules()
        lucid.manual_seed(1)
        (run(net, X.to("float32")) ** 2).sum().backward()
        return [p.grad for p in net.parameters()]

    expected = gradients(lambda net, x: net(x))
    found = gradients(lambda net, x: checkpoint_sequential(net, segments, x, use_reentrant=False))
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)
    for a, e in zip(gradients(lambda net, x: checkpoint(net, x)), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


def test_segments_that_there_are_not():
    from lucid.utils.checkpoint import checkpoint_sequential

    with pytest.raises(ArgumentError, match="2 functions into 3 segments"):
        checkpoint_sequential([lucid.sin, lucid.cos], 3, X)


@pytest.mark.parametrize("jit", [lambda f: f, lucid.jit], ids=["eager", "jitted"])
def test_what_a_module_writes_is_written_once(jit):
    def trained(wrap):
        lucid.manual_seed(0)
        nn = lucid.nn
        net = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))

        @jit
        def step(x):
            loss = (wrap(net)(x) ** 3).sum()
            loss.backward()
            return loss

        for _ in range(3):
            step(X.to("float32"))
        return net[2].running_mean, net[2].num_batches_tracked, net[0].weight.grad

    for a, e in zip(trained(lambda f: F.checkpoint(lambda x: f(x))), trained(lambda f: f)):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


def test_results_have_memory_of_their_own():
    @F.checkpoint
    def f(x):
        return x, x.T, x.T

    x = lucid.ones(2, 2)
    a, b, c = f(x)
    a += 1
    b += 2
    assert (float(x.sum()), float(b.sum()), float(c.sum())) == (4.0, 12.0, 4.0)


def test_a_function_runs_once_before_its_derivative():
    runs = []

    @F.checkpoint
    def f(x):
        runs.append(1)
        return lucid.sin(x)

    F.grad(lambda x: f(x).sum())(X)
    assert len(runs) == 1


def test_an_eager_run_keeps_less_until_its_derivative_is_taken():
    import tracemalloc

    def kept(wrap) -> int:
        x = lucid.ones(100, 100, requires_grad=True)
        loss = deep(wrap)
        loss(x).backward()
        tracemalloc.start()
        try:
            y = loss(x)
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        y.backward()
        return size

    assert kept(F.checkpoint) < 0.3 * kept(lambda f: f)
