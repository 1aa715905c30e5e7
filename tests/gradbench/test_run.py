"""The command that times GradBench: its processes, what it compares, and its table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gradbench import run

ROOT = Path(__file__).parents[2]


def test_the_command_prints_both_tables():
    command = [sys.executable, "-m", "benchmarks.gradbench.run", "--only", "lse"]
    command += ["--systems", "lucid", "--rounds", "1", "--seconds", "0.01"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("lse")]
    assert [line[2] for line in lines] in (["µs", "s"], ["µs", "ms"], ["ms", "s"], ["ms", "ms"])


@pytest.mark.parametrize(
    ("other", "agree"), [([1.0, 2.0 + 1e-9], True), ([1.0, 2.1], False), ([1.0], False)]
)
def test_results_that_differ_are_seen(other, agree):
    assert run.agreeing([[np.array([1.0, 2.0])], [np.array(other)]]) is agree


def test_a_nan_is_no_agreement():
    assert not run.agreeing([[np.array([1.0])], [np.array([np.nan])]])


def test_the_table_has_times_reasons_and_ratios():
    times = {"lucid": {"first": 0.5, "us": 20.0}, "jax": {"missing": True}, "torch": {"first": 1.0}}
    text = run.table("a call", "us", list(times), {"f": {"times": times, "agree": False}})
    assert "f (results differ)" in text and "20 µs" in text
    assert "cannot" in text and "too long" in text
    first = run.table("first", "first", ["lucid", "torch"], {"f": {"times": times, "agree": True}})
    assert first.splitlines()[-1].split() == ["f", "500", "ms", "1", "s", "0.5"]
