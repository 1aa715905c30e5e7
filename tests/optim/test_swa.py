"""Averages of weights: against means and decaying sums of what was given, eager and jitted."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError
from lucid.optim import SGD, swa_utils

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(5, 2, 3))


def fed(averaged, update=None):
    model = nn.Linear(3, 2, bias=False).double()
    averaged = averaged(model)
    update = update or averaged.update_parameters
    for value in VALUES:
        with lucid.no_grad():
            model.weight.copy_(lucid.tensor(value))
        update(model)
    return averaged


def decayed(decay):
    mean = VALUES[0]
    for value in VALUES[1:]:
        mean = decay * mean + (1 - decay) * value
    return mean


FUNCTIONS = [
    ({}, VALUES.mean(0)),
    ({"avg_fn": swa_utils.get_swa_avg_fn()}, VALUES.mean(0)),
    ({"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}, VALUES.mean(0)),
    ({"avg_fn": swa_utils.get_ema_avg_fn(0.7)}, decayed(0.7)),
    ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.7)}, decayed(0.7)),
    ({"avg_fn": lambda old, new, n: old + new * n}, np.tensordot([1, 1, 2, 3, 4], VALUES, 1)),
]


@pytest.mark.parametrize(("options", "expected"), FUNCTIONS)
def test_the_average_of_all_updates(options, expected):
    averaged = fed(lambda model: swa_utils.AveragedModel(model, **options))
    np.testing.assert_allclose(averaged.module.weight.detach(), expected, rtol=1e-12)
    assert averaged.n_averaged.item() == 5 and averaged.module.weight.requires_grad


def test_an_update_inside_a_jitted_step_is_the_same():
    model = nn.Linear(3, 2).double()
    eager, jitted = swa_utils.AveragedModel(model), swa_utils.AveragedModel(model)
    optimizer = SGD(model.parameters(), lr=0.1)

    @lucid.jit
    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        jitted.update_parameters(model)

    for _ in range(4):
        step(lucid.ones(1, 3, dtype="float64"))
        eager.update_parameters(model)
    for a, b in zip(eager.parameters(), jitted.parameters(), strict=True):
        np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-12)


def test_buffers_are_copied_or_averaged():
    model = nn.BatchNorm1d(2)
    latest, averaged = (swa_utils.AveragedModel(model, use_buffers=b) for b in (False, True))
    for value in (1.0, 3.0):
        model.running_mean.fill_(value)
        latest.update_parameters(model)
        averaged.update_parameters(model)
    np.testing.assert_array_equal(latest.module.running_mean, [3.0, 3.0])
    np.testing.assert_array_equal(averaged.module.running_mean, [2.0, 2.0])


def test_the_state_of_an_average_is_loaded():
    averaged = fed(swa_utils.AveragedModel)
    other = swa_utils.AveragedModel(nn.Linear(3, 2, bias=False).double())
    other.load_state_dict(copy.deepcopy(averaged.state_dict()))
    assert list(averaged.state_dict()) == ["n_averaged", "module.weight"]
    assert other.n_averaged.item() == 5


def test_update_bn_takes_the_mean_over_the_data():
    data = RNG.normal(size=(6, 8, 3)).astype("float32") * 2 + 1
    norm = nn.BatchNorm1d(3)
    model = nn.Sequential(norm).eval()
    swa_utils.update_bn([(lucid.tensor(x), None) for x in data], model)
    np.testing.assert_allclose(norm.running_mean, data.mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(norm.running_var, data.var(1, ddof=1).mean(0), rtol=1e-5)
    assert norm.momentum == 0.1 and not model.training and norm.num_batches_tracked.item() == 6
    swa_utils.update_bn([], nn.Linear(1, 1))


@pytest.mark.parametrize(("strategy", "epochs"), [("cos", 5), ("linear", 4), ("cos", 0)])
def test_the_rate_goes_to_its_goal_and_stays(strategy, epochs):
    optimizer = SGD([lucid.ones(1, requires_grad=True)], lr=0.1)
    schedule = swa_utils.SWALR(optimizer, 0.02, epochs, strategy)
    for t in range(9):
        part = 1.0 if epochs == 0 else min(1.0, t / epochs)
        part = part if strategy == "linear" else (1 - math.cos(math.pi * part)) / 2
        expected = 0.1 + (0.02 - 0.1) * part
        assert schedule.get_last_lr()[0] == pytest.approx(expected, rel=1e-12), t
        schedule.step()


def test_bad_settings_are_refused():
    model, optimizer = nn.Linear(1, 1), SGD([lucid.ones(1, requires_grad=True)], lr=0.1)
    for call, part in [
        (lambda: swa_utils.get_ema_avg_fn(1.5), "not between 0 and 1"),
        (lambda: swa_utils.AveragedModel(model, None, max, max), "not both"),
        (lambda: swa_utils.AveragedModel(3), "must be a Module"),
        (lambda: swa_utils.AveragedModel(model).update_parameters(nn.Linear(2, 1)), "same shapes"),
        (lambda: swa_utils.SWALR(optimizer, 0.1, anneal_strategy="step"), "'cos' or 'linear'"),
        (lambda: swa_utils.SWALR(optimizer, 0.1, -1), "nonnegative"),
        (lambda: swa_utils.SWALR(optimizer, [0.1, 0.2]), "2 values for 1 groups"),
        (lambda: swa_utils.SWALR(model, 0.1), "expected an Optimizer"),
    ]:
        with pytest.raises(ArgumentError, match=part):
            call()
