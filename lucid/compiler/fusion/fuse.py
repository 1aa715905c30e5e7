"""fuse: the equations of a Graph -> steps in order: groups for one kernel, or one equation alone.

Elementwise equations and reductions are grouped over one domain. Operations that only rename
indices (transpose, broadcast, reshape by ones) are no step at all: they are part of how a value is
read.

Every step has a level, greater than that of all steps it reads from. An equation joins the group of
an operand if everything else it reads has a lower level: then no cycle can arise, and fusing is
linear. A group of lower level that no step below reads is raised, and computed where it is needed.

What reads `again x ct`, the second computation of a checkpoint, waits for `ct` as if it read that:
it neither joins a group of the first computation nor runs beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from lucid.compiler.fusion.groups import (
    ELSEWHERE,
    MOST_WEIGHT,
    REDUCTIONS,
    VIEWS,
    Alone,
    Coords,
    Group,
    Reading,
    Step,
    aligned,
    fusible,
    is_number,
    renamed,
    weight_of,
)
from lucid.compiler.fusion.siblings import join_columns, join_siblings
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ops.higher_order.checkpoint_op import Again
from lucid.ops.shape.creation import Full
from lucid.ops.shape.movement import Broadcast, Reshape, Transpose

LONG_ROW = 1 << 16  # elements of a row that is still read twice rather than stored
FEW_ROWS = 8
SMALL = 4096  # elements of a domain that may be gone over twice whatever its shape
MOST_READERS = 8  # of a group that is raised
MOST_LOOPS = 6  # over one row, in each of which what was not stored is computed again


class Fuser:
    """One run of `fuse` over a Graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readings: dict[Var, Reading] = {}
        self.step_of: dict[Var, Step] = {}
        self.steps: list[Step] = []
        self.merged: dict[Group, Group] = {}
        self.waits = any(isinstance(eqn.op, Again) for eqn in graph.equations)

    def run(self) -> list[Step]:
        fits = [not isinstance(eqn.op, VIEWS) and fusible(eqn) for eqn in self.graph.equations]
        stored = self.stored(fits)
        for eqn, fit in zip(self.graph.equations, fits):
            out = eqn.outputs[0]
            if isinstance(eqn.op, VIEWS):
                self.readings[out] = self.view(eqn)
            elif fit and is_number(eqn) and out not in stored:
                self.readings[out] = Reading(eqn.inputs[0], (None,) * out.type.ndim, False)
            elif not fit or not self.join(eqn):
                self.alone(eqn)
        join_siblings(self)
        join_columns(self)
        alive = [s for s in self.steps if s not in self.merged]
        place = {eqn: number for number, eqn in enumerate(self.graph.equations)}
        for step in alive:
            if isinstance(step, Group):
                step.equations.sort(key=place.__getitem__)
        return sorted(alive, key=lambda step: step.level)

    def stored(self, fits: Sequence[bool]) -> set[Any]:
        """What must lie in memory: for an output, a view, or an equation outside of loops."""
        out: set[Any] = set(self.graph.outputs)
        for eqn, fit in zip(self.graph.equations, fits):
            if isinstance(eqn.op, Again):
                out.add(eqn.inputs[0])
            elif not fit or isinstance(eqn.op, Full):
                out.update(eqn.inputs)
            elif isinstance(eqn.op, ELSEWHERE):
                out.add(eqn.inputs[0])
        return out

    # Reading

    def reading(self, x: Var) -> Reading:
        return self.readings.get(x) or Reading(x, tuple(range(x.type.ndim)))

    def view(self, eqn: Equation) -> Reading:
        """The Reading of the result of an operation that moves nothing."""
        x, out = eqn.inputs[0], eqn.outputs[0]
        if isinstance(x, Literal):
            return Reading(x, (None,) * out.type.ndim, False)
        inner = self.reading(x)
        after = [*inner.after, *[v for v in eqn.inputs[1:] if isinstance(v, Var)]]
        found = inner if isinstance(eqn.op, Again) else self.indexed(inner, eqn, x)
        return replace(found, after=tuple(dict.fromkeys(after))) if after else found

    def indexed(self, inner: Reading, eqn: Equation, x: Var) -> Reading:
        """The Reading of a view of `x`, which is read by `inner`."""
        if not inner.plain:
            return Reading(inner.base, (), False)
        match eqn.op:
            case Transpose(permutation):
                return Reading(inner.base, tuple(inner.axes[i] for i in permutation))
            case Broadcast(shape, axes):
                place = {axis: i for i, axis in enumerate(axes)}
                named = [
                    inner.axes[place[i]] if i in place and x.type.shape[place[i]] == n else None
                    for i, n in enumerate(shape)
                ]
                return Reading(inner.base, tuple(named))
            case Reshape(shape) if [n for n in shape if n != 1] == [
                n for n in x.type.shape if n != 1
            ]:
                rest = iter([a for a, n in zip(inner.axes, x.type.shape) if n != 1])
                return Reading(
                    inner.base, tuple(None if n == 1 else next(rest) for n in shape), inner.plain
                )
        return Reading(inner.base, (), False)

    def base(self, x: Any) -> Any:
        """What `x` is a view of, and otherwise itself."""
        return self.readings[x].base if x in self.readings else x

    def level_of(self, x: Any) -> int:
        return max((step.level for step in (self.find(x), *self.awaited([x])) if step), default=0)

    def awaited(self, xs: Iterable[Any]) -> list[Step]:
        """The steps that must be done before these are read."""
        if not self.waits:
            return []
        after = {v: None for x in xs if x in self.readings for v in self.readings[x].after}
        found = [self.find(v) for v in after]
        further = self.awaited(after) if after else []
        return [*[step for step in found if step is not None], *further]

    def find(self, x: Any) -> Step | None:
        """The step that computes what `x` is read from."""
        if isinstance(x, Literal):
            return None
        step = self.step_of.get(self.base(x))
        return None if step is None else self.root(step)

    def root(self, step: Step) -> Step:
        """The group that a step has become part of, and otherwise itself."""
        while step in self.merged:
            known = self.merged[step]  # type: ignore[index]
            self.merged[step] = self.merged.get(known, known)  # type: ignore[index]
            step = known
        return step

    # Steps

    def alone(self, eqn: Equation) -> None:
        step = Alone(eqn, 1 + max((self.level_of(x) for x in eqn.inputs), default=0))
        self.steps.append(step)
        self.note_reader(step, eqn)
        for var in eqn.outputs:
            self.step_of[var] = step

    def note_reader(self, step: Step, eqn: Equation) -> None:
        for x in eqn.inputs:
            read = self.find(x)
            if isinstance(read, Group) and read is not step:
                read.readers.add(step)
        for awaited in self.awaited(eqn.inputs):
            if isinstance(awaited, Group) and awaited is not step:
                awaited.readers.add(step)

    def join(self, eqn: Equation) -> bool:
        """Put an equation into the group of an operand, or into a new one."""
        candidates: list[Group] = []
        for x, _ in aligned(eqn, 0):
            step = self.find(x)
            if isinstance(step, Group) and step not in candidates and self.reading(x).plain:
                candidates.append(step)
        candidates.sort(key=lambda group: -group.level)
        for group in candidates:
            if self.enter(group, eqn):
                return True
        level = 1 + max((self.level_of(x) for x in eqn.inputs), default=0)
        shape = (
            eqn.inputs[0].type.shape if type(eqn.op) in REDUCTIONS else eqn.outputs[0].type.shape
        )
        group = Group(tuple(shape), level)
        self.steps.append(group)
        return self.enter(group, eqn)

    def enter(self, group: Group, eqn: Equation) -> bool:
        """Add an equation to a group if it fits its domain."""
        others = {id(s): s for s in map(self.find, eqn.inputs) if s is not None and s is not group}
        peers = [s for s in others.values() if s.level >= group.level]
        apart = {self.find(x) for x in self.read_from_memory(eqn)}
        if any(not isinstance(s, Group) or s.level > group.level for s in peers):
            return False
        if not apart.isdisjoint((group, *peers)):
            return False
        if any(s.level >= group.level and s is not group for s in self.awaited(eqn.inputs)):
            return False
        coords = self.place(group, eqn)
        if coords is None:
            return False
        renamings = []
        for peer in peers:
            renaming = self.renaming(group, peer, eqn, coords)  # type: ignore[arg-type]
            if renaming is None:
                return False
            renamings.append((peer, renaming))
        if not self.may_reduce(group, eqn, coords, peers):
            return False
        weights = [weight_of(eqn), group.weight, *[peer.weight for peer, _ in renamings]]  # type: ignore[union-attr]
        if sum(weights) > MOST_WEIGHT:
            return not group.equations and self.add(group, eqn, coords)
        for peer, renaming in renamings:
            group, coords = self.merge(group, peer, renaming, coords)  # type: ignore[arg-type]
        for other in others.values():
            if other not in peers and other not in apart:
                group, coords = self.raise_up(group, other, eqn, coords)
        return self.add(group, eqn, coords)

    def raise_up(
        self, group: Group, other: Step, eqn: Equation, coords: Coords
    ) -> tuple[Group, Coords]:
        """The group with one of lower level that `eqn` reads, where nothing between needs that."""
        if not isinstance(other, Group) or not self.may_rise(other, group.level):
            return group, coords
        names = self.renaming(group, other, eqn, coords)
        if names is None or (other.reduced and any(a != b for a, b in names.items())):
            return group, coords
        fits = weight_of(eqn) + group.weight + other.weight <= MOST_WEIGHT
        if not fits or not self.may_reduce(group, eqn, coords, [other]):
            return group, coords
        return self.merge(group, other, names, coords)

    def may_rise(self, group: Group, level: int) -> bool:
        """Do only steps above a level read what a group computes?"""
        if len(group.readers) > MOST_READERS:
            return False
        return all(self.root(reader).level > level for reader in group.readers)

    def read_from_memory(self, eqn: Equation) -> list[Any]:
        """Operands that an equation does not read point by point: from views, or elsewhere."""
        out = [x for x in eqn.inputs if isinstance(x, Var) and not self.reading(x).plain]
        return [eqn.inputs[0], *out] if isinstance(eqn.op, ELSEWHERE) else out

    def add(self, group: Group, eqn: Equation, coords: Coords) -> bool:
        out = eqn.outputs[0]
        group.points[out] = coords
        group.loops[out] = max([group.loops.get(self.base(x), 0) for x in eqn.inputs], default=0)
        gone = self.taken_away(eqn, coords)
        if gone:
            group.reduced = gone
            group.loops[out] += 1
        if type(eqn.op) in REDUCTIONS:
            coords = tuple(a for i, a in enumerate(coords) if i not in eqn.op.axes)  # type: ignore[attr-defined]
        group.weight += weight_of(eqn)
        group.equations.append(eqn)
        self.note_reader(group, eqn)
        group.coords[out] = coords
        self.step_of[out] = group
        return True

    @staticmethod
    def taken_away(eqn: Equation, coords: Coords) -> frozenset[int]:
        """The axes of the domain that an equation reduces."""
        if type(eqn.op) not in REDUCTIONS:
            return frozenset()
        return frozenset(a for a in (coords[i] for i in eqn.op.axes) if a is not None)  # type: ignore[attr-defined]

    def place(self, group: Group, eqn: Equation) -> Coords | None:
        """The axes of the domain that the equation's points (before a reduction) run along."""
        shape = (
            eqn.inputs[0].type.shape if type(eqn.op) in REDUCTIONS else eqn.outputs[0].type.shape
        )
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

    def renaming(
        self, group: Group, peer: Group, eqn: Equation, coords: Coords
    ) -> dict[int, int] | None:
        """Axes of another group's domain as axes of this one's, where they can be one group."""
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
        if peer.reduced is not None and group.reduced is not None:
            if frozenset(names[a] for a in peer.reduced) != group.reduced:
                return None
        return names

    def merge(
        self, group: Group, peer: Group, names: dict[int, int], coords: Coords
    ) -> tuple[Group, Coords]:
        """The larger of two groups with what was in the other, and `coords` in its axes."""
        if len(peer.equations) > len(group.equations):
            names = {b: a for a, b in names.items()}
            group, peer, coords = peer, group, renamed(coords, names)
        if peer.reduced is not None:
            group.reduced = frozenset(names[a] for a in peer.reduced)
        group.coords.update({var: renamed(c, names) for var, c in peer.coords.items()})
        group.points.update({var: renamed(c, names) for var, c in peer.points.items()})
        group.equations += peer.equations
        group.loops.update(peer.loops)
        group.readers |= peer.readers
        group.weight += peer.weight
        group.level = max(group.level, peer.level)
        self.merged[peer] = group
        return group, coords

    def may_reduce(self, group: Group, eqn: Equation, coords: Coords, peers: Sequence[Any]) -> bool:
        """One set of reduced axes a group, and no second pass over what is too large for it."""
        reduced = next((g.reduced for g in (group, *peers) if g.reduced), None)
        gone = self.taken_away(eqn, coords)
        if gone and reduced is not None and gone != reduced:
            return False
        if gone:
            last = max((a for a, n in enumerate(group.sizes) if n != 1), default=None)
            if last not in gone and last not in coords:
                return False
        reduced = reduced or gone
        if not any(a in reduced for a in coords):
            return True
        before = [g.loops.get(self.base(x), 0) for x in eqn.inputs for g in (group, *peers)]
        loop = max(before, default=0)
        if loop == 0:
            return True
        size, row = math.prod(group.sizes), math.prod(group.sizes[a] for a in reduced)
        fits = size <= SMALL or (row <= LONG_ROW and size // max(row, 1) >= FEW_ROWS)
        return fits and loop < MOST_LOOPS


def fuse(graph: Graph) -> tuple[list[Step], dict[Var, Reading]]:
    """The steps of a Graph in an order in which they can run, and how views are read."""
    fuser = Fuser(graph)
    return fuser.run(), fuser.readings
