"""Nests: small maps and scatters loop over their longest axis innermost."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.inspect.stages import kernels_of_graph
from lucid.ir import evaluate, parse

INDEXED = """graph f(x: f64[3,100,3]):
    %0: f64[100,3,3]  = transpose[permutation=(1,0,2)] x
    %1: i32[100,3,3]  = iota[shape=(100,3,3), axis=0, dtype='i32']
    %2: i32[100,3,3]  = iota[shape=(100,3,3), axis=2, dtype='i32']
    %3: bool[100,3,3] = lt %2 %1
    %4: f64[100,3,3]  = where %3 %0 0.0:f64
    return %4"""


def sizes(f, *args):
    """The line of sizes of the last kernel; compiled and interpreted results must be equal."""
    graph = parse(f) if isinstance(f, str) else lucid.ir.trace(f)(*args)
    for found, expected in zip(compile_graph(graph)(list(args)), evaluate(graph, *args)):
        np.testing.assert_array_equal(found, expected)
    return kernels_of_graph(graph)[-1].listing.splitlines()[0]


def test_a_small_map_with_short_rows_loops_over_its_longest_axis():
    x, y = np.random.default_rng(0).normal(size=(2, 3, 100, 2))
    assert "n2=100" in sizes(lambda x, y: x.swapaxes(0, 1) * y.swapaxes(0, 1)[:, :, :1], x, y)


def test_indices_follow_their_axes():
    x = np.random.default_rng(0).normal(size=(3, 100, 3))
    assert "n2=100" in sizes(INDEXED, x)


@pytest.mark.parametrize("shape", [(3, 100, 16), (3, 40_000, 2)], ids=["long rows", "large"])
def test_long_rows_and_large_maps_keep_the_order_of_memory(shape):
    assert f"n2={shape[2]}" in sizes(lambda x: x.swapaxes(0, 1) * 2.0, np.zeros(shape))


@pytest.mark.parametrize("seed", range(3))
def test_repeated_indices_are_added_in_order_whatever_the_loops(seed):
    rng = np.random.default_rng(seed)
    i, y = rng.integers(0, 4, (6,)), rng.normal(size=(50, 6, 2)).astype(np.float32)
    x = rng.normal(size=(50, 4, 2)).astype(np.float32)
    sizes(lambda x, y, i: x.index_add(1, i, y), x, y, i)
