"""Probability distributions, as in `torch.distributions`."""

from lucid.distributions.continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfNormal,
    Laplace,
    Normal,
    StudentT,
    Uniform,
    Weibull,
)
from lucid.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    OneHotCategorical,
    Poisson,
)
from lucid.distributions.distribution import Distribution
from lucid.distributions.gammas import Beta, Chi2, Dirichlet, Gamma
from lucid.distributions.joint import Independent, MixtureSameFamily, MultivariateNormal
from lucid.distributions.kl import kl_divergence, register_kl
from lucid.distributions.matrices import LKJCholesky, LowRankMultivariateNormal, Wishart
from lucid.distributions.relaxed import (
    ContinuousBernoulli,
    NegativeBinomial,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from lucid.distributions.tails import (
    FisherSnedecor,
    GeneralizedPareto,
    HalfCauchy,
    InverseGamma,
    Kumaraswamy,
    Pareto,
    VonMises,
)
from lucid.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    LogNormal,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    TransformedDistribution,
)

__all__ = [
    "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2",
    "ComposeTransform", "ContinuousBernoulli", "Dirichlet", "Distribution", "ExpTransform",
    "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel",
    "HalfCauchy", "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky",
    "Laplace", "LogNormal", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PowerTransform", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "SigmoidTransform", "SoftplusTransform", "StudentT",
    "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull",
    "Wishart", "kl_divergence", "register_kl",
]  # fmt: skip
