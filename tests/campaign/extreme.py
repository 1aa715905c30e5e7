"""Extreme values: calls of the table with one tensor, or one number, far out of the usual.

`python -m tests.campaign.extreme PATH FIRST STEP` makes every STEP-th such call from FIRST on, of
60,000, with PATH `eager` or `jit` (calls 1 to 3), and prints what it found as JSON. A call gives a
result or an error of ours; it neither hangs, nor ends the process, nor takes all memory. The call
at hand is written to stderr before it is made.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

import lucid
from lucid.errors import LucidError
from tests.table.row import arrays_for, fill, rows

FLOATS = [1e17, -1e17, -1e15 - 0.5, 1e9 + 0.5, -1e7 - 0.5, 1e300, 1e-300, np.inf, -np.inf, np.nan]
INTEGERS = [10**17, -(10**17), 2**62, -(2**63), 2**31, 10**9]
NUMBERS = [10**17, -(10**17), 2**31, 1e300, -1e15 - 0.5, np.inf, np.nan, 10**30]
MEMORY = 5 << 29  # bytes of address space
SLOW = 10.0  # seconds


class Extreme(NamedTuple):
    """A call of the table in which one value is extreme.

    filled    the number of a tensor and the value of all its elements; None if a number is extreme
    """

    name: str
    call: Any
    usual: list[np.ndarray]
    filled: tuple[int, Any] | None
    args: Any
    kwargs: Any

    def __str__(self) -> str:
        return f"{self.name}({self.call}, {self.filled or (self.args, self.kwargs)})"

    def arrays(self) -> list[np.ndarray]:
        if self.filled is None:
            return self.usual
        i, value = self.filled
        return [np.full_like(x, value) if k == i else x for k, x in enumerate(self.usual)]


def fitting(dtype: np.dtype) -> list[Any]:
    if dtype.kind == "f":
        return [x for x in FLOATS if not np.isfinite(x) or abs(x) <= float(np.finfo(dtype).max)]
    if dtype.kind in "iu":
        return [x for x in INTEGERS if np.iinfo(dtype).min <= x <= np.iinfo(dtype).max]
    return []


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the numbers of nested arguments are."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path
    elif type(value) in (tuple, list):
        for i, part in enumerate(value):
            yield from numbers_in(part, (*path, i))
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from numbers_in(part, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {k: replaced(x, path[1:], new) if k == path[0] else x for k, x in value.items()}
    return type(value)(
        replaced(x, path[1:], new) if i == path[0] else x for i, x in enumerate(value)
    )


def extremes() -> Iterator[Extreme]:
    tensors = [lucid.tensor(10**17), lucid.tensor(1e17), lucid.tensor(2**31), np.array(10**17)]
    for row in rows():
        for call in row.calls:
            usual = arrays_for(call, seed=0)
            for i, x in enumerate(usual):
                for value in fitting(x.dtype):
                    yield Extreme(row.name, call, usual, (i, value), call.args, call.kwargs)
            given = [call.args, call.kwargs]
            for path in numbers_in(given):
                for value in [*NUMBERS, *tensors]:
                    args, kwargs = replaced(given, path, value)
                    yield Extreme(row.name, call, usual, None, args, kwargs)


def call(extreme: Extreme, is_jitted: bool) -> None:
    def program(*tensors: Any) -> Any:
        rest = iter(tensors)
        args, kwargs = fill((extreme.args, extreme.kwargs), lambda _: next(rest))
        function = lucid
        for part in extreme.name.split("."):
            function = getattr(function, part)
        return function(*args, **kwargs)

    given = [lucid.tensor(x) for x in extreme.arrays()]
    if not is_jitted:
        program(*given)
        return
    jitted = lucid.jit(program)
    if extreme.filled is not None:
        jitted(*[lucid.tensor(x) for x in extreme.usual])
    jitted(*given)
    jitted(*given)


def main() -> None:
    path, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    report: dict[str, Any] = {"calls": 0, "refused": 0, "wrong": []}
    for extreme in islice(extremes(), first % step, None, step):
        text = str(extreme)
        print(text, file=sys.stderr, flush=True)
        report["calls"] += 1
        begin = time.monotonic()
        try:
            call(extreme, path == "jit")
        except (LucidError, MemoryError):
            report["refused"] += 1
        except Exception as error:
            report["wrong"].append(f"{text}: {type(error).__name__}: {str(error)[:200]}")
        if time.monotonic() - begin > SLOW:
            report["wrong"].append(f"{text}: took {time.monotonic() - begin:.0f} s")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
