"""Random training steps: reads and writes beside the loss mean the same in a followed step.

`pytest tests/campaign --programs 5000` runs more.
"""

from __future__ import annotations

import pytest

from lucid.autograd.following import step_sequence
from tests.campaign.training import Action, Training, disagreement, make, shrink

SHARE = 6  # one of so many random programs is run here


def pytest_generate_tests(metafunc):
    if "training_seed" in metafunc.fixturenames:
        count = metafunc.config.getoption("--programs") // SHARE
        metafunc.parametrize("training_seed", range(count))


@pytest.fixture(autouse=True)
def everything_may_be_followed(monkeypatch):
    monkeypatch.setattr(step_sequence, "is_worthwhile", lambda cut, types: True)


def test_a_training_step_means_the_same_when_it_is_followed(training_seed):
    program = make(training_seed)
    if disagreement(program):
        small = shrink(program)
        pytest.fail(f"{small.text()}\n\n{disagreement(small)}", pytrace=False)


@pytest.mark.parametrize("write", ["tanh_", "halve", "clamp_", "fill_", "+= own"])
@pytest.mark.parametrize("place", ["forward", "loss", "backward", "step"])
def test_memory_with_a_deferred_write_is_written_again(place, write):
    """The second write was lost: it went to the program's result, not to the memory."""
    first = Action("forward", "add_", 3, 2, -1)  # memory from outside += y.detach()
    again = {"forward": 3, "loss": 4, "backward": 4, "step": 4}[place]
    program = Training(1, "linear", "sgd", (first, Action(place, write, again, 0, -1)))
    assert not disagreement(program)
