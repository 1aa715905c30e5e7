"""A batch norm that a followed step expects writes its statistics as it does elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import MutationError
from lucid.tape.node import followers
from lucid.tape.tiering import Tiering

LATE = 24  # steps until the sequence is followed


@pytest.fixture(autouse=True)
def hot(monkeypatch):
    monkeypatch.setattr(Tiering, "threshold", 2)
    yield
    followers.clear()


class Reference:
    """Batch norm of `x @ w` by NumPy, with its running statistics and the gradients of a loss."""

    def __init__(self, momentum=0.1) -> None:
        self.mean, self.var, self.count = np.zeros(3), np.ones(3), 0
        self.momentum = momentum

    def step(self, h, training=True):
        """Return the loss, half the sum of squares, and the gradients of weight and bias."""
        mean, var = (h.mean(0), h.var(0)) if training else (self.mean, self.var)
        y = (h - mean) / np.sqrt(var + 1e-5)
        if training:
            self.count += 1
            rate = 1 / self.count if self.momentum is None else self.momentum
            self.mean = self.mean + rate * (h.mean(0) - self.mean)
            self.var = self.var + rate * (h.var(0, ddof=1) - self.var)
        return (y * y).sum() / 2, (y * y).sum(0), y.sum(0)

    def check(self, norm) -> None:
        np.testing.assert_allclose(norm.running_mean.numpy(), self.mean, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(norm.running_var.numpy(), self.var, rtol=1e-4, atol=1e-6)
        assert norm.num_batches_tracked.item() == self.count


class Run:
    """A linear map and a batch norm, stepped beside their reference."""

    def __init__(self, momentum=0.1) -> None:
        self.rng = np.random.default_rng(0)
        w = self.rng.normal(size=(4, 3)).astype("float32")
        self.w, self.array = lucid.tensor(w, requires_grad=True), w.astype("float64")
        self.norm, self.reference = nn.BatchNorm1d(3, momentum=momentum), Reference(momentum)

    def draw(self):
        return self.rng.normal(1.0, 2.0, (6, 4)).astype("float32")

    def backward(self, x, between=None):
        y = self.norm(lucid.tensor(x) @ self.w)
        if between is not None:
            between()
        loss = (y * y).sum() * 0.5
        loss.backward()
        return loss

    def step(self, between=None):
        x = self.draw()
        want = self.reference.step(x @ self.array, self.norm.training)
        loss = self.backward(x, between)
        np.testing.assert_allclose(loss.item(), want[0], rtol=1e-4)
        for p, grad in zip((self.norm.weight, self.norm.bias), want[1:]):
            np.testing.assert_allclose(p.grad.numpy(), grad, rtol=1e-4, atol=1e-4)
        for p in (self.w, self.norm.weight, self.norm.bias):
            p.grad = None

    def warm(self) -> None:
        for _ in range(LATE):
            self.step()


def is_expected() -> bool:
    """True if this thread's steps expect a batch norm that writes."""
    (follower,) = followers.values()
    calls = [step.call for step in follower.sequence.steps if step.call]
    return any([call.function.__name__ == "batch_norm" and call.writes for call in calls])


def test_an_expected_batch_norm_writes_its_statistics():
    run = Run()
    run.warm()
    assert is_expected()
    for _ in range(6):
        run.step()
    run.reference.check(run.norm)
    for _ in range(4):  # after a look
        run.step()
        run.reference.check(run.norm)


def test_training_and_evaluation_take_turns_after_followed_steps():
    run = Run()
    run.warm()
    for i in range(8):
        run.norm.train(i % 3 != 0)
        run.step()
    run.reference.check(run.norm)


def test_a_cumulative_average_is_not_an_expected_write():
    run = Run(momentum=None)
    run.warm()
    assert not is_expected()
    run.step()
    run.reference.check(run.norm)


def test_another_momentum_or_eps_is_another_call():
    run = Run()
    run.warm()
    run.norm.momentum = run.reference.momentum = 0.5
    for _ in range(3):
        run.step()
    run.reference.check(run.norm)


def test_statistics_can_be_read_in_the_middle_of_a_step():
    run = Run()
    run.warm()
    for _ in range(3):
        run.step(lambda: run.reference.check(run.norm))
    run.step()
    run.reference.check(run.norm)


@pytest.mark.parametrize("how", ["assign", "load", "reset", "held", "view"])
def test_statistics_can_be_replaced_between_followed_steps(how):
    run, norm = Run(), None
    run.warm()
    norm, reference = run.norm, run.reference
    old, kept = norm.running_mean, reference.mean
    if how == "assign":
        norm.running_mean, reference.mean = lucid.full((3,), 2.0), np.full(3, 2.0)
    elif how == "load":
        state = {**norm.state_dict(), "running_var": lucid.full((3,), 3.0)}
        norm.load_state_dict(state)
        reference.var = np.full(3, 3.0)
    elif how == "reset":
        norm.reset_running_stats()
        reference.mean, reference.var, reference.count = np.zeros(3), np.ones(3), 0
    seen = norm.running_mean.numpy() if how == "held" else norm.running_mean[1:]
    for _ in range(4):
        run.step()
        np.testing.assert_allclose(seen, reference.mean[-len(seen) :], rtol=1e-4, atol=1e-6)
    reference.check(norm)
    if how == "assign":
        np.testing.assert_allclose(old.numpy(), kept, rtol=1e-4, atol=1e-6)


def test_statistics_replaced_in_the_middle_of_a_step_keep_what_was_written():
    run = Run()
    run.warm()
    old = run.norm.running_mean

    def replace():
        run.norm.running_mean = lucid.zeros(3)

    run.step(replace)
    np.testing.assert_allclose(old.numpy(), run.reference.mean, rtol=1e-4, atol=1e-6)
    run.reference.mean = np.zeros(3)
    run.step()
    run.reference.check(run.norm)


def test_a_hook_on_a_followed_norm_sees_each_gradient():
    run, seen = Run(), []
    run.warm()
    hook = run.norm.bias.register_hook(lambda g: seen.append(g.numpy().copy()))
    run.step()
    run.step()
    hook.remove()
    run.step()
    assert len(seen) == 2
    run.reference.check(run.norm)


def test_an_exception_after_an_expected_batch_norm_leaves_its_writes():
    run = Run()
    run.warm()

    def fail():
        raise ValueError("stop here")

    for _ in range(2):
        x = run.draw()
        run.reference.step(x @ run.array)
        with pytest.raises(ValueError, match="stop here"):
            run.backward(x, fail)
        run.reference.check(run.norm)
        run.step()
    run.reference.check(run.norm)


def test_two_models_share_a_norm_in_one_followed_step():
    run = Run()
    v = run.rng.normal(size=(4, 3)).astype("float32")
    other = lucid.tensor(v, requires_grad=True)
    for i in range(LATE + 6):
        a, b = run.draw(), run.draw()
        want = run.reference.step(a @ run.array)[0] + run.reference.step(b @ v)[0]
        y, z = run.norm(lucid.tensor(a) @ run.w), run.norm(lucid.tensor(b) @ other)
        loss = ((y * y).sum() + (z * z).sum()) * 0.5
        loss.backward()
        np.testing.assert_allclose(loss.item(), want, rtol=1e-4)
        assert i != LATE or is_expected()
    run.reference.check(run.norm)


def test_one_tensor_as_both_statistics_is_written_twice():
    run = Run()
    run.warm()
    shared = lucid.zeros(3)
    want = np.zeros(3)
    for _ in range(LATE):
        x = run.draw()
        h = x @ run.array
        y = nn.functional.batch_norm(lucid.tensor(x) @ run.w, shared, shared, training=True)
        (y * y).sum().backward()
        want = want + 0.1 * (h.var(0, ddof=1) - want)
    np.testing.assert_allclose(shared.numpy(), want, rtol=1e-4)


def test_a_counter_is_written_at_once_and_an_index_that_the_step_needs_is_an_error():
    array = np.random.default_rng(0).normal(size=(4, 3))
    w = lucid.tensor(array, requires_grad=True)
    rows, count = lucid.tensor([0, 1]), lucid.tensor(0)
    for step in range(LATE + 6):
        picked = (w * w)[rows]
        loss = (picked * picked).sum() + (w * 2.0).relu().exp().sum()
        count.add_(1)
        want = (array[:2] ** 4).sum() + np.exp(np.maximum(2 * array, 0)).sum()
        if step > LATE and step % 2:
            rows.add_(1)
            with pytest.raises(MutationError, match="changed in place"):
                loss.backward()
            rows.sub_(1)
        else:
            loss.backward()
        np.testing.assert_allclose(loss.item(), want)
        assert count.item() == step + 1
        w.grad = None
