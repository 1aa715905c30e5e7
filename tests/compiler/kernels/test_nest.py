"""Nests: maps and scatters of short rows loop over their longest axis, large ones in blocks."""

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


@pytest.mark.parametrize("shape", [(3, 100, 16), (3, 40_009, 2)], ids=["long rows", "a prime"])
def test_long_rows_and_axes_without_a_divisor_keep_the_order_of_memory(shape):
    assert f"n2={shape[2]}" in sizes(lambda x: x.swapaxes(0, 1) * 2.0, np.zeros(shape))


def test_a_large_map_goes_through_its_longest_axis_in_blocks():
    x = np.random.default_rng(0).normal(size=(3, 40_000, 2))
    assert "n0=125, n1=3, n2=2, n3=320" in sizes(lambda x: x.swapaxes(0, 1) * 2.0, x)


def test_an_index_along_the_longest_axis_keeps_it_whole():
    x = np.random.default_rng(0).normal(size=(3, 40_000, 3))
    assert "n0=40000, n1=3, n2=3" in sizes(INDEXED.replace("100", "40000"), x)


@pytest.mark.parametrize("low", [(0, 1, 0), (2, 0, 0), (0, -1, 1), (0, 0, 0), (-3, 0, 2)])
@pytest.mark.parametrize("n", [7_000, 7_001])
def test_padding_is_the_same_in_blocks(n, low):
    x, pads = np.random.default_rng(0).normal(size=(n, 3, 2)), [(k, 0) for k in low]
    flat = [k for pad in reversed(pads) for k in pad]
    sizes(lambda x: lucid.nn.functional.pad(x, flat).swapaxes(1, 2) * 2.0, x)


@pytest.mark.parametrize("n", [6_000, 60_000])
def test_gathers_and_scatters_of_short_rows_are_the_same_in_blocks(n):
    rng = np.random.default_rng(0)
    i, x, y = rng.integers(0, 3, (2, 4)), rng.normal(size=(n, 2, 3)), rng.normal(size=(n, 2, 8))
    sizes(lambda x, i: x[:, :, i].swapaxes(1, 2) + 1.0, x, i)
    sizes(lambda x, y, i: x.index_add(2, i.reshape(-1), y), x, y, i)
    sizes(lambda x, y, i: x.index_add(0, i.reshape(-1), y[:8, :, :3]), x, y, i)


@pytest.mark.parametrize("seed", range(3))
def test_repeated_indices_are_added_in_order_whatever_the_loops(seed):
    rng = np.random.default_rng(seed)
    i, y = rng.integers(0, 4, (6,)), rng.normal(size=(50, 6, 2)).astype(np.float32)
    x = rng.normal(size=(50, 4, 2)).astype(np.float32)
    sizes(lambda x, y, i: x.index_add(1, i, y), x, y, i)
