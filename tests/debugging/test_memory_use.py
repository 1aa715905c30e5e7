"""lucid.memory: the plan that runs, by value, line and scope."""

import lucid
from lucid import nn


def test_memory_adds_up_by_scope_and_by_line():
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 16))

    def step(x):
        with lucid.named_scope("loss"):
            value = model(x).square().sum()
        return lucid.autograd.grad(value, list(model.parameters()))

    found = lucid.memory(step, lucid.ones(128, 32))
    alive = found.peak - found.arguments
    assert alive == sum(found.by_scope.values()) == sum(found.by_line.values())
    assert any("Linear" in scope for scope in found.by_scope)
    assert "by scope" in repr(found)
    assert found.arena == lucid.memory(lucid.jit(step), lucid.ones(128, 32)).arena


def test_memory_counts_what_is_written_over_another_value_once():
    def f(x):
        y = x @ x
        return lucid.sin(y) @ lucid.cos(x)

    found = lucid.memory(f, lucid.ones(64, 64))
    nbytes = 64 * 64 * 4
    assert found.arena == 2 * nbytes  # the product, which becomes its sine, and the cosine
    assert found.peak == 4 * nbytes


def test_memory_follows_the_budget():
    def f(x):
        y = x
        for _ in range(12):
            y = lucid.tanh(y @ y)
        return y.sum()

    gradient, x = lucid.func.grad(f), lucid.ones(32, 32) / 32
    full = lucid.memory(gradient, x)
    with lucid.memory_budget(full.arena * 6 // 10):
        assert lucid.memory(gradient, x).arena <= full.arena * 6 // 10
