"""What runs below the compiler's passes: calls, threads, code loading and matrix products.

    python benchmarks/dispatch.py [calls] [pool] [code] [gemm] [start] [--peer PYTHON]

Times are the best of several runs, unless they say otherwise. PyTorch and JAX are measured in the
interpreter that `--peer` (or the environment's BENCH_PYTHON) names, each in its own process.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lucid.compiler.plan.plan import Builder, Plan  # noqa: E402
from lucid.compiler.runtime import blas, codegen, loader  # noqa: E402
from lucid.compiler.runtime import native_kernel as kernel  # noqa: E402
from lucid.compiler.runtime import threads as runtime  # noqa: E402
from tests.compiler import texts  # noqa: E402

SHAPES = [(8, 8, 8), (32, 32, 32), (64, 128, 784), (128, 512, 784), (512, 512, 512)]
SHAPES += [(1024, 1024, 1024), (1, 2048, 2048)]


def microseconds(f: Callable[[], Any], repeat: int = 9) -> float:
    """The best time of one call; a run is as many calls as take about 20 ms."""
    f()
    once = max(min(timeit.repeat(f, number=1, repeat=3)), 1e-7)
    number = max(1, int(0.02 / once))
    return 1e6 * min(timeit.repeat(f, number=number, repeat=repeat)) / number


def row(name: str, *values: object) -> None:
    cells = (f"{v:>12.2f}" if isinstance(v, float) else f"{v!s:>12}" for v in values)
    print(f"{name:<44}", *cells)


def leaves_plan(count: int) -> Plan:
    """count arrays of 10 elements, each doubled."""
    function = texts.load(texts.DOUBLE)["double"]
    b = Builder()
    for _ in range(count):
        b.call(function, [b.input("f4", (10,)), b.output("f4", (10,))], extent=10)
    return b.build()


def add_plan(cost: float) -> Plan:
    b = Builder()
    args = [b.input("f4", (10,)), b.input("f4", (10,)), b.output("f4", (10,))]
    b.call(texts.load(texts.ADD)["add"], args, extent=10, cost=cost)
    return b.build()


def chain_plan(length: int) -> Plan:
    function = texts.load(texts.DOUBLE)["double"]
    b = Builder()
    x = b.input("f4", (1,), writeable=True)
    for _ in range(length):
        b.call(function, [x, x], extent=1)
    return b.build()


def calls() -> None:
    """The cost of getting into native code and back."""
    x = np.ones(10, np.float32)
    row("calls from Python", "µs")
    plan = add_plan(cost=1.0)
    row("a + b, 10 elements: plan.run", microseconds(lambda: plan.run(x, x)))
    row("a + b, 10 elements: plan(...)", microseconds(lambda: plan(x, x)))
    released = add_plan(cost=1000.0)
    row("the same, GIL released", microseconds(lambda: released.run(x, x)))
    row("np.add", microseconds(lambda: np.add(x, x)))
    many, arrays = leaves_plan(20), [x] * 20
    row("20 leaves in, 20 out", microseconds(lambda: many.run(*arrays)))
    one, hundred = chain_plan(1), chain_plan(101)
    y = np.zeros(1, np.float32)
    extra = microseconds(lambda: hundred.run(y)) - microseconds(lambda: one.run(y))
    row("one more instruction", extra / 100)
    table = np.array([x.ctypes.data, x.ctypes.data, y.ctypes.data])
    add = texts.load(texts.ADD)["add"]  # its code lives as long as this
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function = signature(add.address)
    prepared = ctypes.c_void_p(table.ctypes.data), ctypes.c_int64(0), ctypes.c_int64(1)
    row("ctypes, arguments prepared, no checks", microseconds(lambda: function(*prepared)))


def pool() -> None:
    """Latency of a job of 8 chunks, back to back and after pauses, also with a busy process."""
    function = texts.load(texts.BURN)["burn"]
    row("a job of 8 chunks, µs", "threads", "min", "median", "99 %")
    for busy in (False, True):
        hog = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
        for rounds, gap in ((1, 0.0), (1, 1e-3), (10_000, 0.0), (40_000, 0.0)):
            b = Builder()
            b.call(function, [rounds], extent=8, cost=max(1, rounds * 0.3), grain=1)
            plan = b.build()
            for threads in (1, 2):
                runtime.set_num_threads(threads)
                times = np.percentile(latencies(plan, gap), [0, 50, 99])
                name = f"{rounds * 2.4e-3:.0f} µs of work" + (", 1 ms apart" if gap else "")
                row(name + (", a core busy" if busy else ""), threads, *map(float, times))
        if hog is not None:
            hog.kill()
            hog.wait()


def latencies(plan: Plan, gap: float, count: int = 500) -> np.ndarray:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        plan.run()
        stop = time.perf_counter()
        times.append(1e6 * (stop - start))
        while time.perf_counter() < stop + gap:
            pass
    return np.array(times)


def code() -> None:
    """Compiling and loading kernels, and what they leave behind."""
    row("code", "ms a kernel")
    text = texts.elementwise("shift", "%y = fadd float %x0, 1.0", 1)
    image = codegen.compile_object(text)
    row("compile one kernel", 1e-3 * microseconds(lambda: codegen.compile_object(text)))
    ten = "\n".join(text.replace("@shift", f"@shift{i}") for i in range(10))
    row("compile ten in one text", 1e-4 * microseconds(lambda: codegen.compile_object(ten)))
    row("load", 1e-3 * microseconds(lambda: loader.Library(image, ["shift"])))
    row("find in the disk cache and load", 1e-3 * microseconds(lambda: find(text)))
    before = resident_kilobytes()
    for i in range(200):
        kernel.load(["shift"], text.replace("1.0", f"{i}.5"))
    row("kept after compiling and dropping, KB", (resident_kilobytes() - before) / 200)


def find(text: str) -> None:
    kernel.load(["shift"], text, key=b"benchmark " + text.encode())


def resident_kilobytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4.0


def gemm(peer: str | None) -> None:
    """Matrix products in float32 against NumPy and PyTorch."""
    peers = run_peer(peer, TORCH) if peer else {}
    row("float32 products, µs", "1 thread", "2 threads", "numpy", "torch")
    for m, n, k in SHAPES:
        b = Builder()
        x, y, z = b.input("f4", (m, k)), b.input("f4", (k, n)), b.output("f4", (m, n))
        blas.gemm(b, blas.Product(np.dtype("f4"), m, n, k), x, y, z)
        plan = b.build()
        a, c = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        times = []
        for threads in (1, 2):
            runtime.set_num_threads(threads)
            times.append(microseconds(lambda: plan.run(a, c)))  # noqa: B023
        numpy_time = microseconds(lambda: a @ c)  # noqa: B023
        row(f"{m} x {n} x {k}", *times, numpy_time, peers.get(f"{m} {n} {k}", "-"))


TORCH = f"""
import timeit, torch
torch.set_num_threads(2)
for m, n, k in {SHAPES}:
    a, b = torch.ones(m, k), torch.ones(k, n)
    f = lambda: a @ b
    f()
    number = max(1, int(0.02 / max(min(timeit.repeat(f, number=1, repeat=3)), 1e-7)))
    print(m, n, k, 1e6 * min(timeit.repeat(f, number=number, repeat=9)) / number)
"""

JAX = "import jax, numpy as np; jax.jit(lambda a, b: a + b)(*np.ones((2, 10), 'f4'))"

LUCID = """
import numpy as np
from lucid.compiler.plan.plan import Builder
from tests.compiler import texts
b = Builder()
args = [b.input("f4", (10,)), b.input("f4", (10,)), b.output("f4", (10,))]
b.call(texts.load(texts.ADD)["add"], args, extent=10)
b.build()(np.ones(10, "f4"), np.ones(10, "f4"))
"""


def run_peer(peer: str, script: str) -> dict[str, float]:
    done = subprocess.run([peer, "-c", script], capture_output=True, text=True)
    rows = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
    return {name: float(value) for name, value in rows}


def start(peer: str | None) -> None:
    """From the start of a process to the result of a + b."""
    row("process start to first result", "seconds")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LUCID_CACHE_DIR": folder + "/cache"}
        row("Lucid, empty cache", seconds(sys.executable, LUCID, environment, 1))
        row("Lucid, warm cache", seconds(sys.executable, LUCID, environment, 7))
    row("import numpy alone", seconds(sys.executable, "import numpy", dict(os.environ), 7))
    if peer:
        row("JAX", seconds(peer, JAX, dict(os.environ), 5))


def seconds(python: str, script: str, environment: dict[str, str], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        subprocess.run([python, "-c", script], env=environment, check=True, cwd=ROOT)
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=["calls", "pool", "code", "gemm", "start"])
    parser.add_argument("--peer", default=os.environ.get("BENCH_PYTHON"))
    options = parser.parse_args()
    sections: dict[str, Callable[[], None]] = {
        "calls": calls,
        "pool": pool,
        "code": code,
        "gemm": lambda: gemm(options.peer),
        "start": lambda: start(options.peer),
    }
    for name in options.sections:
        sections[name]()
        print()


if __name__ == "__main__":
    main()
