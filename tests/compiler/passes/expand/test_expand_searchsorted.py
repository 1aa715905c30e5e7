"""searchsorted as a binary search of gathers: the indices are NumPy's, for nan and no rows too."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.compiler.passes.expand.decompose import decompose
from lucid.ir import evaluate, parse, verify


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8])
def test_the_binary_search_finds_the_indices_of_numpy(n, right):
    text = f"""graph f(s: f32[{n}], x: f32[9]):
    %0: i64[9] = searchsorted[right={right}] s x
    return %0"""
    graph = verify(decompose(parse(text)))
    assert "searchsorted" not in str(graph)
    rows = np.arange(n, dtype="float32")
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.5, 7.0, 9.0, np.inf, np.nan], "float32")
    expected = np.searchsorted(rows, x, side="right" if right else "left")
    np.testing.assert_array_equal(evaluate(graph, rows, x)[0], expected)


def test_a_search_takes_as_many_steps_as_the_row_has_bits():
    text = "graph f(s: f32[8], x: f32[]):\n    %0: i64[] = searchsorted[right=False] s x\n"
    graph = decompose(parse(text + "    return %0"))
    assert sum(eqn.op.name == "gather" for eqn in graph.equations) == 4
