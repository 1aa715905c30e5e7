"""inplace: which results of a segment may be written over an operand that is not read any more.

A kernel may write y where x lies if it reads x only at the point where it writes y, and not after
that: x has the shape and the size of element of y and runs along the same axes of the domain, every
point is written once, and no loop over the domain after the one that stores y needs x.

An operation that replaces a part of x (`buffer[i] = v`) writes only that part, if x is not read any
more and the new part is not taken from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lucid.compiler.fusion.groups import REDUCTIONS, Group, Reading, Step, aligned
from lucid.ir.graph import Equation, Var
from lucid.ops.index.writing import ScatterSet, SliceSet

Places = tuple[int | None, ...]


def overwritten(
    steps: Sequence[Step],
    readings: Mapping[Var, Reading],
    last: Mapping[Var, int],
    stored: set[Var],
    free: set[Var],
    reserved: Mapping[Var, Var],
) -> dict[Var, Var]:
    """For results y the operand x in whose place they are to be written; each x serves one y.

    `last` is the step that reads a Var last, `stored` are the Vars that steps leave in memory,
    `free` those whose memory may be written over, `reserved` those where only one result may.
    """
    out: dict[Var, Var] = {}
    for number, step in enumerate(steps):
        if not isinstance(step, Group):
            x, y = replaced(step.equation, readings)
            if x is not None and last.get(x) == number and (x in free or x in reserved):
                out[y] = x  # for reserved ones `written_into` sees to it that the right one follows
            continue
        inside = InsideGroup(step, readings)
        dying = [x for x in inside.places if last.get(x) == number]
        waiting = [x for x in dying if x in free]
        wanted = {reserved[x]: x for x in dying if x in reserved}
        if waiting or wanted:
            inside.count_loops(stored)
            out.update(inside.pairs(waiting, wanted, stored))
    return out


def written_into(
    reserved: Mapping[Var, Var],
    over: dict[Var, Var],
    first: Mapping[Var, int],
    last: Mapping[Var, int],
) -> dict[Var, Var]:
    """The outputs y that are computed in the memory of the input x that is reserved for them.

    Either a chain of results, each written over the one before, leads from x to y, or x is read for
    the last time before anything is written there.
    """
    out = {}
    after = {x: y for y, x in over.items()}
    for x, y in reserved.items():
        end = x
        while end in after:
            end = after[end]
        if end is not y:
            if x in after:
                del over[after.pop(x)]
            start, var = first[y], y
            while var in over:
                var = over[var]
                start = min(start, first.get(var, -1))
            if last.get(x, -1) >= start and last.get(x, -1) < first[y]:
                del after[over.pop(y)]
            elif last.get(x, -1) >= start:
                continue
        out[y] = x
    return out


def replaced(eqn: Equation, readings: Mapping[Var, Reading]) -> tuple[Var | None, Var]:
    """The operand of which an equation replaces a part, if nothing else it reads lies there."""
    y = eqn.outputs[0]
    if not isinstance(eqn.op, (SliceSet, ScatterSet)) or not isinstance(eqn.inputs[0], Var):
        return None, y
    x = eqn.inputs[0]
    bases = [readings[i].base if i in readings else i for i in eqn.inputs if isinstance(i, Var)]
    return (x if bases.count(x) == 1 and bases[0] is x else None), y


class InsideGroup:
    """Where and until when one group reads its operands.

    places     for each Var from outside, the axes of the domain along which it is read, one entry
               for each way; None stands for views and indices
    loop       of a Var, the loop over the domain in which it is first known: how many reductions
               come before
    needed     the last loop that computes or reads a Var
    """

    def __init__(self, group: Group, readings: Mapping[Var, Reading]) -> None:
        self.group = group
        self.readings = readings
        self.sizes = {a for a, n in enumerate(group.sizes) if n != 1}
        self.reduced = (group.reduced or frozenset()) & self.sizes
        self.places: dict[Var, set[Places | None]] = {}
        for eqn in group.equations:
            self.note_places(eqn)

    def base(self, x: Any) -> Any:
        return self.readings[x].base if x in self.readings else x

    def note_places(self, eqn: Equation) -> None:
        points = self.group.points[eqn.outputs[0]]
        begin = {id(x): start for x, start in aligned(eqn, len(points))}
        for x in eqn.inputs:
            base = self.base(x)
            if not isinstance(base, Var) or base in self.group.coords:
                continue
            places = None
            if x is base and id(x) in begin:
                axes = points[begin[id(x)] :]
                places = tuple([None if n == 1 else a for a, n in zip(axes, x.type.shape)])
            self.places.setdefault(base, set()).add(places)

    def reduces(self, eqn: Equation) -> bool:
        if type(eqn.op) not in REDUCTIONS:
            return False
        points = self.group.points[eqn.outputs[0]]
        return any(points[i] is not None for i in eqn.op.axes)  # type: ignore[attr-defined]

    def count_loops(self, stored: set[Var]) -> None:
        group = self.group
        self.loop: dict[Any, int] = {}
        for eqn in group.equations:
            before = max([self.loop.get(self.base(x), 0) for x in eqn.inputs], default=0)
            self.loop[eqn.outputs[0]] = before + self.reduces(eqn)
        self.end = max(self.loop.values()) + 1
        self.needed: dict[Any, int] = {}
        for eqn in reversed(group.equations):
            y = eqn.outputs[0]
            if y in stored:
                self.needed[y] = max(self.needed.get(y, 0), self.loop_of_store(y))
            for x in map(self.base, eqn.inputs):
                wanted = self.loop.get(x, 0) if self.reduces(eqn) else self.needed.get(y, 0)
                self.needed[x] = max(self.needed.get(x, 0), wanted)

    def axes(self, y: Var) -> set[int]:
        """The axes of the domain along which a result of the group runs."""
        return {a for a, n in zip(self.group.coords[y], y.type.shape) if a is not None and n != 1}

    def loop_of_store(self, y: Var) -> int:
        """A result that the reduced axes leave is written after all loops over them."""
        return self.loop[y] if not self.reduced or self.axes(y) & self.reduced else self.end

    def pairs(
        self, dying: Sequence[Var], wanted: Mapping[Var, Var], stored: set[Var]
    ) -> dict[Var, Var]:
        """Results with the operand that each is written over; `wanted` has those chosen before."""
        waiting: dict[Any, list[Var]] = {}
        for x in dying:
            waiting.setdefault(self.description(x), []).append(x)
        out = {}
        for eqn in self.group.equations:
            y = eqn.outputs[0]
            if y not in stored or not self.is_written_once(eqn):
                continue
            coords = zip(self.group.coords[y], y.type.shape)
            places = tuple([None if n == 1 else a for a, n in coords])
            same = (y.type.shape, y.type.dtype.itemsize, places)
            candidates = waiting.get(same, [])
            if y in wanted and self.description(wanted[y]) == same:
                candidates = [wanted[y]]
            if candidates and self.needed[candidates[-1]] <= self.loop_of_store(y):
                out[y] = candidates.pop()
        return out

    def description(self, x: Var) -> Any:
        """What a result must be like to take the place of an operand; None: none can be."""
        if len(self.places[x]) != 1:
            return None
        (places,) = self.places[x]
        return x.type.shape, x.type.dtype.itemsize, places

    def is_written_once(self, eqn: Equation) -> bool:
        """Is every element of the result written once, when it is finished?"""
        axes = self.axes(eqn.outputs[0])
        if not axes >= self.sizes - self.reduced:
            return False
        if axes & self.reduced and not axes >= self.reduced:
            return False
        by_columns = bool(self.reduced) and max(self.sizes) not in self.reduced
        return not (by_columns and self.reduces(eqn))  # the accumulator of a column is its result
