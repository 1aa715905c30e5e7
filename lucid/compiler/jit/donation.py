"""donation: inputs of a program whose memory its outputs take: state it writes, arguments given up.

The program overwrites such an input, so nobody else may see that memory: where a view, another
argument or a NumPy array shares it, the program gets a copy instead. An argument that was given up
is of no use afterwards, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from sys import getrefcount
from typing import Any

import numpy as np

from lucid.tape.node import TRACE, Node, Trace, Traced

OWNED = 4  # references to an array that a tensor, a list of values and two functions have


def set_apart(values: Sequence[np.ndarray], overwritten: Iterable[int]) -> Sequence[np.ndarray]:
    """The inputs, with a copy of those that are overwritten and share memory with another one."""
    if own_memory(values):
        return values
    out = list(values)
    for i in overwritten:
        others = [x for j, x in enumerate(values) if j != i]
        if any([np.may_share_memory(values[i], x) for x in others]):
            out[i] = values[i].copy()
    return out


def own_memory(values: Sequence[np.ndarray]) -> bool:
    """True where it is plain that no two arrays share memory: each belongs to another owner."""
    owners = set()
    for x in values:
        base = x.base
        if base is not None:
            if base.__class__ is not np.ndarray or base.base is not None:
                return False
            x = base
        owners.add(id(x))
    return len(owners) == len(values)


def overlap(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Does an array of one list share memory with one of the other list?"""
    if own_memory([*some, *others]):
        return False
    return any(np.may_share_memory(x, y) for x in some for y in others)


def give_up(leaves: Sequence[Any], values: list[np.ndarray], donated: Iterable[int]) -> None:
    """Replace donated arrays that somebody else can see by copies."""
    for i in donated:
        x, value = leaves[i], values[i]
        alone = isinstance(x, Traced) and x.storage is None and value.base is None
        if not alone or getrefcount(value) > OWNED:
            values[i] = value.copy()


def invalidate(leaves: Sequence[Any], donated: Iterable[int], name: str) -> None:
    """Take the values of donated tensors away: whoever asks for one learns why it is gone."""
    for i in donated:
        x = leaves[i]
        if isinstance(x, Traced) and x.value is not None:
            node = Node(None, (), TRACE, None, x.type)
            node.trace = donation_to(name)
            x.value, x.node, x.storage, x.origin = None, node, None, None


@lru_cache
def donation_to(name: str) -> Trace:
    """A trace that has ended, for tensors that were donated to a function."""
    trace = Trace(name)
    trace.active = False
    trace.ended = (
        f"this tensor was donated to {name} (donate_argnums), whose result has its memory now; "
        "use the result, or do not donate it"
    )
    return trace
