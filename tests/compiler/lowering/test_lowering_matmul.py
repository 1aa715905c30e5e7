"""Matrix products with any number of axes that broadcast, as BLAS calls; of integers as loops."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.compiler.compile import compile_graph
from lucid.compiler.plan.executable import Segment
from lucid.ir import evaluate, parse
from lucid.ops.linalg.contraction import Matmul
from tests.compiler.lowering.lowering_checks import check, compiled, numbers

SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 6, 3, 4), (2, 6, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((1, 6, 3, 4), (2, 1, 4, 5)),
    ((3, 1, 2, 3, 4), (1, 5, 1, 4, 2)),
    ((2, 6, 3, 4), (4,)),
    ((4,), (2, 6, 4, 5)),
    ((3, 2, 1, 1, 4), (1, 2, 7, 4, 1)),
    ((2, 0, 3), (3, 4)),
    ((2, 3, 0), (0, 4)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_batches_broadcast(left, right, dtype):
    check(Matmul(), numbers(dtype, *left), numbers(dtype, *right, seed=1))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_large_batches_have_the_same_bits_for_any_number_of_threads(n, threads):
    x = np.random.default_rng(0).standard_normal((6, 5, 40, 30)).astype("float32")
    y = np.random.default_rng(1).standard_normal((5, 30, 50)).astype("float32")
    program = compiled(Matmul(), x, y)
    threads(1)
    want = program([x, y])[0]
    threads(n)
    np.testing.assert_array_equal(program([x, y])[0], want)
    np.testing.assert_allclose(want, x @ y, rtol=1e-5, atol=1e-5)


def test_heads_of_attention_are_read_where_they_lie():
    text = """graph f(q: f32[3,8,2,4], k: f32[3,8,2,4]):
    %0: f32[3,2,8,4] = transpose[permutation=(0, 2, 1, 3)] q
    %1: f32[3,2,4,8] = transpose[permutation=(0, 2, 3, 1)] k
    %2: f32[3,2,8,8] = matmul %0 %1
    return %2"""
    graph = parse(text)
    arrays = [numbers("float32", 3, 8, 2, 4), numbers("float32", 3, 8, 2, 4, seed=1)]
    executable = compile_graph(graph)
    (part,) = executable.parts
    assert isinstance(part, Segment) and part.plan is not None
    assert len(part.plan.labels) == 1
    np.testing.assert_array_equal(executable(arrays)[0], evaluate(graph, *arrays)[0])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("rows", "k", "n"), [(128, 96, 33), (200, 5, 3), (300, 20, 400), (128, 8, 16), (500, 700, 17)]
)
def test_transposed_weights_are_read_where_they_are(rows, k, n, dtype):
    text = f"""graph f(x: {dtype}[{rows},{k}], y: {dtype}[{n},{k + 3}]):
    %0: {dtype}[{n},{k}] = slice[starts=(0,1), limits=({n},{k + 1}), strides=(1,1), drop=()] y
    %1: {dtype}[{k},{n}] = transpose[permutation=(1,0)] %0
    %2: {dtype}[{rows},{n}] = matmul x %1
    return %2"""
    graph = parse(text)
    long = {"f32": "float32", "f64": "float64"}[dtype]
    arrays = [numbers(long, rows, k), numbers(long, n, k + 3, seed=1)]
    executable = compile_graph(graph)
    assert len(executable.parts[0].plan.labels) == 1
    found, want = executable(arrays)[0], evaluate(graph, *arrays)[0]
    np.testing.assert_allclose(found, want, rtol=1e-4 if dtype == "f32" else 1e-12, atol=1e-4)
