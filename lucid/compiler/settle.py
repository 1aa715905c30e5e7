"""settle: Graph -> Graph with a copy wherever memory cannot be read as it lies.

After it every view can be taken of the memory of what it shows, every operand of a matrix product has rows
or columns of adjacent elements, and every output is computed into memory of its own.
"""

from __future__ import annotations

from lucid.compiler.arrays import Array
from lucid.compiler.fuse import VIEWS
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.types import SHORT_NAMES
from lucid.ops.contraction import Matmul
from lucid.ops.copying import COPY
from lucid.ops.creation import Full


def settle(graph: Graph) -> Graph:
    layouts: dict[Var, Array] = {var: Array.of(None, var.type) for var in graph.inputs}
    renamed: dict[Var, Var] = {}
    equations: list[Equation] = []

    def copied(x: Var, eqn: Equation | None) -> Var:
        out = Var(x.type)
        equations.append(Equation(COPY, (x,), (out,), None if eqn is None else eqn.source))
        layouts[out] = Array.of(None, out.type)
        return out

    computed: set[Var] = set()
    for eqn in graph.equations:
        inputs = tuple(renamed.get(x, x) if isinstance(x, Var) else x for x in eqn.inputs)
        if isinstance(eqn.op, VIEWS) and isinstance(inputs[0], Var):
            found = layouts[inputs[0]].view(eqn.op)
            if found is None:
                inputs = (copied(inputs[0], eqn), *inputs[1:])
                found = layouts[inputs[0]].view(eqn.op)
            layouts[eqn.outputs[0]] = found  # type: ignore[assignment]
        else:
            if isinstance(eqn.op, Matmul):
                inputs = tuple(
                    x if isinstance(x, Literal) or has_adjacent_rows(layouts[x]) else copied(x, eqn)
                    for x in inputs
                )
            for var in eqn.outputs:
                layouts[var] = Array.of(None, var.type)
                computed.add(var)
        equations.append(Equation(eqn.op, inputs, eqn.outputs, eqn.source))
    outputs: list[Var] = []
    for x in graph.outputs:
        if isinstance(x, Literal):
            out = Var(x.type)
            equations.append(Equation(Full((), SHORT_NAMES[x.dtype]), (x,), (out,)))
            outputs.append(out)
        else:
            x = renamed.get(x, x)
            outputs.append(x if x in computed and x not in outputs else copied(x, None))
    return Graph(graph.name, graph.inputs, tuple(equations), tuple(outputs))


def has_adjacent_rows(array: Array) -> bool:
    """Can BLAS read the matrices in the last two axes, as they are or transposed?"""
    if len(array.shape) < 2:
        return all(s == 1 or n == 1 for n, s in zip(array.shape, array.strides))
    (m, n), (down, across) = array.shape[-2:], array.strides[-2:]
    row_major = (across == 1 or n == 1) and (down >= max(n, 1) or m == 1)
    column_major = (down == 1 or m == 1) and (across >= max(m, 1) or n == 1)
    return row_major or column_major
