"""What code for PyTorch does with optimizers and schedules beside stepping them."""

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.optim import SGD, Adam, Optimizer, lr_scheduler


def leaf():
    return lucid.nn.Parameter(lucid.tensor([1.0, 2.0]))


def descend(optimizer, w, steps=1):
    for _ in range(steps):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()


def test_a_group_may_have_entries_of_its_own():
    w = leaf()
    optimizer = SGD([{"params": [w], "name": "head", "lr_scale": 2.0}], lr=0.1)
    descend(optimizer, w)
    np.testing.assert_allclose(w.detach(), [0.8, 1.6])
    state = optimizer.state_dict()
    assert (state["param_groups"][0]["name"], state["param_groups"][0]["lr_scale"]) == ("head", 2.0)
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["name"] == "head"


def test_a_momentum_of_0_leaves_the_velocity_as_it_is():
    w, p, v = leaf(), np.array([1.0, 2.0]), None
    optimizer = SGD([w], lr=0.1)
    for momentum in (0.0, 0.9, 0.9, 0.0, 0.9):
        optimizer.param_groups[0]["momentum"] = momentum
        descend(optimizer, w)
        g = 2 * p
        if momentum:
            v = g = g if v is None else momentum * v + g
        p = p - 0.1 * g
        np.testing.assert_allclose(w.detach(), p, rtol=1e-5)


def test_a_momentum_that_a_jitted_schedule_brings_to_0_is_that_of_the_eager_loop():
    ends = []
    for wrap in (lambda f: f, lucid.jit):
        w = leaf()
        optimizer = SGD([w], lr=0.1, momentum=0.9)
        schedule = lr_scheduler.CyclicLR(
            optimizer, 0.01, 0.1, step_size_up=2, base_momentum=0.0, max_momentum=0.9
        )

        @wrap
        def step(w=w, optimizer=optimizer, schedule=schedule):
            descend(optimizer, w)
            schedule.step()

        for _ in range(9):
            step()
        ends.append(w.detach().numpy())
    np.testing.assert_allclose(*ends, rtol=1e-5)


def test_hooks_around_a_step_get_the_optimizer_and_the_arguments():
    w, seen = leaf(), []
    optimizer = SGD([w], lr=0.1)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append((o, args, kwargs)))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(o))
    optimizer.step()
    assert seen == [(optimizer, (optimizer,), {}), optimizer]


def test_hooks_around_the_state_may_change_it():
    w = leaf()
    optimizer = SGD([w], lr=0.1)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "version": 2})
    optimizer.register_load_state_dict_pre_hook(
        lambda o, state: {**state, "param_groups": [{**state["param_groups"][0], "lr": 0.5}]}
    )
    loaded = []
    optimizer.register_load_state_dict_post_hook(loaded.append)
    state = optimizer.state_dict()
    assert state["version"] == 2
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.5 and loaded == [optimizer]


class Plain(Optimizer):
    """An optimizer as one writes it for PyTorch."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @lucid.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["steps"] = 0
                state["steps"] += 1
                p.add_(p.grad, alpha=-group["lr"])


def test_an_optimizer_with_a_step_of_its_own_keeps_what_it_likes():
    w, calls = leaf(), []
    optimizer = Plain([w])
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    descend(optimizer, w, 2)
    np.testing.assert_allclose(w.detach(), [0.64, 1.28], rtol=1e-6)
    assert calls == [1, 1] and optimizer.state_dict()["state"] == {0: {"steps": 2}}
    other = Plain([leaf()])
    other.load_state_dict(optimizer.state_dict())
    assert list(other.state.values()) == [{"steps": 2}]


def test_a_state_may_be_looked_at_before_the_first_step():
    w = leaf()
    optimizer = Adam([w], lr=0.1)
    assert optimizer.state[w] == {}
    descend(optimizer, w)
    np.testing.assert_allclose(w.detach(), [0.9, 1.9], rtol=1e-6)


class Inverse(lr_scheduler.LRScheduler):
    """A schedule as one writes it for PyTorch."""

    def __init__(self, optimizer, k):
        self.k = k
        super().__init__(optimizer)

    def get_lr(self):
        return [base / (1 + self.k * self.last_epoch) for base in self.base_lrs]


def test_a_schedule_with_get_lr_of_its_own():
    optimizer = SGD([leaf()], lr=1.0)
    schedule = Inverse(optimizer, 0.5)
    rates = []
    for _ in range(4):
        rates.append(optimizer.param_groups[0]["lr"])
        schedule.step()
    np.testing.assert_allclose(rates, [1.0, 2 / 3, 0.5, 0.4])
    with pytest.raises(ArgumentError, match="Inverse: a Python function"):
        lucid.jit(schedule.step)()


def test_states_of_schedules_have_pytorchs_names():
    optimizer = SGD([leaf()], lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 3)
    schedule.step()
    state = schedule.state_dict()
    assert (state["last_epoch"], state["base_lrs"], state["step_size"]) == (1, [1.0], 3)
    schedule.load_state_dict({"last_epoch": 7})
    assert schedule.last_epoch == 7 and schedule.get_lr() == [1.0]
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, cooldown=2)
    plateau.step(1.0), plateau.step(2.0)
    state = plateau.state_dict()
    assert (state["best"], state["num_bad_epochs"], state["cooldown_counter"]) == (1.0, 0, 2)
    assert plateau.in_cooldown and state["patience"] == 0
    other = lr_scheduler.ReduceLROnPlateau(SGD([leaf()], lr=1.0))
    other.load_state_dict(state)
    assert (other.best, other.cooldown_counter, other.last_epoch) == (1.0, 2, 2)


def forget(optimizer, w, v):
    optimizer.state.clear()


def forget_one(optimizer, w, v):
    optimizer.state.pop(w)


def exchange_states(optimizer, w, v):
    optimizer.state = {}


def set_a_mean_to_zero(optimizer, w, v):
    optimizer.state[w]["exp_avg"] = lucid.zeros(2)


def append_a_parameter(optimizer, w, v):
    optimizer.param_groups[0]["params"].append(v)


def exchange_parameters(optimizer, w, v):
    optimizer.param_groups[0]["params"][:] = [v]


def drop_a_group(optimizer, w, v):
    optimizer.param_groups.clear()


def adam_by_hand(change, steps=6, at=3, lr=0.1):
    """The path of (w, v) under Adam by its formulas, with a change of its state on the way."""
    values = {"w": np.array([1.0, 2.0]), "v": np.array([3.0])}
    state, chosen = {}, ["w"]
    for k in range(steps):
        if k == at:
            if change in (forget, forget_one, exchange_states):
                state = {}
            elif change is set_a_mean_to_zero:
                state["w"][1][:] = 0.0
            else:
                then = {append_a_parameter: ["w", "v"], exchange_parameters: ["v"]}
                chosen = then.get(change, [])
        for name in chosen:
            t, m, s = state.get(name, (0, np.zeros(len(values[name])), np.zeros(len(values[name]))))
            g = 2 * values[name]
            t, m, s = t + 1, 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
            state[name] = (t, m, s)
            ahead = (m / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
            values[name] = values[name] - lr * ahead
    return values


@pytest.mark.parametrize("wrap", [lambda f: f, lucid.jit], ids=["eager", "jitted"])
@pytest.mark.parametrize(
    "change",
    [forget, forget_one, exchange_states, set_a_mean_to_zero, append_a_parameter,
     exchange_parameters, drop_a_group],
)  # fmt: skip
def test_states_and_groups_that_are_changed_by_hand_are_those_of_the_next_step(change, wrap):
    w, v = leaf(), lucid.nn.Parameter(lucid.tensor([3.0]))
    optimizer = Adam([w], lr=0.1)

    @wrap
    def step():
        w.grad = v.grad = None
        ((w * w).sum() + (v * v).sum()).backward()
        optimizer.step()

    for k in range(6):
        if k == 3:
            change(optimizer, w, v)
        step()
    expected = adam_by_hand(change)
    np.testing.assert_allclose(w.detach(), expected["w"], rtol=1e-5)
    np.testing.assert_allclose(v.detach(), expected["v"], rtol=1e-5)


def test_states_that_are_forgotten_again_and_again_keep_the_step_compiled(recwarn):
    w = leaf()
    optimizer = SGD([w], lr=0.1, momentum=0.9)
    for k in range(40):
        optimizer.state.clear()
        optimizer.param_groups[0]["weight_decay"] = 0.1 * (k % 2)
        descend(optimizer, w)
    assert not recwarn.list
    assert sum(map(len, optimizer._update_all.paths.values())) <= 2


def test_a_deep_copy_of_a_run_goes_its_own_way():
    import copy

    w = leaf()
    optimizer = Adam([w], lr=0.1)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    descend(optimizer, w)
    schedule.step()
    other, twin, its = copy.deepcopy((w, optimizer, schedule))
    assert twin.param_groups[0]["params"][0] is other and its.optimizer is twin
    descend(optimizer, w, 2)
    assert other.tolist() != w.tolist()
    descend(twin, other, 2)
    assert other.tolist() == w.tolist()
    its.step()
    assert (twin.param_groups[0]["lr"], optimizer.param_groups[0]["lr"]) == (0.025, 0.05)
