"""The parts of a plan: addresses known only at run time, instructions, blocks and loops."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

CALL, PARALLEL, BRANCH, LOOP, NATIVE_LOOP, STOP = range(6)

INLINE_NS = 20_000  # cheaper instructions run on the calling thread
CHUNK_NS = 16_000  # the least work worth a separate chunk
LONGEST_CHUNK_NS = 1_000_000  # so that Ctrl-C takes effect soon, and threads finish together


class Address(int):
    """An address in this process, and what it is the address of: a kernel, a constant, a routine.

    A program on disk holds `origin` instead, (kind, names...), and `offset` bytes from there.
    """

    origin: tuple[str | int, ...]
    offset: int

    def __new__(cls, value: int, *origin: str | int, offset: int = 0) -> Address:
        self = super().__new__(cls, value)
        self.origin, self.offset = origin, offset
        return self

    def __add__(self, nbytes: int) -> Address:
        return Address(int(self) + nbytes, *self.origin, offset=self.offset + nbytes)


UNKNOWN = "unknown"  # the kind of an address that another process cannot find


class Cell:
    """A base address that is known only when the plan runs."""

    __slots__ = ("loop",)

    def __init__(self, loop: Loop | None = None) -> None:
        self.loop = loop


class Ref(NamedTuple):
    """An address: a cell and an offset in bytes. `ref.at(n)` is n bytes further.

    home    where the buffer begins that the address belongs to, which may be outside of it
    """

    cell: Cell
    offset: int = 0
    home: int = 0

    def at(self, offset: int) -> Ref:
        return Ref(self.cell, self.offset + offset, self.home)


class IndirectRef(NamedTuple):
    """An address that is read from memory at `address` when the plan runs."""

    address: Ref


class Input(NamedTuple):
    cell: Cell
    dtype: np.dtype
    shape: tuple[int, ...]
    writeable: bool


class Output(NamedTuple):
    cell: Cell
    dtype: np.dtype
    shape: tuple[int, ...]
    alias: int
    travels: bool = False  # other processes send it: memory of huge pages is worth more


class Block:
    """A sequence of instructions."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []


class Instruction:
    """The words of an instruction that are known early; blocks and loops are placed later.

    `traffic` is the bytes that it reads and writes and its number of operations, if known.
    """

    def __init__(
        self,
        words: list[int],
        label: str = "",
        blocks: tuple[Block, ...] = (),
        loop: Loop | None = None,
        traffic: tuple[int, int] = (0, 0),
    ) -> None:
        self.words, self.label = words, label
        self.blocks, self.loop = blocks, loop
        self.traffic = traffic


class Loop:
    """A loop under construction: its carries, and the blocks of its body and its test."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.body_block, self.test_block = Block(), Block()
        self.enter: list[tuple[Cell, Ref | IndirectRef]] = []
        self.step: list[tuple[Cell, Cell | IndirectRef | None, int]] = []

    def carry(self, current: Ref, other: Ref) -> tuple[Ref, Ref]:
        """Two buffers, one read and one written by the body, which swap after each step."""
        now, then = Cell(self), Cell(self)
        self.enter += [(now, current), (then, other)]
        self.step.append((now, then, 0))
        return Ref(now), Ref(then)

    def slide(self, start: Ref | IndirectRef, stride: int) -> Ref:
        """An address that starts at `start` and moves by `stride` bytes after each step."""
        cell = Cell(self)
        self.enter.append((cell, start))
        self.step.append((cell, None, stride))
        return Ref(cell)

    def reload(self, address: IndirectRef) -> Ref:
        """An address that instructions write to memory, reloaded before each step."""
        cell = Cell(self)
        self.enter.append((cell, address))
        self.step.append((cell, address, 0))
        return Ref(cell)

    @property
    def body(self) -> AbstractContextManager[Block]:
        """Context in which the builder's instructions belong to the body."""
        return self.builder.block(self.body_block)

    @property
    def test(self) -> AbstractContextManager[Block]:
        """Context in which the builder's instructions compute the predicate before each step."""
        return self.builder.block(self.test_block)


def chunk_length(extent: int, cost: float, step: int = 1) -> int:
    """The chunk length for an extent, from its size and cost (ns a unit), not from the threads.

    Chunks are equally long and their number is even, so that two or four threads finish together.

    >>> chunk_length(1000, cost=1.0), chunk_length(24_000, cost=1.0)
    (1000, 12000)
    >>> chunk_length(1_000_000, cost=1.0, step=64)
    15680
    """
    total = extent * cost
    if total < INLINE_NS:
        return max(extent, 1)
    chunk_ns = min(max(CHUNK_NS, total / 64), LONGEST_CHUNK_NS)
    chunks = 2 * math.ceil(total / chunk_ns / 2)
    return min(extent, math.ceil(extent / chunks / step) * step)
