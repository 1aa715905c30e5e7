"""donation: inputs whose memory the outputs reuse: written state and donated arguments.

The program overwrites such an input, so nothing else may see its memory: if a view, another
argument or a NumPy array shares it, the program gets a copy instead. A donated argument cannot be
used afterward, and reading it raises an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from lucid.ir.pytree import flatten, unflatten
from lucid.ops.shape.copying import COPY
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.node import LOCAL_REFERENCES, TRACE, Node, Trace, Traced

OWNED = LOCAL_REFERENCES + 2  # of an array that its tensor and a list of values hold


def copy_if_aliased(
    values: Sequence[np.ndarray], overwritten: Iterable[int]
) -> Sequence[np.ndarray]:
    """Return the inputs, copying those that are overwritten and share memory with another."""
    if have_distinct_memory(values):
        return values
    out = list(values)
    for i in overwritten:
        others = [x for j, x in enumerate(values) if j != i]
        if any([np.may_share_memory(values[i], x) for x in others]):
            out[i] = values[i].copy()
    return out


def have_distinct_memory(values: Sequence[np.ndarray]) -> bool:
    """True if each array has another owner, so that no two of them can share memory."""
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
    """True if an array of one list shares memory with one of the other list."""
    if have_distinct_memory([*some, *others]):
        return False
    return any(np.may_share_memory(x, y) for x in some for y in others)


def copy_if_shared(leaves: Sequence[Any], values: list[np.ndarray], donated: Iterable[int]) -> None:
    """Replace donated arrays that something else references by copies."""
    for i in donated:
        x, value = leaves[i], values[i]
        unshared = isinstance(x, Traced) and x.storage is None and value.base is None
        if not unshared or getrefcount(value) > OWNED:
            values[i] = value.copy()


def invalidate(leaves: Sequence[Any], donated: Iterable[int], name: str) -> None:
    """Remove the values of donated tensors: reading one raises an error that says why."""
    for i in donated:
        x = leaves[i]
        if isinstance(x, Traced) and x.raw is not None:
            node = Node(None, (), TRACE, None, x.type)
            node.trace = donation_to(name)
            x.raw, x.node, x.storage, x.origin = None, node, None, None


@memoize(maxsize=128)
def donation_to(name: str) -> Trace:
    """Return an ended Trace for tensors that were donated to a function."""
    trace = Trace(name)
    trace.active = False
    trace.end_reason = (
        f"this tensor was donated to {name} (donate_argnums), whose result now owns its memory; "
        "use the result, or do not donate it"
    )
    return trace


def unshare(result: Any, given: Sequence[Any]) -> Any:
    """Return a result with copies of its views; tensors that were given stay themselves."""
    leaves, tree = flatten(result)
    kept = {id(x) for x in given}
    shared = [isinstance(y, Traced) and y.origin is not None and id(y) not in kept for y in leaves]
    if not any(shared):
        return result
    return unflatten(tree, [bind(COPY, y) if s else y for y, s in zip(leaves, shared)])
