"""Tensors filled with random numbers: their distributions, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import lucid
from lucid.errors import ArgumentError, GraphError

FILLINGS = {  # for each method what is drawn, and the distribution function
    "uniform_": ((-1.0, 3.0), lambda x: (x + 1) / 4),
    "normal_": ((2.0, 0.5), scipy.stats.norm(2, 0.5).cdf),
    "log_normal_": ((0.5, 0.8), scipy.stats.lognorm(0.8, scale=np.exp(0.5)).cdf),
    "exponential_": ((2.0,), scipy.stats.expon(scale=0.5).cdf),
    "cauchy_": ((1.0, 2.0), scipy.stats.cauchy(1, 2).cdf),
}


@pytest.mark.parametrize("name", FILLINGS)
def test_a_tensor_is_filled_from_a_distribution(name):
    arguments, distribution = FILLINGS[name]
    lucid.manual_seed(0)
    x = lucid.empty(20_000, dtype=lucid.float64)
    assert getattr(x, name)(*arguments) is x
    assert scipy.stats.kstest(x.numpy(), distribution).pvalue > 1e-3


def test_geometric_counts_trials_from_one():
    lucid.manual_seed(0)
    x = lucid.empty(20_000, dtype=lucid.int64).geometric_(0.3).numpy()
    expected = scipy.stats.geom(0.3).pmf(np.arange(1, 8))
    assert x.min() == 1
    np.testing.assert_allclose(np.bincount(x, minlength=8)[1:8] / x.size, expected, atol=0.015)


def test_bernoulli_in_place_and_in_shape():
    lucid.manual_seed(0)
    x = lucid.full((20_000,), 0.25)
    assert abs(float(x.bernoulli().mean()) - 0.25) < 0.015
    assert abs(float(x.bernoulli_(0.75).mean()) - 0.75) < 0.015


@pytest.mark.parametrize(("dtype", "most"), [("int8", 127), ("bool", 1), ("float32", 2**24)])
def test_random_fills_with_integers_that_the_dtype_holds(dtype, most):
    lucid.manual_seed(0)
    x = lucid.empty(5_000, dtype=dtype).random_().numpy()
    assert x.min() >= 0 and 0.9 * most <= x.max() <= most
    assert {*lucid.empty(100).random_(3).tolist()} == {0.0, 1.0, 2.0}
    assert {*lucid.empty(100).random_(-2, 0).tolist()} == {-2.0, -1.0}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("uniform_", (1.0, 0.0)),
        ("normal_", (0.0, -1.0)),
        ("log_normal_", (0.0, 0.0)),
        ("exponential_", (0.0,)),
        ("cauchy_", (0.0, -1.0)),
        ("geometric_", (1.0,)),
        ("bernoulli_", (1.5,)),
        ("random_", (3, 3)),
    ],
)
def test_parameters_that_are_no_distribution_are_refused(name, arguments):
    with pytest.raises(ArgumentError, match=name):
        getattr(lucid.empty(3), name)(*arguments)


def test_filling_a_leaf_that_is_tracked_is_refused_and_allowed_without_gradients():
    x = lucid.ones(3, requires_grad=True)
    with pytest.raises(GraphError, match="no_grad"):
        x.uniform_()
    with lucid.no_grad():
        x.uniform_(5.0, 6.0)
    assert (x >= 5).all()
