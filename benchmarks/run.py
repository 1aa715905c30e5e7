"""Lucid against JAX jit, PyTorch, torch.compile, HIPS autograd: times, limits, start, memory.

    python benchmarks/run.py [--peer PYTHON] [--only NAME] [--rounds N] [--json FILE]

Every library runs each workload in a process of its own (the others with the interpreter that
--peer or the environment's BENCH_PYTHON names); all do the same work on the same numbers, and their
results are compared before anything is timed. Then they take turns: the median of rounds counts.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import limits  # noqa: E402
import programs  # noqa: E402
from costs import Cost  # noqa: E402
from report import report  # noqa: E402
from workloads import WORKLOADS, Workload  # noqa: E402

SYSTEMS = ["lucid", "lucid.jit", "jax", "torch", "torch.compile", "autograd"]
DATA, SEED = tempfile.TemporaryDirectory(), 1
PAUSE_SECONDS = 0.03  # seconds between turns, in which the threads of the last one fall asleep


@functools.cache
def data_file(workload: Workload) -> str:
    """A file with the arrays of a workload, drawn here: importing numpy.random takes 10 ms."""
    path = Path(DATA.name, f"{workload.name}.pickle")
    path.write_bytes(pickle.dumps(workload.load()[1](np.random.default_rng(SEED)), protocol=4))
    return str(path)


class Worker:
    """A process that runs one workload in one library; see worker.py."""

    def __init__(self, python: str, workload: Workload, system: str, folder: str, log: Any) -> None:
        environment = {**os.environ, "LUCID_CACHE_DIR": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed libraries have bytecode
        command = [python, str(HERE / "worker.py"), workload.name, system, data_file(workload)]
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
        said = self.read()
        self.start = time.perf_counter() - begin
        self.error = said.get("error")

    def read(self) -> dict[str, Any]:
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        return json.loads(line) if line else {"error": f"exit status {self.process.wait()}"}

    def ask(self, question: str) -> dict[str, Any]:
        print(question, file=self.process.stdin, flush=True)
        return self.read()

    def check(self, folder: Path) -> list[np.ndarray]:
        file = folder / f"{self.process.pid}.npz"
        self.ask(f"check {file}")
        with np.load(file) as saved:
            return [saved[name] for name in saved.files]

    def end(self) -> float:
        megabytes = self.ask("end")["megabytes"]
        self.process.wait()
        return megabytes


def disagreement(results: dict[str, list[np.ndarray]], tolerance: float) -> str | None:
    """Where two libraries differ by more than the tolerance, in words."""
    names = list(results)
    first = results[names[0]]
    for name in names[1:]:
        if len(first) != len(results[name]):
            return f"{names[0]} gives {len(first)} arrays, {name} {len(results[name])}"
        for i, (a, b) in enumerate(zip(first, results[name])):
            if a.shape != b.shape:
                return f"array {i} has shape {a.shape} in {names[0]}, {b.shape} in {name}"
            error = np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30)
            if not error <= tolerance:
                return f"array {i} differs by {error:.1e} between {names[0]} and {name}"
    return None


def started(workload: Workload, options: Any, folder: Path, log: Any) -> dict[str, Any]:
    """Workers of all libraries that have the workload; Lucid's is started twice, cold and warm."""
    found: dict[str, Any] = {"errors": {}, "start": {}, "workers": {}}
    for system in [s for s in options.systems if s in workload.load()[0]]:
        python = sys.executable if system.startswith("lucid") else options.peer
        cache = str(folder / "cache" / workload.name)
        worker = Worker(python, workload, system, cache, log)
        if worker.error is None and system == "lucid":
            found["start"]["lucid, empty cache"] = worker.start
            found["compiling_megabytes"] = worker.end()
            worker = Worker(python, workload, system, cache, log)
        if worker.error is not None:
            found["errors"][system] = worker.error
            continue
        found["start"][system] = worker.start
        found["workers"][system] = worker
    return found


def measure(workload: Workload, options: Any, folder: Path, log: Any) -> dict[str, Any]:
    """Times, peaks of memory and times to the first result of one workload in every library."""
    found = started(workload, options, folder, log)
    workers: dict[str, Worker] = found.pop("workers")
    results = {system: worker.check(folder) for system, worker in workers.items()}
    found["disagreement"] = disagreement(results, workload.tolerance)
    rounds: dict[str, list[float]] = {system: [] for system in workers}
    for _ in range(options.rounds):
        for system, worker in workers.items():
            time.sleep(PAUSE_SECONDS)
            rounds[system].append(worker.ask(f"time {options.seconds}")["us"])
    found["rounds"] = rounds
    found["median"] = {system: statistics.median(times) for system, times in rounds.items()}
    found["best"] = {system: min(times) for system, times in rounds.items()}
    for system in [s for s in ("lucid.jit", "lucid") if s in workers][:1]:
        found["cost"] = workers[system].ask("cost")
    found["megabytes"] = {system: worker.end() for system, worker in workers.items()}
    if "lucid" in workers:
        found["megabytes"]["lucid"] = max(
            found["megabytes"]["lucid"], found.pop("compiling_megabytes")
        )
    return found


def parse() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", default=os.environ.get("BENCH_PYTHON", sys.executable))
    names = [*[w.name for w in WORKLOADS], "programs"]
    parser.add_argument("--only", action="append", metavar="NAME", choices=names, help=str(names))
    parser.add_argument("--eager", action="store_true", help="only steps that are not compiled")
    parser.add_argument("--systems", nargs="+", default=SYSTEMS, choices=SYSTEMS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one library's turn")
    parser.add_argument("--statistic", choices=["median", "best"], default="median")
    parser.add_argument("--json", metavar="FILE", help="write every number to a file")
    parser.add_argument("--log", metavar="FILE", help="what the libraries say while they work")
    return parser.parse_args()


def main() -> None:
    options = parse()
    only = options.only or (
        [w.name for w in WORKLOADS if w.name.endswith("-eager")] if options.eager else None
    )
    chosen = [w for w in WORKLOADS if not only or w.name in only]
    results: dict[str, Any] = {}
    machine = limits.measure()
    with (
        tempfile.TemporaryDirectory() as name,
        open(options.log or os.devnull, "w", encoding="utf-8") as log,
    ):
        for workload in chosen:
            print(f"\r{workload.name:40}", end="", file=sys.stderr, flush=True)
            results[workload.name] = found = measure(workload, options, Path(name), log)
            if found.get("cost", {}).get("bytes"):
                found["limit"], found["bound"] = machine.microseconds(Cost(**found["cost"]))
            save(results, options.json)
        if not only or "programs" in only:
            results["programs"] = programs.measure(sys.executable, name)
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    print(report(chosen, options.systems, results, options.statistic))
    save(results, options.json)


def save(results: dict[str, Any], file: str | None) -> None:
    if file:
        Path(file).write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
