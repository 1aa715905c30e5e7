"""Single eager operations on ten elements beside PyTorch: forward, recorded, with backward.

    python benchmarks/eager_ops.py [--peer PYTHON] [--rounds N] [--only NAME] [--json FILE]

One text for both (`OPERATIONS`), each library in a process of its own (PyTorch in the interpreter
that `--peer` or the environment's BENCH_PYTHON names). They take many short turns, and the best
time of each counts: other work on the machine makes some turns slow for both, never all of them.
The table shows microseconds and Lucid's time over PyTorch's, and geometric means below.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WAYS = ("forward", "recorded", "backward")

WARM = 0.06  # seconds
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda t, x, y, m, i: x + y,
    "mul by a number": lambda t, x, y, m, i: x * 2.5,
    "div": lambda t, x, y, m, i: x / y,
    "pow": lambda t, x, y, m, i: x**2,
    "neg": lambda t, x, y, m, i: -x,
    "exp": lambda t, x, y, m, i: t.exp(x),
    "log": lambda t, x, y, m, i: t.log(y),
    "sqrt": lambda t, x, y, m, i: y.sqrt(),
    "tanh": lambda t, x, y, m, i: t.tanh(x),
    "sigmoid": lambda t, x, y, m, i: t.sigmoid(x),
    "relu": lambda t, x, y, m, i: t.relu(x),
    "gelu": lambda t, x, y, m, i: t.nn.functional.gelu(x),
    "softmax": lambda t, x, y, m, i: t.softmax(m, -1),
    "log_softmax": lambda t, x, y, m, i: t.nn.functional.log_softmax(m, -1),
    "sum": lambda t, x, y, m, i: x.sum(),
    "mean(dim)": lambda t, x, y, m, i: m.mean(1),
    "max(dim)": lambda t, x, y, m, i: m.max(1)[0],
    "var": lambda t, x, y, m, i: x.var(),
    "cumsum": lambda t, x, y, m, i: x.cumsum(0),
    "clamp": lambda t, x, y, m, i: x.clamp(-0.1, 0.3),
    "where": lambda t, x, y, m, i: t.where(x > 0, x, y),
    "reshape": lambda t, x, y, m, i: x.reshape(2, 5),
    "transpose": lambda t, x, y, m, i: m.transpose(0, 1),
    "unsqueeze": lambda t, x, y, m, i: x.unsqueeze(0),
    "x[1:]": lambda t, x, y, m, i: x[1:],
    "x[3]": lambda t, x, y, m, i: x[3],
    "x[index]": lambda t, x, y, m, i: x[i],
    "stack": lambda t, x, y, m, i: t.stack([x, y]),
    "cat": lambda t, x, y, m, i: t.cat([x, y]),
    "split": lambda t, x, y, m, i: x.split(5)[1],
    "matmul": lambda t, x, y, m, i: m @ m.T,
    "linear": lambda t, x, y, m, i: t.nn.functional.linear(m, m),
}


def microseconds(f: Callable[[], Any], seconds: float) -> float:
    """The best time of one call in short turns."""
    once = max(min(timeit.repeat(f, number=1, repeat=5)), 1e-7)
    number = max(1, int(0.0005 / once))
    repeat = max(3, int(seconds / 0.0005))
    return 1e6 * min(timeit.repeat(f, number=number, repeat=repeat)) / number


def ways(t: Any, names: list[str]) -> dict[str, dict[str, Callable[[], Any]]]:
    """The calls that are measured, by operation and way."""
    import numpy as np

    x = np.linspace(-0.4, 0.5, 10).astype("float32")
    y = np.linspace(0.5, 1.5, 10).astype("float32")
    plain = [t.tensor(x), t.tensor(y), t.tensor(x.reshape(2, 5))]
    leaves = [t.tensor(a, requires_grad=True) for a in (x, y, x.reshape(2, 5))]
    index = t.tensor(np.array([1, 3, 5]))
    found: dict[str, dict[str, Callable[[], Any]]] = {}
    for name in names:
        f = OPERATIONS[name]

        def backward(f: Callable[..., Any] = f) -> None:
            for leaf in leaves:
                leaf.grad = None
            f(t, *leaves, index).sum().backward()

        calls = [lambda f=f: f(t, *plain, index), lambda f=f: f(t, *leaves, index), backward]
        found[name] = dict(zip(WAYS, calls))
    return found


def warm(f: Callable[[], Any]) -> None:
    """Call `f` for a while: an operation is compiled after some thousands of calls."""
    end = time.perf_counter() + WARM
    while time.perf_counter() < end:
        f()


def worker(system: str, names: list[str], seconds: float) -> None:
    """Measure everything once for every line of the standard input."""
    if system == "lucid":
        sys.path.insert(0, str(ROOT))
        import lucid as library
    else:
        import torch as library  # type: ignore[no-redef]

        library.set_num_threads(1)
    calls = ways(library, names)
    for of in calls.values():
        for f in of.values():
            warm(f)
    for _ in sys.stdin:
        found = {name: {way: microseconds(f, seconds) for way, f in of.items()}
                 for name, of in calls.items()}  # fmt: skip
        print(json.dumps(found), flush=True)


def start(python: str, system: str, names: list[str], seconds: float) -> subprocess.Popen[str]:
    command = [python, __file__, "--worker", system, "--seconds", str(seconds)]
    command += [part for name in names for part in ("--only", name)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def turn(process: subprocess.Popen[str]) -> Any:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def best(results: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    return {name: {way: min(r[name][way] for r in results) for way in WAYS} for name in results[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", default=os.environ.get("BENCH_PYTHON", sys.executable))
    parser.add_argument("--only", action="append", choices=list(OPERATIONS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.003, help="for one call in a turn")
    parser.add_argument("--json", metavar="FILE", help="write every number to a file")
    parser.add_argument("--worker", choices=["lucid", "torch"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.only or list(OPERATIONS)
    if options.worker:
        worker(options.worker, names, options.seconds)
        return
    pythons = {"lucid": sys.executable, "torch": options.peer}
    processes = {key: start(python, key, names, options.seconds) for key, python in pythons.items()}
    turns: dict[str, list[Any]] = {"lucid": [], "torch": []}
    for _ in range(options.rounds):
        for system, process in processes.items():
            turns[system].append(turn(process))
    for process in processes.values():
        process.communicate()
    ours, theirs = best(turns["lucid"]), best(turns["torch"])
    print(f"{'µs, lucid (over torch)':24}" + "".join(f"{way:>18}" for way in WAYS))
    ratios: dict[str, list[float]] = {way: [] for way in WAYS}
    for name in names:
        cells = []
        for way in WAYS:
            ratio = ours[name][way] / theirs[name][way]
            ratios[way].append(ratio)
            cells.append(f"{ours[name][way]:10.2f} ({ratio:5.2f})")
        print(f"{name:24}" + "".join(f"{cell:>18}" for cell in cells))
    means = [math.exp(sum(map(math.log, r)) / len(r)) for r in ratios.values()]
    print(f"{'geometric mean':24}" + "".join(f"{mean:18.2f}" for mean in means))
    print(f"{'worst':24}" + "".join(f"{max(r):18.2f}" for r in ratios.values()))
    if options.json:
        Path(options.json).write_text(json.dumps({"lucid": ours, "torch": theirs}, indent=1))


if __name__ == "__main__":
    main()
