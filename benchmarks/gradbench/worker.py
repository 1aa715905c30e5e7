"""One library on one objective, in a process of its own that `run.py` talks to, a line at a time.

    python -m benchmarks.gradbench.worker MODULE VARIANT SYSTEM [SIZE]

SIZE is a JSON object, one of the module's SIZES.

It says how long its first call took, then obeys: `save FILE` saves the result, `time SECONDS`
answers with the microseconds of a call.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gradbench.libraries import LIBRARIES

SEED = 1


def arrays(result: Any) -> list[np.ndarray]:
    """What a function returned as a flat list of arrays; a sparse matrix is filled up."""
    if isinstance(result, (list, tuple)):
        return [array for part in result for array in arrays(part)]
    return [np.asarray(result.toarray() if hasattr(result, "toarray") else result)]


def prepared(
    module: str, variant: str, system: str, size: dict[str, int]
) -> Callable[[], Any] | None:
    """A call of the objective's derivative, or None where the library cannot express it."""
    lib = LIBRARIES[system]()
    objective = importlib.import_module(f"benchmarks.gradbench.{module}")
    f = objective.variants(lib, **size).get(variant)
    args = [lib.array(x) for x in objective.data(np.random.default_rng(SEED), **size)]
    return None if f is None else lambda: f(*args)


def calls(call: Callable[[], Any], seconds: float) -> float:
    """The best of the calls within so many seconds, of one at least, in microseconds."""
    gc.disable()
    begin, best = time.perf_counter(), float("inf")
    while True:
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        best = min(best, end - start)
        if end - begin > seconds:
            gc.enable()
            return 1e6 * best


def main() -> None:
    module, variant, system, *rest = sys.argv[1:]
    say, sys.stdout = sys.stdout, sys.stderr  # libraries that print do not disturb the answers

    def answer(**facts: Any) -> None:
        print(json.dumps(facts), file=say, flush=True)

    call = prepared(module, variant, system, json.loads(rest[0]) if rest else {})
    if call is None:
        answer(missing=True)
        return
    start = time.perf_counter()
    result = call()
    answer(first=time.perf_counter() - start)
    for line in sys.stdin:
        match line.split():
            case ["save", file]:
                np.savez(file, *arrays(result))
                answer(saved=file)
            case ["time", seconds]:
                answer(us=calls(call, float(seconds)))


if __name__ == "__main__":
    main()
