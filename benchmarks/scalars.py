"""Nanoseconds per element of each scalar function, against NumPy (or SciPy) and `math` under Numba.

    python benchmarks/scalars.py [--cpu haswell] [--no-numba] [exp tanh ...]

One thread, 2**14 elements, aligned to a cache line; the best of many runs. The accuracy is in
tests/compiler/kernels/test_scalars.py.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from lucid.compiler.kernels.scalars import table
from tests.compiler.kernels.scalar_loops import Loops

SIZE = 1 << 14
MATH = {"asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "pow", "hypot", "lgamma"}
MATH |= {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan"}
MATH |= {"tanh", "sinh", "cosh", "erf", "erfc"}


def aligned(values: np.ndarray, dtype: str) -> np.ndarray:
    """The values in an array that starts at a cache line."""
    room = np.empty(values.size * np.dtype(dtype).itemsize + 64, "u1")
    start = -room.ctypes.data % 64
    array = room[start : start + values.size * np.dtype(dtype).itemsize].view(dtype)
    array[:] = values
    return array


def arguments(name: str, dtype: str) -> list[np.ndarray]:
    low, high = {"acosh": (1.0, 9.0), "log": (0.01, 9.0), "lgamma": (0.1, 20.0)}.get(
        name, (0.05, 0.95)
    )
    rng = np.random.default_rng(0)
    return [aligned(rng.uniform(low, high, SIZE), dtype) for _ in range(table[name].arity)]


def nanoseconds(call, seconds: float = 0.05) -> float:
    """The best time of one call, in nanoseconds an element."""
    call()
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best / SIZE * 1e9


def with_math(name: str, arrays: list[np.ndarray], out: np.ndarray) -> float:
    """A Numba loop over `math`'s own function."""
    import numba

    function = getattr(math, name)

    @numba.njit(error_model="numpy")
    def one(out, x):
        for i in range(x.size):
            out[i] = function(x[i])

    @numba.njit(error_model="numpy")
    def two(out, x, y):
        for i in range(x.size):
            out[i] = function(x[i], y[i])

    loop = one if len(arrays) == 1 else two
    return nanoseconds(lambda: loop(out, *arrays))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="scalars; all if none is given")
    parser.add_argument("--cpu", help="an LLVM CPU name, such as haswell for AVX2")
    parser.add_argument("--no-numba", action="store_true", help="leave out math under Numba")
    options = parser.parse_args()
    names = options.names or list(table)
    dtypes = ("f4", "f8")
    start = time.perf_counter()
    loops = Loops([(name, dtype) for name in names for dtype in dtypes], options.cpu)
    count = len(names) * len(dtypes)
    print(f"{count} loops compiled in {time.perf_counter() - start:.2f} s")
    print(f"{'':10}{'float32':>8}{'NumPy':>8}{'math':>8}{'float64':>10}{'NumPy':>8}{'math':>8}")
    for name in names:
        row = f"{name:10}"
        for dtype, width in zip(dtypes, (8, 10), strict=True):
            arrays = arguments(name, dtype)
            out = aligned(np.zeros(SIZE), dtype)
            function, pointers = loops.raw(name, dtype, out, *arrays)
            ours = nanoseconds(lambda: function(*pointers))  # noqa: B023
            numpy = nanoseconds(lambda: table[name].reference(*arrays))  # noqa: B023
            row += f"{ours:{width}.2f}{numpy:8.2f}"
            timed = name in MATH and not options.no_numba
            row += f"{with_math(name, arrays, out):8.2f}" if timed else f"{'':>8}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
