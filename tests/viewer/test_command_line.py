"""`python -m lucid`: a greeting, view, run, doctor and cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lucid
from lucid.compiler.runtime import cache
from lucid.viewer import doctor
from lucid.viewer.command_line import main

SCRIPT = """
import sys
import lucid

@lucid.jit
def f(x, scale=1.0):
    return (lucid.sin(x) * scale).sum()

def f_args():
    return (lucid.ones(30, 30),)

f_kwargs = {"scale": 2.0}

def g(x):
    return x

if __name__ == "__main__":
    for n in (10, 20, 30):
        f(lucid.ones(n, n))
        f(lucid.ones(n, n))
    print("the script ran with", sys.argv[1:])
    if sys.argv[-1] == "fail":
        raise ValueError("as asked")
    sys.exit(3)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lucid", *map(str, arguments)]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_the_greeting_has_the_version_the_backend_the_threads_and_three_commands() -> None:
    result = run(LUCID_NUM_THREADS="3")
    assert result.returncode == 0
    first, second = result.stdout.splitlines()[:2]
    assert first.startswith(f"lucid {lucid.__version__}:")
    assert second.startswith("backend llvm, 3 threads, cache ")
    assert [line.split()[3] for line in result.stdout.splitlines() if "  python -m" in line] == [
        "view", "run", "doctor",
    ]  # fmt: skip


def test_view_takes_the_arguments_from_the_script(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "page.html"
    assert main(["view", f"{script}:f", "-o", str(target)]) == 0
    assert capsys.readouterr().out.split() == [str(target)]
    assert target.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("{}", "does not name a function: write script.py:f"),
        ("{}x:f", "there is no file"),
        ("{}:h", "defines no 'h'"),
        ("{}:g", "define g_args, a tuple of arguments or a function"),
    ],
)
def test_view_says_what_is_missing(
    script: Path, target: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", target.format(script)]) == 1
    assert reason in capsys.readouterr().err


def test_run_reports_at_the_end_and_keeps_the_exit_status(script: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    result = run("run", "--trace", trace, script, "a", "--b")
    assert result.returncode == 3
    assert "the script ran with ['a', '--b']" in result.stdout
    assert "recompiled" in result.stdout and "called with f32[30,30]" in result.stdout
    assert "sin sum" in result.stdout and "script.py:7" in result.stdout
    events = json.loads(trace.read_text())["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert {event["name"] for event in complete} == {"sin sum"}
    assert all(event["dur"] > 0 and event["args"]["line"] == "script.py:7" for event in complete)


def test_run_reports_after_an_error_too(script: Path) -> None:
    result = run("run", script, "fail")
    assert result.returncode == 1 and "ValueError: as asked" in result.stderr
    assert "lucid report of" in result.stdout


def test_the_doctor_finds_a_sound_installation() -> None:
    findings = {finding.name: finding for finding in doctor.examine()}
    assert "numpy" in findings["packages"].text and findings["backend llvm"].good
    assert findings["backend numba"].good and "computes what NumPy does" in findings[
        "backend numba"
    ].text  # fmt: skip


def test_the_doctor_names_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LUCID_CACHE_DIR", "relative/folder")
    monkeypatch.setenv("LUCID_TYPO", "1")
    monkeypatch.setattr(doctor, "_compute", lambda backend: 1 / 0)
    assert main(["doctor"]) == 1
    report = capsys.readouterr().out
    assert "relative path" in report and "LUCID_TYPO" in report and "ZeroDivisionError" in report


def test_the_cache_is_described_verified_and_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("LUCID_CACHE_DIR", str(folder))
    keys = [cache.key(bytes([i])) for i in range(3)]
    for key in keys:
        assert cache.put(key, b"code of a kernel")
    assert main(["cache", "info"]) == 0
    assert "entries  3" in capsys.readouterr().out
    assert main(["cache", "verify"]) == 0
    assert "3 of 3 entries are intact" in capsys.readouterr().out
    victim = sorted(folder.iterdir())[0]
    victim.write_bytes(victim.read_bytes()[:-1] + b"X")
    assert main(["cache", "verify"]) == 1
    report = capsys.readouterr().out
    assert f"damaged: {victim}" in report and "2 of 3 entries are intact" in report
    assert main(["cache", "clear"]) == 0
    assert not list(folder.iterdir())
