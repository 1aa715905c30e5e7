"""How a tensor is shown: its numbers as NumPy prints them, and what NumPy does not know."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ops.promote import get_default_dtype

_PLAIN = (np.dtype("bool"), np.dtype("int64"))


def tensor_repr(x: Any) -> str:
    """`Tensor([2., 4., 6.])`, with dtype, shape and history where they are not the usual ones.

    Inside vmap and abstract traces, where there are no numbers: the type and the transform.
    """
    if x.value is None:
        return f"{type(x).__name__}(<{x.type} in {x.node.trace.what}>)"
    prefix = f"{type(x).__name__}("
    body = np.array2string(x.value, separator=", ", prefix=prefix)
    notes = []
    if x.value.size == 0 or x.value.size > np.get_printoptions()["threshold"]:
        notes.append(f"shape={x.shape}")
    if x.dtype not in (*_PLAIN, get_default_dtype()) or x.value.size == 0:
        notes.append(f"dtype={x.dtype}")
    if x.requires_grad:
        notes.append("requires_grad=True" if x.is_leaf else f"op={x.node.op.name}")
    last = len(body.rsplit("\n", 1)[-1]) + (len(prefix) if "\n" not in body else 0)
    joint = ", " if last + sum(map(len, notes)) < 88 else ",\n" + " " * len(prefix)
    return prefix + body + (joint + ", ".join(notes) if notes else "") + ")"
