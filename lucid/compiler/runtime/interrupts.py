"""patience: plans with an instruction that cannot be interrupted, such as the sort of a long row.

The calling thread looks for signals between chunks of work (`native/plan.ll`). Where a chunk may
take longer than a person waits for Ctrl-C, another thread runs the plan, and the main thread, to
which Python gives signals, waits for it. After Ctrl-C the plan runs to its end, unheard; only the
end of the process waits for it, since libraries are torn down then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LONG_NS = 50_000_000  # estimated, of one chunk

Run = Callable[..., Any]


def interruptible(run: Run, overwritten: Sequence[int]) -> Run:
    """`run`, such that Ctrl-C ends the wait for it.

    overwritten    arguments that it writes: it gets copies, since it may go on after Ctrl-C
    """

    def call(*arrays: np.ndarray) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return run(*arrays)
        given = list(arrays)
        for i in overwritten:
            if i < len(given) and isinstance(given[i], np.ndarray):
                given[i] = given[i].copy()
        results = waited_for(run, given)
        if results is None:
            return None
        places = {id(given[i]): arrays[i] for i in overwritten}
        for i in overwritten:
            arrays[i][...] = given[i]
        return tuple([places.get(id(y), y) for y in results])

    return call


def waited_for(run: Run, given: Sequence[np.ndarray]) -> Any:
    """The result of `run` in a thread of its own."""
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
