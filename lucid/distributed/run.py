"""python -m lucid.distributed.run -n 4 train.py ...: start a program on several ranks by mpiexec.

The same as `mpiexec -n 4 python train.py ...`, with mpiexec found beside this Python, and with a
supervisor for each rank: if a rank is killed, it reports which one and in which collective, and the
other ranks have time to report it too before mpiexec ends the job.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lucid.distributed.board import SLOT
from lucid.errors import DistributedError


def find_mpiexec() -> str:
    """Return the mpiexec beside this Python, or the one on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise DistributedError("mpiexec was not found; pip install lucid-autodiff[mpi]")
    return found


def command(n: int, program: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Return the command that runs a Python program on `n` ranks."""
    mpiexec = find_mpiexec()
    asked = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    extra = ["--oversubscribe"] if re.search("Open|PRRTE", asked.stdout) else []
    supervised = [sys.executable, "-m", "lucid.distributed.supervisor", *program]
    return [mpiexec, *extra, *options, "-n", str(n), *supervised]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lucid.distributed.run", description=__doc__)
    parser.add_argument("-n", type=int, required=True, help="the number of ranks")
    parser.add_argument("--mpiexec", default="", help="further options of mpiexec, in one word")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="a Python file and its arguments")
    given = parser.parse_args(arguments)
    if given.n < 1 or not given.program:
        parser.error("-n must be positive, and a program must follow")
    return run_job(command(given.n, given.program, given.mpiexec.split()), given.n)


def run_job(words: Sequence[str], n: int) -> int:
    """Run mpiexec with a file for the board, and return its exit code."""
    with tempfile.NamedTemporaryFile(prefix="lucid-board-") as file:
        file.truncate(n * SLOT)
        environment = {**os.environ, "LUCID_DISTRIBUTED_BOARD": file.name}
        process = subprocess.Popen(words, env=environment)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # it goes to mpiexec as well, which ends the ranks
                continue


if __name__ == "__main__":
    sys.exit(main())
