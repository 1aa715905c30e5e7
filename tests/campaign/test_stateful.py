"""Programs with writes, shared memory, draws and training: eager, hot and jitted runs agree.

`pytest tests/campaign --stateful 5000` runs more. A failure prints the smallest program.
"""

from __future__ import annotations

import pytest

from tests.campaign.stateful import SETUP, STATEMENTS, Step, failure, make, shrink


def pytest_generate_tests(metafunc):
    if "stateful_seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("--first-seed")
        count = metafunc.config.getoption("--stateful")
        metafunc.parametrize("stateful_seed", range(first, first + count))


def test_every_path_leaves_the_same_state(stateful_seed):
    step = make(stateful_seed)
    text = failure(step)
    if text:
        small = shrink(step)
        program = f"{SETUP}\n{small.text()}\n\n{failure(small)}"
        pytest.fail(f"program {stateful_seed}, at its smallest:\n{program}", pytrace=False)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_alone_leaves_the_same_state(statement):
    step = Step((statement.format(t="v0", x="a", y="b"),), "v0", 0)
    text = failure(step)
    assert not text, f"{step.text()}\n\n{text}"
