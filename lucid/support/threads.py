"""Work on threads that no interrupt reaches.

Ctrl-C raises an exception between any two instructions of the main thread, so also within code of
others that does not survive it. llvmlite is such code: an interrupt within it may leave the lock
around LLVM locked, and then no other thread ever compiles, or free something twice, which ends the
process (2 locks and a crash in some 1,000 interrupts).
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def on_threads(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return `function(item)` for each item, called on as many threads as there are processors.

    The first items are begun first. After an error or an interrupt no further item is begun, and
    those that were are waited for. A thread other than the main one calls a single item itself.
    """
    if len(items) == 1 and threading.get_ident() != threading.main_thread().ident:
        return [function(items[0])]
    results: dict[int, R] = {}
    errors: list[BaseException] = []
    rest = iter(range(len(items)))
    done = _thread.allocate_lock()

    def work(finished: _thread.LockType) -> None:
        try:
            for i in rest:
                results[i] = function(items[i])
        except BaseException as error:
            import traceback

            traceback.clear_frames(error.__traceback__)  # what they hold is freed by this thread
            errors.append(error)
            list(rest)
        finally:
            finished.release()

    def start_and_wait() -> None:
        # Not an executor of Python's, whose lock a thread that forks holds while it waits for this.
        # Neither `join` nor a Thread that takes `daemon` from its parent: they would add this
        # thread to `threading.enumerate()`, where Python 3.11 leaves it when it has ended.
        locks = [_thread.allocate_lock() for _ in range(min(len(items), cores))]
        for finished in locks:
            finished.acquire()
            threading.Thread(target=work, args=(finished,), daemon=False).start()
        for finished in locks:
            finished.acquire()
        done.release()

    cores = os.cpu_count() or 1
    done.acquire()
    begun: list[int] = []
    try:
        # Starting and joining threads does not survive interrupts either: it is done by a thread
        # that one call in C starts, and one lock of C says when that is done.
        begun.extend(map(_thread.start_new_thread, (start_and_wait,), ((),)))
        with done:
            pass
    finally:
        list(rest)
        if begun:
            with done:
                pass
    if errors:
        raise errors[0]
    return [results[i] for i in range(len(items))]
