"""Merge independent groups that read the same arrays into one kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from lucid.compiler.fusion.groups import Group, aligned, compatible
from lucid.ir.graph import Var


def join_siblings(fuser: Any) -> None:
    """Merge groups that read the same large array at the same points.

    Groups of one level do not depend on each other, so any two of them can be merged.
    """
    readers: dict[Any, Group] = {}
    for step in fuser.steps:
        if not isinstance(step, Group) or step in fuser.merged:
            continue
        group = step
        for read in large_reads(fuser, step):
            other = readers.get((step.level, step.sizes, read))
            while other in fuser.merged:
                other = fuser.merged[other]  # type: ignore[index]
            if other is not None and other is not group and compatible(group, other):
                names = {axis: axis for axis in range(len(step.sizes))}
                fuser.merge(other, group, names)
                group = other
        for read in large_reads(fuser, step):
            readers[step.level, step.sizes, read] = group


def join_columns(fuser: Any) -> None:
    """Merge pairs of groups that sum the same columns, as the two gradients of a layer norm do.

    Only pairs, and only of adjacent levels: what is summed later has left the cache.
    """
    latest: dict[Any, Group] = {}
    alive = [s for s in fuser.steps if isinstance(s, Group) and s not in fuser.merged]
    for group in sorted(alive, key=lambda step: step.level):
        last = max((a for a, n in enumerate(group.sizes) if n != 1), default=None)
        if not group.reduced or last in group.reduced:
            continue
        key = (group.sizes, group.reduced)
        other = latest.pop(key, None)
        near = other is not None and group.level - other.level <= 1
        if near and fuser.can_raise(other, group.level) and compatible(group, other):  # type: ignore[arg-type]
            names = {axis: axis for axis in range(len(group.sizes))}
            fuser.merge(group, other, names)  # type: ignore[arg-type]
        else:
            latest[key] = group


def large_reads(fuser: Any, group: Group) -> Iterator[Any]:
    """Arrays as large as the domain that a group reads from outside, with their axes."""
    size = math.prod(group.sizes)
    for eqn in group.equations:
        points = group.points[eqn.outputs[0]]
        for x, first in aligned(eqn, len(points)):
            if isinstance(x, Var) and x.type.size == size and fuser.base(x) not in group.coords:
                yield x, points[first:]
