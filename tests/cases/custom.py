"""Cases for operations whose parameters are Graphs."""

from lucid.ir import parse
from lucid.ops.higher_order.custom_derivative import CustomVjp
from tests.cases.case import Case, real

SQUARE = parse("""
graph forward(x: f64[2,3], w: f64[3]):
    %0: f64[2,3] = mul x x
    %1: f64[2,3] = mul %0 w
    return %1, x, w
""")
SQUARE_BACK = parse("""
graph backward(x: f64[2,3], w: f64[3], ct: f64[2,3]):
    %0: f64[2,3] = mul x w
    %1: f64[2,3] = mul %0 2.0
    %2: f64[2,3] = mul %1 ct
    %3: f64[2,3] = mul x x
    %4: f64[2,3] = mul %3 ct
    %5: f64[3] = sum[axes=(0,)] %4
    return %2, %5
""")

CASES = [
    Case(
        CustomVjp(SQUARE, SQUARE_BACK, 2, 1, (0, 1)),
        (real(2, 3, dtype="float64"), real(3, dtype="float64")),
        lambda x, w: (x * x * w, x, w),
        label="weighted-square",
    ),
]
