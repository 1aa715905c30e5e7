"""rolled_step: the program of a step whose tape is the unrolled steps of a Python loop.

The equations are rerolled to a Scan (`compiler/passes/loops/reroll.py`), and that is
differentiated: the program of thousands of equations is that of one step, forward and reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.compiler.passes.fold_constants import fold_constants
from lucid.compiler.passes.loops.reroll import reroll
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.tape.tiering import Tiering
from lucid.transforms.vjp import vjp

MIN_SHARE = 4  # one of so many equations may be left outside of the loops


class RolledProgram:
    """The program of a rerolled step: it takes the arrays and the seeds of the straight one."""

    def __init__(self, program: Any, inputs: int, constants: Sequence[np.ndarray]) -> None:
        self.program, self.inputs, self.constants = program, inputs, list(constants)

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self.program([*values[: self.inputs], *self.constants])  # type: ignore[no-any-return]


def rolls(sequence: Any) -> bool:
    """True if most of a sequence is loops."""
    graph = forward_graph(sequence, ())
    left = [eqn for eqn in reroll(graph).equations if not is_number(eqn)]
    return len(left) * MIN_SHARE <= len(graph.equations)


def is_number(eqn: Equation) -> bool:
    """True for a number of one step, which is in an array of all steps once that is folded."""
    return all([x.__class__ is Literal for x in eqn.inputs]) and eqn.outputs[0].type.size == 1


def forward_graph(sequence: Any, kept: Sequence[tuple[int, int]]) -> Graph:
    """Return the equations of a sequence, with its root and the values in `kept` as outputs."""
    root = sequence.vars[sequence.cut.outputs[0]]
    starts = tuple([sequence.vars[slot] for slot in sequence.inputs])
    outputs = (root, *[sequence.var(*place) for place in kept])
    return Graph("step", starts, sequence.graph.equations, outputs)


def rolled_program(sequence: Any, kept: Sequence[tuple[int, int]]) -> RolledProgram | None:
    """Return the program that gives the values in `kept` and the derivatives, or None."""
    forward = reroll(forward_graph(sequence, kept))
    root = Graph("step", forward.inputs, forward.equations, forward.outputs[:1])
    derivative = vjp(root, [sequence.vars[slot] for slot in sequence.cut.inputs])
    straight = sequence.prepared.derivative
    if derivative.nonzero != straight.nonzero or derivative.seeds != straight.seeds:
        return None
    n = len(derivative.residuals)
    extra = [Var(var.type) for var in derivative.graph.inputs[n:]]
    equations = list(forward.equations)
    ends = append_graph(equations, derivative.graph, [*derivative.residuals, *extra])
    outputs = (*forward.outputs[1:], *ends)
    given = dict(zip(extra[len(derivative.seeds) :], derivative.constants))
    joined = Graph("step", (*forward.inputs, *extra), tuple(equations), outputs)
    graph, constants = fold_constants(joined, given)
    assert Tiering.compile is not None
    program = Tiering.compile(graph)
    return RolledProgram(program, len(forward.inputs) + len(derivative.seeds), constants)


def append_graph(equations: list[Equation], graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Append the equations of a Graph on these inputs; return its outputs."""
    env: dict[Any, Any] = dict(zip(graph.inputs, inputs))
    for eqn in graph.equations:
        outputs = tuple([Var(y.type) for y in eqn.outputs])
        env.update(zip(eqn.outputs, outputs))
        operands = tuple([x if isinstance(x, Literal) else env[x] for x in eqn.inputs])
        equations.append(Equation(eqn.op, operands, outputs, eqn.source))
    return [x if isinstance(x, Literal) else env[x] for x in graph.outputs]
