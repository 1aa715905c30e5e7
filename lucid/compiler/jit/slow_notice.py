"""A line on stderr, once per process, if a compilation takes long: what is compiled, how large."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lucid.ir.graph import Graph

AFTER = 2.0  # seconds
MIN_EQUATIONS = 30  # smaller Graphs compile in well under a second


class Notice:
    """Whether the line was written."""

    written = False


@contextmanager
def slow_notice(graph: Graph) -> Iterator[None]:
    """Report on stderr what the block compiles, if it takes more than two seconds."""
    if Notice.written or len(graph.equations) < MIN_EQUATIONS:
        yield
        return
    timer = threading.Timer(AFTER, _write, [graph.name, len(graph.equations)])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _write(name: str, equations: int) -> None:
    if not Notice.written and sys.stderr is not None:
        Notice.written = True
        print(
            f"lucid: compiling {name!r} ({equations} operations) to native code; "
            "kernels are cached on disk, so the next run starts faster",
            file=sys.stderr,
            flush=True,
        )
