"""Cases for values that are computed again, and the identities around them."""

import numpy as np

from lucid.ir import parse
from lucid.ops.higher_order.checkpoint_op import Checkpoint, Named, OptimizationBarrier
from tests.cases.case import Case, complex_, integer, real

WAVES = parse("""
graph waves(x: f64[2,3], w: f64[3]):
    %0: f64[2,3] = sin x
    %1: f64[2,3] = mul %0 w
    %2: f64[2,3] = sin %1
    return %2, %1
""")

CASES = [
    *[Case(op, (real(2, 3),), lambda x: x) for op in (OptimizationBarrier(), Named("z"))],
    *[Case(op, (complex_(),), lambda x: x) for op in (OptimizationBarrier(), Named("z"))],
    *[
        Case(op, (integer(0, 2),), lambda x: x, label="empty")
        for op in (OptimizationBarrier(), Named("z"))
    ],
    Case(OptimizationBarrier(), (real(2, 3), real(4)), lambda x, ct: x, label="waits"),
    Case(
        OptimizationBarrier(), (real(2, 3), complex_(4)), lambda x, ct: x, label="waits for complex"
    ),
    Case(OptimizationBarrier(), (complex_(2), complex_(2)), lambda x, ct: x, label="complex waits"),
    Case(
        Checkpoint(WAVES, 1),
        (real(2, 3, dtype="float64"), real(3, dtype="float64")),
        lambda x, w: (np.sin(np.sin(x) * w), np.sin(x) * w),
        label="waves",
    ),
]
