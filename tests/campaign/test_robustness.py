"""After an interrupt, an exception, a fork or a race of threads the next call is right.

Each form runs in a process of its own with a time limit, so that a hang is a failure. The default
is short; --interrupts, --forks and --threads-minutes make it a campaign, --first-seed another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FORMS = [
    "interrupt_anywhere",
    "interrupt_kernels",
    "interrupt_at_lines",
    "raise_from_hooks",
    "fork",
    "threads",
]


def counts(config) -> dict[str, tuple[float, float]]:
    """Return, by form, how much of it to run and its time limit in seconds."""
    interrupts, forks = config.getoption("--interrupts"), config.getoption("--forks")
    minutes = config.getoption("--threads-minutes")
    return {
        "interrupt_anywhere": (interrupts, 60 + 5 * interrupts),
        "interrupt_kernels": (100 * interrupts, 60 + 5 * interrupts),
        "interrupt_at_lines": (interrupts, 60 + 5 * interrupts),
        "raise_from_hooks": (interrupts, 60 + 5 * interrupts),
        "fork": (forks, 60 + 5 * forks),
        "threads": (60 * minutes, 60 + 240 * minutes),
    }


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("trouble") / "cache"


@pytest.mark.parametrize("form", FORMS)
def test_the_next_call_is_right(form, request, cache):
    amount, limit = counts(request.config)[form]
    seed = request.config.getoption("--first-seed")
    root = HERE.parent.parent
    found = subprocess.run(
        [sys.executable, "-m", "tests.campaign.trouble", form, str(amount), str(seed)],
        env={**os.environ, "PYTHONPATH": str(root), "LUCID_CACHE_DIR": str(cache)},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=limit,
    )
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-4000:]
    report = json.loads(found.stdout.splitlines()[-1])
    print(form, "seed", seed, report)
    assert report["wrong"] == []
    assert report["troubles"] > 0, "there was trouble to survive"
