"""A line on stderr, once per process, if a compilation takes long: what is compiled, how large."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lucid.ir.graph import Graph
from lucid.ir.primitive import graphs_of

AFTER = 2.0  # seconds
MIN_EQUATIONS = 30  # smaller Graphs compile in well under a second


class Notice:
    """Whether the line was written."""

    written = False


def count_equations(graph: Graph) -> int:
    """Return the number of equations of a Graph, including those of its branches and loops."""
    inner = [g for eqn in graph.equations if eqn.op.holds_graphs for g in graphs_of(eqn.op)]
    return len(graph.equations) + sum(map(count_equations, inner))


@contextmanager
def slow_notice(graph: Graph) -> Iterator[None]:
    """Report on stderr what the block compiles, if it takes more than two seconds."""
    equations = 0 if Notice.written else count_equations(graph)
    if equations < MIN_EQUATIONS:
        yield
        return
    timer = threading.Timer(AFTER, _write, [graph.name, equations])
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
