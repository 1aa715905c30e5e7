"""What a followed step does beside its loss: several results, statistics, metrics, writes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid import nn
from lucid.errors import ShapeError
from tests.autograd.following.test_follow import (  # noqa: F401
    STEPS,
    both_ways,
    counts,
    data,
    hot,
)


def steps(model, loss_of, between=None, lr=0.1):
    """Several steps of SGD: `loss_of(model, x, i)` gives the loss and values to look at later."""

    def program():
        lucid.manual_seed(0)
        net = model()
        optimizer = lucid.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        seen, kept = [], []
        for i in range(STEPS):
            loss, *others = loss_of(net, lucid.tensor(data(6, 4, seed=i)), i)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept += [loss, *others]
            if between is not None:
                seen += between(net, optimizer, i) or []
        seen += [x.detach().numpy().copy() for x in kept]
        return seen + [x.numpy().copy() for x in net.state_dict().values()]

    return program


def normalized():
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2))


def squares(net, x, i):
    return ((net(x) ** 2).mean(),)


def test_running_statistics_are_written_in_the_step(counts):  # noqa: F811
    both_ways(steps(normalized, squares))
    assert counts["run"] == STEPS - 2 and counts["stopped"] == 0


def test_running_statistics_that_are_looked_at_in_every_step(counts):  # noqa: F811
    def between(net, optimizer, i):
        return [net[1].running_mean.numpy().copy(), net[1].running_var.tolist()]

    both_ways(steps(normalized, squares, between))
    assert counts["run"] > 0


def test_a_state_dict_in_the_middle_keeps_its_values(counts):  # noqa: F811
    def program():
        saved = []

        def between(net, optimizer, i):
            if i == STEPS // 2:
                saved.append({k: x.clone() for k, x in net.state_dict().items()})
                saved.append(optimizer.state_dict()["state"][0]["momentum_buffer"].clone())

        seen = steps(normalized, squares, between)()
        return [*seen, *[x.numpy().copy() for x in saved[0].values()], saved[1].numpy().copy()]

    both_ways(program)
    assert counts["run"] > STEPS // 2


def test_switching_to_evaluation_and_back(counts):  # noqa: F811
    def between(net, optimizer, i):
        if i not in (3, 5):
            return None
        net.eval()
        with lucid.no_grad():
            out = net(lucid.tensor(data(3, 4, seed=50)))
        net.train()
        return [out.numpy().copy()]

    both_ways(steps(normalized, squares, between))
    assert counts["run"] > 0


def test_metrics_beside_the_loss(counts):  # noqa: F811
    def loss_of(net, x, i):
        scores = net(x)
        y = lucid.arange(6) % 2
        hits = (scores.argmax(1) == y).float().mean()
        return F.cross_entropy(scores, y), hits, scores.detach(), scores[1:]

    both_ways(steps(normalized, loss_of))
    assert counts["run"] == STEPS - 2 and counts["stopped"] == 0


def test_several_results_are_pending_together(counts):  # noqa: F811
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(2, 3), nn.Linear(3, 1)

        def forward(self, x):
            out, (h, c) = self.lstm(x.reshape(6, 2, 2))
            return (self.head(out) ** 2).mean(), h, c, out.argmax(0)

    both_ways(steps(Net, lambda net, x, i: net(x)))
    assert counts["run"] == STEPS - 2 and counts["stopped"] == 0


def test_pooling_has_indices_that_may_be_kept(counts):  # noqa: F811
    def loss_of(net, x, i):
        out, where = F.max_pool1d(net(x)[:, None], 2, return_indices=True)
        return (out**2).sum(), where

    both_ways(steps(normalized, loss_of))
    assert counts["run"] > 0


def test_a_write_to_what_nothing_pending_reads_stops_nothing(counts):  # noqa: F811
    count = lucid.zeros(())

    def loss_of(net, x, i):
        h = net(x)
        count.add_(1)
        return ((h**2).mean(),)

    both_ways(steps(normalized, loss_of))
    assert counts["stopped"] == 0 and count.item() == 2 * STEPS


def test_an_exception_after_a_pending_write(counts):  # noqa: F811
    def program():
        lucid.manual_seed(0)
        net, seen = normalized(), []
        for i in range(STEPS):
            try:
                loss = (net(lucid.tensor(data(6, 4, seed=i))) ** 2).mean()
                if i % 3 == 2:
                    raise ValueError
                loss.backward()
            except ValueError:
                seen.append(net[1].running_mean.numpy().copy())
        return [*seen, *[x.numpy().copy() for x in net.state_dict().values()]]

    both_ways(program)


@pytest.mark.parametrize("number", [STEPS // 2, STEPS - 2])
def test_a_forward_pass_that_is_left_half_way(counts, number):  # noqa: F811
    def loss_of(net, x, i):
        if i == number:
            net(x + 1)  # its statistics count, and the weights that they are of change below
        return squares(net, x, i)

    both_ways(steps(normalized, loss_of))
    assert counts["run"] > 0


def test_a_step_that_is_left_half_way_in_every_step(counts):  # noqa: F811
    def loss_of(net, x, i):
        loss = squares(net, x, i)
        net(x * 2)
        return (*loss, net(x - 1))

    both_ways(steps(normalized, loss_of))


def plain():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))


@pytest.mark.parametrize("model", [normalized, plain])
@pytest.mark.parametrize("failing", [range(STEPS - 2, STEPS), range(2, STEPS)])
def test_an_operation_that_fails_leaves_the_step_as_it_was(counts, model, failing):  # noqa: F811
    def loss_of(net, x, i):
        h = net(x)
        if i in failing:
            with pytest.raises(ShapeError):
                h @ lucid.tensor(3.0)
        return ((h**2).mean(),)

    both_ways(steps(model, loss_of))
    assert counts["run"] > 0


def test_an_operation_of_which_one_operand_cannot_wait(counts):  # noqa: F811
    memory = np.ones((600, 600), "float32")  # too large to copy, and NumPy sees it
    large = lucid.from_numpy(memory)

    def loss_of(net, x, i):
        h = net(x)
        small, cut = lucid.ones(6, 1), large[:6, :2]
        return (h**2).mean(), lucid.where(h > small, h, cut)

    both_ways(steps(normalized, loss_of))
    assert counts["run"] > 0


def test_operations_on_pending_values_that_may_fail_look_at_once(counts):  # noqa: F811
    def loss_of(net, x, i):
        h = net(x)
        gram = h.detach().T @ h.detach() + 0.1 * lucid.eye(2)
        return (h**2).mean(), lucid.linalg.cholesky(gram)

    both_ways(steps(normalized, loss_of))


def test_an_unexpected_branch_is_computed_where_it_is_needed(counts):  # noqa: F811
    def loss_of(net, x, i):
        h = net(x)
        if i % 4 == 3:
            h = lucid.sin(h) * h.detach()
        return ((h**2).mean(),)

    both_ways(steps(normalized, loss_of))
    assert counts["run"] > 0 and counts["stopped"] > 0


def test_a_second_backward_through_a_side_result_is_an_error(counts):  # noqa: F811
    with hot():
        net = normalized()
        for i in range(STEPS):
            h = net(lucid.tensor(data(6, 4, seed=i)))
            other = (h * 2.0).sum()
            (h**2).mean().backward()
            with pytest.raises(lucid.errors.GraphError, match="freed"):
                other.backward()
            assert np.isclose(other.item(), 2.0 * h.sum().item(), rtol=1e-5)
    assert counts["run"] > 0


def write_add(d, memory):
    s = d * 2
    return s.add_(d)


def write_twice(d, memory):
    s = d * 2
    s.mul_(d * 3)
    return s.add_(1.0)


def write_zero(d, memory):
    s = d.clone()
    s.zero_()
    s += d
    return s


def write_view(d, memory):
    s = d * 2
    s[0].add_(d[1])
    return s.sub_(1.0)


def write_memory(d, memory):
    s = d + 1
    memory.copy_(s)
    return s.copy_(memory * 2)


def write_element(d, memory):
    s = d + 1
    s[0] = d[1] * 2
    return s.sum(0)


def write_with_own_result(d, memory):
    s = (d * 2).add_(d)
    t = s * 2
    s.mul_(t)
    return s + t


WRITES = (write_add, write_twice, write_zero, write_view, write_memory, write_element,
          write_with_own_result)  # fmt: skip


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_a_pending_result_is_written(counts, write):  # noqa: F811
    def program():
        memory = lucid.zeros(6, 2)

        def loss_of(net, x, i):
            y = net(x)
            return (y**2).mean(), write(y.detach(), memory)

        return steps(normalized, loss_of)()

    both_ways(program)
    if write in (write_add, write_twice):  # the others look at the value
        assert counts["run"] > 0


def coded():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 4))


def straight_through(net, x, i):
    """A quantized code, of which the step reads the rounding error as a constant."""
    z = net(x)
    return (((z + (lucid.round(z * 8 + 0.2) / 8 - z).detach() - x) ** 2).mean(), z)


def own_target(net, x, i):
    """The step's own result as a target, twice, and still alive at the end."""
    z = net(x)
    target = z.detach()
    weight = (target * target).mean()
    loss = ((z * x - target) ** 2).mean() + weight * (z * z.detach()).sum()
    return (loss, target)


def looked_at(net, x, i):
    loss, target = own_target(net, x, i)
    if i % 2:
        assert np.isfinite(target.numpy()).all()
    return (loss, target)


def written(net, x, i):
    """The target is written after the step has read it, and read again."""
    z = net(x)
    target = z.detach() * 1.0
    loss = ((z * x - target) ** 2).mean()
    target.mul_(0.5)
    return (loss + (z * target).sum(), target)


@pytest.mark.parametrize("loss_of", [straight_through, own_target, looked_at, written])
def test_a_step_reads_its_own_detached_values(counts, loss_of):  # noqa: F811
    both_ways(steps(coded, loss_of, lr=0.01))
    if loss_of in (straight_through, own_target):
        assert counts["run"] == STEPS - 2 and counts["stopped"] == 0


def test_the_gradient_of_a_step_with_its_own_detached_value():
    """The loss (w x - d)² has the derivative 2 (w x - d) x if d is w x / 2, detached."""
    w = lucid.tensor([3.0], requires_grad=True)
    for i in range(STEPS):
        x = lucid.tensor([float(i + 1)])
        y = lucid.tanh(lucid.tanh(w * x) * 0.1 + 1) * w * x
        half = (y * 0.5).detach()
        loss = ((y - half) ** 2).sum()
        w.grad = None
        loss.backward()
        v, n = w.item(), float(i + 1)

        def value(v, n=n):
            return np.tanh(np.tanh(v * n) * 0.1 + 1) * v * n

        slope = (value(v + 1e-5) - value(v - 1e-5)) / 2e-5
        np.testing.assert_allclose(loss.item(), (value(v) / 2) ** 2, rtol=1e-5)
        np.testing.assert_allclose(w.grad.item(), value(v) * slope, rtol=1e-3)
