"""Borders: a long row runs without the comparisons that only its ends need, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.inspect.stages import kernels_of_graph
from lucid.ir import parse

SCALAR_LOOP = "!2, !3}"  # neither vectorized nor unrolled


def rolled(x, k):
    return lucid.cat([x[..., k:], x[..., :k]], -1) * x


def padded(x, k):
    y = lucid.nn.functional.pad(x * 2, (k, k))
    return y[..., : x.shape[-1]] - x + y[..., 2 * k :]


def padded_by_numpy(x, k):
    y = np.pad(x * 2, [(0, 0)] * (x.ndim - 1) + [(k, k)])
    return y[..., : x.shape[-1]] - x + y[..., 2 * k :]


def is_split(graph):
    """True if a kernel has a scalar loop over the borders of its rows."""
    return any(SCALAR_LOOP in kernel.llvm for kernel in kernels_of_graph(graph))


def splits(f, shape):
    return is_split(lucid.ir.trace(f)(np.zeros(shape)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(512,), (1000,), (3, 777), (2, 2, 4096), (200_003,)])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_rows_with_borders_have_the_values_of_numpy(shape, dtype, k):
    rng = np.random.default_rng(k)
    roll, pad = lucid.jit(lambda x: rolled(x, k)), lucid.jit(lambda x: padded(x, k))
    assert splits(lambda x: rolled(x, k), shape) and splits(lambda x: padded(x, k), shape)
    for _ in range(3):
        x = rng.integers(-99, 99, shape).astype(dtype)
        np.testing.assert_array_equal(roll(lucid.tensor(x)).numpy(), np.roll(x, -k, -1) * x)
        np.testing.assert_array_equal(pad(lucid.tensor(x)).numpy(), padded_by_numpy(x, k))


def test_one_kernel_serves_rows_of_other_lengths_and_with_other_borders():
    x = np.random.default_rng(0).normal(size=30_000)
    f = lucid.jit(lambda x, k: rolled(x, k), static_argnums=1)
    for n, k in [(600, 2), (30_000, 2), (30_000, 400), (4_096, 64), (513, 5)]:
        np.testing.assert_array_equal(f(lucid.tensor(x[:n]), k).numpy(), np.roll(x[:n], -k) * x[:n])


@pytest.mark.parametrize("dtype", ["i32", "i64"])
@pytest.mark.parametrize("bound", [-5, 0, 1, 7, 500, 993, 999, 1000, 1005])
@pytest.mark.parametrize("op", ["lt", "ge"])
def test_an_index_is_compared_with_any_number(op, bound, dtype):
    graph = parse(f"""graph f(x: f64[1000]):
    %0: {dtype}[1000] = iota[shape=(1000,), axis=0, dtype='{dtype}']
    %1: bool[1000] = {op} %0 {bound}:{dtype}
    %2: f64[1000] = where %1 x 2.0:f64
    return %2""")
    x, index = np.random.default_rng(0).normal(size=1000), np.arange(1000)
    chosen = index < bound if op == "lt" else index >= bound
    np.testing.assert_array_equal(compile_graph(graph)([x])[0], np.where(chosen, x, 2.0))
    assert is_split(graph) == (bound != 500)


def test_the_border_and_the_interior_have_the_same_bits():
    x = np.random.default_rng(0).normal(size=2000).astype("float32")
    y = lucid.jit(lambda x: lucid.tanh(lucid.nn.functional.pad(x * 1.0, (3, 3))[3:-3]) / 3)
    whole = y(lucid.tensor(x)).numpy()
    for first in range(12):  # each element is in the interior once and at the border once
        np.testing.assert_array_equal(y(lucid.tensor(x[first:])).numpy(), whole[first:])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_chunks_of_a_row_have_no_border_or_one_or_both(threads):
    x = np.random.default_rng(0).normal(size=2_000_003)
    f = lucid.jit(lambda x: rolled(x, 2) + padded(x, 3))
    before = lucid.get_num_threads()
    try:
        lucid.set_num_threads(threads)
        found = f(lucid.tensor(x)).numpy()
    finally:
        lucid.set_num_threads(before)
    np.testing.assert_array_equal(found, np.roll(x, -2) * x + padded_by_numpy(x, 3))


@pytest.mark.parametrize("shape", [(100,), (511,), (4, 256)])
def test_short_rows_are_one_loop(shape):
    assert not splits(lambda x: rolled(x, 1), shape)


def test_a_sum_over_a_row_is_one_loop():
    assert not splits(lambda x: rolled(x, 1).sum(), 1000)
    assert not splits(lambda x: rolled(x, 1).sum(0), (4, 1000))


def test_halves_of_a_row_are_one_loop():
    assert not splits(lambda x: lucid.cat([x[500:] * 2, x[:500] * 3]), 1000)
