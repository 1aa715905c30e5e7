"""In-place reuse: the results of a segment that may overwrite an operand that is no longer read.

A kernel may write y into the memory of x if it reads x only at the point where it writes y, and not
afterward: x has y's shape and element size and runs along the same axes of the domain, every point
is written once, and no loop over the domain after the one that stores y needs x.

An op that replaces part of x (`buffer[i] = v`) writes only that part, if x is no longer read and
the new part does not come from x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lucid.compiler.fusion.groups import Group, Reading, Step, aligned
from lucid.ir.graph import Equation, Var

Axes = tuple[int | None, ...]


def find_reuse(
    steps: Sequence[Step],
    readings: Mapping[Var, Reading],
    last: Mapping[Var, int],
    stored: set[Var],
    free: set[Var],
    reserved: Mapping[Var, Var],
) -> dict[Var, Var]:
    """Map results y to the operand x whose memory they reuse; each x serves one y.

    `last` is the step that reads a Var last, `stored` are the Vars that steps leave in memory,
    `free` those whose memory may be overwritten, `reserved` maps those that only one result may
    overwrite to that result.
    """
    out: dict[Var, Var] = {}
    for number, step in enumerate(steps):
        if not isinstance(step, Group):
            x, y = updated_operand(step.equation, readings)
            if x is not None and last.get(x) == number and (x in free or x in reserved):
                out[y] = x  # for reserved x, `donated_outputs` checks that the right output follows
            continue
        inside = GroupReads(step, readings)
        last_reads = [x for x in inside.axes_read if last.get(x) == number]
        reusable = [x for x in last_reads if x in free]
        wanted = {reserved[x]: x for x in last_reads if x in reserved}
        if reusable or wanted:
            inside.count_loops(stored)
            out.update(inside.pairs(reusable, wanted, stored))
    return out


def donated_outputs(
    reserved: Mapping[Var, Var],
    over: dict[Var, Var],
    first: Mapping[Var, int],
    last: Mapping[Var, int],
) -> dict[Var, Var]:
    """Return the outputs y that are computed in the memory of the input x reserved for them.

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


def updated_operand(eqn: Equation, readings: Mapping[Var, Reading]) -> tuple[Var | None, Var]:
    """The operand that an equation updates in part, if it reads nothing else from its memory."""
    y = eqn.outputs[0]
    if not eqn.op.updates or not isinstance(eqn.inputs[0], Var):
        return None, y
    x = eqn.inputs[0]
    bases = [readings[i].base if i in readings else i for i in eqn.inputs if isinstance(i, Var)]
    return (x if bases.count(x) == 1 and bases[0] is x else None), y


class GroupReads:
    """The axes along which one group reads its operands, and the last loop that does.

    axes_read  for each Var from outside, the axes of the domain along which it is read, one entry
               for each way of reading it; None stands for views and indices
    loop       for each Var, the loop over the domain that computes it: the number of reductions
               before it
    needed     for each Var, the last loop that computes or reads it
    """

    def __init__(self, group: Group, readings: Mapping[Var, Reading]) -> None:
        self.group = group
        self.readings = readings
        self.sizes = {a for a, n in enumerate(group.sizes) if n != 1}
        self.reduced = (group.reduced or frozenset()) & self.sizes
        self.axes_read: dict[Var, set[Axes | None]] = {}
        for eqn in group.equations:
            self.record_axes(eqn)

    def base(self, x: Any) -> Any:
        return self.readings[x].base if x in self.readings else x

    def record_axes(self, eqn: Equation) -> None:
        points = self.group.points[eqn.outputs[0]]
        begin = {id(x): start for x, start in aligned(eqn, len(points))}
        for x in eqn.inputs:
            base = self.base(x)
            if not isinstance(base, Var) or base in self.group.coords:
                continue
            axes_read = None
            if x is base and id(x) in begin:
                axes = points[begin[id(x)] :]
                axes_read = tuple([None if n == 1 else a for a, n in zip(axes, x.type.shape)])
            self.axes_read.setdefault(base, set()).add(axes_read)

    def reduces(self, eqn: Equation) -> bool:
        if not eqn.op.monoid:
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
        """The loop that stores y: results without reduced axes are stored after all loops."""
        return self.loop[y] if not self.reduced or self.axes(y) & self.reduced else self.end

    def pairs(
        self, last_reads: Sequence[Var], wanted: Mapping[Var, Var], stored: set[Var]
    ) -> dict[Var, Var]:
        """Map results to the operands they overwrite; `wanted` has those chosen before."""
        candidates_by_kind: dict[Any, list[Var]] = {}
        for x in last_reads:
            candidates_by_kind.setdefault(self.description(x), []).append(x)
        out = {}
        for eqn in self.group.equations:
            y = eqn.outputs[0]
            if y not in stored or not self.is_written_once(eqn):
                continue
            coords = zip(self.group.coords[y], y.type.shape)
            axes_read = tuple([None if n == 1 else a for a, n in coords])
            same = (y.type.shape, y.type.dtype.itemsize, axes_read)
            candidates = candidates_by_kind.get(same, [])
            if y in wanted and self.description(wanted[y]) == same:
                candidates = [wanted[y]]
            if candidates and self.needed[candidates[-1]] <= self.loop_of_store(y):
                out[y] = candidates.pop()
        return out

    def description(self, x: Var) -> Any:
        """The shape, item size and axes of a result that may overwrite `x`; None if none may."""
        if len(self.axes_read[x]) != 1:
            return None
        (axes_read,) = self.axes_read[x]
        return x.type.shape, x.type.dtype.itemsize, axes_read

    def is_written_once(self, eqn: Equation) -> bool:
        """True if every element of the result is written once, with its final value."""
        axes = self.axes(eqn.outputs[0])
        if not axes >= self.sizes - self.reduced:
            return False
        if axes & self.reduced and not axes >= self.reduced:
            return False
        by_columns = bool(self.reduced) and max(self.sizes) not in self.reduced
        return not (by_columns and self.reduces(eqn))  # the accumulator of a column is its result
