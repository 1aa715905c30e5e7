"""Lowers random_bits: the Threefry 2x32 cipher over blocks of two words, which LLVM vectorizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lucid.compiler.lowering.nest_builder import copy, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.graph import Equation, Literal
from lucid.ops.random.keyed import PARITY, ROTATIONS
from lucid.support.caches import memoize

NS = 1.5  # estimated, for a block

# args: 0 keys  1 counters  2 words  3 words for each key  4 blocks for each key
KERNEL = """
define void @threefry(ptr noalias %args, i64 %lo, i64 %hi) nounwind {
entry:
  %keys = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %counters = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %out = load ptr, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  %size = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %args, i64 4
  %blocks = load i64, ptr %p4
  %whole = lshr i64 %size, 1
  %first = udiv i64 %lo, %blocks
  br label %next_key
next_key:
  %r = phi i64 [ %first, %entry ], [ %r1, %key_done ]
  %start = mul i64 %r, %blocks
  %more = icmp slt i64 %start, %hi
  br i1 %more, label %key, label %done
key:
  %two = shl i64 %r, 1
  %k0p = getelementptr i32, ptr %keys, i64 %two
  %k1p = getelementptr i32, ptr %k0p, i64 1
  %c0p = getelementptr i32, ptr %counters, i64 %two
  %c1p = getelementptr i32, ptr %c0p, i64 1
  %k0 = load i32, ptr %k0p
  %k1 = load i32, ptr %k1p
  %c0 = load i32, ptr %c0p
  %c1 = load i32, ptr %c1p
  %base = mul i64 %r, %size
  %row = getelementptr i32, ptr %out, i64 %base
  %before = sub i64 %lo, %start
  %b0 = call i64 @llvm.smax.i64(i64 %before, i64 0)
  %after = sub i64 %hi, %start
  %b1 = call i64 @llvm.smin.i64(i64 %after, i64 %blocks)
  %b2 = call i64 @llvm.smin.i64(i64 %b1, i64 %whole)
  %some = icmp slt i64 %b0, %b2
  br i1 %some, label %block, label %rest
block:
  %b = phi i64 [ %b0, %key ], [ %bn, %block ]
  %short = trunc i64 %b to i32
  %c = add i32 %c0, %short
  %pair = call { i32, i32 } @encrypted(i32 %k0, i32 %k1, i32 %c, i32 %c1)
  %y0 = extractvalue { i32, i32 } %pair, 0
  %y1 = extractvalue { i32, i32 } %pair, 1
  %at = shl i64 %b, 1
  %q0 = getelementptr i32, ptr %row, i64 %at
  %q1 = getelementptr i32, ptr %q0, i64 1
  store i32 %y0, ptr %q0, !llvm.access.group !0
  store i32 %y1, ptr %q1, !llvm.access.group !0
  %bn = add nsw i64 %b, 1
  %left = icmp slt i64 %bn, %b2
  br i1 %left, label %block, label %rest, !llvm.loop !1
rest:
  %half = icmp sgt i64 %b1, %whole
  br i1 %half, label %last, label %key_done
last:
  %shortl = trunc i64 %whole to i32
  %cl = add i32 %c0, %shortl
  %pairl = call { i32, i32 } @encrypted(i32 %k0, i32 %k1, i32 %cl, i32 %c1)
  %yl = extractvalue { i32, i32 } %pairl, 0
  %atl = shl i64 %whole, 1
  %ql = getelementptr i32, ptr %row, i64 %atl
  store i32 %yl, ptr %ql
  br label %key_done
key_done:
  %r1 = add i64 %r, 1
  br label %next_key
done:
  ret void
}

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @llvm.fshl.i32(i32, i32, i32)

!0 = distinct !{}
!1 = distinct !{!1, !2}
!2 = !{!"llvm.loop.parallel_accesses", !0}
"""


@memoize()
def threefry() -> TextKernel:
    """The kernel, with the rounds of the cipher unrolled."""
    lines = [
        "define internal { i32, i32 } @encrypted(i32 %k0, i32 %k1, i32 %c0, i32 %c1)"
        " nounwind alwaysinline {",
        "  %mixed = xor i32 %k0, %k1",
        f"  %k2 = xor i32 %mixed, {int(PARITY)}",
        "  %a0 = add i32 %c0, %k0",
        "  %b0 = add i32 %c1, %k1",
    ]
    n = 0
    for group in range(5):
        for rotation in ROTATIONS[4 * (group % 2) : 4 * (group % 2) + 4]:
            lines += [
                f"  %a{n + 1} = add i32 %a{n}, %b{n}",
                f"  %t{n} = call i32 @llvm.fshl.i32(i32 %b{n}, i32 %b{n}, i32 {rotation})",
                f"  %b{n + 1} = xor i32 %t{n}, %a{n + 1}",
            ]
            n += 1
        lines += [
            f"  %a{n + 1} = add i32 %a{n}, %k{(group + 1) % 3}",
            f"  %u{n} = add i32 %b{n}, %k{(group + 2) % 3}",
            f"  %b{n + 1} = add i32 %u{n}, {group + 1}",
        ]
        n += 1
    lines += [
        f"  %one = insertvalue {{ i32, i32 }} undef, i32 %a{n}, 0",
        f"  %both = insertvalue {{ i32, i32 }} %one, i32 %b{n}, 1",
        "  ret { i32, i32 } %both",
        "}",
    ]
    return TextKernel("threefry", "\n".join(lines) + KERNEL)


@dataclass(eq=False)
class RandomWork:
    """Writes random words for every key."""

    keys: Array
    counters: Array
    out: Array
    size: int
    label: str

    def kernels(self) -> Sequence[Any]:
        return (threefry(),)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        blocks = (self.size + 1) // 2
        args = [self.keys.address, self.counters.address, self.out.address, self.size, blocks]
        extent = self.keys.type.size // 2 * blocks
        builder.call(kernels[threefry().key], args, extent, NS, step=64, label=self.label)


class RandomBitsLowering:
    """Lowers random_bits."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return not any(isinstance(x, Literal) for x in eqn.inputs)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        if not out.type.size:
            return []
        work: list[Any] = []
        given = []
        for x in eqn.inputs:
            array = layout.array(x)
            if not array.is_dense:
                dense = layout.scratch(array.type)
                work += copy(layout, array, dense, label)
                array = dense
            given.append(array)
        size = math.prod(eqn.op.shape)  # type: ignore[attr-defined]
        keys, counters = given
        return [*work, RandomWork(keys, counters, out, size, label)]
