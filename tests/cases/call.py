"""Cases for a Graph that is called as one operation."""

import numpy as np

from lucid.ir import parse
from lucid.ops.higher_order.call import Call
from tests.cases.case import Case, real

SCALED_SINE = parse("""
graph scaled_sine(x: f64[3], y: f64[3]):
    %0: f64[3] = sin x
    %1: f64[3] = mul %0 y
    %2: f64[]  = sum[axes=(0,)] %1
    return %1, %2
""")

CASES = [
    Case(
        Call(SCALED_SINE),
        (real(3, dtype="float64"), real(3, dtype="float64")),
        lambda x, y: (np.sin(x) * y, (np.sin(x) * y).sum()),
        label="two outputs",
    ),
]
