"""Start a program on several ranks; skip where there is no MPI."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"


def mpiexec() -> str | None:
    """The mpiexec beside this Python, or on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


MISSING = (
    "mpi4py is not installed: pip install lucid-autodiff[mpi]"
    if importlib.util.find_spec("mpi4py") is None
    else "there is no mpiexec: pip install mpich"
    if mpiexec() is None
    else ""
)
needs_mpi = pytest.mark.skipif(bool(MISSING), reason=MISSING or "MPI is here")


class Finished(NamedTuple):
    code: int
    out: str
    seconds: float


def run_ranks(
    n: int, program: str, *args: object, timeout: float = 120.0, **settings: str
) -> Finished:
    """Run a program of `programs/` on n ranks and return its exit code, output and time."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    environment |= {"LUCID_NUM_THREADS": "1", "PYTHONWARNINGS": "error", **settings}
    environment.pop("LUCID_VERIFY", None)
    script = str(PROGRAMS / program) if program.endswith(".py") else program
    launch = [sys.executable, "-m", "lucid.distributed.run", "-n", str(n)]
    begin = time.monotonic()
    process = subprocess.Popen(
        [*launch, script, *map(str, args)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        pytest.fail(f"{program} on {n} ranks hangs for {timeout} s:\n{out}")
    return Finished(process.returncode, out, time.monotonic() - begin)


def once_per_session(factory: pytest.TempPathFactory, name: str, make: Callable[[], str]) -> str:
    """Return the text that `make` returns, which one worker of pytest-xdist makes for all."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    path = folder / f"{name}.txt"
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            path.write_text(make())
    return path.read_text()


def check_ranks(n: int, program: str, *args: object, **settings: str) -> str:
    """Run a program that checks itself; fail with its output unless every rank is done."""
    found = run_ranks(n, program, *args, **settings)
    assert found.code == 0, found.out
    done = found.out.count("done")
    assert done == n, found.out
    return found.out
