"""recompute: Graph -> Graph in which later kernels recompute cheap values instead of reading them.

A derivative reads the intermediate values of its function. For `gelu` that would be five arrays,
all of which are arithmetic on two: the operand and the tanh. The later kernel reads those two, and
the five are never stored. Recomputed equations read memory through full slices, which keeps them
out of the kernel that computed the values first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lucid.compiler.fusion.fuse import Fuser
from lucid.compiler.fusion.groups import Group, aligned, weight_of
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.rewrite import dce
from lucid.ops.shape.movement import Slice

MAX_EQUATIONS = 12  # recomputed for one value


def recompute(graph: Graph) -> Graph:
    """Duplicate equations that are cheaper to recompute than to store."""
    fuser = Fuser(graph)
    groups = [step for step in fuser.run() if isinstance(step, Group)]
    if len(groups) < 2:
        return graph
    uses = Uses.of(graph, fuser)
    chosen = {group: found for group in groups if (found := uses.worth_recomputing(group))}
    return Rematerializer(graph, fuser, chosen).run() if chosen else graph


@dataclass
class Uses:
    """The groups that read each value, and the values that are stored in any case."""

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
            operands = () if isinstance(home, Group) else eqn.inputs
            for x in (*operands, *fuser.read_from_memory(eqn)):
                uses.stored.add(fuser.base(x))
            for x in eqn.inputs:
                uses.readers.setdefault(fuser.base(x), set()).add(home)
            if not isinstance(home, Group):
                uses.stored.update(eqn.outputs)
        return uses

    def crosses_kernels(self, x: Any) -> bool:
        """True if a kernel other than its own reads `x`."""
        home = self.fuser.find(x)
        return any(reader is not home for reader in self.readers.get(x, ()))

    def in_memory(self, x: Any) -> bool:
        return x in self.stored or self.fuser.find(x) is None or self.crosses_kernels(x)

    def is_cheap(self, x: Any) -> bool:
        """True if `x` is the result of arithmetic in a kernel."""
        eqn = self.producer.get(x)
        if eqn is None or x in self.stored or x in self.fuser.readings:
            return False
        return bool(eqn.op.scalar) and not eqn.op.forwards and weight_of(eqn) == 1

    def large(self, xs: Iterable[Any], size: int) -> set[Any]:
        return {x for x in xs if isinstance(x, Var) and x.type.size == size}

    def worth_recomputing(self, group: Group) -> set[Var]:
        """The values that a kernel should recompute because memory traffic decreases."""
        size = math.prod(group.sizes)
        reads: set[Any] = set()
        for eqn in group.equations:
            plain = [x for x, _ in aligned(eqn, 0) if isinstance(x, Var)]
            reads |= {self.fuser.base(x) for x in plain} - group.coords.keys()
            if eqn.op.reads_memory:
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
        freed = {x for x in found if self.readers_of(x) <= {group, self.fuser.find(x)}}
        new = {x for x in leaves if not self.in_memory(x)}
        before = len(reads) + len(freed - leaves)
        after = len((reads - found) | leaves) + len(new)
        return found if after < before else set()

    def readers_of(self, x: Any) -> set[Any]:
        return self.readers.get(x, set())

    def leaves(self, x: Var) -> set[Any] | None:
        """The values that `x` is computed from by arithmetic; None if there are too many."""
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
            if len(seen) > MAX_EQUATIONS:
                return None
        return out


class Rematerializer:
    """Rewrites a Graph, duplicating equations for the groups that recompute them."""

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
            inputs = tuple([self.recomputed(x, group) if x in wanted else x for x in eqn.inputs])
            self.equations.append(Equation(eqn.op, inputs, eqn.outputs, eqn.source))
        g = self.graph
        return dce(Graph(g.name, g.inputs, tuple(self.equations), g.outputs))

    def recomputed(self, x: Any, group: Group) -> Atom:
        """`x` recomputed for a group."""
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
            return self.recomputed(x, group)
        if not isinstance(self.fuser.find(x), Group) or not x.type.ndim:
            return x
        key = (x, "memory")
        if key not in self.copies:
            zeros, shape = (0,) * x.type.ndim, x.type.shape
            out = Var(x.type)
            op = Slice(zeros, shape, (1,) * len(shape))
            source = self.uses.producer[x].source
            self.equations.append(Equation(op, (x,), (out,), source))
            self.copies[key] = out
        return self.copies[key]
