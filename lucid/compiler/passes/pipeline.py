"""The compiler as named stages, each a Graph that verifies, from traced to settled; then plans."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

from lucid.compiler.lowering.lower import Executable, Lowering
from lucid.compiler.passes.cse import share
from lucid.compiler.passes.expand.decompose import decompose
from lucid.compiler.passes.expand.lower_complex import pair
from lucid.compiler.passes.hoist import lift
from lucid.compiler.passes.insert_copies import settle
from lucid.compiler.passes.merge_loops import merge
from lucid.compiler.passes.recompute import recompute
from lucid.compiler.passes.simplify import simplify
from lucid.compiler.passes.sink import sink
from lucid.compiler.passes.subgraph_passes import everywhere
from lucid.ir.graph import Graph
from lucid.ir.verify import verify

STAGES = {
    "decomposed": decompose,
    "paired": pair,
    "simplified": simplify,
    "merged": merge,
    "lifted": lift,
    "shared": share,
    "sunk": sink,
    "recomputed": recompute,
    "settled": settle,
}


def stages(graph: Graph) -> dict[str, Graph]:
    """The Graph after every stage, by name."""
    out = {"traced": graph}
    for name, run in STAGES.items():
        graph = verify(everywhere(run)(graph))
        out[name] = graph
    return out


def write(graph: Graph, folder: str, into: Mapping[int, int] | None) -> None:
    """Write all that can be shown of a program; a warning where the folder does not take it."""
    from lucid.compiler.inspect.stages import dump

    try:
        dump(graph, folder, into)
    except OSError as error:
        warnings.warn(f"LUCID_DUMP: {error}", RuntimeWarning, stacklevel=2)


def compile_graph(graph: Graph, into: Mapping[int, int] | None = None) -> Executable:
    """The Executable of a Graph. LUCID_DUMP=folder writes its stages and kernels there.

    `into` names outputs that may be computed in the memory of inputs, which are lost by that.
    """
    folder = os.environ.get("LUCID_DUMP")
    if folder:
        write(graph, folder, into)
    lowering = Lowering(stages(graph)["settled"], into)
    lowering.lay_out()
    return lowering.finish()
