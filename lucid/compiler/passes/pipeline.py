"""The passes of the compiler in order, each a named stage with a verified Graph; then lowering."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from lucid.compiler.lowering.lower import Executable, GraphLowering
from lucid.compiler.passes.cse import cse
from lucid.compiler.passes.expand.decompose import decompose
from lucid.compiler.passes.expand.lower_complex import lower_complex
from lucid.compiler.passes.hoist import hoist
from lucid.compiler.passes.insert_copies import insert_copies
from lucid.compiler.passes.merge_loops import merge_loops
from lucid.compiler.passes.recompute import recompute
from lucid.compiler.passes.recompute_budget import fit_budget
from lucid.compiler.passes.simplify import simplify
from lucid.compiler.passes.sink import sink
from lucid.compiler.passes.subgraph_passes import recursive
from lucid.ir.graph import Graph
from lucid.ir.verify import verify
from lucid.support.settings import setting

STAGES = {
    "decomposed": decompose,
    "complex_lowered": lower_complex,
    "simplified": simplify,
    "loops_merged": merge_loops,
    "hoisted": hoist,
    "cse": cse,
    "sunk": sink,
    "recomputed": recompute,
    "copies_inserted": insert_copies,
}


def stages(graph: Graph) -> dict[str, Graph]:
    """The Graph after each stage, by the name of the stage."""
    out = {"traced": graph}
    for name, run in STAGES.items():
        graph = verify(recursive(run)(graph))
        out[name] = graph
    return out


def write_dump(graph: Graph, folder: str, into: Mapping[int, int] | None) -> None:
    """Write every stage and kernel of a program to a folder; warn if it cannot be written."""
    from lucid.compiler.inspect.stages import dump

    try:
        dump(graph, folder, into)
    except OSError as error:
        warnings.warn(f"LUCID_DUMP: {error}", RuntimeWarning, stacklevel=2)


def lower_graph(
    graph: Graph, into: Mapping[int, int] | None = None, budget: int | None = None
) -> GraphLowering:
    """Return the layout of a Graph's program, with an arena of at most `budget` bytes."""
    return fit_budget(stages(graph)["copies_inserted"], into, budget)


def load_or_compile(graph: Graph, into: Mapping[int, int] | None, budget: int | None) -> Executable:
    """Return the program of a Graph, from the disk cache of whole programs if it is there."""
    from lucid.compiler.plan import program_cache

    stored = setting("LUCID_CACHE_PROGRAMS")
    key = program_cache.program_key(graph, into, budget) if stored else None
    found = None if key is None else program_cache.load(key, graph)
    if found is not None:
        return found
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
