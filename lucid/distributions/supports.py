"""The support of every distribution, as a constraint."""

from __future__ import annotations

from typing import Any

from lucid.distributions import constraints as c
from lucid.distributions import continuous, discrete, gammas, joint, matrices, relaxed, tails
from lucid.distributions.event_transforms import LogisticNormal
from lucid.distributions.transforms import LogNormal

SUPPORTS: dict[type, Any] = {
    continuous.Normal: c.real,
    continuous.Laplace: c.real,
    continuous.Cauchy: c.real,
    continuous.Gumbel: c.real,
    continuous.StudentT: c.real,
    continuous.HalfNormal: c.nonnegative,
    continuous.Exponential: c.nonnegative,
    continuous.Weibull: c.positive,
    continuous.Uniform: lambda d: c.interval(d.low, d.high),
    LogNormal: c.positive,
    gammas.Gamma: c.nonnegative,
    gammas.Beta: c.unit_interval,
    gammas.Dirichlet: c.simplex,
    tails.HalfCauchy: c.nonnegative,
    tails.Pareto: lambda d: c.greater_than_eq(d.scale),
    tails.GeneralizedPareto: lambda d: c.greater_than_eq(d.loc),
    tails.InverseGamma: c.positive,
    tails.Kumaraswamy: c.unit_interval,
    tails.FisherSnedecor: c.positive,
    tails.VonMises: c.real,
    discrete.Bernoulli: c.boolean,
    discrete.Binomial: lambda d: c.integer_interval(0, d.total_count),
    discrete.Geometric: c.nonnegative_integer,
    discrete.Poisson: c.nonnegative_integer,
    discrete.Categorical: lambda d: c.integer_interval(0, d.num_events - 1),
    discrete.OneHotCategorical: c.one_hot,
    discrete.Multinomial: lambda d: c.independent(c.integer_interval(0, d.total_count), 1),
    relaxed.NegativeBinomial: c.nonnegative_integer,
    relaxed.RelaxedBernoulli: c.unit_interval,
    relaxed.RelaxedOneHotCategorical: c.simplex,
    relaxed.ContinuousBernoulli: c.unit_interval,
    joint.MultivariateNormal: c.real_vector,
    joint.Independent: lambda d: c.independent(d.base_dist.support, d.reinterpreted_batch_ndims),
    joint.MixtureSameFamily: lambda d: d.component_distribution.support,
    matrices.LowRankMultivariateNormal: c.real_vector,
    matrices.Wishart: c.positive_definite,
    matrices.LKJCholesky: c.corr_cholesky,
    LogisticNormal: c.simplex,
}


def support_of(d: Any) -> Any:
    """Return the support of a distribution."""
    for kind in type(d).__mro__:
        if kind in SUPPORTS:
            found = SUPPORTS[kind]
            return found if isinstance(found, c.Constraint) else found(d)
    raise d.no_formula("support")
