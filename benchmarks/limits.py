"""Physical limits: the machine's flops and bandwidth, and what they mean for a workload.

    python benchmarks/limits.py

measures the peak of multiply-adds in registers and the bandwidth of reads, by array size: one
core's best moment times the number of cores, so that a busy machine does not look slower than it
is. With the operations and bytes of a workload (`costs.py`) that gives its limit: the time that no
program which does these operations can go below.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from costs import Cost

ACCUMULATORS, SECONDS, TURNS = 12, 0.002, 30
SIZES = [1 << n for n in range(14, 29, 2)]  # bytes, of which every core reads its part


@dataclass(frozen=True)
class Machine:
    """float32 operations and bytes, a second.

    bandwidth   (size, bytes a second): of arrays of that size, read again and again
    """

    flops: float
    bandwidth: tuple[tuple[int, float], ...]

    def bytes_per_second(self, nbytes: int) -> float:
        """The bandwidth at the largest measured size that is not above this one."""
        return max(
            (pair for pair in self.bandwidth if pair[0] <= nbytes), default=self.bandwidth[0]
        )[1]

    def microseconds(self, cost: Cost) -> tuple[float, str]:
        """The least time of this cost, and what bounds it."""
        by_flops = 1e6 * cost.flops / self.flops
        by_bytes = 1e6 * cost.bytes / self.bytes_per_second(cost.bytes)
        return max((by_flops, "flops"), (by_bytes, "bytes"))


def vectors() -> tuple[int, Any]:
    """float32 numbers of a vector register, and a target machine of LLVM for this CPU."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2
    )
    return (16 if features.get("avx512f") else 8 if features.get("avx2") else 4), target


def kernels(width: int) -> str:
    """LLVM IR of a loop of multiply-adds in registers and of one that reads memory."""
    vec, lanes = f"<{width} x float>", range(ACCUMULATORS)
    zeros, step = "zeroinitializer", 4 * width * ACCUMULATORS
    phis = "\n".join(f"  %a{i} = phi {vec} [ {zeros}, %entry ], [ %b{i}, %loop ]" for i in lanes)
    fma = f"{vec} @llvm.fma.v{width}f32({vec}"
    multiply = [f"  %b{i} = call {fma} %a{i}, {vec} %x, {vec} %x)" for i in lanes]
    read = []
    for i in lanes:
        read += [
            f"  %o{i} = add i64 %at, {4 * width * i}",
            f"  %p{i} = getelementptr i8, ptr %memory, i64 %o{i}",
            f"  %v{i} = load {vec}, ptr %p{i}, align 64",
            f"  %b{i} = fadd {vec} %a{i}, %v{i}",
        ]
    total = [f"  %s{i + 1} = fadd {vec} %{f's{i}' if i else 'b0'}, %b{i}" for i in lanes]
    end = "\n".join([*total, f"  store {vec} %s{ACCUMULATORS}, ptr %out, align 4", "  ret void"])
    return f"""
declare {vec} @llvm.fma.v{width}f32({vec}, {vec}, {vec})
define void @multiply(ptr %memory, i64 %size, i64 %count, ptr %out) {{
entry:
  %x = load {vec}, ptr %memory, align 64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{phis}
{chr(10).join(multiply)}
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %count
  br i1 %more, label %loop, label %end
end:
{end}
}}
define void @read(ptr %memory, i64 %size, i64 %count, ptr %out) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{chr(10).join(read)}
  %moved = add i64 %at, {step}
  %over = icmp uge i64 %moved, %size
  %next = select i1 %over, i64 0, i64 %moved
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %count
  br i1 %more, label %loop, label %end
end:
{end}
}}
"""


def rate(run: Callable[[int], None]) -> float:
    """Iterations a second of `run(count)`, the best of some short turns: of the quiet moments."""

    def seconds(count: int) -> float:
        start = time.perf_counter()
        run(count)
        return time.perf_counter() - start

    count = 1000
    while min(seconds(count) for _ in range(3)) < SECONDS:
        count *= 2
    return count / min(seconds(count) for _ in range(TURNS))


def measure() -> Machine:
    """Measure one core and multiply by their number; it takes about a second."""
    import llvmlite.binding as llvm

    width, target = vectors()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(kernels(width)), target)
    engine.finalize_object()
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, pointer, word, word, pointer)
    multiply, read = (kind(engine.get_function_address(name)) for name in ("multiply", "read"))
    cores, step = len(os.sched_getaffinity(0)), 4 * width * ACCUMULATORS
    memory, result = np.ones(max(SIZES) // 4, np.float32), np.zeros(width, np.float32)
    first, out = memory.ctypes.data + -memory.ctypes.data % 64, result.ctypes.data

    def bandwidth(size: int) -> float:
        part = size // cores // step * step  # a whole number of iterations
        return cores * step * rate(lambda count: read(first, part, count, out))

    flops = 2 * width * ACCUMULATORS * cores * rate(lambda count: multiply(first, 0, count, out))
    return Machine(flops, tuple((size, bandwidth(size)) for size in SIZES))


def main() -> None:
    machine = measure()
    print(f"float32 multiply-adds: {machine.flops / 1e9:,.0f} GFLOP/s (float64: half)")
    for size, speed in machine.bandwidth:
        print(f"reads of {size / 1024:>9,.0f} KB: {speed / 1e9:>6,.0f} GB/s")


if __name__ == "__main__":
    main()
