"""Values of captured tensors that Python looks at: compared at every call, whoever changed them."""

from __future__ import annotations

import math

import numpy as np

import lucid


def test_a_captured_number_that_only_python_reads_is_compared():
    n = lucid.tensor(1)
    f = lucid.jit(lambda x: x * 2.0 ** int(n))
    assert [f(lucid.ones(1)).item() for _ in range(3)] == [2.0, 2.0, 2.0]
    n.fill_(3)
    assert [f(lucid.ones(1)).item() for _ in range(3)] == [8.0, 8.0, 8.0]


def test_a_count_that_is_read_and_then_written_goes_on():
    n = lucid.tensor(1)

    @lucid.jit
    def step(x):
        k = int(n)
        n.add_(1)
        return x * k

    assert [step(lucid.ones(1)).item() for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]
    assert n.item() == 5


def test_a_branch_on_captured_state_follows_it():
    total = lucid.zeros(())

    @lucid.jit
    def step(x):
        y = x * 10.0 if bool(total > 1.5) else x
        total.add_(x.sum())
        return y

    assert [step(lucid.ones(1)).item() for _ in range(4)] == [1.0, 1.0, 10.0, 10.0]


def test_a_gradient_that_is_read_inside_jit_is_a_constant_as_it_is_eagerly():
    """d/dw of (a w)² + (a w.grad)² sees no derivative through w.grad: 2 a² w, twice."""
    w = lucid.tensor(3.0, dtype=lucid.float64, requires_grad=True)

    @lucid.jit
    def step(a):
        w.grad = None
        ((a * w) ** 2).backward()
        first = w.grad * 1.0
        ((a * first * w) ** 2).backward()
        return w.grad

    for a in (1.0, 2.0, 0.5):
        first = 2 * a * a * 3.0
        expected = first + 2 * (a * first) ** 2 * 3.0
        assert abs(step(lucid.tensor(a, dtype=lucid.float64)).item() - expected) < 1e-12


def test_python_tells_the_zeros_apart_and_no_nan():
    f = lucid.jit(lambda x: x + math.copysign(1.0, float(x[0])))
    for _ in range(2):
        for zero, sign in ((0.0, 1.0), (-0.0, -1.0)):
            assert f(lucid.tensor([zero, 1.0])).tolist() == [sign, 1 + sign]
    g = lucid.jit(lambda x: x[1] * (2.0 if np.isnan(complex(x[0])) else 3.0))
    for nan in (np.nan, -np.nan, np.nan):
        assert g(lucid.tensor([nan, 1.0])).item() == 2.0
    assert sum(map(len, g.paths.values())) == 1
