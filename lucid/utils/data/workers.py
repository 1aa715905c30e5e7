"""Worker processes of a DataLoader: forked, given tasks, read in the order of the tasks.

Tasks and batches cross the pipes as messages (messages.py). The parent waits for the pipe and for
the end of the process together, so a killed worker raises at once instead of hanging. A worker
reads its tasks in a separate thread, so neither side waits for the other to read.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import random as pythons_random
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import random
from lucid.errors import LucidError
from lucid.public.declare import public
from lucid.utils.data.messages import receive, send

if TYPE_CHECKING:
    from lucid.utils.data.loader import DataLoader

BATCH, END, FAILED = "batch", "end", "failed"
NEXT_EPOCH = "again"


@public("utils.data")
class WorkerError(LucidError, RuntimeError):
    """Raised when a worker process fails or is killed."""


@dataclass(frozen=True)
class WorkerInfo:
    """The result of `get_worker_info()` inside a dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


@public("utils.data")
def get_worker_info() -> WorkerInfo | None:
    """Return the id, count and seed of this worker; None in the main process."""
    return _info


class Workers:
    """The processes of one pass, or of many if they persist."""

    def __init__(self, loader: DataLoader, seed: int) -> None:
        self.timeout = loader.timeout or None
        self.prefetch, self.persistent = loader.prefetch_factor, loader.persistent_workers
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        self.busy = False
        context = multiprocessing.get_context("fork")
        for i in range(loader.num_workers):
            mine, theirs = context.Pipe()
            process = context.Process(
                target=worker_main, args=(loader, i, seed, theirs, [*self.pipes, mine]), daemon=True
            )
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def is_idle(self) -> bool:
        return not self.busy and all(process.is_alive() for process in self.processes)

    def run(self, tasks: Iterator[Any]) -> Iterator[Any]:
        """Yield the batches of the tasks, in order."""
        n = len(self.pipes)
        self.busy = True
        waiting: list[int] = []  # workers in the order of their tasks
        open_workers = set(range(n))
        turn = 0

        def give() -> bool:
            nonlocal turn
            if not open_workers:
                return False
            while turn % n not in open_workers:
                turn += 1
            task = next(tasks, StopIteration)
            if task is StopIteration:
                return False
            worker = turn % n
            self.send(worker, task)
            waiting.append(worker)
            turn += 1
            return True

        try:
            for _ in range(n * self.prefetch):
                if not give():
                    break
            while waiting:
                worker = waiting.pop(0)
                kind, batch = self.receive(worker)
                if kind == END:
                    open_workers.discard(worker)
                else:
                    give()
                    yield batch
            if self.persistent:
                for worker in range(n):
                    self.send(worker, NEXT_EPOCH)
                self.busy = False
        finally:
            if self.busy or not self.persistent:
                self.stop()

    def send(self, worker: int, task: Any) -> None:
        """Send a task to a worker; a dead worker is detected when its batch is due."""
        with contextlib.suppress(OSError):
            send(self.pipes[worker], "task", task)

    def receive(self, worker: int) -> tuple[str, Any]:
        pipe, process = self.pipes[worker], self.processes[worker]
        ready = wait([pipe, process.sentinel], self.timeout)
        if not ready:
            raise WorkerError(f"DataLoader: worker {worker} timed out after {self.timeout} s")
        if pipe not in ready:
            raise self.death_error(worker)
        try:
            kind, value = receive(pipe)
        except (EOFError, OSError):
            raise self.death_error(worker) from None
        if kind == FAILED:
            raise WorkerError(f"DataLoader: worker {worker} failed\n\n{value}")
        return kind, value

    def death_error(self, worker: int) -> WorkerError:
        """Return the error that describes how a worker ended."""
        process = self.processes[worker]
        process.join(1)
        code = process.exitcode
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            if -code == signal.SIGKILL:
                how += " (the system kills processes when memory runs out)"
        else:
            how = f"ended with exit code {code}"
        return WorkerError(f"DataLoader: worker {worker} (process {process.pid}) {how}")

    def stop(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(0.2)
            if process.is_alive():
                process.terminate()
                process.join(1)
            if process.is_alive():
                process.kill()
                process.join()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.stop()


def worker_main(loader: DataLoader, number: int, seed: int, pipe: Connection, others: Any) -> None:
    """Serve tasks with batches until the pipe is closed."""
    global _info
    for other in others:  # inherited ends of other pipes, which must close when the parent does
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _info = WorkerInfo(number, loader.num_workers, seed + number, loader.dataset)
    random.manual_seed(seed + number)
    pythons_random.seed(seed + number)
    np.random.seed((seed + number) % 2**32)
    try:
        if loader.worker_init_fn is not None:
            loader.worker_init_fn(number)
        tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=read_tasks, args=(pipe, tasks), daemon=True).start()
        while run_epoch(loader, pipe, tasks):
            pass
    except BaseException:
        with contextlib.suppress(OSError):
            send(pipe, FAILED, traceback.format_exc())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def read_tasks(pipe: Connection, tasks: Any) -> None:
    """Queue what comes through the pipe; exit when the parent is gone."""
    try:
        while True:
            tasks.put(receive(pipe)[1])
    except (EOFError, OSError):
        os._exit(0)


def run_epoch(loader: DataLoader, pipe: Connection, tasks: Any) -> bool:
    """Serve one pass over the data; return True if another may follow."""
    from lucid.utils.data.loader import EndOfData, Fetcher

    fetcher = Fetcher(loader)
    while True:
        task = tasks.get()
        if isinstance(task, str) and task == NEXT_EPOCH:
            return True
        try:
            batch = fetcher(task)
        except EndOfData:
            send(pipe, END, None)
            continue
        try:
            send(pipe, BATCH, batch)
        except OSError:
            return False
