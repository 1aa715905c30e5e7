# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.distributions import constraints as constraints
from lucid.distributions import transforms as transforms
from lucid.distributions.continuous import Cauchy as Cauchy
from lucid.distributions.continuous import Exponential as Exponential
from lucid.distributions.continuous import Gumbel as Gumbel
from lucid.distributions.continuous import HalfNormal as HalfNormal
from lucid.distributions.continuous import Laplace as Laplace
from lucid.distributions.continuous import Normal as Normal
from lucid.distributions.continuous import StudentT as StudentT
from lucid.distributions.continuous import Uniform as Uniform
from lucid.distributions.continuous import Weibull as Weibull
from lucid.distributions.discrete import Bernoulli as Bernoulli
from lucid.distributions.discrete import Binomial as Binomial
from lucid.distributions.discrete import Categorical as Categorical
from lucid.distributions.discrete import Geometric as Geometric
from lucid.distributions.discrete import Multinomial as Multinomial
from lucid.distributions.discrete import OneHotCategorical as OneHotCategorical
from lucid.distributions.discrete import Poisson as Poisson
from lucid.distributions.distribution import Distribution as Distribution
from lucid.distributions.event_transforms import AbsTransform as AbsTransform
from lucid.distributions.event_transforms import CatTransform as CatTransform
from lucid.distributions.event_transforms import CorrCholeskyTransform as CorrCholeskyTransform
from lucid.distributions.event_transforms import CumulativeDistributionTransform as CumulativeDistributionTransform
from lucid.distributions.event_transforms import IndependentTransform as IndependentTransform
from lucid.distributions.event_transforms import LogisticNormal as LogisticNormal
from lucid.distributions.event_transforms import LowerCholeskyTransform as LowerCholeskyTransform
from lucid.distributions.event_transforms import PositiveDefiniteTransform as PositiveDefiniteTransform
from lucid.distributions.event_transforms import ReshapeTransform as ReshapeTransform
from lucid.distributions.event_transforms import SoftmaxTransform as SoftmaxTransform
from lucid.distributions.event_transforms import StackTransform as StackTransform
from lucid.distributions.event_transforms import StickBreakingTransform as StickBreakingTransform
from lucid.distributions.event_transforms import biject_to as biject_to
from lucid.distributions.event_transforms import identity_transform as identity_transform
from lucid.distributions.event_transforms import transform_to as transform_to
from lucid.distributions.gammas import Beta as Beta
from lucid.distributions.gammas import Chi2 as Chi2
from lucid.distributions.gammas import Dirichlet as Dirichlet
from lucid.distributions.gammas import Gamma as Gamma
from lucid.distributions.joint import Independent as Independent
from lucid.distributions.joint import MixtureSameFamily as MixtureSameFamily
from lucid.distributions.joint import MultivariateNormal as MultivariateNormal
from lucid.distributions.kl.registry import kl_divergence as kl_divergence
from lucid.distributions.kl.registry import register_kl as register_kl
from lucid.distributions.matrices import LKJCholesky as LKJCholesky
from lucid.distributions.matrices import LowRankMultivariateNormal as LowRankMultivariateNormal
from lucid.distributions.matrices import Wishart as Wishart
from lucid.distributions.relaxed import ContinuousBernoulli as ContinuousBernoulli
from lucid.distributions.relaxed import NegativeBinomial as NegativeBinomial
from lucid.distributions.relaxed import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from lucid.distributions.relaxed import RelaxedBernoulli as RelaxedBernoulli
from lucid.distributions.relaxed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from lucid.distributions.tails import FisherSnedecor as FisherSnedecor
from lucid.distributions.tails import GeneralizedPareto as GeneralizedPareto
from lucid.distributions.tails import HalfCauchy as HalfCauchy
from lucid.distributions.tails import InverseGamma as InverseGamma
from lucid.distributions.tails import Kumaraswamy as Kumaraswamy
from lucid.distributions.tails import Pareto as Pareto
from lucid.distributions.tails import VonMises as VonMises
from lucid.distributions.transforms import AffineTransform as AffineTransform
from lucid.distributions.transforms import ComposeTransform as ComposeTransform
from lucid.distributions.transforms import ExpTransform as ExpTransform
from lucid.distributions.transforms import LogNormal as LogNormal
from lucid.distributions.transforms import PowerTransform as PowerTransform
from lucid.distributions.transforms import SigmoidTransform as SigmoidTransform
from lucid.distributions.transforms import SoftplusTransform as SoftplusTransform
from lucid.distributions.transforms import TanhTransform as TanhTransform
from lucid.distributions.transforms import Transform as Transform
from lucid.distributions.transforms import TransformedDistribution as TransformedDistribution


