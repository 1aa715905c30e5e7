"""simplify_indexing, as text: a split of a gathered axis and a merge before a scatter move."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.compiler.compile import compile_graph
from lucid.compiler.passes.rules.simplify_indexing import split_axes
from lucid.compiler.passes.simplify import simplify
from lucid.ir import evaluate, parse, verify

GATHER = """graph f(x: f64[7,5,6], i: i64[30]):
    %0: f64[30,7,5]  = gather[axes=(2,), batch_dims=0] x i
    %1: f64[7,5,30]  = transpose[permutation=(1,2,0)] %0
    %2: f64[7,5,6,5] = reshape[shape=(7,5,6,5)] %1
    return %2"""

SCATTER = """graph f(y: f64[7,5,6,5], i: i64[30]):
    %0: f64[7,5,30] = reshape[shape=(7,5,30)] y
    %1: f64[30,7,5] = transpose[permutation=(2,0,1)] %0
    %2: f64[7,5,6]  = scatter_add[shape=(7,5,6), axes=(2,), batch_dims=0] %1 i
    return %2"""

KEPT = {
    "an axis of the operand is split": """graph f(x: f64[7,5,6], i: i64[30]):
    %0: f64[30,7,5]    = gather[axes=(2,), batch_dims=0] x i
    %1: f64[5,30,7]    = transpose[permutation=(2,0,1)] %0
    %2: f64[5,30,7,1]  = reshape[shape=(5,30,7,1)] %1
    return %2""",
    "axes are merged across": """graph f(x: f64[7,5,6], i: i64[30]):
    %0: f64[30,7,5] = gather[axes=(2,), batch_dims=0] x i
    %1: f64[7,5,30] = transpose[permutation=(1,2,0)] %0
    %2: f64[35,30]  = reshape[shape=(35,30)] %1
    return %2""",
}


def values(graph):
    rng = np.random.default_rng(0)
    first, indices = graph.inputs
    return rng.normal(size=first.type.shape), rng.integers(0, 6, indices.type.shape)


@pytest.mark.parametrize("text", [GATHER, SCATTER], ids=["gather", "scatter"])
def test_a_reshape_moves_to_the_indices(text):
    graph = parse(text)
    simpler = verify(simplify(graph))
    reshapes = [eqn for eqn in simpler.equations if eqn.op.name == "reshape"]
    assert [eqn.inputs[0] for eqn in reshapes] == [simpler.inputs[1]]
    args = values(graph)
    (expected,), (found,) = evaluate(graph, *args), evaluate(simpler, *args)
    np.testing.assert_array_equal(found, expected)
    (compiled,) = compile_graph(graph)(list(args))
    np.testing.assert_array_equal(compiled, expected)


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_other_reshapes_stay(text):
    graph = parse(text)
    assert [eqn.op.name for eqn in simplify(graph).equations] == ["gather", "transpose", "reshape"]


def test_split_axes_accepts_splits_alone():
    assert split_axes((1, 42), (1, 7, 6)) == [(1,), (7, 6)]
    assert split_axes((6, 2), (6, 2, 1)) == [(6,), (2, 1)]
    assert split_axes((6, 2), (4, 3, 1)) is None
    assert split_axes((6, 2), (12,)) is None
    assert split_axes((0, 2), (0, 2, 1)) is None
