"""memory: lifetimes of buffers -> offsets in one arena, in which buffers whose lives do not overlap share space."""

from __future__ import annotations

from typing import NamedTuple

ALIGNMENT = 64


class Life(NamedTuple):
    """A buffer of `nbytes` that is written at step `first` and read until step `last`."""

    nbytes: int
    first: int
    last: int


def allocate(lives: list[Life]) -> tuple[list[int], int]:
    """An offset for each buffer, and the size of the arena: best fit among the gaps, in order of time."""
    offsets = [0] * len(lives)
    free: list[tuple[int, int]] = []  # (offset, size), by offset
    top = 0
    ends: dict[int, list[int]] = {}
    for i, life in enumerate(lives):
        ends.setdefault(life.last, []).append(i)
    order = sorted(range(len(lives)), key=lambda i: (lives[i].first, -lives[i].nbytes))
    clock = -1
    for i in order:
        life = lives[i]
        while clock < life.first - 1:
            clock += 1
            for done in ends.get(clock, ()):
                free = _release(free, offsets[done], _rounded(lives[done].nbytes))
        size = _rounded(life.nbytes)
        fitting = [gap for gap in free if gap[1] >= size]
        if fitting:
            gap = min(fitting, key=lambda g: g[1])
            free.remove(gap)
            offsets[i] = gap[0]
            if gap[1] > size:
                free.append((gap[0] + size, gap[1] - size))
                free.sort()
        else:
            if free and free[-1][0] + free[-1][1] == top:
                offsets[i] = free.pop()[0]
            else:
                offsets[i] = top
            top = offsets[i] + size
    return offsets, top


def _rounded(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT


def _release(free: list[tuple[int, int]], offset: int, size: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for gap in sorted([*free, (offset, size)]):
        if merged and merged[-1][0] + merged[-1][1] == gap[0]:
            merged[-1] = (merged[-1][0], merged[-1][1] + gap[1])
        else:
            merged.append(gap)
    return merged
