"""Chains of 200,000 operations: backward without recursion, and freed without overflow."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

import lucid
from lucid.func import grad, jvp


def chain(x, n: int):
    y = x
    for _ in range(n // 2):
        y = y * x
        y = y + x
    return y


def expected(x: float, n: int) -> tuple[float, float]:
    """Value and derivative of the chain by the recurrences themselves."""
    y, dy = x, 1.0
    for _ in range(n // 2):
        y, dy = y * x, dy * x + y
        y, dy = y + x, dy + 1.0
    return y, dy


def test_backward_through_two_hundred_thousand_operations():
    x = lucid.tensor(0.5, dtype="float64", requires_grad=True)
    y = chain(x, 200_000)
    y.backward()
    value, derivative = expected(0.5, 200_000)
    np.testing.assert_allclose([y.item(), x.grad.item()], [value, derivative], rtol=1e-9)


def test_functional_gradient_and_forward_mode_of_a_long_chain():
    point = lucid.as_tensor(np.float64(0.5))
    _, derivative = expected(0.5, 50_000)
    g = grad(lambda x: chain(x, 50_000))(point)
    np.testing.assert_allclose(g.item(), derivative, rtol=1e-9)
    _, t = jvp(lambda x: chain(x, 50_000), (point,), (lucid.ones_like(point),))
    np.testing.assert_allclose(t.item(), derivative, rtol=1e-9)


def test_long_chain_is_dropped_without_overflowing_the_stack():
    x = lucid.tensor(0.5, dtype="float64", requires_grad=True)
    y = chain(x, 200_000)
    del y


@pytest.mark.skipif(
    sys.version_info[:2] == (3, 13),
    reason="CPython 3.13 limits nested deallocation by a count, not by the size of the stack",
)
def test_long_chain_is_dropped_in_a_thread_with_a_small_stack():
    before = threading.stack_size(256 * 1024)
    done = []
    try:

        def work():
            y = chain(lucid.tensor(0.5, dtype="float64", requires_grad=True), 100_000)
            y.backward(retain_graph=True)
            del y
            done.append(True)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert done


def test_wide_sum_of_many_leaves():
    leaves = [lucid.tensor(float(i), dtype="float64", requires_grad=True) for i in range(2000)]
    total = sum((x * x for x in leaves), lucid.tensor(0.0, dtype="float64"))
    total.backward()
    assert all(x.grad.item() == 2.0 * i for i, x in enumerate(leaves))


def test_graph_of_a_long_chain_can_be_read_and_printed():
    x = lucid.tensor(0.5, requires_grad=True)
    graph = chain(x, 20_000).graph()
    assert len(graph.equations) == 20_000
    assert str(graph).count("\n") == 20_001
    assert hash(graph.key) == hash(lucid.ir.parse(str(graph)).key)


@pytest.mark.parametrize("n", [20_000])
def test_memory_of_a_long_chain_is_given_back(n):
    import tracemalloc

    x = lucid.tensor(0.5, dtype="float64", requires_grad=True)
    chain(x, n).backward()
    x.grad = None
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        y = chain(x, n)
        y.backward()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held < 40 * n, f"{held} bytes are still held after backward through {n} operations"
