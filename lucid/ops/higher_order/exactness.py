"""Which values differ in their last bit when other code recomputes them, and what they decide.

NumPy and compiled code give the same bits for data movement, integers, comparisons and + - * /.
They round sums and functions such as `exp` differently. A derivative that recomputes part of a
program, and reads the rest from memory, must not compare the one with the other.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from lucid.ir.graph import Equation, Graph


def is_exact(eqn: Equation) -> bool:
    """True if NumPy and compiled code give the same bits for an equation.

    For products of complex numbers they do not: how often NumPy rounds depends on its loop.
    """
    op, dtypes = eqn.op, [x.type.dtype for x in (*eqn.inputs, *eqn.outputs)]
    kinds = {dtype.kind for dtype in dtypes}
    if kinds.isdisjoint("fc") or op.moves or op.aliases or op.fills or op.forwards:
        return True
    if op.exact:
        return "c" not in kinds or op.partwise
    return bool(op.scalar) and eqn.outputs[0].type.dtype.kind == "b"


def decides(eqn: Equation) -> bool:
    """True for a comparison, a rounding or a search: the last bit of a float may change it."""
    if not any(x.type.dtype.kind in "fc" for x in eqn.inputs):
        return False
    return eqn.op.jumps or any(y.type.dtype.kind not in "fc" for y in eqn.outputs)


def decided_by(graph: Graph) -> set[Any]:
    """Return the Vars of a Graph on which its comparisons depend."""
    found: set[Any] = set()
    for eqn in reversed(graph.equations):
        if decides(eqn) or not found.isdisjoint(eqn.outputs):
            found.update(eqn.inputs)
    return found


def inexact(graph: Graph, known: Container[Any]) -> set[Any]:
    """Return the Vars whose bits may differ when recomputed from the inputs and `known` Vars."""
    found: set[Any] = set()
    for eqn in graph.equations:
        if not is_exact(eqn) or not found.isdisjoint(eqn.inputs):
            found.update(y for y in eqn.outputs if y not in known)
    return found
