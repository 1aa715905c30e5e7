"""Cases for branches and loops: bodies as text, values by Python's own if, for and while."""

import numpy as np

from lucid.ir import parse
from lucid.ops.higher_order.control.scan import Scan
from lucid.ops.higher_order.control.switch import Switch
from lucid.ops.higher_order.control.while_loop import While
from tests.cases.case import Case, boolean, integer, real

SINE = parse("""
graph sine(x: f64[3], y: f64[]):
    %0: f64[3] = sin x
    %1: f64[3] = mul %0 y
    %2: f64[]  = sum[axes=(0,)] %0
    return %1, %2
""")
SQUARE = parse("""
graph square(x: f64[3], y: f64[]):
    %0: f64[3] = mul x x
    return %0, y
""")
PLAIN = parse("""
graph plain(x: f64[3], y: f64[]):
    return x, 1.5:f64
""")


def sine(x, y):
    return np.sin(x) * y, np.sin(x).sum()


def chosen(i, x, y):
    return [sine(x, y), (x * x, y), (x, np.float64(1.5))][min(max(int(i), 0), 2)]


STEP = parse("""
graph step(w: f64[2], c: f64[2], n: i64[], x: f64[2]):
    %0: f64[2] = mul w c
    %1: f64[2] = sin %0
    %2: f64[2] = add %1 x
    %3: i64[]  = add n 1
    %4: f64[]  = sum[axes=(0,)] %1
    return %2, %3, %4, x
""")


def scanned(w, c, n, xs, order):
    ys = [None] * len(xs)
    for i in order:
        s = np.sin(w * c)
        c, n, ys[i] = s + xs[i], n + 1, s.sum()
    return c, n, np.array(ys, dtype="float64"), xs


BELOW = parse("""
graph below(limit: f64[], x: f64[2], n: i64[]):
    %0: f64[] = sum[axes=(0,)] x
    %1: bool[] = lt %0 limit
    return %1
""")
GROW = parse("""
graph grow(a: f64[2], x: f64[2], n: i64[]):
    %0: f64[2] = mul x a
    %1: f64[2] = sin x
    %2: f64[2] = add %0 %1
    %3: f64[2] = add %2 1.0
    %4: i64[]  = add n 1
    return %3, %4
""")


def grown(limit, a, x, n):
    while x.sum() < limit:
        x, n = x * a + np.sin(x) + 1.0, n + 1
    return x, n


LOOP = (GROW, False, (1,), ((2,), (3,)), ())
F8 = {"dtype": "float64"}
STATE = (real(2, low=0.5, high=1.5, **F8), integer(dtype="int64", low=0, high=3))
SCAN_ARGS = (real(2, **F8), real(2, **F8), integer(low=0, high=3), real(4, 2, **F8))

CASES = [
    Case(
        Switch((SINE, SQUARE, PLAIN)),
        (integer(low=i, high=i + 1), real(3, **F8), real(**F8)),
        chosen,
        label=f"branch{i}",
    )
    for i in (-1, 0, 1, 2, 5)
]
CASES += [
    Case(
        Switch((SQUARE, SINE)),
        (boolean(), real(3, **F8), real(**F8)),
        lambda p, x, y: sine(x, y) if p else (x * x, y),
        label="bool",
    ),
    Case(
        Scan(STEP, 1, 2, 4, False),
        SCAN_ARGS,
        lambda *args: scanned(*args, range(4)),
        label="forwards",
    ),
    Case(
        Scan(STEP, 1, 2, 4, True),
        SCAN_ARGS,
        lambda *args: scanned(*args, range(3, -1, -1)),
        label="backwards",
    ),
    Case(
        Scan(STEP, 1, 2, 0, False),
        (*SCAN_ARGS[:3], real(0, 2, **F8)),
        lambda *args: scanned(*args, range(0)),
        label="no_steps",
    ),
    Case(
        While(BELOW, (0,), (LOOP,), (4, 5)),
        (real(low=19.0, high=21.0, **F8), real(2, low=1.1, high=1.4, **F8), *STATE),
        grown,
        label="some_steps",
    ),
    Case(
        While(BELOW, (0,), (LOOP,), (4, 5)),
        (real(low=-3.0, high=-2.0, **F8), real(2, low=1.1, high=1.4, **F8), *STATE),
        grown,
        label="no_steps",
    ),
]
