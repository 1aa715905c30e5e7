"""The tape: eager operations write Nodes, and Graphs are cut from them.

`Graph.between` is defined here and added to its class on import, because the IR imports nothing
above it.
"""

from lucid.ir.graph import Graph
from lucid.tape.cut import between

Graph.between = staticmethod(between)  # type: ignore[attr-defined]
