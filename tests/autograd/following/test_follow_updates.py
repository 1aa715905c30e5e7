"""A followed step and the optimizer's update are one program, and mean what they mean apart."""

from __future__ import annotations

import copy
import gc
import threading
import weakref

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.following import step_run
from tests.autograd.following.test_follow import (
    both_ways,
    data,
    hot,
)

STEPS = 9


@pytest.fixture
def joined(monkeypatch):
    """How many updates ran in one program with their step."""
    found, join = [0], step_run.StepRun.join

    def counted(self, path):
        result = join(self, path)
        found[0] += result
        return result

    monkeypatch.setattr(step_run.StepRun, "join", counted)
    monkeypatch.setattr(step_run, "MAX_ALONE", 1000)  # whatever other tests have done
    return found


def network():
    # no bias before BatchNorm: its gradient is zero but for rounding, which Adam makes large
    first = nn.Linear(4, 5, bias=False)
    return nn.Sequential(first, nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2))


def training(
    during=lambda net, optimizer, loss, i: None,
    make=lucid.optim.Adam,
    batch=lambda i: 6,
    **settings,
):
    """Steps that call `during` between `backward()` and the update; it may return what it saw."""

    def program():
        lucid.manual_seed(0)
        net = network()
        optimizer = make(net.parameters(), **{"lr": 0.05, **settings})
        seen, losses = [], []
        for i in range(STEPS):
            optimizer.zero_grad()
            loss = (net(lucid.tensor(data(batch(i), 4, seed=i))) ** 2).mean()
            loss.backward()
            seen += during(net, optimizer, loss, i) or []
            optimizer.step()
            losses.append(loss)
        seen += [loss.item() for loss in losses]
        seen += [p.grad.numpy().copy() for p in net.parameters()]
        seen += [x.numpy().copy() for x in net.state_dict().values()]
        states = [s for p in net.parameters() for s in optimizer.state[p].values()]
        return seen + [s.numpy().copy() for s in states]

    return program


@pytest.mark.parametrize(
    "make, settings",
    [
        (lucid.optim.Adam, {}),
        (lucid.optim.AdamW, {"weight_decay": 0.1}),
        (lucid.optim.SGD, {}),
        (lucid.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        (lucid.optim.RMSprop, {}),
    ],
)
def test_a_step_and_its_update_are_one_program(joined, make, settings):
    both_ways(training(make=make, **settings), rtol=1e-3)
    assert joined[0] >= STEPS - 5


def test_a_look_between_backward_and_the_update(joined):
    both_ways(training(lambda net, o, loss, i: [loss.item()] if i % 3 == 1 else None), rtol=1e-3)
    assert 0 < joined[0] < STEPS - 3


def test_gradients_that_are_looked_at_clipped_or_replaced(joined):
    def during(net, optimizer, loss, i):
        if i in (4, 5):
            return [nn.utils.clip_grad_norm_(net.parameters(), 0.01).item()]
        if i == 6:
            net[0].weight.grad.mul_(0.5)
            net[3].bias.grad = lucid.ones(2)
        if i == 7:
            net[0].weight.grad = None
        return [net[3].weight.grad.numpy().copy()] if i == 8 else None

    both_ways(training(during), rtol=1e-3)
    assert joined[0] > 0


def test_a_learning_rate_that_changes(joined):
    def during(net, optimizer, loss, i):
        optimizer.param_groups[0]["lr"] = 0.05 / (1 + i // 3)

    both_ways(training(during), rtol=1e-3)
    assert joined[0] > 0


def test_a_scheduler(joined):
    def program():
        schedulers = {}

        def during(net, optimizer, loss, i):
            if i == 0:
                schedulers[0] = lucid.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
            elif i % 2:
                schedulers[0].step()

        return training(during)()

    both_ways(program, rtol=1e-3)


def test_another_batch_size_now_and_then(joined):
    both_ways(training(batch=lambda i: 3 if i % 4 == 3 else 6), rtol=1e-3)


def test_a_write_to_a_parameter_between_backward_and_the_update(joined):
    def during(net, optimizer, loss, i):
        with lucid.no_grad():
            if i == 4:
                net[3].weight.mul_(2.0)
            if i == 5:
                net[3].bias[0] = 1.0

    both_ways(training(during), rtol=1e-3)


def test_a_write_to_a_parameter_after_the_update(joined):
    def program():
        lucid.manual_seed(0)
        net, seen = network(), []
        optimizer = lucid.optim.SGD(net.parameters(), lr=0.1)
        for i in range(STEPS):
            loss = (net(lucid.tensor(data(6, 4, seed=i))) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with lucid.no_grad():
                net[3].bias.add_(0.1)
            seen.append(net[3].bias.detach().numpy().copy())
        return [*seen, *[p.detach().numpy().copy() for p in net.parameters()]]

    both_ways(program, rtol=1e-3)
    assert joined[0] > 0


def test_hooks_that_are_registered_in_the_middle(joined):
    def program():
        calls = []

        def during(net, optimizer, loss, i):
            if i == 4:
                net[3].weight.register_hook(lambda g: g * 0.5)
            if i == 6:
                net[0].weight.register_post_accumulate_grad_hook(lambda p: calls.append(1))
            return [len(calls)]

        return training(during)()

    both_ways(program, rtol=1e-3)


def test_gradients_of_two_backward_calls_add_up(joined):
    def program():
        lucid.manual_seed(0)
        net = network()
        optimizer = lucid.optim.SGD(net.parameters(), lr=0.1)
        for i in range(STEPS):
            for k in range(2 if i % 2 else 1):
                (net(lucid.tensor(data(6, 4, seed=3 * i + k))) ** 2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        return [p.detach().numpy().copy() for p in net.parameters()]

    both_ways(program, rtol=1e-3)


@pytest.mark.parametrize("when", ["never", "look", "write", "numpy", "detach"])
def test_gradients_that_no_optimizer_clears_add_up(joined, when):
    def program():
        lucid.manual_seed(0)
        net, seen, arrays = network(), [], []
        optimizer = lucid.optim.SGD(net[3].parameters(), lr=0.1)
        for i in range(STEPS):
            optimizer.zero_grad()
            (net(lucid.tensor(data(6, 4, seed=i))) ** 2).mean().backward()
            held = net[0].weight.grad
            if when == "look" and i == 5:
                seen.append(held.numpy().copy())
            if when == "write" and i == 6:
                held.mul_(0.5)
            if when == "numpy" and i == 4:
                arrays.append(held.numpy())  # written at once from now on
            if when == "detach":
                seen.append(held.detach() * 2.0)
            optimizer.step()
            seen.append(held is net[0].weight.grad)
            seen += [x.copy() for x in arrays]
        seen = [x.numpy().copy() if isinstance(x, lucid.Tensor) else x for x in seen]
        return [*seen, *[x.detach().numpy().copy() for p in net.parameters() for x in (p, p.grad)]]

    both_ways(program, rtol=1e-3)
    assert joined[0] > 0 or when == "detach"


def test_networks_that_take_turns(joined):
    def program():
        lucid.manual_seed(0)
        maker, critic = nn.Linear(3, 4), network()
        optimizers = [lucid.optim.SGD(net.parameters(), lr=0.05) for net in (critic, maker)]
        seen = []
        for i in range(3 * STEPS):
            x, code = (lucid.tensor(data(6, n, seed=i + n)) for n in (4, 3))
            for turn, optimizer in enumerate(optimizers):
                made = maker(code)
                loss = (
                    -(critic(made) ** 2).mean()
                    if turn
                    else (critic(x) ** 2).mean() + (critic(made.detach()).mean())
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            seen.append(loss)
        parameters = [*maker.parameters(), *critic.parameters()]
        seen = [loss.item() for loss in seen]
        return [*seen, *[x.detach().numpy().copy() for p in parameters for x in (p, p.grad)]]

    both_ways(program, rtol=1e-3)
    assert joined[0] >= 4 * STEPS


def test_an_optimizer_may_read_gradients_that_add_up(joined):
    def program():
        lucid.manual_seed(0)
        net = network()
        optimizer = lucid.optim.SGD(net.parameters(), lr=0.01)
        for i in range(STEPS):
            (net(lucid.tensor(data(6, 4, seed=i))) ** 2).mean().backward()
            optimizer.step()
            if i in (0, 1, 2, 3, 6):
                optimizer.zero_grad()
        return [x.detach().numpy().copy() for p in net.parameters() for x in (p, p.grad)]

    both_ways(program, rtol=1e-3)
    assert joined[0] > 0


def test_copies_and_state_in_the_middle(joined):
    def during(net, optimizer, loss, i):
        if i == 5:
            other = copy.deepcopy(net)
            kept = copy.deepcopy(optimizer.state_dict())
            first = kept["state"][0]["exp_avg"]
            return [p.detach().numpy().copy() for p in other.parameters()] + [first.numpy().copy()]

    both_ways(training(during), rtol=1e-3)
    assert joined[0] > 0


def test_an_exception_between_backward_and_the_update(joined):
    def program():
        lucid.manual_seed(0)
        net, seen = network(), []
        optimizer = lucid.optim.Adam(net.parameters(), lr=0.05)
        for i in range(STEPS):
            try:
                optimizer.zero_grad()
                (net(lucid.tensor(data(6, 4, seed=i))) ** 2).mean().backward()
                if i == 6:
                    raise ValueError
                optimizer.step()
            except ValueError:
                seen += [p.grad.numpy().copy() for p in net.parameters()]
        return [*seen, *[p.detach().numpy().copy() for p in net.parameters()]]

    both_ways(program, rtol=1e-3)
    assert joined[0] > 0


def test_memory_of_parameters_that_numpy_holds(joined):
    def program():
        lucid.manual_seed(0)
        net = network()
        held = net[3].weight.detach().numpy()
        seen = []
        optimizer = lucid.optim.SGD(net.parameters(), lr=0.1)
        for i in range(STEPS):
            optimizer.zero_grad()
            (net(lucid.tensor(data(6, 4, seed=i))) ** 2).mean().backward()
            held[0, 0] += 0.125
            optimizer.step()
            seen.append(held.copy())
        return seen

    both_ways(program, rtol=1e-3)


def test_a_step_and_its_update_leave_nothing_to_collect(joined):
    with hot():
        net = network()
        optimizer = lucid.optim.SGD(net.parameters(), lr=0.1)
        gc.collect()
        gc.disable()
        try:
            for i in range(8):
                optimizer.zero_grad()
                x = lucid.tensor(data(6, 4))
                (net(x) ** 2).mean().backward()
                optimizer.step()
                memory = weakref.ref(x.value)
                del x
                assert i < 4 or memory() is None
        finally:
            gc.enable()
    assert joined[0] > 0


def test_two_optimizers_of_one_network(joined):
    def program():
        lucid.manual_seed(0)
        net = network()
        parts = [net[0].parameters(), net[3].parameters()]
        optimizers = [lucid.optim.Adam(p, lr=0.05) for p in parts]
        for i in range(STEPS):
            for optimizer in optimizers:
                optimizer.zero_grad()
            (net(lucid.tensor(data(6, 4, seed=i))) ** 2).mean().backward()
            for optimizer in optimizers:
                optimizer.step()
            net.zero_grad()
        return [p.detach().numpy().copy() for p in net.parameters()]

    both_ways(program, rtol=1e-3)
    assert joined[0] > 0


def test_another_thread_looks_at_a_gradient_that_waits(joined):
    found = []

    def during(net, optimizer, loss, i):
        if i == 5:
            thread = threading.Thread(target=lambda: found.append(loss.item()))
            thread.start()
            thread.join()
            return [found[-1]]

    both_ways(training(during), rtol=1e-3)
    assert len(found) == 2 and joined[0] > 0


def test_a_statistic_that_is_detached_while_its_write_waits_shares_memory(joined):
    kept = []

    def during(net, optimizer, loss, i):
        if i == 5:
            kept.append((net[1].running_mean, net[1].running_mean.detach()))

    with hot():
        training(during)()
    ((mean, detached),) = kept
    assert joined[0] > 0
    np.testing.assert_array_equal(detached.numpy(), mean.numpy())
    detached.fill_(3.0)
    np.testing.assert_array_equal(mean.numpy(), np.full(5, 3.0))


def test_a_second_backward_is_an_error_while_gradients_wait(joined):
    def during(net, optimizer, loss, i):
        with pytest.raises(lucid.errors.GraphError, match="freed"):
            loss.backward()

    both_ways(training(during), rtol=1e-3)


def test_an_interrupt_in_the_joined_program_leaves_no_wrong_value(joined):
    with hot():
        net = network()
        optimizer = lucid.optim.SGD(net.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            loss = (net(lucid.tensor(data(6, 4))) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(5):
            step()
        path = optimizer._update_all.last
        before, joint = joined[0], path.joint
        assert before > 0

        def interrupted(values):
            raise KeyboardInterrupt

        path.joint = joint._replace(program=interrupted)
        with pytest.raises(KeyboardInterrupt):
            step()
        with pytest.raises(lucid.errors.LeakError, match="interrupted"):
            net[0].weight.grad.sum().item()
        path.joint = joint
        assert all(np.isfinite(step().item()) for _ in range(6))
        assert joined[0] > before


def test_a_batch_in_the_memory_of_a_parameter_is_read_before_the_update(joined):
    def program():
        weight = lucid.tensor(data(4, 4), requires_grad=True)
        other = lucid.tensor(data(4, 4, seed=1))
        optimizer = lucid.optim.SGD([weight], lr=0.1)
        losses = []
        for i in range(STEPS):
            x = weight.detach().reshape(2, 8).reshape(4, 4) if i == STEPS - 2 else other
            optimizer.zero_grad()
            loss = ((x @ weight) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return [loss.item() for loss in losses] + [weight.detach().numpy().copy()]

    both_ways(program, rtol=1e-3)
    assert joined[0] > 0


def test_a_parameter_with_new_memory_is_the_one_that_is_updated(joined):
    def during(net, optimizer, loss, i):
        if i == STEPS - 3:
            net[3].weight.data = lucid.tensor(data(2, 5, seed=3))

    both_ways(training(during), rtol=1e-3)
    assert joined[0] > 0


def test_a_view_of_a_parameter_sees_its_update(joined):
    def program():
        weight = lucid.tensor(data(4, 4), requires_grad=True)
        view = weight.detach()[1:, 2]
        x, seen = lucid.tensor(data(4, 4, seed=1)), []
        optimizer = lucid.optim.SGD([weight], lr=0.1)
        for _ in range(STEPS):
            optimizer.zero_grad()
            ((x @ weight) ** 2).mean().backward()
            optimizer.step()
            seen.append((view * 1.0).numpy().copy())
        old = (weight * weight).sum()
        with lucid.no_grad():
            weight.mul_(2.0)
        with pytest.raises(lucid.errors.MutationError):
            old.backward()
        return seen

    both_ways(program, rtol=1e-3)


def test_parameters_that_were_seen_as_arrays_are_updated_with_the_step_again(joined):
    """Only while something holds the array of a parameter does NumPy see its memory."""
    lucid.manual_seed(0)
    layer = nn.Linear(600, 500)  # of more elements than are copied
    optimizer = lucid.optim.Adam(layer.parameters())
    x = lucid.randn(2, 600)

    def step():
        optimizer.zero_grad()
        (lucid.tanh(layer(x)) ** 2).sum().backward()
        optimizer.step()

    with hot():
        for _ in range(STEPS):
            step()
        seen = layer.weight.detach().numpy()
        before, count = seen.copy(), joined[0]
        step()
        assert count and joined[0] == count
        assert np.abs(seen - before).max() > 1e-4  # it is the memory of the parameter
        np.testing.assert_array_equal(seen, layer.weight.detach().numpy())
        del seen
        for _ in range(3):
            step()
        assert joined[0] >= count + 2
