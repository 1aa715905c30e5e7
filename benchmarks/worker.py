"""One library on one workload, in a process of its own that `run.py` talks to, a line at a time.

    python benchmarks/worker.py WORKLOAD SYSTEM DATA

It imports little besides the library, whose start is timed; DATA is a pickle of the workload's
arrays. It prints `first` after its first step, then obeys: `check FILE` saves the results of a few
steps, `time SECONDS` answers with the microseconds of a step, `cost` with the operations and bytes
of the programs that one step of Lucid runs, `end` with the peak of its memory in MB.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKED_STEPS, WARM_CALLS = 3, 30


def answer(**facts: Any) -> None:
    import json

    sys.__stdout__.write(json.dumps(facts) + "\n")
    sys.__stdout__.flush()


def peak_megabytes() -> float:
    """The most memory this process has had, without what its parent had before it was started."""
    try:
        with open("/proc/self/status", encoding="utf-8") as lines:
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def calls_within(step: Callable[[], Any], seconds: float) -> int:
    """How many calls take about so long, once they are warm: some compile only what comes again."""
    for _ in range(WARM_CALLS):
        step()
    once = min(microseconds(step, 1) for _ in range(5))
    return max(1, round(1e6 * seconds / once))


def microseconds(step: Callable[[], Any], count: int) -> float:
    gc.disable()
    start = time.perf_counter()
    for _ in range(count):
        step()
    spent = time.perf_counter() - start
    gc.enable()
    return 1e6 * spent / count


def cost(step: Callable[[], Any]) -> dict[str, float]:
    """The operations and bytes of the compiled programs of a step; see costs.py."""
    from costs import count

    import lucid
    from lucid.compiler.inspect.profiling import program_timings

    for _ in range(WARM_CALLS):
        step()
    with lucid.profile() as profile:
        step()
    ran = [p for p in profile.programs if any(calls for _, calls, _, _ in program_timings(p))]
    costs = [count(program.graph) for program in ran]
    return {"flops": sum(c.flops for c in costs), "bytes": sum(c.bytes for c in costs)}


def obey(step: Callable[[], Any], result: Callable[[], list[Any]]) -> None:
    import numpy as np

    count = 0
    for line in sys.stdin:
        match line.split():
            case ["check", file]:
                for _ in range(CHECKED_STEPS - 1):
                    step()
                np.savez(file, *result())
                answer(saved=file)
            case ["time", seconds]:
                count = count or calls_within(step, float(seconds))
                answer(us=microseconds(step, count), count=count)
            case ["cost"]:
                answer(**cost(step))
            case ["end"]:
                answer(megabytes=peak_megabytes())
                return


def main() -> None:
    name, system, file = sys.argv[1:]
    sys.stdout = sys.stderr  # the answers have the standard output for themselves
    if system.startswith("lucid"):
        sys.path.insert(0, os.path.dirname(HERE))
    from workloads import FIRST_RESULTS, WORKLOADS

    workload = next(w for w in [*WORKLOADS, *FIRST_RESULTS] if w.name == name)
    try:
        with open(file, "rb") as data:
            step, result = workload.load()[0][system](pickle.load(data))
        step()
        result()
    except Exception as error:
        answer(error=f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}")
        if os.environ.get("BENCH_TRACEBACK"):
            raise
        return
    sys.__stdout__.write('{"first": true}\n')  # without importing json
    sys.__stdout__.flush()
    obey(step, result)


if __name__ == "__main__":
    main()
