"""Every optimizer × every keyword: steps that are interpreted, followed, compiled or functional.

tests/optim holds every rule to its formula on given gradients and every schedule to its own.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import lucid
from lucid import optim
from tests.campaign.tiers import cold, hot, without_optimization
from tests.optim import references
from tests.optim.settings import OPTIMIZERS, SCHEDULES

CASES = [pytest.param(*case, id=f"{i}-{case[0]}") for i, case in enumerate(OPTIMIZERS)]
STEPS = 12
START = np.linspace(-1.0, 1.0, 12).reshape(4, 3) ** 3 + 0.1
WEIGHT = np.cos(np.arange(12.0)).reshape(4, 3) * 0.3 + 1


def by_formula(name, settings):
    """The textbook's rule on the exact gradients of the loss."""
    settings = dict(settings)
    sign = -1.0 if settings.pop("maximize", False) else 1.0
    rule = getattr(references, name.lower())(START.copy(), **settings)
    p, found = next(rule), []
    for i in range(STEPS):
        p = rule.send(sign * WEIGHT * (p - 0.1 * i) / 6)
        found.append(p)
    return found


def by_steps(name, settings, jitted):
    p = lucid.tensor(START.copy(), requires_grad=True)
    optimizer = getattr(optim, name)([p], **settings)
    weight = lucid.tensor(WEIGHT)

    def step(target):
        optimizer.zero_grad()
        loss = (weight * (p - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    run, found = lucid.jit(step) if jitted else step, []
    for i in range(STEPS):
        run(lucid.tensor(0.1 * i))
        found.append(p.detach().numpy().copy())
    return found


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_every_way_to_take_a_step_follows_the_formula(name, settings):
    expected = by_formula(name, settings)
    ways = {"interpreted": (cold, False), "followed": (hot, False), "compiled": (cold, True)}
    for way, (tier, jitted) in ways.items():
        with tier(), without_optimization():
            found = by_steps(name, settings, jitted)
        for number, (a, e) in enumerate(zip(found, expected, strict=True), 1):
            what = f"{way}: step {number} of {name}({settings})"
            np.testing.assert_allclose(a, e, rtol=1e-8, atol=1e-10, err_msg=what)


OTHERS = {
    "params": "given always", "ignored": "PyTorch's keywords that change nothing",
    "optimizer": "given always", "last_epoch": "tests/optim/test_schedulers.py",
}  # fmt: skip
ELSEWHERE = {
    "Optimizer": "the base", "LRScheduler": "the base", "LBFGS": "tests/optim/test_lbfgs.py",
    "ChainedScheduler": "tests/optim/test_schedulers.py",
    "SequentialLR": "tests/optim/test_schedulers.py", "LambdaLR": "tests/optim/test_schedulers.py",
    "MultiplicativeLR": "tests/optim/test_schedulers.py",
    "ReduceLROnPlateau": "tests/optim/test_schedulers.py",
}  # fmt: skip


def test_every_keyword_of_every_optimizer_and_schedule_is_passed():
    passed: dict[str, set[str]] = {}
    for name, settings in [*OPTIMIZERS, *SCHEDULES]:
        passed.setdefault(name, set()).update(settings)
    left, unknown = set(), set()
    for space in (optim, optim.lr_scheduler):
        for name in space.__all__:
            cls = getattr(space, name)
            if isinstance(cls, type) and name not in ELSEWHERE:
                keys = {*inspect.signature(cls).parameters} - {*OTHERS} - passed.get(name, set())
                left |= {(name, key) for key in keys}
                unknown |= set() if name in passed else {name}
    assert (left, unknown) == (set(), set())
