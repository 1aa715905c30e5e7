"""insert_copies: Graph -> Graph with a copy wherever a memory layout cannot be read directly.

Afterward every view is a strided view of its operand's memory, every operand of a matrix product
has contiguous rows or columns, padded operands have contiguous rows, and every output has memory of
its own.
"""

from __future__ import annotations

from lucid.compiler.passes.transpose_matmul import transpose_matmul
from lucid.compiler.plan.arrays import Array
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.types import SHORT_NAMES
from lucid.ops.shape.copying import COPY
from lucid.ops.shape.full_and_iota import Full


def insert_copies(graph: Graph) -> Graph:
    """Transpose products where that saves a copy, then insert the copies that remain."""
    return CopyInserter(transpose_matmul(graph)).run()


class CopyInserter:
    """The equations written so far, and the memory layout of each value."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.equations: list[Equation] = []
        self.layouts = {var: Array.of(None, var.type) for var in graph.inputs}
        self.computed: set[Var] = set()

    def run(self) -> Graph:
        for eqn in self.graph.equations:
            if not eqn.op.aliases:
                self.compute(eqn)
            elif isinstance(eqn.inputs[0], Literal):
                full = Full(eqn.outputs[0].type.shape, SHORT_NAMES[eqn.inputs[0].dtype])
                self.compute(Equation(full, eqn.inputs[:1], eqn.outputs, eqn.source))
            else:
                self.view(eqn, eqn.inputs[0])
        outputs = tuple([self.output(x) for x in self.graph.outputs])
        return Graph(self.graph.name, self.graph.inputs, tuple(self.equations), outputs)

    def compute(self, eqn: Equation) -> None:
        """Write an equation whose results get memory of their own."""
        if eqn.op.operand_layout != "any":
            fit = {"matrix": self.blas_operand, "dense": self.dense, "rows": self.adjacent_rows}
            inputs = [fit[eqn.op.operand_layout](x, eqn) for x in eqn.inputs]
            eqn = Equation(eqn.op, tuple(inputs), eqn.outputs, eqn.source)
        self.equations.append(eqn)
        for var in eqn.outputs:
            self.layouts[var] = Array.of(None, var.type)
            self.computed.add(var)

    def view(self, eqn: Equation, x: Var) -> None:
        """Write a view, after a copy of its operand if no strides describe it."""
        found = self.layouts[x].view(eqn.op)
        if found is None:
            x = self.copy(x, eqn)
            found = self.layouts[x].view(eqn.op)
            assert found is not None, "dense memory has strides for every view"
        self.layouts[eqn.outputs[0]] = found
        self.equations.append(Equation(eqn.op, (x, *eqn.inputs[1:]), eqn.outputs, eqn.source))

    def blas_operand(self, x: Atom, eqn: Equation) -> Atom:
        """An operand of a product, copied if BLAS cannot read its layout."""
        if isinstance(x, Literal) or has_adjacent_rows(self.layouts[x]):
            return x
        return self.copy(x, eqn)

    def dense(self, x: Atom, eqn: Equation) -> Atom:
        """An operand of a branch or a loop, copied if it is not dense."""
        if isinstance(x, Literal):
            out = Var(x.type)
            self.compute(Equation(Full((), SHORT_NAMES[x.dtype]), (x,), (out,), eqn.source))
            return out
        return x if self.layouts[x].is_dense else self.copy(x, eqn)

    def adjacent_rows(self, x: Atom, eqn: Equation) -> Atom:
        """An operand of a pad, copied if masked loads could not be vectorized."""
        if isinstance(x, Literal) or not x.type.ndim:
            return x
        longer = eqn.outputs[0].type.shape[-1] > x.type.shape[-1]
        return self.copy(x, eqn) if longer and self.layouts[x].strides[-1] > 1 else x

    def copy(self, x: Var, eqn: Equation | None) -> Var:
        out = Var(x.type)
        self.compute(Equation(COPY, (x,), (out,), None if eqn is None else eqn.source))
        return out

    def output(self, x: Atom) -> Var:
        """A Var whose memory belongs to this output alone."""
        if isinstance(x, Literal):
            out = Var(x.type)
            self.compute(Equation(Full((), SHORT_NAMES[x.dtype]), (x,), (out,)))
        else:
            out = x if x in self.computed else self.copy(x, None)
        self.computed.remove(out)
        return out


def has_adjacent_rows(array: Array) -> bool:
    """True if BLAS can read the matrices in the last two axes, as they are or transposed."""
    if len(array.shape) < 2:
        return all(s == 1 or n == 1 for n, s in zip(array.shape, array.strides))
    (m, n), (down, across) = array.shape[-2:], array.strides[-2:]
    row_major = (across == 1 or n == 1) and (down >= max(n, 1) or m == 1)
    column_major = (down == 1 or m == 1) and (across >= max(m, 1) or n == 1)
    return row_major or column_major
