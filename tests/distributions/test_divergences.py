"""Divergences between classes: the integrals of SciPy's densities, and infinite ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

import lucid
import lucid.distributions as D
from lucid.distributions.kl.mismatched_supports import INFINITE_PAIRS
from lucid.errors import LucidError


def bernoulli_density(probs):
    """The density proportional to p^x (1 - p)^(1 - x), and its range."""
    total, _ = integrate.quad(lambda x: probs**x * (1 - probs) ** (1 - x), 0, 1)
    return lambda x: math.log(probs**x * (1 - probs) ** (1 - x) / total), (0.0, 1.0)


def scipys(law, low, high):
    return law.logpdf, (low, high)


DENSITIES = {
    "Exponential": lambda rate: scipys(stats.expon(scale=1 / rate), 0, 60),
    "Gamma": lambda a, rate: scipys(stats.gamma(a, scale=1 / rate), 0, 60),
    "Normal": lambda loc, scale: scipys(stats.norm(loc, scale), -30, 30),
    "Uniform": lambda low, high: scipys(stats.uniform(low, high - low), low, high),
    "Gumbel": lambda loc, scale: scipys(stats.gumbel_r(loc, scale), -30, 60),
    "Beta": lambda a, b: scipys(stats.beta(a, b), 0, 1),
    "Pareto": lambda scale, alpha: scipys(stats.pareto(alpha, scale=scale), scale, np.inf),
    "ContinuousBernoulli": bernoulli_density,
}
FINITE = [
    ("Exponential", (1.7,), "Gumbel", (0.4, 1.3)),
    ("Gamma", (2.1, 1.4), "Gumbel", (0.4, 1.3)),
    ("Normal", (0.3, 0.8), "Gumbel", (0.4, 1.3)),
    ("Uniform", (-0.5, 0.9), "Gumbel", (0.4, 1.3)),
    ("Uniform", (0.7, 0.9), "Pareto", (0.5, 1.8)),
    ("Uniform", (0.1, 0.9), "ContinuousBernoulli", (0.2,)),
    ("Beta", (2.1, 1.4), "ContinuousBernoulli", (0.8,)),
    ("ContinuousBernoulli", (0.3,), "Uniform", (-0.5, 2.0)),
    ("ContinuousBernoulli", (0.3,), "Exponential", (1.3,)),
    ("ContinuousBernoulli", (0.3,), "Normal", (0.2, 0.7)),
    ("Pareto", (0.5, 6.5), "Exponential", (1.3,)),
    ("Pareto", (0.5, 6.5), "Gamma", (1.6, 2.3)),
    ("Pareto", (0.5, 6.5), "Normal", (0.3, 1.2)),
]
ARGUMENTS = {
    D.Exponential: (1.5,), D.ContinuousBernoulli: (0.3,), D.Bernoulli: (0.3,), D.Poisson: (1.5,),
    D.Uniform: (0.0, 1.0), D.Binomial: (3, 0.4),
}  # fmt: skip


def made(name, args):
    return getattr(D, name)(*[lucid.tensor(a, dtype="float64") for a in args])


@pytest.mark.parametrize(("p", "first", "q", "second"), FINITE)
def test_the_divergence_is_the_integral(p, first, q, second):
    (log_p, ends), (log_q, _) = DENSITIES[p](*first), DENSITIES[q](*second)
    expected, _ = integrate.quad(
        lambda x: math.exp(log_p(x)) * (log_p(x) - log_q(x)) if log_p(x) > -700 else 0.0, *ends
    )
    found = D.kl_divergence(made(p, first), made(q, second))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_the_divergence_of_a_coin_from_counts_is_the_sum():
    p, rate = 0.3, 1.7
    expected = sum(
        c * (math.log(c) - stats.poisson(rate).logpmf(k)) for k, c in ((0, 1 - p), (1, p))
    )
    found = D.kl_divergence(made("Bernoulli", (p,)), made("Poisson", (rate,)))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize(("p", "q"), [(p, q) for p, qs in INFINITE_PAIRS.items() for q in qs])
def test_what_q_never_gives_makes_the_divergence_infinite(p, q):
    first = p(*ARGUMENTS.get(p, (1.5, 2.0)))
    second = q(*[lucid.tensor([[a], [a]]) for a in ARGUMENTS.get(q, (1.5, 2.0))])
    found = D.kl_divergence(first, second)
    assert found.shape == (2, 1) and found.tolist() == [[math.inf], [math.inf]]


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Uniform(0.5, 1.5), D.ContinuousBernoulli(0.3)),
        (D.ContinuousBernoulli(0.3), D.Uniform(0.5, 1.5)),
        (D.Uniform(0.5, 1.5), D.Pareto(1.0, 2.0)),
        (D.Pareto(1.0, 0.9), D.Exponential(1.0)),
        (D.Pareto(1.0, 1.9), D.Normal(0.0, 1.0)),
    ],
)
def test_a_part_of_p_outside_of_q_makes_the_divergence_infinite(p, q):
    assert D.kl_divergence(p, q).item() == math.inf


def test_the_same_transforms_leave_a_divergence_as_it_was():
    p, q = D.Normal(lucid.zeros(2), 1.0), D.Normal(lucid.ones(2), 2.0)
    bent = [D.TransformedDistribution(d, [D.transforms.TanhTransform()]) for d in (p, q)]
    assert np.allclose(D.kl_divergence(*bent), D.kl_divergence(p, q))
    with pytest.raises(LucidError, match="different transforms"):
        D.kl_divergence(bent[0], D.TransformedDistribution(q, [D.transforms.ExpTransform()]))
