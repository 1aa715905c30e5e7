"""Training leaves memory as it was: resident bytes are flat once everything is compiled."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

import lucid
from lucid import nn

WARM, ALLOWED = 200, 1 << 20


def resident() -> int:
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def training_step():
    """A loop body with all that keeps a state: dropout, statistics, moments, a schedule."""
    lucid.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4)
    )
    optimizer = lucid.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step, lucid.optim.lr_scheduler.ExponentialLR(optimizer, 0.9999)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="measures by Linux's /proc")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jitted"])
def test_steps_of_training_leave_no_memory_behind(compiled, pytestconfig, rng):
    steps = 10_000 if pytestconfig.getoption("long") else 600
    step, schedule = training_step()
    run = lucid.jit(step) if compiled else step
    for i in range(WARM + steps):
        if i == WARM:
            before = resident()
        x = lucid.tensor(rng.normal(size=(8, 16)).astype(np.float32))
        loss = run(x, lucid.tensor(rng.integers(0, 4, 8)))
        schedule.step()
    assert np.isfinite(loss.item())
    assert resident() - before < ALLOWED
