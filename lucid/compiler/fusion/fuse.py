"""fuse: the equations of a Graph -> ordered steps, each a group for one kernel or a standalone op.

Elementwise equations and reductions are grouped over one domain. Operations that only rename
indices (transpose, broadcast, reshape by ones) are not steps: they are part of how a value is
read.

Every step has a level, greater than that of all steps it reads from. An equation joins the group of
an operand if everything else it reads has a lower level: then no cycle can arise, and fusion takes
linear time. A group of lower level that no step in between reads is raised to the level of its
reader and merged with it.

A step with an ordered equation has a level above that of the ordered equation before it. What reads
the result of an asynchronous one comes after everything that does not (`postpone_readers`).

What reads `optimization_barrier x ct`, the recomputation of a checkpoint, waits for `ct` as if it
read it: it neither joins a group of the first computation nor runs beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from lucid.compiler.fusion.groups import (
    MAX_WEIGHT,
    Coords,
    Group,
    Guest,
    Reading,
    Standalone,
    Step,
    aligned,
    domain,
    fusible,
    is_scalar_constant,
    rename_axes,
    weight_of,
)
from lucid.compiler.fusion.siblings import join_columns, join_siblings
from lucid.compiler.fusion.verify_steps import verify_steps
from lucid.ir.graph import Equation, Graph, Literal, Var

LONG_ROW = 1 << 16  # elements of the longest row that is read twice rather than stored
FEW_ROWS = 8
SMALL_DOMAIN = 4096  # elements of a domain that may be traversed twice whatever its shape
MAX_READERS = 8  # readers of a group that may be raised
MAX_LOOPS = 6  # loops over one row, each of which recomputes what was not stored


class Fuser:
    """The state of `fuse` for one Graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readings: dict[Var, Reading] = {}
        self.step_of: dict[Var, Step] = {}
        self.steps: list[Step] = []
        self.merged: dict[Group, Group] = {}
        self.last_ordered = 0  # the level of the latest ordered equation
        self.has_barriers = any(eqn.op.orders for eqn in graph.equations)

    def run(self) -> list[Step]:
        fits = [not eqn.op.aliases and fusible(eqn) for eqn in self.graph.equations]
        stored = self.stored(fits)
        for eqn, fit in zip(self.graph.equations, fits):
            out = eqn.outputs[0]
            if eqn.op.aliases:
                self.readings[out] = self.view(eqn)
            elif fit and is_scalar_constant(eqn) and out not in stored:
                self.readings[out] = Reading(eqn.inputs[0], (None,) * out.type.ndim, False)
            elif not fit or not self.add_to_group(eqn):
                self.add_standalone(eqn)
        join_siblings(self)
        join_columns(self)
        alive = [s for s in self.steps if s not in self.merged]
        position = {eqn: number for number, eqn in enumerate(self.graph.equations)}
        for step in alive:
            if isinstance(step, Group):
                step.equations.sort(key=position.__getitem__)
        return self.postpone_readers(sorted(alive, key=lambda step: step.level))

    def postpone_readers(self, steps: list[Step]) -> list[Step]:
        """Order steps by how many asynchronous results they have to wait for, one after another.

        So a gradient is summed over ranks while the gradients of earlier layers are computed, and
        the parameters change afterward. Ordered steps keep their order.
        """
        if not any([eqn.op.asynchronous for eqn in self.graph.equations]):
            return steps
        waits: dict[Step, int] = {}
        last_ordered = 0
        for step in steps:
            equations = step.equations if isinstance(step, Group) else [step.equation]
            operands = [x for eqn in equations for x in eqn.inputs]
            read = {s for s in (*map(self.find, operands), *self.dependencies_of(operands)) if s}
            found = [waits[s] + is_asynchronous(s) for s in read if s is not step]
            waits[step] = max(found, default=0)
            if not isinstance(step, Group) and step.equation.op.ordered:
                waits[step] = last_ordered = max(waits[step], last_ordered)
        return sorted(steps, key=waits.__getitem__)

    def stored(self, fits: Sequence[bool]) -> set[Any]:
        """Values that must be in memory: outputs, and operands of views and standalone ops."""
        out: set[Any] = set(self.graph.outputs)
        for eqn, fit in zip(self.graph.equations, fits):
            if eqn.op.orders or (fit and eqn.op.reads_memory):
                out.add(eqn.inputs[0])
            elif not fit:
                out.update(eqn.inputs)
        return out

    # Reading

    def reading(self, x: Var) -> Reading:
        return self.readings.get(x) or Reading(x, tuple(range(x.type.ndim)))

    def view(self, eqn: Equation) -> Reading:
        """The Reading of the result of a view."""
        x, out = eqn.inputs[0], eqn.outputs[0]
        if isinstance(x, Literal):
            return Reading(x, (None,) * out.type.ndim, False)
        inner = self.reading(x)
        after = [*inner.after, *[v for v in eqn.inputs[1:] if isinstance(v, Var)]]
        axes = eqn.op.axes_read(x.type) if inner.plain else None
        if axes is None:
            found = Reading(inner.base, (), False)
        else:
            found = Reading(inner.base, tuple([None if a is None else inner.axes[a] for a in axes]))
        return replace(found, after=tuple(dict.fromkeys(after))) if after else found

    def base(self, x: Any) -> Any:
        """The value that `x` is a view of, or `x` itself."""
        return self.readings[x].base if x in self.readings else x

    def level_of(self, x: Any) -> int:
        steps = (self.find(x), *self.dependencies_of([x]))
        return max((step.level for step in steps if step), default=0)

    def dependencies_of(self, xs: Iterable[Any]) -> list[Step]:
        """The steps that must finish before these values are read (`again`)."""
        if not self.has_barriers:
            return []
        after = {v: None for x in xs if x in self.readings for v in self.readings[x].after}
        found = [self.find(v) for v in after]
        further = self.dependencies_of(after) if after else []
        return [*[step for step in found if step is not None], *further]

    def find(self, x: Any) -> Step | None:
        """The step that computes the base of `x`, or None for inputs and literals."""
        if isinstance(x, Literal):
            return None
        step = self.step_of.get(self.base(x))
        return None if step is None else self.root(step)

    def root(self, step: Step) -> Step:
        """The group that a step was merged into, or the step itself."""
        while step in self.merged:
            parent = self.merged[step]  # type: ignore[index]
            self.merged[step] = self.merged.get(parent, parent)  # type: ignore[index]
            step = parent
        return step

    # Steps

    def add_standalone(self, eqn: Equation) -> None:
        level = 1 + max((self.level_of(x) for x in eqn.inputs), default=0)
        if eqn.op.ordered:
            level = self.last_ordered = max(level, self.last_ordered + 1)
        step = Standalone(eqn, level)
        self.steps.append(step)
        self.record_reader(step, eqn)
        for var in eqn.outputs:
            self.step_of[var] = step

    def record_reader(self, step: Step, eqn: Equation) -> None:
        for x in eqn.inputs:
            read = self.find(x)
            if isinstance(read, Group) and read is not step:
                read.readers.add(step)
        for read in self.dependencies_of(eqn.inputs):
            if isinstance(read, Group) and read is not step:
                read.readers.add(step)

    def add_to_group(self, eqn: Equation) -> bool:
        """Add an equation to the group of an operand, or to a new group."""
        candidates: list[Group] = []
        for x, _ in aligned(eqn, 0):
            step = self.find(x)
            if isinstance(step, Group) and step not in candidates and self.reading(x).plain:
                candidates.append(step)
        candidates.sort(key=lambda group: -group.level)
        for group in candidates:
            if self.try_add(group, eqn):
                return True
        level = 1 + max((self.level_of(x) for x in eqn.inputs), default=0)
        group = Group(domain(eqn), level)
        self.steps.append(group)
        return self.try_add(group, eqn)

    def try_add(self, group: Group, eqn: Equation) -> bool:
        """Add an equation to a group and return True if it fits the group's domain.

        The groups of the same level that it reads merge with it: the largest takes in the others,
        and everything is decided in the axes of that one.
        """
        others = {id(s): s for s in map(self.find, eqn.inputs) if s is not None and s is not group}
        peers = [s for s in others.values() if s.level >= group.level]
        stored = {self.find(x) for x in self.read_from_memory(eqn)}
        if any(not isinstance(s, Group) or s.level > group.level for s in peers):
            return False
        if not stored.isdisjoint((group, *peers)):
            return False
        if any(s.level >= group.level and s is not group for s in self.dependencies_of(eqn.inputs)):
            return False
        together: list[Group] = [group, *peers]  # type: ignore[list-item]
        host = max(together, key=lambda g: len(g.equations))
        coords = self.align(host, eqn)
        if coords is None:
            return False
        guests: list[Guest] = []
        for peer in together:
            if peer is not host:
                names = self.map_axes(host, peer, eqn, coords)
                if names is None:
                    return False
                guests.append((peer, names))
        if not self.can_reduce(host, eqn, coords, guests):
            return False
        if weight_of(eqn) + sum(g.weight for g in together) > MAX_WEIGHT:
            return not host.equations and self.add(host, eqn, coords)
        for peer, names in guests:
            self.merge(host, peer, names)
        for other in others.values():
            if other not in peers and other not in stored:
                self.merge_lower_level(host, other, eqn, coords)
        return self.add(host, eqn, coords)

    def merge_lower_level(self, group: Group, other: Step, eqn: Equation, coords: Coords) -> None:
        """Merge a group of lower level that `eqn` reads, if no step in between reads that group."""
        if not isinstance(other, Group) or not self.can_raise(other, group.level):
            return
        names = self.map_axes(group, other, eqn, coords)
        if names is None or (other.reduced and any(a != b for a, b in names.items())):
            return
        fits = weight_of(eqn) + group.weight + other.weight <= MAX_WEIGHT
        if fits and self.can_reduce(group, eqn, coords, [(other, names)]):
            self.merge(group, other, names)

    def can_raise(self, group: Group, level: int) -> bool:
        """True if only steps above `level` read what a group computes."""
        if len(group.readers) > MAX_READERS:
            return False
        return all(self.root(reader).level > level for reader in group.readers)

    def read_from_memory(self, eqn: Equation) -> list[Any]:
        """Operands that an equation does not read point by point: views, and indexed operands."""
        out = [x for x in eqn.inputs if isinstance(x, Var) and not self.reading(x).plain]
        return [eqn.inputs[0], *out] if eqn.op.reads_memory else out

    def add(self, group: Group, eqn: Equation, coords: Coords) -> bool:
        out = eqn.outputs[0]
        group.points[out] = coords
        group.loops[out] = max([group.loops.get(self.base(x), 0) for x in eqn.inputs], default=0)
        reduced_here = self.reduced_axes(eqn, coords)
        if reduced_here:
            group.reduced = reduced_here
            group.loops[out] += 1
        if eqn.op.monoid:
            coords = tuple(a for i, a in enumerate(coords) if i not in eqn.op.axes)  # type: ignore[attr-defined]
        group.weight += weight_of(eqn)
        group.equations.append(eqn)
        self.record_reader(group, eqn)
        group.coords[out] = coords
        self.step_of[out] = group
        return True

    @staticmethod
    def reduced_axes(eqn: Equation, coords: Coords) -> frozenset[int]:
        """The axes of the domain that an equation reduces."""
        if not eqn.op.monoid:
            return frozenset()
        return frozenset(a for a in (coords[i] for i in eqn.op.axes) if a is not None)  # type: ignore[attr-defined]

    def align(self, group: Group, eqn: Equation) -> Coords | None:
        """The domain axis of each axis of the equation's points; None if they do not fit."""
        shape = domain(eqn)
        coords: list[int | None] = [None] * len(shape)
        for x, first in aligned(eqn, len(shape)):
            if isinstance(x, Literal) or self.find(x) is not group:
                continue
            reading = self.reading(x)
            inside = group.coords[reading.base]
            for j, axis in enumerate(reading.axes):
                i = j + first
                if axis is None or inside[axis] is None or x.type.shape[j] != shape[i]:
                    continue
                if coords[i] is None:
                    coords[i] = inside[axis]
                elif coords[i] != inside[axis]:
                    return None
        free = [a for a in range(len(group.sizes)) if a not in coords]
        for i, n in enumerate(shape):
            if coords[i] is None and n != 1:
                same = i + len(group.sizes) - len(shape)
                found = same if same in free and group.sizes[same] == n else None
                if found is None:
                    found = next((a for a in free if group.sizes[a] == n), None)
                if found is None:
                    return None
                coords[i] = found
                free.remove(found)
            if coords[i] is not None and group.sizes[coords[i]] != n:  # type: ignore[index]
                return None
        named = [a for a in coords if a is not None]
        return tuple(coords) if len(set(named)) == len(named) else None

    def map_axes(
        self, group: Group, peer: Group, eqn: Equation, coords: Coords
    ) -> dict[int, int] | None:
        """Map the axes of another group's domain to this one's; None if they cannot merge."""
        if sorted(peer.sizes) != sorted(group.sizes):
            return None
        names: dict[int, int] = {}
        for x, first in aligned(eqn, len(coords)):
            if isinstance(x, Literal) or self.find(x) is not peer:
                continue
            reading = self.reading(x)
            if not reading.plain:
                return None
            inside = peer.coords[reading.base]
            for j, axis in enumerate(reading.axes):
                here = coords[j + first]
                if axis is None or inside[axis] is None or here is None:
                    continue
                if names.setdefault(inside[axis], here) != here:  # type: ignore[arg-type]
                    return None
        for a, n in enumerate(peer.sizes):
            if a not in names:
                free = [
                    b
                    for b in range(len(group.sizes))
                    if b not in names.values() and group.sizes[b] == n
                ]
                if not free:
                    return None
                names[a] = a if a in free else free[0]
        if any(peer.sizes[a] != group.sizes[b] for a, b in names.items()):
            return None
        if len(set(names.values())) != len(names):
            return None
        return names

    def merge(self, group: Group, other: Group, names: dict[int, int]) -> None:
        """Move the equations of `other` into a group; `names` maps its axes to the group's."""
        if other.reduced is not None:
            group.reduced = frozenset(names[a] for a in other.reduced)
        group.coords.update({var: rename_axes(c, names) for var, c in other.coords.items()})
        group.points.update({var: rename_axes(c, names) for var, c in other.points.items()})
        group.equations += other.equations
        group.loops.update(other.loops)
        group.readers |= other.readers
        group.weight += other.weight
        group.level = max(group.level, other.level)
        self.merged[other] = group

    def can_reduce(
        self, group: Group, eqn: Equation, coords: Coords, guests: Sequence[Guest]
    ) -> bool:
        """True if the group keeps one set of reduced axes and re-reads no large row."""
        reduced_here = self.reduced_axes(eqn, coords)
        sets = [frozenset(names[a] for a in g.reduced) for g, names in guests if g.reduced]
        sets += [axes for axes in (group.reduced, reduced_here) if axes]
        if len(set(sets)) > 1:
            return False
        if reduced_here:
            last = max((a for a, n in enumerate(group.sizes) if n != 1), default=None)
            if last not in reduced_here and last not in coords:
                return False
        reduced = sets[0] if sets else frozenset[int]()
        if not any(a in reduced for a in coords):
            return True
        together = [group, *[g for g, _ in guests]]
        before = [g.loops.get(self.base(x), 0) for x in eqn.inputs for g in together]
        loop = max(before, default=0)
        if loop == 0:
            return True
        size, row = math.prod(group.sizes), math.prod(group.sizes[a] for a in reduced)
        fits = size <= SMALL_DOMAIN or (row <= LONG_ROW and size // max(row, 1) >= FEW_ROWS)
        return fits and loop < MAX_LOOPS


def is_asynchronous(step: Step) -> bool:
    return not isinstance(step, Group) and step.equation.op.asynchronous


def fuse(graph: Graph) -> tuple[list[Step], dict[Var, Reading]]:
    """The steps of a Graph in a valid execution order, and how its views are read."""
    fuser = Fuser(graph)
    steps = fuser.run()
    verify_steps(graph, steps, fuser.readings)
    return steps, fuser.readings
