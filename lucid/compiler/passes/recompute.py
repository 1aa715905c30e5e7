"""recompute: Graph -> Graph in which a later kernel computes cheap values again, and reads less.

A derivative reads what its function computed. Of `gelu` that would be five arrays, all of which are
arithmetic on two: the operand, and the tanh. The later kernel reads those two, and the
five are never stored. What is computed again reads memory through slices of everything, which
keeps it out of the kernel where it was computed first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lucid.compiler.fusion.fuse import Fuser
from lucid.compiler.fusion.groups import ELSEWHERE, Group, aligned, scalar_name, weight_of
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.rewrite import remove_dead
from lucid.ops.core.kinds import Elementwise
from lucid.ops.elementwise.arithmetic import Cast
from lucid.ops.shape.copying import Copy
from lucid.ops.shape.movement import Slice

MOST_EQUATIONS = 12  # that are computed again for one value


def recompute(graph: Graph) -> Graph:
    """The Graph with the equations that are cheaper to compute again than to store."""
    fuser = Fuser(graph)
    groups = [step for step in fuser.run() if isinstance(step, Group)]
    if len(groups) < 2:
        return graph
    uses = Uses.of(graph, fuser)
    chosen = {group: found for group in groups if (found := uses.cheaper(group))}
    return Copier(graph, fuser, chosen).run() if chosen else graph


@dataclass
class Uses:
    """Which groups read each value, and which values lie in memory whatever is decided."""

    fuser: Fuser
    producer: dict[Var, Equation] = field(default_factory=dict)
    readers: dict[Any, set[Any]] = field(default_factory=dict)
    stored: set[Any] = field(default_factory=set)

    @staticmethod
    def of(graph: Graph, fuser: Fuser) -> Uses:
        uses = Uses(fuser, stored={fuser.base(x) for x in (*graph.outputs, *graph.inputs)})
        for eqn in graph.equations:
            home = fuser.find(eqn.outputs[0])
            for var in eqn.outputs:
                uses.producer[var] = eqn
            if eqn.outputs[0] in fuser.readings:
                continue  # a view
            apart = () if isinstance(home, Group) else eqn.inputs
            for x in (*apart, *fuser.read_from_memory(eqn)):
                uses.stored.add(fuser.base(x))
            for x in eqn.inputs:
                uses.readers.setdefault(fuser.base(x), set()).add(home)
            if not isinstance(home, Group):
                uses.stored.update(eqn.outputs)
        return uses

    def crosses(self, x: Any) -> bool:
        """Does another kernel than its own read `x`?"""
        home = self.fuser.find(x)
        return any(reader is not home for reader in self.readers.get(x, ()))

    def in_memory(self, x: Any) -> bool:
        return x in self.stored or self.fuser.find(x) is None or self.crosses(x)

    def is_cheap(self, x: Any) -> bool:
        """Is `x` the result of arithmetic in a kernel?"""
        eqn = self.producer.get(x)
        if eqn is None or x in self.stored or x in self.fuser.readings:
            return False
        arithmetic = isinstance(eqn.op, (Elementwise, Cast)) and not isinstance(eqn.op, Copy)
        return arithmetic and bool(scalar_name(eqn.op)) and weight_of(eqn) == 1

    def large(self, xs: Iterable[Any], size: int) -> set[Any]:
        return {x for x in xs if isinstance(x, Var) and x.type.size == size}

    def cheaper(self, group: Group) -> set[Var]:
        """The values that a kernel should compute again: with them it reads and stores less."""
        size = math.prod(group.sizes)
        reads: set[Any] = set()
        for eqn in group.equations:
            plain = [x for x, _ in aligned(eqn, 0) if isinstance(x, Var)]
            reads |= {self.fuser.base(x) for x in plain} - group.coords.keys()
            if isinstance(eqn.op, ELSEWHERE):
                reads.add(self.fuser.base(eqn.inputs[0]))
        reads = self.large(reads, size)
        found = {x for x in reads if self.is_cheap(x) and isinstance(self.fuser.find(x), Group)}
        leaves: set[Any] = set()
        for x in found:
            below = self.leaves(x)
            if below is None:
                return set()
            leaves |= below
        leaves = self.large(leaves, size)
        freed = {x for x in found if self.read_by(x) <= {group, self.fuser.find(x)}}
        new = {x for x in leaves if not self.in_memory(x)}
        before = len(reads) + len(freed - leaves)
        after = len((reads - found) | leaves) + len(new)
        return found if after < before else set()

    def read_by(self, x: Any) -> set[Any]:
        return self.readers.get(x, set())

    def leaves(self, x: Var) -> set[Any] | None:
        """What `x` is computed from by arithmetic; None where that is much."""
        out: set[Any] = set()
        seen: set[Any] = {x}
        stack: list[Any] = [x]
        while stack:
            for operand in self.producer[stack.pop()].inputs:
                if isinstance(operand, Literal) or operand in seen:
                    continue
                seen.add(operand)
                if self.is_cheap(operand):
                    stack.append(operand)
                else:
                    out.add(self.fuser.base(operand))
            if len(seen) > MOST_EQUATIONS:
                return None
        return out


class Copier:
    """The equations of a Graph, with copies for the groups that want them."""

    def __init__(self, graph: Graph, fuser: Fuser, chosen: dict[Group, set[Var]]) -> None:
        self.graph, self.fuser, self.chosen = graph, fuser, chosen
        self.uses = Uses.of(graph, fuser)
        self.equations: list[Equation] = []
        self.copies: dict[Any, Atom] = {}

    def run(self) -> Graph:
        for eqn in self.graph.equations:
            group: Any = self.fuser.find(eqn.outputs[0])
            wanted = (
                self.chosen.get(group, set()) if eqn.outputs[0] not in self.fuser.readings else ()
            )
            inputs = tuple([self.again(x, group) if x in wanted else x for x in eqn.inputs])
            self.equations.append(Equation(eqn.op, inputs, eqn.outputs, eqn.source))
        g = self.graph
        return remove_dead(Graph(g.name, g.inputs, tuple(self.equations), g.outputs))

    def again(self, x: Any, group: Group) -> Atom:
        """A copy of `x` for a group."""
        key = (x, group)
        if key not in self.copies:
            eqn = self.uses.producer[x]
            operands = tuple([self.operand(operand, group) for operand in eqn.inputs])
            out = Var(x.type)
            self.equations.append(Equation(eqn.op, operands, (out,), eqn.source))
            self.copies[key] = out
        return self.copies[key]

    def operand(self, x: Atom, group: Group) -> Atom:
        if isinstance(x, Literal):
            return x
        if self.uses.is_cheap(x):
            return self.again(x, group)
        if not isinstance(self.fuser.find(x), Group) or not x.type.ndim:
            return x
        key = (x, "memory")
        if key not in self.copies:
            zeros, shape = (0,) * x.type.ndim, x.type.shape
            out = Var(x.type)
            op = Slice(zeros, shape, (1,) * len(shape))
            self.equations.append(Equation(op, (x,), (out,)))
            self.copies[key] = out
        return self.copies[key]
