"""The two backends beside each other: compile time and run time of the same kernels.

    python benchmarks/backends.py [--workloads mlp-small,gpt,...] [--seconds 0.2] [--check]

The workloads are those of `run.py` in Lucid's compiled form (without convolutions and pools, whose
kernels are the same in both), and programs of a few kernels each. Compile time is that of the
kernels alone, with an empty cache. Run times are the best of turns that alternate between the
backends. `--check` exits with 1 where Numba takes more than 1.2 times as long as LLVM to run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ["LUCID_CACHE_DIR"] = tempfile.mkdtemp()

import numpy as np
from workloads import WORKLOADS

import lucid
from lucid.compiler.runtime import kernel_table
from lucid.func import grad

BACKENDS = ("llvm", "numba")
TURNS, LIMIT = 15, 1.2
NATIVE = ("conv", "max-pool", "avg-pool", "add", "leaves")
Step = Callable[[], Any]


def rows(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[], Step]:
    """A program of a few kernels on random arrays."""

    def build() -> Step:
        rng = np.random.default_rng(0)
        args = [lucid.tensor(rng.standard_normal(s).astype("float32")) for s in shapes]
        jitted = lucid.jit(f)
        return lambda: jitted(*args)

    return build


def gelu_loss(x: Any, w: Any) -> Any:
    return lucid.nn.functional.gelu(lucid.nn.functional.layer_norm(x * w, (x.shape[-1],))).sum()


PROGRAMS = {
    "softmax 256x512": rows(lambda x: lucid.softmax(x, 1), (256, 512)),
    "gelu layer norm gradient": rows(grad(gelu_loss, argnums=(0, 1)), (256, 512), (512,)),
    "column sums": rows(lambda x: (x * x).sum(0), (4096, 64)),
    "logsumexp": rows(lambda x: lucid.logsumexp(x, 1), (256, 512)),
    "chain": rows(lambda x: lucid.sin(x * 2 + 1) * lucid.exp(-x * x) / (1 + x * x), (1 << 16,)),
    "range of a row": rows(lambda x: x.amax(1) - x.amin(1), (256, 512)),
    "running sums": rows(lambda x: lucid.cumsum(x, 1), (256, 512)),
    "small vector": rows(lambda x: lucid.tanh(x) * 2, (16,)),
}


def of_workload(workload: Any) -> Callable[[], Step] | None:
    """The builder of a workload's step, if Lucid runs it compiled."""
    systems, data = workload.load()
    name = next((n for n in systems if n.startswith("lucid") and "jit" in n), None)
    name = name or ("lucid" if "lucid" in systems else None)
    if name is None:
        return None
    return lambda: systems[name](data(np.random.default_rng(1)))[0]


def built(build: Callable[[], Step], backend: str) -> tuple[Step, float, int]:
    """A warm step compiled by a backend, with the milliseconds and the number of its kernels."""
    os.environ["LUCID_BACKEND"] = backend
    spent, count, load_all = 0.0, 0, kernel_table.load_all

    def timed(requests: Any) -> Any:
        nonlocal spent, count
        begin = time.perf_counter()
        found = load_all(requests)
        spent += time.perf_counter() - begin
        count += sum(len(request.names) for request in requests)
        return found

    kernel_table.load_all = timed
    kernel_table._clear()
    try:
        step = build()
        for _ in range(20):
            step()
    finally:
        kernel_table.load_all = load_all
    return step, 1e3 * spent, count


def microseconds(step: Step, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        step()
    return 1e6 * (time.perf_counter() - begin) / count


def compare(build: Callable[[], Step], seconds: float) -> tuple[list[float], list[float], int]:
    """Milliseconds to compile, microseconds to run by each backend, and the number of kernels.

    Every step is built twice: where its memory happens to lie changes its time, by 1.6 in one case.
    """
    made = [built(build, backend) for _ in range(2) for backend in BACKENDS]
    steps = [step for step, _, _ in made]
    count = max(1, int(seconds * 1e6 / TURNS / max(microseconds(steps[0], 3), 0.1)))
    times: list[list[float]] = [[], []]
    for _ in range(TURNS):
        for k, step in enumerate(steps):
            times[k % 2].append(microseconds(step, count))
    return [spent for _, spent, _ in made[:2]], [min(t) for t in times], made[0][2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", default="", help="names, with commas; all if empty")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each program and backend")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    chosen = [w for w in WORKLOADS if not (w.name.startswith(NATIVE) or w.name.endswith("eager"))]
    built_in = {w.name: build for w in chosen if (build := of_workload(w)) is not None}
    programs = {**PROGRAMS, **built_in}
    if options.workloads:
        programs = {name: programs[name] for name in options.workloads.split(",")}
    import numba  # noqa: F401  its import is not part of a kernel's compile time

    built(rows(lambda x: x + 1, (3,)), "numba")
    print(f"{'':30} kernels  compile ms: llvm   numba  ratio   run µs: llvm      numba  ratio")
    worst = 0.0
    for name, build in programs.items():
        compiled, run, kernels = compare(build, options.seconds)
        worst = max(worst, run[1] / run[0])
        print(
            f"{name:30} {kernels:7}  {compiled[0]:16.0f} {compiled[1]:7.0f} "
            f"{compiled[1] / compiled[0]:6.1f}  {run[0]:13.2f} {run[1]:10.2f} "
            f"{run[1] / run[0]:6.2f}",
            flush=True,
        )
    print(f"largest ratio of run times: {worst:.2f}")
    return int(options.check and worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
