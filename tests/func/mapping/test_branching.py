"""vmap over Python's branches: every path runs on the examples that take it."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import LucidError, TracedValueError

X = lucid.tensor([3.0, -1.0, 0.5, -2.0, 7.0, 0.0])


def sign_dependent(x):
    if x > 1:
        return x * x
    if x < 0:
        return -x
    return lucid.sin(x)


def collatz(n):
    steps = lucid.tensor(0)
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


def looped(f, *columns):
    return np.stack([np.asarray(f(*row)) for row in zip(*columns)])


def split(f, **options):
    return F.vmap(f, branching="split", **options)


def test_if_runs_every_path_on_its_examples_in_order():
    np.testing.assert_allclose(split(sign_dependent)(X), looped(sign_dependent, X), rtol=1e-6)


def test_every_path_runs_once_for_all_its_examples():
    calls = []

    def f(x):
        calls.append(None)
        return x * 2 if x > 0 else x

    split(f)(lucid.tensor(np.linspace(-1.0, 1.0, 100)))
    assert len(calls) == 3  # up to the split, and then the two paths


def test_while_with_different_numbers_of_steps():
    n = lucid.tensor([1, 2, 3, 6, 7, 27])
    assert split(collatz)(n).tolist() == [0, 1, 7, 8, 16, 111]


def test_the_default_stays_an_error():
    with pytest.raises(TracedValueError, match="inside vmap of sign_dependent"):
        F.vmap(sign_dependent)(X)


def test_derivatives_through_the_paths():
    expected = looped(F.grad(sign_dependent), X)
    np.testing.assert_allclose(split(F.grad(sign_dependent))(X), expected, rtol=1e-6)
    outside = F.grad(lambda x: split(sign_dependent)(x).sum())(X)
    np.testing.assert_allclose(outside, expected, rtol=1e-6)
    _, tangents = F.jvp(split(sign_dependent), (X,), (lucid.ones_like(X),))
    np.testing.assert_allclose(tangents, expected, rtol=1e-6)


def test_a_branch_of_a_shared_argument_and_of_computed_values():
    def f(x, w):
        y = (x * w).sum()
        return (y, x) if y > 0 else (-y, 2 * x)

    rng = np.random.default_rng(0)
    x, w = lucid.tensor(rng.normal(size=(5, 3))), lucid.tensor(rng.normal(size=3))
    y, z = split(f, in_dims=(0, None))(x, w)
    total = np.asarray(x) @ np.asarray(w)
    np.testing.assert_allclose(y, abs(total), rtol=1e-6)
    np.testing.assert_allclose(z, np.where(total[:, None] > 0, 1, 2) * np.asarray(x), rtol=1e-6)


def test_results_that_no_example_decides_follow_their_path():
    assert split(lambda x: 1.0 if x > 0 else 2.0)(X).tolist() == [1, 2, 1, 2, 1, 2]


def test_in_chunks_and_in_vmap():
    np.testing.assert_allclose(
        split(sign_dependent, chunk_size=4)(X), looped(sign_dependent, X), rtol=1e-6
    )
    grid = X.reshape(2, 3)
    nested = split(split(sign_dependent))(grid)
    np.testing.assert_allclose(nested.reshape(6), looped(sign_dependent, X), rtol=1e-6)


def test_a_jitted_split_looks_at_the_paths_again():
    f = lucid.jit(split(sign_dependent))
    for x in (X, -X, X, lucid.ones(6)):
        np.testing.assert_allclose(f(x), looped(sign_dependent, x), rtol=1e-6)


def test_random_numbers_are_those_of_the_example():
    def f(x):
        noise = lucid.rand(())
        return noise if x > 0 else -noise

    def drawn(function, **options):
        lucid.manual_seed(1)
        return np.abs(np.asarray(F.vmap(function, randomness="different", **options)(X)))

    expected = drawn(lambda x: lucid.rand(()) + 0 * x)
    np.testing.assert_array_equal(drawn(f, branching="split"), expected)


def test_paths_that_do_not_fit_together():
    with pytest.raises(LucidError, match="different structures"):
        split(lambda x: (x, x) if x > 0 else x)(X)
    with pytest.raises(LucidError, match="branching='both'"):
        F.vmap(sign_dependent, branching="both")
