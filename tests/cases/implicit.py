"""Cases for solutions of equations."""

import numpy as np

from lucid.ir import parse
from lucid.ops.higher_order.implicit_solve import LinearSolve, Root
from tests.cases.case import Case, real


def elementwise(name: str, op: str, left: str, right: str) -> object:
    return parse(f"""
graph {name}(c: f64[3], x: f64[3]):
    %0: f64[3] = {op} {left} {right}
    return %0
""")


TIMES, OVER = elementwise("times", "mul", "c", "x"), elementwise("over", "div", "x", "c")
SQUARE = parse("""
graph residual(c: f64[3], x: f64[3]):
    %0: f64[3] = mul x x
    %1: f64[3] = sub %0 c
    return %1
""")
SQUARE_ROOT = parse("""
graph solve(c: f64[3], start: f64[3]):
    %0: f64[3] = sqrt c
    return %0
""")
POSITIVE = real(3, low=0.5, high=2.0, dtype="float64")

CASES = [
    Case(
        LinearSolve(TIMES, TIMES, OVER, OVER, 1),
        (POSITIVE, real(3, dtype="float64")),
        lambda c, b: b / c,
        label="diagonal",
    ),
    Case(
        Root(SQUARE, SQUARE_ROOT, 1, "dense"),
        (POSITIVE, POSITIVE),
        lambda c, start: np.sqrt(c),
        label="square-root",
    ),
]
