"""memory: lifetimes of buffers -> offsets in one arena, where disjoint lifetimes share memory.

Best fit: a new buffer takes the smallest gap that holds it, in order of time, large ones first.
Gaps are indexed by size and by both ends, so a buffer costs a binary search and no scan.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT = 64


class Lifetime(NamedTuple):
    """A buffer of `nbytes` that is written at step `first` and read until step `last`."""

    nbytes: int
    first: int
    last: int


def allocate(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Return an offset for each buffer, and the size of the arena.

    >>> allocate([Lifetime(64, 0, 1), Lifetime(64, 1, 2), Lifetime(64, 2, 3)])
    ([0, 64, 0], 128)
    """
    offsets = [0] * len(lifetimes)
    free = FreeList()
    ending = sorted(range(len(lifetimes)), key=lambda i: lifetimes[i].last)
    done = 0
    for i in sorted(
        range(len(lifetimes)), key=lambda i: (lifetimes[i].first, -lifetimes[i].nbytes)
    ):
        while lifetimes[ending[done]].last < lifetimes[i].first:
            free.release(offsets[ending[done]], align_up(lifetimes[ending[done]].nbytes))
            done += 1
        offsets[i] = free.take(align_up(lifetimes[i].nbytes))
    return offsets, free.top


def align_up(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT


class FreeList:
    """The free parts of an arena that ends at `top`."""

    def __init__(self) -> None:
        self.top = 0
        self.by_size: list[tuple[int, int]] = []  # (size, start), sorted
        self.size_at: dict[int, int] = {}  # by start
        self.start_before: dict[int, int] = {}  # by end

    def add(self, start: int, size: int) -> None:
        insort(self.by_size, (size, start))
        self.size_at[start] = size
        self.start_before[start + size] = start

    def remove(self, start: int) -> int:
        size = self.size_at.pop(start)
        del self.start_before[start + size]
        del self.by_size[bisect_left(self.by_size, (size, start))]
        return size

    def take(self, size: int) -> int:
        """Allocate a part of this size and return its start."""
        k = bisect_left(self.by_size, (size, 0))
        if k < len(self.by_size):
            start = self.by_size[k][1]
            rest = self.remove(start) - size
            if rest:
                self.add(start + size, rest)
            return start
        start = self.start_before.get(self.top, self.top)  # extend a gap at the end
        if start < self.top:
            self.remove(start)
        self.top = start + size
        return start

    def release(self, start: int, size: int) -> None:
        """Free a part, and merge it with the gaps on both sides."""
        before = self.start_before.get(start)
        if before is not None:
            size += self.remove(before)
            start = before
        if start + size in self.size_at:
            size += self.remove(start + size)
        self.add(start, size)
