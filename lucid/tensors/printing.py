"""How a tensor is shown: its numbers as NumPy prints them, and what NumPy does not know."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.ops.core.promote import get_default_dtype

_PLAIN = (np.dtype("bool"), np.dtype("int64"))
PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "short": {"precision": 2, "edgeitems": 2, "threshold": 1000},
    "full": {"threshold": 2**63 - 1},
}
chosen: dict[str, Any] = {}  # what `set_printoptions` has set; the rest is as NumPy has it


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are shown: digits, how many elements before some are left out, width.

    profile     "default" (as NumPy's arrays are shown), "short" or "full", before the others
    sci_mode    True for numbers such as 1.5e+00, False for none of them

    >>> import lucid
    >>> lucid.set_printoptions(precision=2)
    >>> lucid.tensor([1 / 3])
    Tensor([0.33])
    >>> lucid.set_printoptions(profile="default")
    """
    if profile is not None and profile not in PROFILES:
        words = ", ".join(PROFILES)
        raise ArgumentError(f"set_printoptions: profile={profile!r} of {words}{at_line()}")
    given = {
        "precision": precision, "threshold": threshold, "edgeitems": edgeitems,
        "linewidth": linewidth,
    }  # fmt: skip
    new = {name: value for name, value in given.items() if value is not None}
    if any([isinstance(value, bool) or not isinstance(value, int) or value < 0
            for value in new.values()]):  # fmt: skip
        raise ArgumentError(f"set_printoptions: {new} are integers from 0 on{at_line()}")
    if profile is not None:
        chosen.clear()
        chosen.update(PROFILES[profile])
    chosen.update(new)
    if sci_mode is not None:
        digits = chosen.get("precision", np.get_printoptions()["precision"])
        chosen["suppress"] = not sci_mode
        chosen["formatter"] = {"float": f"{{:.{digits}e}}".format} if sci_mode else None


def tensor_repr(x: Any) -> str:
    """`Tensor([2., 4., 6.])`, with dtype, shape and history where they are not the usual ones.

    Inside vmap and abstract traces, where there are no numbers: the type and the transform.
    """
    if x.value is None:
        return f"{type(x).__name__}(<{x.type} in {x.node.trace.what}>)"
    prefix = f"{type(x).__name__}("
    with np.printoptions(**chosen):
        body = np.array2string(x.value, separator=", ", prefix=prefix)
        is_cut = x.value.size > np.get_printoptions()["threshold"]
    notes = []
    if x.value.size == 0 or is_cut:
        notes.append(f"shape={x.shape}")
    if x.dtype not in (*_PLAIN, get_default_dtype()) or x.value.size == 0:
        notes.append(f"dtype={x.dtype}")
    if x.requires_grad:
        notes.append("requires_grad=True" if x.is_leaf else f"op={x.node.op.name}")
    last = len(body.rsplit("\n", 1)[-1]) + (len(prefix) if "\n" not in body else 0)
    joint = ", " if last + sum(map(len, notes)) < 88 else ",\n" + " " * len(prefix)
    return prefix + body + (joint + ", ".join(notes) if notes else "") + ")"
