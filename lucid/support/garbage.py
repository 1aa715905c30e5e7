"""gc_paused: a block in which Python's garbage collector does not run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused(imports: bool = False) -> Iterator[None]:
    """Disable garbage collection: the objects made here all survive, so it only costs time.

    After imports all objects count as old, as if collections had gone over them twice. A block that
    comes again and again must not do that: garbage would never be young enough to be found.
    """
    enabled = gc.isenabled()
    try:  # an interrupt anywhere from here on ends in `finally`
        gc.disable()
        yield
        if imports and enabled and not gc.get_freeze_count():  # what a program has frozen stays so
            gc.freeze()
            gc.unfreeze()
    finally:
        if enabled:
            gc.enable()
