"""memory_budget: how much memory the temporaries of jitted programs may have."""

from __future__ import annotations

import re
from operator import index
from typing import Any

from lucid.errors import ArgumentError
from lucid.public.declare import public
from lucid.support.source import at_line
from lucid.tape.modes import local

UNITS = {"": 1, "b": 1}
UNITS.update({f"{letter}b": 1000**k for k, letter in enumerate("kmgt", 1)})
UNITS.update({f"{letter}ib": 1024**k for k, letter in enumerate("kmgt", 1)})


def parse_bytes(what: str, given: Any) -> int:
    """Return a number of bytes from an integer or a text such as "100 MB" or "1.5GiB"."""
    if isinstance(given, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", given)
        if found is not None and found[2].lower() in UNITS:
            return int(float(found[1]) * UNITS[found[2].lower()])
    elif not isinstance(given, bool):
        try:
            number = index(given)
        except TypeError:
            number = -1
        if number >= 0:
            return number
    facts = f"{what}: memory_budget={given!r} is not a number of bytes"
    raise ArgumentError(f"{facts}; pass an integer or a text such as '100MB'{at_line()}")


@public()
class memory_budget:
    """Limit the memory for temporaries of jitted programs: immediately, or in a `with` block.

    nbytes    an integer, or a text such as "100MB" (10**6 bytes each) or "100MiB"; None: no limit

    The compiler computes values again instead of keeping them until the arena of a program, the
    memory between its arguments and its results, fits. If it cannot, the first call raises an
    `OutOfMemoryError` that names the least that is possible. It holds for functions that are jitted
    by `lucid.jit` and compiled while it is set; `jit(f, memory_budget=)` is for one function.

    >>> import lucid
    >>> f = lucid.jit(lambda x: (lucid.exp(x) @ x).sum())
    >>> with lucid.memory_budget("1MB"):
    ...     f(lucid.zeros(2, 2))
    Tensor(0.)
    """

    def __init__(self, nbytes: int | str | None) -> None:
        self.outer = local.budget
        self.nbytes = None if nbytes is None else parse_bytes("memory_budget", nbytes)
        self.before: list[int | None] = []
        local.budget = self.nbytes

    def __enter__(self) -> memory_budget:
        self.before.append(self.outer)
        local.budget = self.nbytes
        return self

    def __exit__(self, *_: Any) -> None:
        local.budget = self.before.pop()
