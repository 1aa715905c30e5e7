"""Worker processes of a DataLoader: forked, fed with tasks, heard in the order of the tasks.

A batch crosses the pipe as a text about its structure and the bytes of its arrays (as in a saved
file), never as a pickle. The parent waits for the pipe and for the end of the process together, so
a worker that is killed is an error at once and no wait without end.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import random
from lucid.errors import LucidError
from lucid.ir.source import at_line
from lucid.saving import tree

if TYPE_CHECKING:
    from lucid.utils.data.loader import DataLoader

BATCH, END, FAILED = b"b", b"e", b"f"


class WorkerError(LucidError, RuntimeError):
    """A worker process failed, or was killed."""


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: `get_worker_info()` inside a dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The number, count and seed of this worker; None in the main process."""
    return _info


class Workers:
    """The processes of one pass, or of many where they persist."""

    def __init__(self, loader: DataLoader, seed: int) -> None:
        self.loader, self.seed = loader, seed
        self.timeout = loader.timeout or None
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        self.busy = False
        context = multiprocessing.get_context("fork")
        for i in range(loader.num_workers):
            mine, theirs = context.Pipe()
            process = context.Process(
                target=work, args=(loader, i, seed, theirs, [*self.pipes, mine]), daemon=True
            )
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def is_idle(self) -> bool:
        return not self.busy and all(process.is_alive() for process in self.processes)

    def run(self, tasks: Iterator[Any]) -> Iterator[Any]:
        """The batches of the tasks, in order."""
        n = len(self.pipes)
        self.busy = True
        waiting: list[int] = []  # workers in the order of the tasks that they were given
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
            for _ in range(n * self.loader.prefetch_factor):
                if not give():
                    break
            while waiting:
                worker = waiting.pop(0)
                batch = self.receive(worker)
                if batch is END:
                    open_workers.discard(worker)
                else:
                    give()
                    yield batch
            if self.loader.persistent_workers:
                for worker in range(n):
                    self.send(worker, "again")
                self.busy = False
        finally:
            if self.busy or not self.loader.persistent_workers:
                self.stop()

    def send(self, worker: int, task: Any) -> None:
        """Give a worker a task; one that is gone is found when its batch is due."""
        with contextlib.suppress(OSError):
            self.pipes[worker].send_bytes(repr(task).encode())

    def receive(self, worker: int) -> Any:
        pipe, process = self.pipes[worker], self.processes[worker]
        ready = wait([pipe, process.sentinel], self.timeout)
        if not ready:
            raise WorkerError(
                f"DataLoader: worker {worker} gave nothing for {self.timeout} s{at_line()}"
            )
        if pipe not in ready:
            raise self.death(worker)
        try:
            return received(pipe, worker)
        except (EOFError, OSError):
            raise self.death(worker) from None

    def death(self, worker: int) -> WorkerError:
        process = self.processes[worker]
        process.join(1)
        code = process.exitcode
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            if -code == signal.SIGKILL:
                how += " (the system kills processes when memory runs out)"
        else:
            how = f"ended with exit code {code}"
        return WorkerError(f"DataLoader: worker {worker} (process {process.pid}) {how}{at_line()}")

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


def received(pipe: Connection, worker: int) -> Any:
    kind = pipe.recv_bytes()
    if kind == END:
        return END
    if kind == FAILED:
        text = pipe.recv_bytes().decode()
        raise WorkerError(f"DataLoader: worker {worker} failed{at_line()}\n\n{text}")
    structure = pipe.recv_bytes().decode()
    arrays = {}
    for _ in range(int(pipe.recv_bytes())):
        name, dtype, shape = eval_plain(pipe.recv_bytes())
        data = np.empty(shape, dtype)
        if data.nbytes:
            pipe.recv_bytes_into(data.reshape(-1).view(np.uint8).data)
        arrays[name] = data
    return tree.put_together(arrays, structure)


def eval_plain(text: bytes) -> Any:
    import ast

    return ast.literal_eval(text.decode())


def send_batch(pipe: Connection, batch: Any) -> None:
    arrays, structure = tree.taken_apart(batch)
    pipe.send_bytes(BATCH)
    pipe.send_bytes(structure.encode())
    pipe.send_bytes(str(len(arrays)).encode())
    for name, x in arrays.items():
        flat = np.ascontiguousarray(x)
        pipe.send_bytes(repr((name, x.dtype.str, x.shape)).encode())
        if flat.nbytes:
            pipe.send_bytes(flat.reshape(-1).view(np.uint8).data)


def work(loader: DataLoader, number: int, seed: int, pipe: Connection, others: Any) -> None:
    """The life of a worker: batches for tasks until the pipe is closed."""
    global _info
    for other in others:  # inherited ends of other pipes, which must close when the parent does
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _info = WorkerInfo(number, loader.num_workers, seed + number, loader.dataset)
    random.manual_seed(seed + number)
    np.random.seed((seed + number) % 2**32)
    try:
        if loader.worker_init_fn is not None:
            loader.worker_init_fn(number)
        while serve(loader, pipe):
            pass
    except (EOFError, OSError):
        pass
    except BaseException:
        with contextlib.suppress(OSError):
            pipe.send_bytes(FAILED)
            pipe.send_bytes(traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def serve(loader: DataLoader, pipe: Connection) -> bool:
    """One pass over the data; True where another may follow."""
    from lucid.utils.data.loader import EndOfData, Fetcher

    fetcher = Fetcher(loader)
    while True:
        task = eval_plain(pipe.recv_bytes())
        if task == "again":
            return True
        try:
            batch = fetcher(task)
        except EndOfData:
            pipe.send_bytes(END)
            continue
        send_batch(pipe, batch)



