"""reuse_across_loops: costly values are stored for the next loop over a row, where that is safe."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.kernels.nest import Buffer, Nest, Store, Value
from lucid.compiler.kernels.reuse_across_loops import reuse_across_loops
from lucid.func import vjp
from lucid.ir import evaluate
from tests.compiler.agreement import Job, compile_jobs, difference

ROWS = ((5, 3), (False, True))


def nest(*values: Value, stores: list[tuple[int, int]], buffers: int = 2) -> Nest:
    whole = tuple(Buffer("f32", (3, 1)) for _ in range(buffers))
    return Nest(*ROWS, whole, values, tuple(Store(b, v) for b, v in stores))


X = Value("load", (), "f32", 0)
EXP = Value("exp", (0,), "f32")
DOUBLE = Value("add", (0, 0), "f32")
TOTAL = Value("reduce", (1,), "f32", "sum")
DIVIDED = Value("div", (1, 2), "f32")


def test_a_function_is_kept_in_the_place_of_the_result():
    before = nest(X, EXP, TOTAL, DIVIDED, stores=[(1, 3)])
    after = reuse_across_loops(before, ["x", "y"])
    assert after.values == (
        X,
        EXP,
        Value("load", (), "f32", 1),
        Value("reduce", (1,), "f32", "sum"),
        Value("div", (2, 3), "f32"),
    )
    assert after.stores == (Store(1, 1), Store(1, 4))


def test_arithmetic_is_computed_again():
    before = nest(X, DOUBLE, TOTAL, DIVIDED, stores=[(1, 3)])
    assert reuse_across_loops(before, ["x", "y"]) is before


def test_what_is_stored_anyway_is_read_from_there():
    before = nest(X, EXP, TOTAL, DIVIDED, stores=[(1, 1), (2, 3)], buffers=3)
    after = reuse_across_loops(before, ["x", "y", "z"])
    assert after.values[2] == Value("load", (), "f32", 1)
    assert after.stores == (Store(1, 1), Store(2, 4))


def test_a_result_in_the_place_of_its_operand_holds_the_value_once_the_operand_is_done_with():
    before = nest(X, EXP, TOTAL, DIVIDED, stores=[(1, 3)])
    assert reuse_across_loops(before, ["x", "x"]).stores == (Store(1, 1), Store(1, 4))


def test_an_operand_that_the_last_loop_reads_is_not_written_early():
    again = Value("add", (3, 0), "f32")
    before = nest(X, EXP, TOTAL, DIVIDED, again, stores=[(1, 4)])
    assert reuse_across_loops(before, ["x", "x"]) is before
    assert reuse_across_loops(before, ["x", "y"]) is not before


def test_two_results_in_one_place_hold_nothing_else():
    before = nest(X, EXP, TOTAL, DIVIDED, stores=[(1, 3), (2, 3)], buffers=3)
    assert reuse_across_loops(before, ["x", "y", "y"]) is before


def test_a_result_holds_a_value_until_it_is_written_itself():
    """Softmax and its derivative: e ** x up to the quotient, and the quotient from there on."""
    total = Value("reduce", (3,), "f32", "sum")
    values = (X, EXP, TOTAL, DIVIDED, total, Value("sub", (3, 4), "f32"))
    values += (Value("mul", (0, 5), "f32"),)
    after = reuse_across_loops(nest(*values, stores=[(1, 3), (2, 6)], buffers=3), ["x", "y", "x"])
    reload = Value("load", (), "f32", 1)
    assert after.values == (
        X, EXP, reload, Value("reduce", (1,), "f32", "sum"), Value("div", (2, 3), "f32"),
        reload, Value("reduce", (4,), "f32", "sum"), Value("sub", (5, 6), "f32"),
        Value("mul", (0, 7), "f32"),
    )  # fmt: skip
    assert after.stores == (Store(1, 1), Store(1, 4), Store(2, 8))


def test_a_result_that_is_written_before_does_not_hold_a_value():
    values = (X, EXP, TOTAL, DIVIDED, Value("reduce", (3,), "f32", "sum"))
    values += (Value("mul", (1, 4), "f32"), DOUBLE._replace(args=(2, 0)))
    before = nest(*values, stores=[(1, 6), (2, 5)], buffers=3)
    held = {store.buffer for store in reuse_across_loops(before, ["x", "y", "z"]).stores[:-2]}
    assert 1 not in held


def test_each_result_holds_one_value():
    sine = Value("sin", (0,), "f32")
    both = Value("reduce", (3,), "f32", "sum")
    values = (X, EXP, sine, Value("add", (1, 2), "f32"), both)
    values += (Value("div", (1, 4), "f32"), Value("div", (2, 4), "f32"))
    after = reuse_across_loops(nest(*values, stores=[(1, 5), (2, 6)], buffers=3), ["x", "y", "z"])
    assert len(after.stores) == 4
    assert {store.buffer for store in after.stores[:2]} == {1, 2}


def softmax(x):
    return lucid.softmax(x, 1)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: softmax(x @ w),
        lambda x, w: (softmax(x @ w) + x @ w, x @ w),
        lambda x, w: vjp(softmax, x @ w)[1](x),
        lambda x, w: vjp(lambda x: lucid.log_softmax(x, 1), x @ w)[1](x),
        lambda x, w: softmax(softmax(x @ w) * w),
        lambda x, w: (lucid.exp(x), softmax(lucid.exp(x)) + lucid.sin(x)),
        lambda x, w: softmax(x.T),
        lambda x, w: lucid.softmax(x @ w, 0),
        lambda x, w: (softmax(x), softmax(x * 2), (softmax(x) * x).sum(1)),
        lambda x, w: (x @ w) * softmax(x @ w),
    ],
)
def test_values_stay_right(f, rng):
    x, w = (rng.standard_normal((24, 24)).astype("float32") for _ in range(2))
    graph = lucid.ir.trace(f)(lucid.tensor(x), lucid.tensor(w))
    job = Job("reuse", graph, [x, w])
    (executable,) = compile_jobs([job])
    text = difference(job, executable([x, w]), evaluate(graph, x, w))
    assert not text, f"{graph}\n{text}"
    assert all(np.isfinite(y).all() for y in executable([x, w]))
