"""The board: shared memory in which every rank of a machine posts what it is doing.

A rank posts the collective that it enters, with its line. Waiting ranks read the board: if another
rank failed, died or finished, or if all ranks wait for different things, the wait ends with an
error that names the rank, the line and the collective. The memory is a file that
`lucid.distributed.run` reads if mpiexec has killed all ranks, or else an MPI window. Ranks on other
machines are not on the board: mpiexec or the timeout reports their failures.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
import traceback
import zlib
from collections.abc import Sequence
from typing import Any

from lucid.errors import CollectiveMismatchError, DistributedError, RankFailedError
from lucid.support.settings import setting
from lucid.support.source import is_internal

SLOT = 1024  # bytes per rank
WORDS = SLOT // 8
PID, STATE, NUMBER, LENGTH, GROUP, KEY, DEST, SOURCE, TEXT = range(9)
RUNNING, WAITING, FAILED, FINISHED = range(4)
STUCK = 2.0  # seconds without any change after which waiting ranks count as deadlocked
GRACE = 3.0  # seconds that a failing rank gives the others to report it
COMPUTING = 1.0  # and those that are not in a collective
NOBODY = -1


class LocalBoard:
    """The board of a single process."""

    def __init__(self) -> None:
        self.groups: list[tuple[int, ...]] = []


class Board:
    """The slots of the ranks on this machine; `ranks` are their numbers in the world.

    crowded    whether there are more of them than cores
    """

    def __init__(self, mpi: Any, comm: Any) -> None:
        self.groups: list[tuple[int, ...]] = []
        self.rank = comm.Get_rank()
        self.size = comm.Get_size()
        node = comm.Split_type(mpi.COMM_TYPE_SHARED)
        self.ranks: list[int] = node.allgather(self.rank)
        self.crowded = len(self.ranks) > len(set().union(*node.allgather(usable_cores())))
        self.slots = self.map_file(node) or self.map_window(mpi, node)
        self.words = [slot.cast("q") for slot in self.slots]
        me = self.ranks.index(self.rank)
        self.mine, self.text = self.words[me], self.slots[me]
        self.mine[PID] = os.getpid()
        self.posted = 0  # collectives that this rank has begun
        self.mine[STATE] = RUNNING
        node.Barrier()
        self.seen: tuple[tuple[int, ...], float] = ((), 0.0)

    def map_file(self, node: Any) -> list[memoryview]:
        """Return the slots in the file of `lucid.distributed.run`, if all ranks here can map it."""
        memory: Any = None
        path = setting("LUCID_DISTRIBUTED_BOARD")
        with contextlib.suppress(OSError, ValueError):
            if path:
                with open(path, "r+b") as file:
                    memory = mmap.mmap(file.fileno(), self.size * SLOT)
        if not all(node.allgather(memory is not None)):
            return []
        return split_slots(memory, self.ranks)

    def map_window(self, mpi: Any, node: Any) -> list[memoryview]:
        """Return the slots in shared memory of MPI."""
        self.window = mpi.Win.Allocate_shared(SLOT, 8, comm=node)
        memories = [self.window.Shared_query(i)[0] for i in range(len(self.ranks))]
        return [memoryview(memory).cast("B")[:SLOT] for memory in memories]

    def write(self, state: int, text: bytes) -> None:
        mine, start = self.mine, TEXT * 8
        text = text[: SLOT - start]
        mine[LENGTH] = len(text)
        self.text[start : start + len(text)] = text
        mine[STATE] = state

    def post(self, text: bytes) -> int:
        """Post that this rank has begun a collective, and return its number."""
        self.posted += 1
        self.mine[NUMBER] = self.posted
        self.write(RUNNING, text)
        return self.posted

    def enter(self, number: int, text: bytes, group: int, key: int, dest: int, source: int) -> None:
        """Post that this rank waits in a collective."""
        mine = self.mine
        mine[NUMBER] = number
        mine[GROUP], mine[KEY], mine[DEST], mine[SOURCE] = group, key, dest, source
        self.write(WAITING, text)

    def leave(self) -> None:
        self.mine[STATE] = RUNNING

    def finish(self) -> None:
        if self.mine[STATE] != FAILED:
            self.mine[STATE] = FINISHED

    def fail(self, error: BaseException) -> None:
        """Post that this rank failed, and give the others time to report it."""
        place = place_of(error)
        known = not place or place in str(error)
        where = "" if known else f" [{place}]"
        self.write(FAILED, f"{type(error).__name__}: {error}{where}".encode())
        begin = time.monotonic()
        others = [w for w in self.words if w is not self.mine]
        while (passed := time.monotonic() - begin) < GRACE:
            over = (FAILED, FINISHED) if passed < COMPUTING else (FAILED, FINISHED, RUNNING)
            if all([w[STATE] in over or not is_alive(w[PID]) for w in others]):
                break
            time.sleep(0.02)

    def describe(self, slot: int) -> str:
        """Return what a rank is doing, for an error."""
        return f"rank {self.ranks[slot]} {describe_slot(self.slots[slot])}"

    def describe_all(self) -> str:
        return "; ".join([self.describe(i) for i in range(len(self.ranks))])

    def check(self, where: str, partners: tuple[int, ...]) -> None:
        """Raise an error if the collective this rank is waiting in cannot complete.

        where       the collective and its line
        partners    the ranks of the world that take part in it
        """
        for slot, words in enumerate(self.words):
            if words is self.mine:
                continue
            state = words[STATE]
            if state == FAILED:
                raise RankFailedError(f"{self.describe(slot)}; rank {self.rank} was in {where}")
            if state == FINISHED and self.ranks[slot] in partners:
                raise RankFailedError(f"{self.describe(slot)}; rank {self.rank} waits in {where}")
            if state != FINISHED and not is_alive(words[PID]):
                last = self.describe(slot).replace("waits in", "was in")
                raise RankFailedError(
                    f"rank {self.ranks[slot]} died (process {words[PID]}): {last}; rank "
                    f"{self.rank} waits in {where}"
                )
        self.check_deadlock(where)

    def check_deadlock(self, where: str) -> None:
        """Raise an error if all ranks wait, nothing changes, and no collective is complete."""
        if len(self.ranks) < self.size or any([w[STATE] != WAITING for w in self.words]):
            self.seen = ((), 0.0)
            return
        numbers = tuple([w[NUMBER] for w in self.words])
        now = time.monotonic()
        if self.seen[0] != numbers:
            self.seen = (numbers, now)
        if now - self.seen[1] < STUCK or any([self.is_complete(r) for r in range(self.size)]):
            return
        raise CollectiveMismatchError(
            f"ranks wait for different things: {self.describe_all()}; this one is in {where}"
        )

    def is_complete(self, rank: int) -> bool:
        """True if all ranks that a rank waits for wait for it."""
        words = self.words[self.ranks.index(rank)]
        if words[DEST] == words[SOURCE] == NOBODY:
            members = self.groups[words[GROUP]]
            others = [self.words[self.ranks.index(r)] for r in members]
            return all([(w[GROUP], w[KEY]) == (words[GROUP], words[KEY]) for w in others])
        dest, source = words[DEST], words[SOURCE]
        sent = dest == NOBODY or self.words[self.ranks.index(dest)][SOURCE] == rank
        received = source == NOBODY or self.words[self.ranks.index(source)][DEST] == rank
        return sent and received


def usable_cores() -> list[int]:
    """Return the numbers of the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def split_slots(memory: Any, ranks: Sequence[int]) -> list[memoryview]:
    """Return the slots of some ranks in memory that has one for every rank of the world."""
    view = memoryview(memory)
    return [view[r * SLOT : (r + 1) * SLOT] for r in ranks]


def describe_slot(slot: memoryview) -> str:
    """Return what the rank of a slot is doing."""
    words, start = slot.cast("q"), TEXT * 8
    text = bytes(slot[start : start + words[LENGTH]]).decode(errors="replace")
    number = words[NUMBER]
    match words[STATE]:
        case 1:
            return f"waits in collective {number}, {text}"
        case 2:
            return f"failed: {text}"
        case 3:
            return f"has finished, after {number} collectives"
    return f"computes, after collective {number}, {text}" if number else "computes"


def place_of(error: BaseException) -> str:
    """Return the innermost line outside Lucid at which an error was raised."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not is_internal(f.filename)]
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def is_alive(pid: int) -> bool:
    """True if a process of this machine runs."""
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return not is_zombie(pid)


def is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return False


def key_of(text: str) -> int:
    """Return a number that stands for what ranks must agree on."""
    return zlib.crc32(text.encode())


def broken_error(reason: str, where: str) -> DistributedError:
    return DistributedError(
        f"{where}: an earlier collective did not complete ({reason}), so the ranks are out of "
        "sync; end the job"
    )
