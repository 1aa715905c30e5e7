"""How a tensor is shown: its numbers as NumPy prints them, and what NumPy does not know."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ops.promote import get_default_dtype

_PLAIN = (np.dtype("bool"), np.dtype("int64"))


def tensor_repr(x: Any) -> str:
    """`Tensor([2., 4., 6.])`, with dtype and requires_grad where they are not the usual ones."""
    if x.value is None:
        return f"Tensor(<{x.type} in {x.node.trace.what}>)"
    prefix = "Tensor("
    body = np.array2string(x.value, separator=", ", prefix=prefix, threshold=1000)
    notes = []
    if x.dtype not in (*_PLAIN, get_default_dtype()):
        notes.append(f"dtype={x.dtype}")
    if x.value.size == 0:
        notes.append(f"shape={x.shape}")
    if x.requires_grad:
        notes.append("requires_grad=True" if x.is_leaf else f"op={x.node.op.name}")
    return prefix + ", ".join([body, *notes]) + ")"
