"""Seconds from the start of a process to its first jitted result, Lucid over JAX, cold and warm.

    python benchmarks/first_results.py [--peer PYTHON] [--only NAME] [--rounds N]

Every start is a process of its own, imports included, and the two libraries take turns; the best
of the rounds counts. Cold: an empty cache directory. Warm: the directory that the cold process has
left, for JAX that of its persistent compilation cache.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from run import Worker  # noqa: E402
from workloads import FIRST_RESULTS, WORKLOADS, Workload  # noqa: E402

NAMES = ["scalar", "mlp-medium", "logistic", "cnn", "rk4", "gpt", "gpt-deep", "kmeans"]
COLD, WARM = 0.6, 0.25  # what the ratios may be
JAX_CACHE = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "JAX_PLATFORMS": "cpu",
}


def starts(workload: Workload, options: Any, log: Any) -> dict[tuple[str, str], float]:
    """The best seconds to the first result, by library and state of the cache."""
    best: dict[tuple[str, str], float] = {}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            os.environ.update(JAX_CACHE, JAX_COMPILATION_CACHE_DIR=f"{folder}/jax")
            for state in ("cold", "warm"):
                for system in ("lucid", "jax"):
                    python = sys.executable if system == "lucid" else options.peer
                    worker = Worker(python, workload, system, f"{folder}/lucid", log)
                    if worker.error is not None:
                        raise SystemExit(f"{workload.name}, {system}: {worker.error}")
                    worker.end()
                    slot = (system, state)
                    best[slot] = min(worker.start, best.get(slot, float("inf")))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", default=os.environ.get("BENCH_PYTHON", sys.executable))
    parser.add_argument("--only", action="append", choices=NAMES)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    workloads = {w.name: w for w in [*WORKLOADS, *FIRST_RESULTS]}
    print(f"{'first result, s':38}{'cold: lucid':>12}{'jax':>7}{'ratio':>7}", end="")
    print(f"{'warm: lucid':>14}{'jax':>7}{'ratio':>7}")
    with open(os.devnull, "w", encoding="utf-8") as log:
        for name in options.only or NAMES:
            best = starts(workloads[name], options, log)
            line = f"{workloads[name].title:38}"
            for state, limit, width in (("cold", COLD, 12), ("warm", WARM, 14)):
                mine, theirs = best["lucid", state], best["jax", state]
                mark = " " if mine <= limit * theirs else "!"
                line += f"{mine:{width}.3f}{theirs:7.3f}{mine / theirs:6.2f}{mark}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
