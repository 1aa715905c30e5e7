"""A call with an extreme value gives a result or an error of ours: no hang, no crash.

Each path runs in a process of its own with a time limit. --extremes says how many calls of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ALL = 60_000  # about how many calls there are


@pytest.mark.parametrize("path", ["eager", "jit"])
def test_extreme_values_give_results_or_errors_of_ours(path, request):
    count = request.config.getoption("--extremes")
    first = request.config.getoption("--first-seed")
    found = subprocess.run(
        [sys.executable, "-m", "tests.campaign.extreme", path, str(first), str(ALL // count)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120 + count,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    report = json.loads(found.stdout.splitlines()[-1])
    assert report["wrong"] == []
    assert report["calls"] > report["refused"] > 0
