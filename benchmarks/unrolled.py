"""Seconds to the first result of an LSTMCell in a Python loop with its gradient, cold and warm.

    python benchmarks/unrolled.py [STEPS]

Each line is a process of its own: an empty disk cache, then the cache that the first one has left.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

STEPS, BATCH, INPUTS, HIDDEN = 1000, 8, 16, 32


def measure(steps: int) -> None:
    """Print the seconds of the first call and the milliseconds of later ones."""
    import lucid
    from lucid import nn

    lucid.manual_seed(0)
    cell, xs = nn.LSTMCell(INPUTS, HIDDEN), lucid.randn(steps, BATCH, INPUTS)

    @lucid.jit
    def step(xs):
        cell.zero_grad()
        h = c = lucid.zeros(BATCH, HIDDEN)
        for t in range(steps):
            h, c = cell(xs[t], (h, c))
        loss = (h * h).sum()
        loss.backward()
        return loss

    start = time.perf_counter()
    step(xs).item()
    first = time.perf_counter()
    for _ in range(10):
        step(xs).item()
    later = (time.perf_counter() - first) / 10
    print(f"first call {first - start:.2f} s, later calls {later * 1e3:.1f} ms")


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    if "--here" in sys.argv:
        measure(steps)
        return
    with tempfile.TemporaryDirectory() as folder:
        for state in ("empty", "warm"):
            print(f"{state} cache:", end=" ", flush=True)
            environment = {**os.environ, "LUCID_CACHE_DIR": f"{folder}/c"}
            command = [sys.executable, __file__, str(steps), "--here"]
            subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()
