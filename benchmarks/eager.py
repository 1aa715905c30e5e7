"""The cost of eager mode: an addition, 21 small operations forward and backward, the import.

    python benchmarks/eager.py [--peer PYTHON] [--rounds N]

PyTorch and HIPS autograd are measured where they are installed: in this interpreter, or in the one
that `--peer` (or the environment's BENCH_PYTHON) names. The systems take turns, several rounds of
them, and the best time of each counts, so that a busy moment of the machine does not favor one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Measures = dict[str, float]
ADD, PLAIN, FORWARD, BOTH, IMPORT = (
    "x + y, 10 elements, recorded",
    "x + y, 10 elements, not recorded",
    "21 operations forward",
    "21 operations forward and backward",
    "import in a new process",
)
ROWS = [ADD, PLAIN, FORWARD, BOTH, IMPORT]


def microseconds(f: Callable[[], Any], repeat: int) -> float:
    """The best time of one call once warm; a run is as many calls as take about 20 ms."""
    for _ in range(30):
        f()
    once = max(min(timeit.repeat(f, number=1, repeat=5)), 1e-7)
    number = max(1, int(0.02 / once))
    return 1e6 * min(timeit.repeat(f, number=number, repeat=repeat)) / number


def chain(x: Any, w: Any, tanh: Callable[[Any], Any], total: Callable[[Any], Any]) -> Any:
    """21 operations on small arrays: five rounds of four, and a sum."""
    for _ in range(5):
        x = tanh(x * w + w) * w
    return total(x)


def ten(np: Any, scale: float) -> Any:
    return (np.arange(10) * scale - 0.4).astype("float32")


def measure_numpy(repeat: int) -> Measures:
    import numpy as np

    x, w = ten(np, 0.1), ten(np, 0.2)
    return {
        PLAIN: microseconds(lambda: x + w, repeat),
        FORWARD: microseconds(lambda: chain(x, w, np.tanh, np.sum), repeat),
    }


def measure_lucid(repeat: int) -> Measures:
    sys.path.insert(0, str(ROOT))
    import numpy as np

    import lucid

    x = lucid.tensor(ten(np, 0.1), requires_grad=True)
    w = lucid.tensor(ten(np, 0.2), requires_grad=True)
    a, b = x.detach(), w.detach()

    def both() -> None:
        x.grad = w.grad = None
        chain(x, w, lucid.tanh, lucid.sum).backward()

    return {
        ADD: microseconds(lambda: x + w, repeat),
        PLAIN: microseconds(lambda: a + b, repeat),
        FORWARD: microseconds(lambda: chain(x, w, lucid.tanh, lucid.sum), repeat),
        BOTH: microseconds(both, repeat),
        IMPORT: import_time("lucid"),
    }


def measure_torch(repeat: int) -> Measures:
    import numpy as np
    import torch

    torch.set_num_threads(1)
    x = torch.tensor(ten(np, 0.1), requires_grad=True)
    w = torch.tensor(ten(np, 0.2), requires_grad=True)
    a, b = x.detach(), w.detach()

    def both() -> None:
        x.grad = w.grad = None
        chain(x, w, torch.tanh, torch.sum).backward()

    return {
        ADD: microseconds(lambda: x + w, repeat),
        PLAIN: microseconds(lambda: a + b, repeat),
        FORWARD: microseconds(lambda: chain(x, w, torch.tanh, torch.sum), repeat),
        BOTH: microseconds(both, repeat),
        IMPORT: import_time("torch"),
    }


def measure_autograd(repeat: int) -> Measures:
    import autograd
    import autograd.numpy as anp
    import numpy as np

    x, w = ten(np, 0.1), ten(np, 0.2)
    gradient = autograd.grad(lambda x, w: chain(x, w, anp.tanh, anp.sum), (0, 1))
    return {
        BOTH: microseconds(lambda: gradient(x, w), repeat),
        IMPORT: import_time("autograd.numpy"),
    }


def import_time(module: str) -> float:
    """The best time to start Python and import a module, less the time to start Python."""

    def start(code: str) -> float:
        command = [sys.executable, "-c", code]
        return min(
            timeit.repeat(lambda: subprocess.run(command, check=True, cwd=ROOT), number=1, repeat=5)
        )

    return 1e6 * (start(f"import {module}") - start("pass"))


PEERS: dict[str, Callable[[int], Measures]] = {"torch": measure_torch, "autograd": measure_autograd}


def measure_peers(peer: str | None, repeat: int) -> dict[str, Measures]:
    """PyTorch and HIPS autograd where installed, here or in another interpreter."""
    if peer is None:
        there = [name for name in PEERS if importlib.util.find_spec(name)]
        return {name: PEERS[name](repeat) for name in there}
    command = [peer, __file__, "--json", "--repeat", str(repeat)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def table(results: dict[str, Measures]) -> str:
    """Return a row for every measurement, with each time as a multiple of Lucid's."""
    systems = list(results)
    lines = ["".join([f"{'µs (ratio to lucid)':36}", *[f"{name:>18}" for name in systems]])]
    for row in ROWS:
        cells = []
        for name in systems:
            time, ours = results[name].get(row), results["lucid"].get(row)
            ratio = f" ({time / ours:5.2f})" if time and ours else " " * 8
            cells.append(f"{time:10.2f}{ratio}" if time else f"{'-':>10}        ")
        lines.append("".join([f"{row:36}", *cells]))
    return "\n".join(lines)


def best(rounds: list[Measures]) -> Measures:
    return {row: min(measures[row] for measures in rounds) for row in rounds[0]}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--peer", default=os.environ.get("BENCH_PYTHON"), metavar="PYTHON")
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--repeat", type=int, default=8)
    options.add_argument("--json", action="store_true", help="measure only the others, print JSON")
    given = options.parse_args()
    if given.json:
        print(json.dumps(measure_peers(None, given.repeat)))
        return
    collected: dict[str, list[Measures]] = {}
    for _ in range(given.rounds):
        turn = {"lucid": measure_lucid(given.repeat), "numpy": measure_numpy(given.repeat)}
        turn |= measure_peers(given.peer, given.repeat)
        for name, measures in turn.items():
            collected.setdefault(name, []).append(measures)
    print(table({name: best(rounds) for name, rounds in collected.items()}))


if __name__ == "__main__":
    main()
