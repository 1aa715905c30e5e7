"""verify_steps checks fused groups: every value is read at the points where it was computed.

A kernel computes a value once for each point of its domain, so an equation must run along the same
axes as the values that it reads from its own kernel; and a step reads only what earlier steps left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lucid.compiler.fusion.groups import (
    Coords,
    Group,
    Reading,
    Step,
    aligned,
    domain,
)
from lucid.errors import VerifyError
from lucid.ir.graph import Equation, Graph, Var


def verify_steps(graph: Graph, steps: Sequence[Step], readings: Mapping[Any, Reading]) -> None:
    """Raise a VerifyError that names the first equation which its kernel would compute wrongly."""
    number: dict[Any, int] = {}
    for k, step in enumerate(steps):
        for eqn in equations_of(step):
            number.update((var, k) for var in eqn.outputs)
    for k, step in enumerate(steps):
        for eqn in equations_of(step):
            for x in eqn.inputs:
                base = readings[x].base if x in readings else x
                if number.get(base, -1) > k:
                    raise broken(graph, eqn, "reads what a later step computes")
            if isinstance(step, Group):
                verify_points(graph, step, eqn)
                verify_operands(graph, step, eqn, readings)


def equations_of(step: Step) -> Sequence[Equation]:
    return step.equations if isinstance(step, Group) else (step.equation,)


def verify_points(graph: Graph, group: Group, eqn: Equation) -> None:
    """Check that an equation covers its own shape and reduces the axes that its group reduces."""
    out, sizes = eqn.outputs[0], group.sizes
    points = group.points[out]
    shape = domain(eqn)
    along = [1 if axis is None else sizes[axis] for axis in points]
    named = [axis for axis in points if axis is not None]
    if tuple(along) != shape or len(set(named)) != len(named):
        raise broken(graph, eqn, f"of shape {shape} runs along axes {points} of {sizes}")
    gone: Sequence[int] = eqn.op.axes if eqn.op.monoid else ()  # type: ignore[attr-defined]
    if tuple(axis for i, axis in enumerate(points) if i not in gone) != group.coords[out]:
        raise broken(graph, eqn, f"has axes {group.coords[out]} where it runs along {points}")
    taken = {points[i] for i in gone} - {None}
    if taken and taken != group.reduced:
        raise broken(graph, eqn, f"reduces axes {taken} in a kernel over {group.reduced}")


def verify_operands(
    graph: Graph, group: Group, eqn: Equation, readings: Mapping[Any, Reading]
) -> None:
    """Check that operands from the same kernel were computed along the axes they are read along."""
    points = group.points[eqn.outputs[0]]
    for x, first in aligned(eqn, len(points)):
        reading = readings.get(x) or Reading(x, tuple(range(x.type.ndim)))
        inside = group.coords.get(reading.base)
        if inside is not None and not (
            reading.plain and agrees(x, reading, inside, points[first:], group.sizes)
        ):
            raise broken(graph, eqn, f"reads along {points} what is computed along {inside}")
    if eqn.op.reads_memory:
        read: Any = eqn.inputs[0]
        if (readings[read].base if read in readings else read) in group.coords:
            raise broken(graph, eqn, "reads at other points what its own kernel computes")


def agrees(
    x: Var, reading: Reading, inside: Coords, points: Coords, sizes: tuple[int, ...]
) -> bool:
    """True if a value computed along `inside` is the one that `x` has at `points`."""
    for n, axis, here in zip(x.type.shape, reading.axes, points):
        there = None if axis is None else inside[axis]
        if there is not None and n != 1 and there != here:
            return False
    kept = {axis for n, axis in zip(x.type.shape, reading.axes) if n != 1}
    return all(a is None or sizes[a] == 1 or i in kept for i, a in enumerate(inside))


def broken(graph: Graph, eqn: Equation, what: str) -> VerifyError:
    where = f"   [{eqn.source}]" if eqn.source else ""
    return VerifyError(f"fuse: {graph.name}: {eqn.outputs[0]!r} = {eqn.op!r} {what}{where}")
