"""What `lucid.distributed.run` starts as a rank: python -m lucid.distributed.supervisor train.py

The program runs in a child process, which is the rank. If a signal kills it, this process, the one
that mpiexec knows, reports which rank was killed and what it was doing, and ends by the same signal
once the others have reported it, or after a few seconds.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import runpy
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from lucid.distributed.board import (
    FAILED,
    FINISHED,
    GRACE,
    PID,
    SLOT,
    STATE,
    describe_slot,
    is_alive,
)
from lucid.support.settings import setting

PR_SET_PDEATHSIG = 1
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


def main(arguments: Sequence[str]) -> None:
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        sys.argv[:] = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
        return
    for number in FORWARDED:
        signal.signal(number, lambda received, _: os.kill(child, received))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        sys.exit(code)
    report_death(child, -code)
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)


def report_death(child: int, number: int) -> None:
    """Report which rank was killed and what it was doing, and let the others do the same."""
    slots = board_slots()
    words = [slot.cast("q") for slot in slots]
    ranks = [r for r, w in enumerate(words) if w[PID] == child]
    if not ranks:
        return
    if words[ranks[0]][STATE] in (FAILED, FINISHED):
        return
    doing = describe_slot(slots[ranks[0]]).replace("waits in", "was in")
    name = signal.Signals(number).name
    print(f"rank {ranks[0]} (process {child}) was killed by {name}: it {doing}", file=sys.stderr)
    sys.stderr.flush()
    others = [w for r, w in enumerate(words) if r != ranks[0] and w[PID]]
    end = time.monotonic() + GRACE
    while time.monotonic() < end:
        if all([w[STATE] in (FAILED, FINISHED) or not is_alive(w[PID]) for w in others]):
            break
        time.sleep(0.02)


def board_slots() -> list[Any]:
    path = setting("LUCID_DISTRIBUTED_BOARD")
    try:
        with open(path, "r+b") as file:
            memory = memoryview(mmap.mmap(file.fileno(), 0))
    except (OSError, TypeError, ValueError):
        return []
    return [memory[i : i + SLOT] for i in range(0, len(memory), SLOT)]


if __name__ == "__main__":
    main(sys.argv[1:])
