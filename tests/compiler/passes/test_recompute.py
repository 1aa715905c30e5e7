"""recompute, as text: a later kernel recomputes cheap values if it then reads less."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.inspect.fused_text import fused_text
from lucid.compiler.passes.pipeline import stages
from lucid.compiler.passes.recompute import recompute
from lucid.ir import evaluate, parse, verify

RESIDUALS = """graph f(x: f32[4,4], w: f32[4,4]):
    %0: f32[4,4] = tanh x
    %1: f32[4,4] = mul x 2.0
    %2: f32[4,4] = mul %0 %0
    %3: f32[4,4] = add %0 1.0
    %4: f32[4,4] = matmul %3 w
    %5: f32[4,4] = mul %4 %2
    %6: f32[4,4] = add %5 %1
    %7: f32[4,4] = sub %6 %0
    return %7"""


def test_arithmetic_on_what_is_read_anyway_is_done_again():
    graph = verify(recompute(parse(RESIDUALS)))
    assert (
        fused_text(graph)
        == """\
kernel over 4 x 4, gives %0, %2
    %0: f32[4,4] = tanh x
    %2: f32[4,4] = add %0 1.0
matmul alone
    %3: f32[4,4] = matmul %2 w
kernel over 4 x 4, gives %8
    %1: f32[4,4] = mul x 2.0
  · %4: f32[4,4] = slice[starts=(0,0), limits=(4,4), strides=(1,1), drop=()] %0
    %5: f32[4,4] = mul %4 %4
    %6: f32[4,4] = mul %3 %5
    %7: f32[4,4] = add %6 %1
    %8: f32[4,4] = sub %7 %0"""
    )


LEFT_ALONE = {
    "a function": """graph f(x: f32[4,4], w: f32[4,4]):
    %0: f32[4,4] = tanh x
    %1: f32[4,4] = matmul %0 w
    %2: f32[4,4] = mul %1 %0
    return %2""",
    "what would be read instead is more": """graph f(x: f32[4,4], y: f32[4,4], w: f32[4,4]):
    %0: f32[4,4] = add x y
    %1: f32[4,4] = exp %0
    %2: f32[4,4] = matmul %1 w
    %3: f32[4,4] = mul %2 %0
    return %3""",
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone(name):
    graph = parse(LEFT_ALONE[name])
    assert str(recompute(graph)) == str(graph)


def test_a_gelu_between_products_stores_two_arrays_for_its_gradient():
    def gelu(x):
        return 0.5 * x * (1 + lucid.tanh(0.8 * (x + 0.04 * x * x * x)))

    def loss(x, w, b, v):
        return (lucid.exp(gelu(x @ w + b) @ v)).sum()

    rng = np.random.default_rng(0)
    shapes = [(20, 6), (6, 8), (8,), (8, 5)]
    args = [lucid.tensor(rng.normal(size=shape)) for shape in shapes]
    graph = lucid.ir.trace(lucid.func.value_and_grad(loss, argnums=(0, 1, 2, 3)))(*args)
    text = fused_text(stages(graph)["copies_inserted"])
    kernel = next(part for part in text.split("kernel over ") if "tanh" in part)
    assert kernel.splitlines()[0].count("%") == 2, text
    arrays = [np.asarray(x) for x in args]
    for got, want in zip(compile_graph(graph)(arrays), evaluate(graph, *arrays)):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(want).max())
