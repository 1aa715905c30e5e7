"""Interrupts: Ctrl-C for plans with one very long instruction, such as the sort of a long row.

The calling thread checks for signals between chunks of work (`native/plan.ll`). If a chunk may take
too long for that, another thread runs the plan, and the main thread, which receives the signals,
waits for it. After Ctrl-C the plan runs to its end in the background; only the exit of the process
waits for it, since libraries are unloaded then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Run = Callable[..., Any]


def interruptible(run: Run, overwritten: Sequence[int]) -> Run:
    """Wrap `run` so that Ctrl-C ends the wait for it.

    overwritten    arguments that it writes: it gets copies, since it may continue after Ctrl-C
    """

    def call(*arrays: np.ndarray) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return run(*arrays)
        given = list(arrays)
        for i in overwritten:
            if i < len(given) and isinstance(given[i], np.ndarray):
                given[i] = given[i].copy()
        results = run_in_thread(run, given)
        if results is None:
            return None
        places = {id(given[i]): arrays[i] for i in overwritten}
        for i in overwritten:
            arrays[i][...] = given[i]
        return tuple([places.get(id(y), y) for y in results])

    return call


def run_in_thread(run: Run, given: Sequence[np.ndarray]) -> Any:
    """Return the result of `run`, called in a new thread."""
    found: list[Any] = []
    done = threading.Event()

    def work() -> None:
        try:
            found.append(run(*given))
        except BaseException as error:
            found.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name="lucid-plan").start()
    done.wait()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]
