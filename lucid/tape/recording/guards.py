"""Guards: values that Python read while a function was recorded.

A recorded run is repeated only where its guards hold. Compiled code rounds differently from the run
that was recorded, so a floating guard accepts both the value that Python read and the values that
compiled code has computed for the same data. What Python decides by is exact: of `bool(x)` and
`int(x)` only the truth value and the integer are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.tape.node import Node

MAX_ACCEPTED = 8  # values that one guard accepts

CONVERSIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "bool()": lambda value: np.asarray(value != 0),
    "int()": lambda value: np.asarray(np.trunc(value)),
}


class Guard:
    """A value that Python read: the recorded run is valid only while it is the same.

    node         the Node of the value, until the path is built
    recorded     the value in the recorded run
    what         how Python read it: "bool()", "item()", ...
    source       the line that read it
    """

    __slots__ = ("_accepted", "_convert", "is_discrete", "node", "recorded", "source", "what")

    def __init__(self, node: Node | None, value: np.ndarray, what: str, source: Any) -> None:
        self.node = node
        self.recorded = value
        self.what = what
        self.source = source
        self._convert = CONVERSIONS.get(what) if value.dtype.kind in "fc" else None
        self.is_discrete = self._convert is not None or value.dtype.kind not in "fc"
        self._accepted = {bits_of(self.read(value)): None}

    def read(self, value: np.ndarray) -> np.ndarray:
        """Return what Python learns of a value."""
        return value if self._convert is None else self._convert(value)

    def holds(self, value: np.ndarray) -> bool:
        """True if the value is one that the recorded run is valid for."""
        if self._convert is not None:
            value = self._convert(value)
        return bits_of(value) in self._accepted

    def accept(self, value: np.ndarray) -> None:
        """Accept what compiled code computes for the data of a recorded run, if it is floating."""
        if self.is_discrete or self.holds(value):
            return
        if len(self._accepted) >= MAX_ACCEPTED:
            oldest = list(self._accepted)[1]  # after the recorded one
            self._accepted.pop(oldest, None)
        self._accepted[bits_of(value)] = None

    def is_same_read(self, what: str, source: Any, value: np.ndarray) -> bool:
        """True if another run has read a value of this type in the same place."""
        same_type = self.recorded.dtype == value.dtype and self.recorded.shape == value.shape
        return same_type and self.what == what and str(self.source) == str(source)


def bits_of(value: np.ndarray) -> bytes:
    """Return the bytes of a value, which tell -0.0 from 0.0; every NaN has the same."""
    if value.dtype.kind in "fc" and np.isnan(value).any():
        parts = np.ascontiguousarray(value).reshape(-1).view(value.real.dtype)
        value = np.where(np.isnan(parts), np.nan, parts)
    return value.tobytes()
