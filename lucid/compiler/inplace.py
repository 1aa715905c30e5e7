"""inplace: which results of a segment may be written over an operand that is not read any more.

A kernel may write y where x lies if it reads x only at the point where it writes y, and not after
that: x has the shape and the size of element of y and runs along the same axes of the domain, every
point is written once, and no loop over the domain after the one that stores y needs x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lucid.compiler.groups import REDUCTIONS, Group, Reading, Step, aligned
from lucid.ir.graph import Equation, Var

Places = tuple[int | None, ...]


def overwritten(
    steps: Sequence[Step],
    readings: Mapping[Var, Reading],
    last: Mapping[Var, int],
    stored: set[Var],
    free: set[Var],
) -> dict[Var, Var]:
    """For results y the operand x in whose place they are to be written; each x serves one y.

    `last` is the step that reads a Var last, `stored` are the Vars that steps leave in memory,
    `free` those whose memory may be written over.
    """
    out: dict[Var, Var] = {}
    for number, step in enumerate(steps):
        if not isinstance(step, Group):
            continue
        inside = InsideGroup(step, readings)
        dying = [x for x in inside.places if x in free and last.get(x) == number]
        if dying:
            inside.count_loops(stored)
            out.update(inside.pairs(dying, stored))
    return out


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

    def pairs(self, dying: Sequence[Var], stored: set[Var]) -> dict[Var, Var]:
        """Results with the operand that each is written over."""
        waiting: dict[Any, list[Var]] = {}
        for x in dying:
            if len(self.places[x]) == 1:
                (places,) = self.places[x]
                waiting.setdefault((x.type.shape, x.type.dtype.itemsize, places), []).append(x)
        out = {}
        for eqn in self.group.equations:
            y = eqn.outputs[0]
            if y not in stored or not self.is_written_once(eqn):
                continue
            coords = zip(self.group.coords[y], y.type.shape)
            places = tuple([None if n == 1 else a for a, n in coords])
            candidates = waiting.get((y.type.shape, y.type.dtype.itemsize, places), [])
            if candidates and self.needed[candidates[-1]] <= self.loop_of_store(y):
                out[y] = candidates.pop()
        return out

    def is_written_once(self, eqn: Equation) -> bool:
        """Is every element of the result written once, when it is finished?"""
        axes = self.axes(eqn.outputs[0])
        if not axes >= self.sizes - self.reduced:
            return False
        if axes & self.reduced and not axes >= self.reduced:
            return False
        by_columns = bool(self.reduced) and max(self.sizes) not in self.reduced
        return not (by_columns and self.reduces(eqn))  # the accumulator of a column is its result
