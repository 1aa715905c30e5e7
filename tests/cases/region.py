"""Cases for a function that runs as one operation."""

import numpy as np

from lucid.ir import parse
from lucid.ops.higher_order.region import Region
from tests.cases.case import Case, real

DAMPED_SINE = parse("""
graph damped_sine(x: f64[3], y: f64[3]):
    %0: f64[3] = sin x
    %1: f64[3] = neg y
    %2: f64[3] = exp %1
    %3: f64[3] = mul %0 %2
    return %3
""")

CASES = [
    Case(
        Region(DAMPED_SINE),
        (real(3, dtype="float64"), real(3, dtype="float64")),
        lambda x, y: np.sin(x) * np.exp(-y),
    ),
]
