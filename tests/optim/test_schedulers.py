"""Schedules: each against its closed formula, outside and inside a jitted step, and saved."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.optim import SGD, Adam, lr_scheduler
from tests.optim.settings import SCHEDULES

STEPS, LR = 16, 0.05


def triangle(t, up, down):
    """Up and down between 0 and 1."""
    x = t % (up + down)
    return x / up if x <= up else (up + down - x) / down


def cosine(high, low, share):
    return low + (high - low) * (1 + math.cos(math.pi * share)) / 2


def restarts(t, first, factor):
    """(steps since the last restart, length of this cosine), by walking there."""
    length = first
    while t >= length:
        t, length = t - length, length * factor
    return t, length


def one_cycle(t, phases, blend):
    for begin, end, low, high in phases:
        if t <= end or end == phases[-1][1]:
            return blend(low, high, (t - begin) / (end - begin))
    raise AssertionError


def line(low, high, share):
    return low + (high - low) * share


# The rate at step t for every entry of SCHEDULES, in its order.
FORMULAS = [
    lambda t: LR * 0.5 ** (t // 3),
    lambda t: LR * 0.3 ** sum(t >= m for m in (2, 5, 5, 9)),
    lambda t: LR * (0.5 if t < 4 else 1.0),
    lambda t: LR * (0.25 + 0.75 * min(t, 6) / 6),
    lambda t: LR * (1.0 - 0.9 * min(t, 5) / 5),
    lambda t: LR * 0.9**t,
    lambda t: LR * (1 - min(t, 7) / 7) ** 2,
    lambda t: cosine(LR, 0.01, t / 6),
    lambda t: cosine(LR, 0.0, (t % 4) / 4),
    lambda t: (lambda since, length: cosine(LR, 0.01, since / length))(*restarts(t, 3, 2)),
    lambda t: 0.01 + 0.09 * triangle(t, 3, 3),
    lambda t: 0.01 + 0.09 * triangle(t, 3, 5) / 2 ** (t // 8),
    lambda t: 0.01 + 0.09 * triangle(t, 4, 4) * 0.9**t,
    lambda t: 0.01 + 0.09 * triangle(t, 3, 3) * 0.5 ** (1 + t // 6),
    lambda t: one_cycle(t, [(0, 3.8, 0.02, 0.5), (3.8, 15, 0.5, 2e-6)],
                        lambda low, high, share: cosine(low, high, share)),
    lambda t: one_cycle(t, [(0, 3.8, 0.1, 0.5), (3.8, 15, 0.5, 1e-3)],
                        lambda low, high, share: cosine(low, high, share)),
    lambda t: one_cycle(t, [(0, 3.8, 0.02, 0.5), (3.8, 15, 0.5, 2e-6)],
                        lambda low, high, share: cosine(low, high, share)),
    lambda t: one_cycle(t, [(0, 3, 0.02, 0.5), (3, 6, 0.5, 0.02), (6, 15, 0.02, 2e-6)], line),
]  # fmt: skip
CASES = list(zip(SCHEDULES, FORMULAS, strict=True))


def name_of(x):
    return f"{x[0]}-{','.join(x[1])}" if isinstance(x, tuple) else "formula"


def optimizer_of(kind="SGD", **settings):
    w = lucid.ones(2, dtype="float64", requires_grad=True)
    return w, getattr(lucid.optim, kind)([w], lr=LR, **settings)


def rates(optimizer, schedule, steps=STEPS):
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        schedule.step()
    return found


@pytest.mark.parametrize(("case", "formula"), CASES, ids=name_of)
def test_schedule_follows_its_formula(case, formula):
    name, settings = case
    _, optimizer = optimizer_of(momentum=0.9)
    schedule = getattr(lr_scheduler, name)(optimizer, **settings)
    found = rates(optimizer, schedule)
    np.testing.assert_allclose(found, [formula(t) for t in range(STEPS)], rtol=1e-9, atol=1e-15)
    assert schedule.last_epoch == STEPS and schedule.get_last_lr() == [
        optimizer.param_groups[0]["lr"]
    ]


@pytest.mark.parametrize(
    ("case", "formula"), [c for c in CASES if "scale_fn" not in c[0][1]], ids=name_of
)
def test_schedule_advances_inside_a_jitted_step_that_is_compiled_once(case, formula):
    name, settings = case
    w, optimizer = optimizer_of(momentum=0.9)
    schedule = getattr(lr_scheduler, name)(optimizer, **settings)

    @lucid.jit
    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        schedule.step()

    found = []
    for i in range(STEPS):
        found.append(optimizer.param_groups[0]["lr"])
        step()
        if i == 2:
            paths = sum(map(len, step.paths.values()))
    np.testing.assert_allclose(found, [formula(t) for t in range(STEPS)], rtol=1e-9, atol=1e-15)
    assert sum(map(len, step.paths.values())) == paths, step.why_recompiled()
    assert schedule.last_epoch == STEPS


@pytest.mark.parametrize("case", SCHEDULES, ids=name_of)
@pytest.mark.parametrize("through_file", [False, True])
def test_schedule_goes_on_from_a_state_dict(case, through_file, tmp_path):
    name, settings = case
    _, optimizer = optimizer_of(momentum=0.9)
    schedule = getattr(lr_scheduler, name)(optimizer, **settings)
    rates(optimizer, schedule, 5)
    state = {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
    if through_file:
        lucid.save(state, tmp_path / "state.safetensors")
        state = lucid.load(tmp_path / "state.safetensors")
    _, other = optimizer_of(momentum=0.9)
    fresh = getattr(lr_scheduler, name)(other, **settings)
    fresh.load_state_dict(state["schedule"])
    other.load_state_dict(state["optimizer"])
    assert rates(other, fresh, 9) == rates(optimizer, schedule, 9)


@pytest.mark.parametrize(("case", "formula"), CASES[:8], ids=name_of)
def test_schedule_goes_to_a_given_epoch(case, formula):
    name, settings = case
    _, optimizer = optimizer_of()
    schedule = getattr(lr_scheduler, name)(optimizer, **settings)
    for t in (4, 0, 11, 5):
        schedule.step(t)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(formula(t), abs=1e-15)
        assert schedule.last_epoch == t


def test_warm_restarts_take_fractions_of_epochs():
    _, optimizer = optimizer_of()
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=3, T_mult=2)
    for t in (0.5, 2.75, 3.0, 8.5, 9.25):
        schedule.step(t)
        since, length = restarts(t, 3, 2)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(cosine(LR, 0, since / length))


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_momentum_goes_against_the_rate(kind):
    _, optimizer = optimizer_of(kind, **({"momentum": 0.9} if kind == "SGD" else {}))
    schedule = lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=4)
    for t in range(STEPS):
        group = optimizer.param_groups[0]
        found = group["momentum"] if kind == "SGD" else group["betas"][0]
        assert found == pytest.approx(0.9 - 0.1 * triangle(t, 4, 4))
        schedule.step()
    assert kind == "SGD" or group["betas"][1] == 0.999


def test_lambda_and_multiplicative_call_their_functions():
    _, optimizer = optimizer_of()
    schedule = lr_scheduler.LambdaLR(optimizer, lambda t: 1 / (1 + t))
    np.testing.assert_allclose(rates(optimizer, schedule), [LR / (1 + t) for t in range(STEPS)])
    _, optimizer = optimizer_of()
    schedule = lr_scheduler.MultiplicativeLR(optimizer, lambda t: 0.5 if t % 2 else 1.0)
    found = rates(optimizer, schedule)
    np.testing.assert_allclose(found, [LR * 0.5 ** ((t + 1) // 2) for t in range(STEPS)])


def test_groups_have_schedules_of_their_own():
    p, q = (lucid.ones(1, requires_grad=True) for _ in range(2))
    optimizer = SGD([{"params": [p]}, {"params": [q], "lr": 1.0}], lr=0.1)
    schedule = lr_scheduler.LambdaLR(optimizer, [lambda t: t, lambda t: 1 - t / 10])
    for _ in range(3):
        schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.3, 0.7])


def sequence(optimizer):
    parts = [
        lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=4),
        lr_scheduler.ExponentialLR(optimizer, gamma=0.8),
        lr_scheduler.CosineAnnealingLR(optimizer, T_max=5),
    ]
    return lr_scheduler.SequentialLR(optimizer, parts, milestones=[4, 9])


def in_sequence(t):
    if t < 4:
        return LR * (0.1 + 0.9 * t / 4)
    return LR * 0.8 ** (t - 4) if t < 9 else cosine(LR, 0, (t - 9) / 5)


def test_schedules_in_sequence_start_anew_at_their_milestones():
    _, optimizer = optimizer_of()
    found = rates(optimizer, sequence(optimizer), 14)
    np.testing.assert_allclose(found, [in_sequence(t) for t in range(14)], atol=1e-12)


def test_a_sequence_runs_inside_a_jitted_step():
    w, optimizer = optimizer_of()
    schedule = sequence(optimizer)

    @lucid.jit
    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        schedule.step()

    found = []
    for _ in range(14):
        found.append(optimizer.param_groups[0]["lr"])
        step()
    np.testing.assert_allclose(found, [in_sequence(t) for t in range(14)], atol=1e-12)


def test_chained_schedules_multiply():
    _, optimizer = optimizer_of()
    parts = [lr_scheduler.ConstantLR(optimizer, 0.1, 3), lr_scheduler.ExponentialLR(optimizer, 0.9)]
    found = rates(optimizer, lr_scheduler.ChainedScheduler(parts))
    expected = [LR * 0.9**t * (0.1 if t < 3 else 1.0) for t in range(STEPS)]
    np.testing.assert_allclose(found, expected)


def test_joined_schedules_go_on_from_a_state_dict():
    _, optimizer = optimizer_of()
    schedule = sequence(optimizer)
    rates(optimizer, schedule, 6)
    _, other = optimizer_of()
    fresh = sequence(other)
    fresh.load_state_dict(schedule.state_dict())
    other.load_state_dict(optimizer.state_dict())
    assert rates(other, fresh, 8) == rates(optimizer, schedule, 8)


def plateau_by_hand(measures, patience, cooldown):
    """Halve the rate after more than `patience` measures without a better one."""
    rate, best, bad, rest, found = 1.0, math.inf, 0, 0, []
    for x in measures:
        bad = 0 if x < best * (1 - 1e-4) else bad + 1
        best = x if x < best * (1 - 1e-4) else best
        if rest > 0:
            rest, bad = rest - 1, 0
        if bad > patience:
            rate, bad, rest = rate / 2, 0, cooldown
        found.append(rate)
    return found


MEASURES = [5, 4, 4, 4, 4, 3, 3.5, 3, 3, 3, 2.9, math.nan, 2.9, 2.9, 2.9, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(("patience", "cooldown"), [(0, 0), (1, 0), (2, 1), (1, 3)])
@pytest.mark.parametrize("compiled", [False, True])
def test_plateau_lowers_the_rate(patience, cooldown, compiled):
    w = lucid.ones(1, requires_grad=True)
    optimizer = SGD([w], lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=patience, cooldown=cooldown
    )
    step = lucid.jit(schedule.step) if compiled else schedule.step
    found = []
    for measure in MEASURES:
        step(lucid.tensor(float(measure), dtype="float64") if compiled else measure)
        found.append(optimizer.param_groups[0]["lr"])
    assert found == plateau_by_hand(MEASURES, patience, cooldown)


def test_plateau_goes_on_from_a_state_dict(tmp_path):
    def fresh():
        optimizer = SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
        return optimizer, lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)

    _, schedule = fresh()
    lucid.save(schedule.state_dict(), tmp_path / "new.safetensors")
    assert lucid.load(tmp_path / "new.safetensors") == schedule.state_dict()
    for x in (3.0, 3.0):
        schedule.step(x)
    other, again = fresh()
    again.load_state_dict(schedule.state_dict())
    again.step(3.0)
    assert other.param_groups[0]["lr"] == pytest.approx(0.1)


def test_a_rate_at_the_bottom_stays_there():
    optimizer = SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.05)
    for _ in range(5):
        schedule.step(1.0)
    assert optimizer.param_groups[0]["lr"] == 0.05


O = Adam([lucid.ones(1, requires_grad=True)])  # noqa: E741
A = lucid.optim.Adagrad([lucid.ones(1, requires_grad=True)])


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: lr_scheduler.StepLR(O, 2, last_epoch=3), "initial_lr"),
        (lambda: lr_scheduler.CosineAnnealingLR(O, 0), "T_max"),
        (lambda: lr_scheduler.CosineAnnealingWarmRestarts(O, 0), "T_0"),
        (lambda: lr_scheduler.ConstantLR(O, factor=2.0), "factor"),
        (lambda: lr_scheduler.LinearLR(O, start_factor=0.0), "factors"),
        (lambda: lr_scheduler.LambdaLR(O, [abs, abs]), "2 values for 1 groups"),
        (lambda: lr_scheduler.CyclicLR(O, 0.1, 0.2, mode="x"), "mode"),
        (lambda: lr_scheduler.CyclicLR(A, 0.1, 0.2), "cycle_momentum=False"),
        (lambda: lr_scheduler.OneCycleLR(O, 0.1), "total_steps"),
        (lambda: lr_scheduler.OneCycleLR(O, 0.1, 10, anneal_strategy="x"), "anneal_strategy"),
        (lambda: lr_scheduler.ReduceLROnPlateau(O, mode="x"), "mode"),
        (lambda: lr_scheduler.ReduceLROnPlateau(O, factor=1.0), "below 1"),
        (lambda: lr_scheduler.SequentialLR(O, [], []), "no schedule"),
        (lambda: lr_scheduler.SequentialLR(O, [lr_scheduler.StepLR(O, 1)], [3]), "milestones"),
        (lambda: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(O, 1),
                                                lr_scheduler.StepLR(A, 1)]), "different"),
    ],
)  # fmt: skip
def test_misuse_is_told(make, part):
    with pytest.raises(ArgumentError, match=r".*") as caught:
        make()
    assert part in str(caught.value)


def test_a_function_of_python_inside_jit_is_refused():
    _, optimizer = optimizer_of()
    schedule = lr_scheduler.LambdaLR(optimizer, lambda t: 0.5)
    with pytest.raises(ArgumentError, match="call step\\(\\) outside"):
        lucid.jit(schedule.step)()
