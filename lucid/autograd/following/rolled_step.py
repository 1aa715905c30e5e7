"""rolled_step: the Graph of a step whose tape is the unrolled steps of a Python loop.

The equations are rerolled to a Scan (`compiler/passes/loops/reroll.py`), and that is
differentiated: the program of thousands of equations is that of one step, forward and reverse.
Arrays from outside that are read one at every step (the inputs of a recurrent cell) are joined to
one, of which the Scan reads a slice at every step.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from lucid.compiler.passes.fold_constants import fold_constants
from lucid.compiler.passes.loops import MIN_EQUATIONS
from lucid.compiler.passes.loops.reroll import MIN_STEPS, reroll
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.rewrite import Rewriter, dce, inline_regions
from lucid.ops.shape.concatenate import Concatenate
from lucid.ops.shape.movement import Reshape, Slice
from lucid.transforms.vjp import vjp

MIN_SHARE = 4  # one of so many equations may be left outside of the loops
MAX_JOINED = 1 << 20  # elements of arrays that are copied to be read by a loop


def rolls(graph: Graph, wrt: Collection[Var]) -> bool:
    """True if most of a step is loops.

    wrt    the inputs that it is differentiated with respect to
    """
    straight = inline_regions(graph)
    if len(straight.equations) < MIN_EQUATIONS:
        return False
    left = [eqn for eqn in rolled(graph, wrt).equations if not is_number(eqn)]
    return len(left) * MIN_SHARE <= len(straight.equations)


def is_number(eqn: Equation) -> bool:
    """True for a number of one step, which is in an array of all steps once that is folded."""
    return all([x.__class__ is Literal for x in eqn.inputs]) and eqn.outputs[0].type.size == 1


def rolled(graph: Graph, wrt: Collection[Var]) -> Graph:
    """Return a Graph with its loops as Scans."""
    straight = inline_regions(graph)
    joined, parts = join_inputs(straight, wrt)
    found = reroll(joined)
    if found is joined:
        return straight
    outputs = tuple([parts.get(x, x) for x in found.outputs])
    equations = [
        Equation(op, tuple([parts.get(x, x) for x in inputs]), outs, source)
        for op, inputs, outs, source in found.equations
    ]
    return dce(Graph(found.name, found.inputs, tuple(equations), outputs))


def join_inputs(graph: Graph, wrt: Collection[Var]) -> tuple[Graph, dict[Any, Var]]:
    """Return a Graph that reads slices of joined inputs, and which input is which slice.

    Inputs that many equations read one of, in this order, are joined if their types are the same.
    """
    read = dict.fromkeys([x for eqn in graph.equations for x in eqn.inputs])
    inputs = set(graph.inputs).difference(wrt)
    groups: dict[Any, list[Var]] = {}
    for x in read:
        if x in inputs:
            groups.setdefault(x.type, []).append(x)  # type: ignore[arg-type]
    writer = Rewriter()
    slices: dict[Any, Var] = {}
    for type, group in groups.items():
        n = len(group)
        if n < MIN_STEPS or n * type.size > MAX_JOINED:
            continue
        rows = [x if type.shape else writer.make(Reshape((1,)), x) for x in group]
        all_rows = writer.make(Concatenate(0), *rows)
        table = writer.make(Reshape((n, *type.shape)), all_rows)
        zeros, ones = (0,) * len(type.shape), (1,) * (1 + len(type.shape))
        for i, x in enumerate(group):
            each = Slice((i, *zeros), (i + 1, *type.shape), ones, (0,))
            slices[x] = writer.make(each, table)
    for op, operands, outputs, source in graph.equations:
        operands = tuple([slices.get(x, x) for x in operands])
        writer.add(Equation(op, operands, outputs, source))
    joined = Graph(graph.name, graph.inputs, tuple(writer.equations), graph.outputs)
    return joined, {y: x for x, y in slices.items()}


def rolled_graph(
    forward: Graph, wrt: Sequence[Var], straight: Any
) -> tuple[Graph, list[np.ndarray]] | None:
    """Return the Graph of a step with its loops and their derivative, and its last operands.

    forward     what the step computes: its root, and values to keep
    straight    the derivative of the root, as it would be without loops

    It takes the inputs of the step, the seeds and the constants that are returned, and gives what
    is kept, and the derivatives. None if the derivative is another one.
    """
    forward = rolled(forward, wrt)
    root = Graph("step", forward.inputs, forward.equations, forward.outputs[:1])
    derivative = vjp(root, wrt)
    if derivative.nonzero != straight.nonzero or derivative.seeds != straight.seeds:
        return None
    n = len(derivative.residuals)
    extra = [Var(var.type) for var in derivative.graph.inputs[n:]]
    equations = list(forward.equations)
    ends = append_graph(equations, derivative.graph, [*derivative.residuals, *extra])
    outputs = (*forward.outputs[1:], *ends)
    given = dict(zip(extra[len(derivative.seeds) :], derivative.constants))
    joined = Graph("step", (*forward.inputs, *extra), tuple(equations), outputs)
    return fold_constants(joined, given)


def append_graph(equations: list[Equation], graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Append the equations of a Graph on these inputs; return its outputs."""
    env: dict[Any, Any] = dict(zip(graph.inputs, inputs))
    for eqn in graph.equations:
        outputs = tuple([Var(y.type) for y in eqn.outputs])
        env.update(zip(eqn.outputs, outputs))
        operands = tuple([x if isinstance(x, Literal) else env[x] for x in eqn.inputs])
        equations.append(Equation(eqn.op, operands, outputs, eqn.source))
    return [x if isinstance(x, Literal) else env[x] for x in graph.outputs]
