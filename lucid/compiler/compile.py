"""From a Graph to a program: loaded from disk, or compiled by the passes of `passes/pipeline`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from lucid.compiler.plan import program_cache
from lucid.compiler.plan.executable import Executable
from lucid.compiler.runtime import threads
from lucid.ir.graph import Graph
from lucid.support.settings import setting


def write_dump(graph: Graph, folder: str, into: Mapping[int, int] | None) -> None:
    """Write every stage and kernel of a program to a folder; warn if it cannot be written."""
    from lucid.compiler.inspect.stages import dump

    try:
        dump(graph, folder, into)
    except OSError as error:
        warnings.warn(f"LUCID_DUMP: {error}", RuntimeWarning, stacklevel=2)


def load_or_compile(graph: Graph, into: Mapping[int, int] | None, budget: int | None) -> Executable:
    """Return the program of a Graph, from the disk cache of whole programs if it is there.

    Passes are imported only if it is not: they take a third of a warm process's time.
    """
    stored = setting("LUCID_CACHE_PROGRAMS")
    key = program_cache.program_key(graph, into, budget) if stored else None
    found = None if key is None else program_cache.load(key, graph)
    if found is not None:
        return found
    threads.prepare()
    from lucid.compiler.passes.pipeline import lower_graph

    executable = lower_graph(graph, into, budget).finish()
    if key is not None:
        program_cache.store(key, executable)
    return executable


def compile_graph(
    graph: Graph, into: Mapping[int, int] | None = None, budget: int | None = None
) -> Executable:
    """Compile a Graph to an Executable. LUCID_DUMP=folder writes its stages and kernels there.

    LUCID_VERIFY=1 compares its first result with the interpreter's, unless an equation is ordered:
    running it twice would send twice.
    `into` maps outputs to inputs whose memory they may overwrite; `budget` limits the arena.
    """
    folder = setting("LUCID_DUMP")
    if folder:
        write_dump(graph, folder, into)
    executable = load_or_compile(graph, into, budget)
    if not setting("LUCID_VERIFY") or any([eqn.op.ordered for eqn in graph.equations]):
        return executable
    from lucid.compiler.plan.verified import verify_first_result

    return verify_first_result(executable, graph, into)
