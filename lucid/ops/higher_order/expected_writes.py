"""expected_writes: what an expected call writes to its arguments, such as running statistics.

The values are results of side operations (`autograd/following/side_operations.py`). A call that is
expected again adds the same side operations on its own arguments, and the writes wait for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Literal
from lucid.tape.node import Traced
from lucid.tape.recording.pending import Pending, is_pending
from lucid.tape.writes import can_defer_write


class Before:
    """What a follower and the arguments of a call were before the call.

    values    by argument: the place of a pending value, the id of an array, None for a constant
    """

    __slots__ = ("at", "made", "sides", "values")

    def __init__(self, follower: Any, args: tuple[Any, ...]) -> None:
        self.at, self.sides, self.made = follower.at, len(follower.sides), len(follower.made)
        self.values = [
            None if not isinstance(x, Traced) else x.raw.place if is_pending(x.raw) else id(x.raw)
            for x in args
        ]  # no array: `is_visible` counts its references

    def written(self, args: tuple[Any, ...]) -> list[int]:
        """Return the numbers of the arguments whose values are other ones now, and pending."""
        return [
            i for i, (x, value) in enumerate(zip(args, self.values))
            if value is not None and is_pending(x.raw) and x.raw.place != value
        ]  # fmt: skip


class ExpectedWrites:
    """The side operations of an expected call, and the arguments that get their results.

    read      the numbers of the arguments that side operations read
    sides     each operation with its operands: (0, position in `read`), (1, number of a side
              operation, result), (2, a Literal or the place of a step of the call)
    written   (number of an argument, its dtype and shape, number of a side operation, result)
    at        the number of the first step of the call
    """

    __slots__ = ("at", "read", "sides", "written")

    def __init__(self, at: int) -> None:
        self.at = at
        self.read: list[int] = []
        self.sides: list[tuple[Any, list[tuple[Any, ...]]]] = []
        self.written: list[tuple[int, Any, Any, int, int]] = []

    def refs(self, follower: Any, args: tuple[Any, ...]) -> list[Any] | None:
        """Return where the arguments are that are read; None if the writes cannot wait.

        An operand of a step has a Node by now, so it is not one that may be written.
        """
        for i, dtype, shape, _, _ in self.written:
            x = args[i]
            if not isinstance(x, Traced) or not can_defer_write(x):
                return None
            raw = x.raw
            if raw.dtype != dtype or raw.shape != shape:  # type: ignore[union-attr]
                return None
            if raw.__class__ is Pending and raw.run is not follower:
                return None
            raw = None  # it must have no name
        if not follower.has_room(len(self.sides)):
            return None
        refs = [follower.ref(args[i]) for i in self.read]
        return None if None in refs else refs

    def wait(self, follower: Any, args: tuple[Any, ...], given: Sequence[Any]) -> None:
        """Add the side operations, and let the arguments wait for their results."""
        first, shift = len(follower.sides), follower.at - self.at
        results = []
        for side, operands in self.sides:
            refs = tuple([
                given[x[1]] if x[0] == 0 else (~(first + x[1]), x[2]) if x[0] == 1 else x[1]
                for x in operands
            ])  # fmt: skip
            if shift or refs != side.refs:
                side = side._replace(refs=refs, at=side.at + shift)
            results.append(follower.add_side(side))
        for i, _, _, number, result in self.written:
            follower.let_wait(args[i], results[number][result])


def learn_writes(
    follower: Any, args: tuple[Any, ...], before: Before, inside: set[int]
) -> ExpectedWrites | None:
    """Return what a call has written, None if it cannot be expected again.

    inside    the slots of its steps
    """
    made = ExpectedWrites(before.at)
    sides = follower.sides[before.sides :]
    tensors = [x for x in args if isinstance(x, Traced)]
    if len({id(x) for x in tensors}) != len(tensors):
        return None
    if len(follower.made) - before.made != sum([len(side.types) for side in sides]):
        return None  # a result is on the tape
    for side in sides:
        operands = [operand_of(follower, ref, args, before, inside, made.read) for ref in side.refs]
        if None in operands:
            return None
        made.sides.append((side, operands))  # type: ignore[arg-type]
    for i in before.written(args):
        value = args[i].raw
        place, result = value.place
        number = ~place - before.sides
        if not 0 <= number < len(sides):
            return None
        made.written.append((i, value.dtype, value.shape, number, result))
    return made


def operand_of(
    follower: Any, ref: Any, args: tuple[Any, ...], before: Before, inside: set[int], read: Any
) -> tuple[Any, ...] | None:
    """Return what an operand of a side operation is for the call; None if it is from outside."""
    if ref.__class__ is Literal:
        return (2, ref)
    i = argument_of(follower, ref, args, before.values)
    if i is not None:
        if i not in read:
            read.append(i)
        return (0, read.index(i))
    if ref.__class__ is int:
        return None
    place, result = ref
    if place < 0:
        number = ~place - before.sides
        return (1, number, result) if number >= 0 else None
    return (2, ref) if place in inside else None


def argument_of(follower: Any, ref: Any, args: Sequence[Any], values: Sequence[Any]) -> int | None:
    """Return the number of the argument that a side operation reads as `ref`, or None."""
    for i, value in enumerate(values):
        if value is None:
            continue
        if ref.__class__ is int:
            if id(follower.given[ref]) == value:
                return i
        elif value == ref:
            return i
        elif ref[1] < 0 <= ref[0] and args[i].node is not None:
            if follower.slots[ref[0]] is args[i].node and value.__class__ is int:
                return i
    return None
