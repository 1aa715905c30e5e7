"""How long tracing and compiling takes, stage by stage, for programs of 100 to 10,000 equations.

    python benchmarks/compile.py [--sizes 100,1000,10000] [--programs chain,layers,...] [--check]

Every stage should be linear: the last columns are the microseconds an equation at each size, and
the ratio of the largest to the middle one. `--check` exits with 1 where a ratio is above 3.
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

import lucid
from lucid.compiler.fusion.fuse import fuse
from lucid.compiler.lowering.lower import GraphLowering
from lucid.compiler.passes import pipeline
from lucid.compiler.runtime.kernel_table import kernels_of
from lucid.func import grad
from lucid.ir.verify import verify

Function = Callable[..., Any]


def chain(n: int) -> tuple[Function, list[np.ndarray]]:
    """Elementwise equations, one after another."""

    def f(x):
        for _ in range(n // 4):
            x = (x * 0.5 + 1.0) * x - x
        return x

    return f, [np.ones(64, "float32")]


def functions(n: int) -> tuple[Function, list[np.ndarray]]:
    """Functions such as exp, which are long when they are inlined."""

    def f(x):
        for _ in range(n // 2):
            x = lucid.tanh(x) * 0.5
        return x

    return f, [np.ones(64, "float32")]


def layers(n: int) -> tuple[Function, list[np.ndarray]]:
    """A deep network and its gradient."""

    def loss(x, w, b):
        for _ in range(max(n // 13, 1)):
            x = lucid.tanh(x @ w + b)
        return (x * x).sum()

    shapes = ((8, 16), (16, 16), (16,))
    return grad(loss, argnums=(0, 1, 2)), [np.ones(s, "float32") * 0.1 for s in shapes]


def rows(n: int) -> tuple[Function, list[np.ndarray]]:
    """Reductions of rows that are normalized again and again."""

    def f(x):
        for _ in range(n // 8):
            x = lucid.softmax(x, 1)
        return x

    return f, [np.ones((16, 32), "float32")]


def parameters(n: int) -> tuple[Function, list[np.ndarray]]:
    """Updates of many parameters that have nothing to do with one another."""

    def f(ps):
        return [p - 0.1 * (p * p) + 0.01 * p for p in ps]

    return f, [[np.ones((4 + i % 5,), "float32") for i in range(n // 5)]]


def slices(n: int) -> tuple[Function, list[np.ndarray]]:
    """Views of one array, joined pair by pair."""

    def f(x):
        total = x[:64]
        for i in range(n // 2):
            total = total + x[i % 64 : i % 64 + 64]
        return total

    return f, [np.ones(128, "float32")]


PROGRAMS = {p.__name__: p for p in (chain, functions, layers, rows, parameters, slices)}


def measure(make: Callable[[int], tuple[Function, list[Any]]], n: int) -> dict[str, float]:
    """Seconds for each stage, and the number of equations and kernels."""
    f, arrays = make(n)
    out: dict[str, float] = {}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = run()
        out[name] = out.get(name, 0.0) + time.perf_counter() - start
        return result

    graph = timed("trace", lambda: lucid.ir.trace(f)(*arrays))
    out["equations"] = len(graph.equations)
    for name, stage in pipeline.STAGES.items():
        graph = timed(name, lambda stage=stage, graph=graph: stage(graph))
        timed("verify", lambda graph=graph: verify(graph))
    timed("fuse", lambda: fuse(graph))
    lowering = timed("lower", lambda: GraphLowering(graph))
    timed("lay out", lowering.lay_out)
    structures = {s.key: s for s in lowering.kernel_sources()}
    out["kernels"] = len(structures)
    timed("compile", lambda: kernels_of(structures.values()))
    executable = timed("build", lowering.finish)
    leaves = [x for a in arrays for x in (a if isinstance(a, list) else [a])]
    timed("first call", lambda: executable(leaves))
    timed("second call", lambda: executable(leaves))
    return out


def report(name: str, sizes: list[int]) -> float:
    """Print the table of one program; the worst ratio of a stage."""
    results = [measure(PROGRAMS[name], n) for n in sizes]
    counts = "  ".join(
        f"{r['equations']:.0f} equations, {r['kernels']:.0f} kernels;" for r in results
    )
    print(f"\n{name}: {PROGRAMS[name].__doc__} {counts}")
    print(f"{'':14}" + "".join(f"{n:>11}" for n in sizes) + "   ms" + f"{'µs/equation':>18}")
    worst = 0.0
    for stage in results[0]:
        if stage in ("equations", "kernels"):
            continue
        each = [r[stage] / r["equations"] * 1e6 for r in results]
        ratio = each[-1] / max(each[-2], 0.5) if len(each) > 1 else 1.0
        worst = max(worst, ratio)
        times = "".join(f"{r[stage] * 1e3:11.2f}" for r in results)
        print(f"{stage:14}{times}     " + " ".join(f"{e:8.1f}" for e in each) + f"   x{ratio:.1f}")
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    sizes = [int(n) for n in options.sizes.split(",")]
    measure(PROGRAMS["layers"], 20)  # imports, and the native runtime
    worst = max(report(name, sizes) for name in options.programs.split(","))
    return int(options.check and worst > 3)


if __name__ == "__main__":
    sys.exit(main())
