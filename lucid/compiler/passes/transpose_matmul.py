"""transpose_matmul: Graph -> Graph that computes products transposed where they are read so.

The gradient of a weight in `x @ w.T` is (xᵀ ct)ᵀ. Computed as ctᵀ x it has the layout that its
reader needs and no copy is made; BLAS reads its operands either way.
"""

from __future__ import annotations

from lucid.compiler.passes.rules.simplify_matmul import swap_last_axes
from lucid.ir.graph import Atom, Equation, Graph, Var
from lucid.ir.rewrite import Rewriter, rewrite
from lucid.ops.linalg.contraction import Matmul
from lucid.ops.shape.movement import Transpose


def transpose_matmul(graph: Graph) -> Graph:
    """(x @ y)ᵀ = yᵀ @ xᵀ, where nothing else reads x @ y and a reader needs that layout."""
    readers: dict[Var, list[Equation | None]] = {}
    for eqn in graph.equations:
        for x in eqn.inputs:
            if isinstance(x, Var):
                readers.setdefault(x, []).append(eqn)
    for x in graph.outputs:
        if isinstance(x, Var):
            readers.setdefault(x, []).append(None)

    def rule(w: Rewriter, eqn: Equation) -> Var | None:
        (out,) = eqn.outputs if len(eqn.outputs) == 1 else (None,)
        if out is None or out.type.ndim < 2 or eqn.op != Transpose(swap_last_axes(out.type.ndim)):
            return None
        product = w.producer(eqn.inputs[0])
        if product is None or not isinstance(product.op, Matmul):
            return None
        if len(readers.get(product.outputs[0], [])) != 1:
            return None
        if not reads_elementwise(readers.get(out, [])):
            return None
        operands = [x for x in product.inputs if isinstance(x, Var) and x.type.ndim >= 2]
        if len(operands) != 2:
            return None
        x, y = (transpose(w, v) for v in operands)
        return w.make(product.op, y, x)

    return rewrite(graph, rule) if any(isinstance(e.op, Matmul) for e in graph.equations) else graph


def transpose(w: Rewriter, x: Var) -> Atom:
    """The transpose of `x`, which cancels a transpose that produced `x`."""
    order = Transpose(swap_last_axes(x.type.ndim))
    made = w.producer(x)
    return made.inputs[0] if made is not None and made.op == order else w.make(order, x)


def reads_elementwise(readers: list[Equation | None]) -> bool:
    """True if a reader traverses elements in order; products and views accept any layout."""
    return any(
        eqn is None or not (eqn.op.aliases or eqn.op.operand_layout == "matrix") for eqn in readers
    )
