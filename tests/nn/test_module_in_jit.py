"""What is changed on a module between calls of a jitted function is seen by it."""

import numpy as np
import pytest

import lucid
from lucid import nn

X = lucid.tensor([[1.0, -2.0], [0.5, 3.0]])


def twice(module):
    """The module eager and jitted, as functions."""
    return (lambda x: module(x).sum().item()), lucid.jit(lambda x: module(x).sum())


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0
        self.factors = [1.0]

    def forward(self, x):
        return x * self.scale * self.factors[0]


def test_a_plain_attribute_that_was_read_is_seen():
    module = Scaled()
    eager, jitted = twice(module)
    for scale in (2.0, 5.0, 2.0):
        module.scale = scale
        assert jitted(X).item() == eager(X)
    assert "Scaled.scale was changed" in jitted.why_recompiled()


def test_an_attribute_of_the_same_value_records_nothing():
    module = Scaled()
    _, jitted = twice(module)
    for scale in (2.5, 5 / 2, float("2.5")):
        module.scale = scale
        module.unread = object()
        jitted(X)
    assert jitted.why_recompiled() == "lambda: it was not recompiled"


def test_an_attribute_that_the_run_itself_changes_records_nothing():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * 2.0

    _, jitted = twice(Counts())
    for _ in range(3):
        jitted(X)
    assert "not recompiled" in jitted.why_recompiled()


def test_the_probability_of_dropout_is_seen():
    module = nn.Dropout(0.5)
    _, jitted = twice(module)
    jitted(X)
    module.p = 0.0
    assert jitted(X).item() == X.sum().item()


def test_layers_that_are_exchanged_or_added_are_seen():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    eager, jitted = twice(net)
    jitted(X)
    net[0] = nn.Linear(2, 2)
    np.testing.assert_allclose(jitted(X).item(), eager(X), rtol=1e-6)
    net.append(nn.Tanh())
    np.testing.assert_allclose(jitted(X).item(), eager(X), rtol=1e-6)
    net.pop(1)
    np.testing.assert_allclose(jitted(X).item(), eager(X), rtol=1e-6)


def test_hooks_of_modules_that_come_and_go_are_seen():
    net = nn.Sequential(nn.Identity())
    eager, jitted = twice(net)
    jitted(X)
    handle = net[0].register_forward_hook(lambda module, args, out: out * 3)
    assert jitted(X).item() == eager(X) == 3 * X.sum().item()
    handle.remove()
    assert jitted(X).item() == X.sum().item()


def test_hooks_of_tensors_that_come_and_go_are_seen():
    w = nn.Parameter(lucid.ones(2))

    @lucid.jit
    def gradient():
        w.grad = None
        (w * 3.0).sum().backward()
        return w.grad.clone()

    handle = w.register_hook(lambda g: g * 2)
    assert gradient().tolist() == [6.0, 6.0]
    handle.remove()
    assert gradient().tolist() == [3.0, 3.0]
    w.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(5))
    assert gradient().tolist() == [15.0, 15.0]


def test_freezing_and_thawing_is_seen_by_a_jitted_step():
    first, last = nn.Parameter(lucid.ones(2)), nn.Parameter(lucid.ones(2))
    optimizer = lucid.optim.SGD([first, last], lr=0.5)

    @lucid.jit
    def step():
        optimizer.zero_grad()
        (first * 2.0 + last).sum().backward()
        optimizer.step()

    step()
    first.requires_grad_(False)
    step()
    assert first.tolist() == [0.0, 0.0] and last.tolist() == [0.0, 0.0]
    assert first.grad is None
    assert "requires_grad" in step.why_recompiled()
    first.requires_grad_(True)
    step()
    assert first.tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("calls", [1, 3])
def test_a_jitted_batch_norm_keeps_its_statistics_and_its_gradient(calls):
    lucid.manual_seed(0)
    plain = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    lucid.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    jitted = lucid.jit(lambda x: net(x))
    for _ in range(calls):
        plain.zero_grad(), net.zero_grad()
        (plain(X) ** 2).sum().backward()
        (jitted(X) ** 2).sum().backward()
    for mine, theirs in zip(net.parameters(), plain.parameters()):
        np.testing.assert_allclose(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(net.buffers(), plain.buffers()):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_a_module_converted_to_a_dtype_keeps_its_parameters():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    weight = net[0].weight
    optimizer = lucid.optim.SGD(net.parameters(), lr=0.1)
    net(X).sum().backward()
    net.double()
    assert net[0].weight is net[1].weight is weight and weight.dtype == lucid.float64
    assert weight.grad.dtype == lucid.float64 and weight.requires_grad
    before = weight.detach().clone()
    optimizer.step()
    assert (weight != before).all()
