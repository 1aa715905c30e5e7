"""The tape: eager operations write Nodes, and Graphs are cut from them.

`lucid.ir.trace`, `replay`, `bind`, `Node` and `Graph.between` are defined here and added to
`lucid.ir` on import, because the IR imports nothing above it.
"""

from lucid import ir
from lucid.tape.bind import bind
from lucid.tape.cut import between
from lucid.tape.node import Node
from lucid.tape.trace import replay, trace

ir.Node, ir.bind, ir.replay, ir.trace = Node, bind, replay, trace  # type: ignore[attr-defined]
ir.Graph.between = staticmethod(between)  # type: ignore[attr-defined]
