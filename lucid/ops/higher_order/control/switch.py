"""Switch: one of several Graphs, selected by an index at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.graph import Atom, Equation, Graph, Var
from lucid.ir.interpret import program_of
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.higher_order.control.subgraphs import (
    BodyDerivative,
    Writer,
    ancestors,
    batched_graph,
    batched_outputs,
    body_derivative,
    copy_aliased,
)
from lucid.tape.bind import bind
from lucid.tape.node import wrap


class Switch(Primitive):
    """Operands: the index of the branch (clamped; a bool is 0 or 1), then those of every branch.

    A derivative is again a Switch. In reverse mode each forward branch returns the residuals of its
    own backward branch, and zeros for those of the others.
    """

    branches: tuple[Graph, ...]
    lowering = "lucid.compiler.lowering.loops.control_flow:SwitchLowering"
    control_flow = True
    operand_layout = "dense"

    def body_operands(self, xs: Sequence[Any]) -> list[tuple[Graph, list[Any]]]:
        return [(branch, list(xs[1:])) for branch in self.branches]

    def infer(self, chosen: Type, *xs: Type) -> tuple[Type, ...]:
        if chosen.shape or chosen.dtype.kind not in "biu":
            raise DTypeError(f"switch: the branch index must be one integer or bool, not {chosen}")
        for branch in self.branches:
            if branch.in_types != xs:
                raise ShapeError(f"switch: a branch takes {branch.in_types}, not {xs}")
            if branch.out_types != self.branches[0].out_types:
                raise ShapeError(
                    f"switch: branches return {self.branches[0].out_types} and {branch.out_types}; "
                    "the types must agree"
                )
        return self.branches[0].out_types

    def eval(self, chosen: np.ndarray, *xs: np.ndarray) -> tuple[Any, ...]:
        number = min(max(int(chosen), 0), len(self.branches) - 1)
        return tuple(copy_aliased(program_of(self.branches[number])(xs), xs))

    def jvp(self, ts: Any, ys: Any, chosen: Any, *xs: Any) -> tuple[Any, ...]:
        seeded = [t is not None for t in ts[1:]]
        pushed = [body_derivative("jvp", b, b.inputs, seeded) for b in self.branches]
        parts = [
            BranchDerivative(
                b.name, [*b.equations, *d.equations], [*b.inputs, *d.used_seeds()], d, b.outputs
            )
            for b, d in zip(self.branches, pushed)
        ]
        return tuple(bind_derivatives(parts, chosen, [*xs, *[t for t in ts if t is not None]]))

    def vjp(self, cts: Any, ys: Any, chosen: Any, *xs: Any) -> tuple[Any, ...]:
        seeded = [ct is not None for ct in cts]
        pulled = [body_derivative("vjp", b, b.inputs, seeded) for b in self.branches]
        op, slots, kept = self.with_residuals(pulled)
        saved = bind(op, chosen, *xs)[len(ys) :] if slots else ()
        parts = [
            BranchDerivative(
                b.name,
                d.equations,
                [*b.inputs, *[mine.get(i) or Var(t) for i, t in enumerate(slots)], *d.used_seeds()],
                d,
                b.inputs,
            )
            for b, d, mine in zip(self.branches, pulled, kept)
        ]
        given = [*xs, *saved, *[ct for ct in cts if ct is not None]]
        return (None, *bind_derivatives(parts, chosen, given))

    def with_residuals(
        self, pulled: list[BodyDerivative]
    ) -> tuple[Switch, list[Type], list[dict[int, Var]]]:
        """Return a Switch that also returns the residuals of the backward branches.

        With it come the types of the residuals, and for each branch the Var in each position.
        """
        slots: list[Type] = []
        kept: list[dict[int, Var]] = []
        for branch, d in zip(self.branches, pulled):
            mine: dict[int, Var] = {}
            for var in d.residuals:
                if var in branch.inputs:
                    continue
                free = [i for i, t in enumerate(slots) if t == var.type and i not in mine]
                if not free:
                    slots.append(var.type)
                mine[free[0] if free else len(slots) - 1] = var
            kept.append(mine)
        branches = []
        for branch, mine in zip(self.branches, kept):
            writer = Writer(branch.equations)
            more = [mine.get(i) or writer.zeros(t) for i, t in enumerate(slots)]
            branches.append(writer.graph(branch.name, branch.inputs, [*branch.outputs, *more]))
        return Switch(tuple(branches)), slots, kept

    def batch(self, n: int, batched: tuple[bool, ...], chosen: Any, *xs: Any) -> tuple[Any, ...]:
        if batched[0]:
            return self.select_per_example(n, batched[1:], chosen, xs)
        from lucid.transforms.vmap import Batched

        free = [False] * len(self.branches[0].outputs)
        found = [batched_graph(b, n, batched[1:], free).batched for b in self.branches]
        differs = [any(marks) for marks in zip(*found)]
        branches = [batched_graph(b, n, batched[1:], differs).graph for b in self.branches]
        outs = bind(Switch(tuple(branches)), chosen, *xs)
        return tuple([Batched(y, b) for y, b in zip(outs, differs)])

    def select_per_example(self, n: int, batched: Any, chosen: Any, xs: Any) -> tuple[Any, ...]:
        """Run every branch for all examples and select the branch of each example."""
        from lucid.ops.elementwise.conditional import where

        outs = batched_outputs(self.branches[0], n, batched, xs)
        last = len(self.branches) - 1
        for number, branch in enumerate(self.branches[1:], 1):
            here = (
                chosen
                if chosen.dtype.kind == "b"
                else (chosen >= number if number == last else chosen == number)
            )
            others = batched_outputs(branch, n, batched, xs)
            outs = [
                where(here.reshape((n, *[1] * (y.ndim - 1))), y, before)
                for y, before in zip(others, outs)
            ]
        return tuple(outs)

    def prune_outputs(
        self, n_operands: int, used: Sequence[bool]
    ) -> tuple[Primitive, list[int], list[int]] | None:
        """Return the Switch without unused outputs: (primitive, its operands, its outputs)."""
        outputs = [i for i, u in enumerate(used) if u]
        needed: set[int] = set()
        for b in self.branches:
            found = ancestors(b, [b.outputs[i] for i in outputs])
            needed |= {i for i, x in enumerate(b.inputs) if x in found}
        kept = sorted(needed)
        if len(outputs) == len(used) and len(kept) == len(self.branches[0].inputs):
            return None
        branches = []
        for b in self.branches:
            inputs = [b.inputs[i] for i in kept]
            branches.append(
                Writer(b.equations).graph(b.name, inputs, [b.outputs[i] for i in outputs])
            )
        return Switch(tuple(branches)), [0, *[1 + i for i in kept]], outputs


class BranchDerivative(NamedTuple):
    """A branch of a derivative under construction; its results belong to the atoms in `like`."""

    name: str
    equations: Sequence[Equation]
    inputs: Sequence[Var]
    d: BodyDerivative
    like: Sequence[Atom]


def bind_derivatives(
    parts: Sequence[BranchDerivative], chosen: Any, operands: list[Any]
) -> list[Any]:
    """Bind the Switch of these branches; a derivative is None if no branch has it."""
    n = len(parts[0].like)
    wanted = [any(part.d.results[i] is not None for part in parts) for i in range(n)]
    if not any(wanted):
        return [None] * n
    constants = [pair for part in parts for pair in part.d.constants]
    graphs = []
    for part in parts:
        writer = Writer(part.equations)
        outs = [
            writer.zeros(x.type) if r is None else r
            for x, r, w in zip(part.like, part.d.results, wanted)
            if w
        ]
        own = {var for var, _ in part.d.constants}
        extra = [var if var in own else Var(var.type) for var, _ in constants]
        graphs.append(writer.graph(part.name, [*part.inputs, *extra], outs))
    arrays = [wrap(array) for _, array in constants]
    results = iter(bind(Switch(tuple(graphs)), chosen, *operands, *arrays))
    return [next(results) if w else None for w in wanted]
