"""Random programs as steps that repeat: followed steps mean what steps that run at once mean.

`pytest tests/campaign --programs 5000` runs more.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.following import follow, step_sequence
from lucid.tape.node import followers
from tests.campaign.programs import Program, make, shrink
from tests.campaign.tiers import cold, hot

STEPS, SHARE = 5, 8  # steps of a program; one of so many random programs is run here
followed = [0]


def pytest_generate_tests(metafunc):
    if "followed_seed" in metafunc.fixturenames:
        count = metafunc.config.getoption("--programs") // SHARE
        metafunc.parametrize("followed_seed", range(count))


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    prepare = follow.Follower.prepare

    def counted_prepare(self, *args):
        result = prepare(self, *args)
        followed[0] += result is not None
        return result

    monkeypatch.setattr(follow.Follower, "prepare", counted_prepare)
    monkeypatch.setattr(step_sequence, "is_worthwhile", lambda cut, types: True)


def steps(program: Program) -> list[np.ndarray]:
    """Values, gradients and a result that is looked at later, of steps with other values."""
    f, seen, kept = program.function(), [], None
    leaves = [lucid.tensor(np.array(x)).requires_grad_(True) for x in program.arrays()]
    for k in range(STEPS):
        y = f(*leaves)
        if not y.requires_grad:
            return seen
        middle = y * 2.0
        middle.backward()
        for x in leaves:
            seen.append(np.zeros(x.shape) if x.grad is None else x.grad.numpy().copy())
            if k != 2:  # the next gradient is added to this one
                x.grad = None
        if kept is not None:
            seen.append(kept.detach().numpy().copy())
        seen += [y.detach().numpy().copy(), middle.detach().numpy().copy()]
        kept = middle
        with lucid.no_grad():
            for x in leaves:
                x.mul_(0.95)
    return seen


def disagreement(program: Program) -> str:
    with np.errstate(all="ignore"):
        with cold():
            want = steps(program)
        with hot():
            got = steps(program)
    followers.clear()
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        if not np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True):
            return f"value {number}: {a} followed, {b} at once"
    return ""


def test_a_followed_program_means_the_same(followed_seed):
    program = make(followed_seed)
    if disagreement(program):
        small = shrink(program, lambda p: bool(disagreement(p)))
        pytest.fail(f"{small.text()}\n\n{disagreement(small)}", pytrace=False)


def test_programs_of_the_campaign_are_followed():
    for seed in range(4):
        assert not disagreement(make(seed))
    assert followed[0] > 0
