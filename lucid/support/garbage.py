"""gc_paused: a block in which Python's garbage collector does not run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable garbage collection: the objects made here all survive, so it only costs time."""
    enabled = gc.isenabled()
    try:  # an interrupt anywhere from here on ends in `finally`
        gc.disable()
        yield
    finally:
        if enabled:
            gc.enable()
