"""Printing of tensors: the numbers as NumPy prints them, plus dtype, shape and history."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ops.core.promote import get_default_dtype
from lucid.public.declare import public
from lucid.support.markup import escape, text_html
from lucid.tape.node import as_source

_PLAIN = (np.dtype("bool"), np.dtype("int64"))
PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "short": {"precision": 2, "edgeitems": 2, "threshold": 1000},
    "full": {"threshold": 2**63 - 1},
}
print_options: dict[str, Any] = {}  # set by `set_printoptions`; NumPy's options apply otherwise


@public()
def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed, as `numpy.set_printoptions` does for arrays.

    profile     "default" (NumPy's options), "short" or "full", applied before the others
    sci_mode    True for scientific notation such as 1.5e+00, False to suppress it

    >>> import lucid
    >>> lucid.set_printoptions(precision=2)
    >>> lucid.tensor([1 / 3])
    Tensor([0.33])
    >>> lucid.set_printoptions(profile="default")
    """
    if profile is not None and profile not in PROFILES:
        words = ", ".join(PROFILES)
        raise ArgumentError(f"set_printoptions: profile={profile!r} is not one of {words}")
    values = {
        "precision": precision, "threshold": threshold, "edgeitems": edgeitems,
        "linewidth": linewidth,
    }  # fmt: skip
    new = {name: value for name, value in values.items() if value is not None}
    if any([isinstance(value, bool) or not isinstance(value, int) or value < 0
            for value in new.values()]):  # fmt: skip
        raise ArgumentError(f"set_printoptions: {new}: options must be non-negative integers")
    if profile is not None:
        print_options.clear()
        print_options.update(PROFILES[profile])
    print_options.update(new)
    if sci_mode is not None:
        digits = print_options.get("precision", np.get_printoptions()["precision"])
        print_options["suppress"] = not sci_mode
        print_options["formatter"] = {"float": f"{{:.{digits}e}}".format} if sci_mode else None


def tensor_repr(x: Any) -> str:
    """Return `Tensor([2., 4., 6.])`, with dtype, shape and history if they are not the default.

    Inside vmap and abstract traces, where there are no numbers, show the type and the transform.
    """
    if x.raw is None:
        return f"{type(x).__name__}(<{x.type} in {x.node.trace.what}>)"
    prefix = f"{type(x).__name__}("
    with np.printoptions(**print_options):
        body = np.array2string(x.value, separator=", ", prefix=prefix)
        is_summarized = x.value.size > np.get_printoptions()["threshold"]
    notes = []
    if x.value.size == 0 or is_summarized:
        notes.append(f"shape={x.shape}")
    if x.dtype not in (*_PLAIN, get_default_dtype()) or x.value.size == 0:
        notes.append(f"dtype={x.dtype}")
    if x.requires_grad:
        notes.append("requires_grad=True" if x.is_leaf else f"op={x.node.op.name}")
    last = len(body.rsplit("\n", 1)[-1]) + (len(prefix) if "\n" not in body else 0)
    separator = ", " if last + sum(map(len, notes)) < 88 else ",\n" + " " * len(prefix)
    return prefix + body + (separator + ", ".join(notes) if notes else "") + ")"


def tensor_html(x: Any) -> str:
    """Return the tensor as a notebook shows it: the same text, its type, and where it was made."""
    caption = str(x.type)
    if x.raw is not None:
        caption += f" · {x.value.nbytes:,} bytes"
    if x.requires_grad and x.is_leaf:
        caption += " · requires a gradient"
    elif x.node is not None and x.node.op is not None and as_source(x.node.source) is not None:
        caption += f" · {x.node.op.name} at {as_source(x.node.source)}"
    return text_html(escape(tensor_repr(x)), caption)
