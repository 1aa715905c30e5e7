"""GradBench's objectives in Lucid beside JAX jit and PyTorch eager, one thread each, as ratios.

    python -m benchmarks.gradbench.run [--peer PYTHON] [--only NAME] [--sizes] [--rounds N]

Every library has a process of its own for each objective (the others with the interpreter that
--peer or the environment's BENCH_PYTHON names). Results are compared, then they take turns: the
best call counts. The first call is timed from an empty cache, without imports.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gradbench import MODULES
from benchmarks.gradbench.libraries import LIBRARIES

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 1e-6
SLOW = 2.0  # seconds of a call that is not called again
ONE_THREAD = {
    **dict.fromkeys(
        ["LUCID_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"
    ),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


class Worker:
    """A process that runs one objective in one library; see worker.py."""

    def __init__(self, python: str, names: Sequence[str], cache: str, limit: float) -> None:
        self.limit = limit
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.gradbench.worker", *names],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=ROOT, env={**os.environ, **ONE_THREAD, "LUCID_CACHE_DIR": cache},
        )  # fmt: skip
        self.said = self.read()

    def read(self) -> dict[str, Any]:
        ready, _, _ = select.select([self.process.stdout], [], [], self.limit)
        if not ready:
            self.end()
            return {"late": True}
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        if line:
            return json.loads(line)
        error = self.process.communicate()[1].strip().splitlines()
        return {"error": error[-1] if error else f"exit status {self.process.returncode}"}

    def ask(self, question: str) -> dict[str, Any]:
        print(question, file=self.process.stdin, flush=True)
        return self.read()

    def result(self, folder: str) -> list[np.ndarray]:
        file = Path(folder, f"{self.process.pid}.npz")
        self.ask(f"save {file}")
        with np.load(file) as saved:
            return [saved[name] for name in saved.files]

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def measure(
    module: str, variant: str, size: dict[str, int], options: Any, folder: str
) -> dict[str, Any]:
    """For every library: seconds of the first call, microseconds of later ones, or why not."""
    found: dict[str, Any] = {}
    workers = {}
    for system in options.systems:
        python = sys.executable if system == "lucid" else options.peer
        cache = str(Path(folder, "cache", "-".join([variant, *map(str, size.values())])))
        names = (module, variant, system, json.dumps(size))
        worker = Worker(python, names, cache, options.limit)
        found[system] = worker.said
        if "first" in worker.said:
            workers[system] = worker
    results = {system: worker.result(folder) for system, worker in workers.items()}
    turns = dict(workers)
    for _ in range(options.rounds):
        for system, worker in list(turns.items()):
            answer = worker.ask(f"time {options.seconds}")
            if "us" in answer:
                found[system]["us"] = min(answer["us"], found[system].get("us", float("inf")))
            if answer.get("us", float("inf")) > SLOW * 1e6:
                del turns[system]
    for worker in workers.values():
        worker.end()
    return {"times": found, "agree": agreeing(list(results.values()))}


def agreeing(results: list[list[np.ndarray]]) -> bool:
    first, *others = results or [[]]
    return all(
        len(first) == len(other)
        and all(
            a.shape == b.shape and np.abs(a - b).max() <= TOLERANCE * max(np.abs(a).max(), 1)
            for a, b in zip(first, other)
        )
        for other in others
    )


def time_text(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def cell(said: dict[str, Any], part: str) -> str:
    if "missing" in said:
        return "cannot"
    if "late" in said or (part not in said and "first" in said):
        return "too long"
    if "error" in said:
        return "error"
    return time_text(said[part] * (1e-6 if part == "us" else 1))


def ratio(times: dict[str, Any], other: str, part: str) -> str:
    mine, theirs = times.get("lucid", {}).get(part), times.get(other, {}).get(part)
    return "" if mine is None or theirs is None else f"{mine / theirs:.3g}"


def table(title: str, part: str, systems: list[str], results: dict[str, Any]) -> str:
    """Times of all libraries, and Lucid's as a multiple of each other's."""
    others = [s for s in systems if s != "lucid"]
    rows = [[title, *systems, *[f"lucid / {s}" for s in others]]]
    for variant, result in results.items():
        times = result["times"]
        row = [variant + ("" if result["agree"] else " (results differ)")]
        row += [cell(times[s], part) for s in systems]
        rows.append(row + [ratio(times, s, part) for s in others])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [
        "  ".join(text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in columns)
        for columns in ([*enumerate(zip(row, widths))] for row in rows)
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def parse() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", default=os.environ.get("BENCH_PYTHON", sys.executable))
    parser.add_argument("--only", action="append", choices=MODULES)
    parser.add_argument("--sizes", action="store_true", help="every size of GradBench's evals")
    parser.add_argument("--systems", nargs="+", default=list(LIBRARIES), choices=list(LIBRARIES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one library's turn")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which it is ended")
    parser.add_argument("--json", metavar="FILE", help="write every number to a file")
    return parser.parse_args()


def main() -> None:
    options = parse()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or MODULES:
            module = importlib.import_module(f"benchmarks.gradbench.{name}")
            sizes = getattr(module, "SIZES", [{}]) if options.sizes else [{}]
            variants = module.variants(LIBRARIES["lucid"]())
            for variant, size in itertools.product(variants, sizes):
                title = " ".join([variant, *[f"{k}={v}" for k, v in size.items()]])
                print(f"\r{title:40}", end="", file=sys.stderr, flush=True)
                results[title] = measure(name, variant, size, options, folder)
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    print(table("a call", "us", options.systems, results), "\n")
    print(table("the first call", "first", options.systems, results))
    for variant, result in results.items():
        for system, said in result["times"].items():
            if "error" in said:
                print(f"{variant}, {system}: {said['error']}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
