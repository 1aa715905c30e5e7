"""kl_divergence: the mean of log p - log q under p, dispatched on the pair of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lucid import linalg
from lucid.distributions.continuous import (
    EULER,
    Cauchy,
    Exponential,
    Gumbel,
    HalfNormal,
    Laplace,
    Normal,
    Uniform,
)
from lucid.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Poisson,
    xlogp,
)
from lucid.distributions.gammas import Beta, Dirichlet, Gamma
from lucid.distributions.joint import Independent, MultivariateNormal
from lucid.distributions.matrices import LowRankMultivariateNormal, Wishart, log_det_from_tril
from lucid.distributions.relaxed import ContinuousBernoulli
from lucid.distributions.tails import Pareto
from lucid.distributions.transforms import LogNormal
from lucid.errors import LucidError
from lucid.ops.elementwise.arithmetic import abs
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import exp, log
from lucid.ops.shape.shaping import unsqueeze
from lucid.ops.special.error_and_gamma import digamma, lgamma, mvlgamma
from lucid.public.declare import public

Formula = Callable[[Any, Any], Any]
FORMULAS: dict[tuple[type, type], Formula] = {}


@public("distributions")
def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Register a function of (p, q) as the formula for a pair of classes."""

    def register(formula: Formula) -> Formula:
        FORMULAS[type_p, type_q] = formula
        return formula

    return register


@public("distributions")
def kl_divergence(p: Any, q: Any) -> Any:
    """Return the Kullback-Leibler divergence KL(p || q).

    >>> import lucid
    >>> D = lucid.distributions
    >>> D.kl_divergence(D.Normal(1.0, 1.0), D.Normal(0.0, 1.0))
    Tensor(0.5)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in FORMULAS:
                return FORMULAS[a, b](p, q)
    raise LucidError(
        f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}; register_kl "
        "adds one"
    )


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - log(ratio))


@register_kl(LogNormal, LogNormal)
def _log_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    difference, ratio = abs(p.loc - q.loc), p.scale / q.scale
    return -log(ratio) + difference / q.scale + ratio * exp(-difference / p.scale) - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    found = log((q.high - q.low) / (p.high - p.low))
    return where((q.low > p.low) | (q.high < p.high), float("inf"), found)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    return q.rate / p.rate - log(q.rate / p.rate) - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    return (
        b * log(p.rate / q.rate) + lgamma(b) - lgamma(a) + (a - b) * digamma(a)
        + (q.rate - p.rate) * a / p.rate
    )  # fmt: skip


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    return (
        q.log_norm() - p.log_norm() + (a - c) * digamma(a) + (b - d) * digamma(b)
        + (c + d - a - b) * digamma(a + b)
    )  # fmt: skip


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    slopes = digamma(a) - digamma(a.sum(-1, keepdim=True))
    return q.log_norm() - p.log_norm() + ((a - b) * slopes).sum(-1)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    (yes, no), (yes_q, no_q) = p.log_probabilities(), q.log_probabilities()
    first = xlogp(p.p, yes) - xlogp(p.p, yes_q)
    return first + xlogp(1 - p.p, no) - xlogp(1 - p.p, no_q)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    found = p.total_count * _bernoulli(p, q)
    return where(p.total_count > q.total_count, float("inf"), found)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return _bernoulli(p, q) / p.p


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * log(p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    return (xlogp(p.probs, p.logits) - xlogp(p.probs, q.logits)).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    n = p.event_shape[0]
    matrix = linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    difference = linalg.solve_triangular(q.scale_tril, unsqueeze(q.loc - p.loc, -1), upper=False)
    squares = (matrix**2).sum((-2, -1)) + (difference**2).sum((-2, -1))
    return q.half_log_det() - p.half_log_det() + 0.5 * (squares - n)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    return p.sum_event_dims(kl_divergence(p.base_dist, q.base_dist))


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    difference = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return log(difference) - log(4 * p.scale * q.scale)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, difference = p.scale / q.scale, (q.loc - p.loc) / q.scale
    moment = exp(difference + lgamma(ratio + 1))
    return -log(ratio) - difference + ratio * EULER + moment - (1 + EULER)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - log(ratio))


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    found = q.alpha * log(p.scale / q.scale) - log(ratio) + ratio - 1
    return where(p.scale < q.scale, float("inf"), found)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    (_, no), (_, no_q) = p.log_probabilities(), q.log_probabilities()
    return p.mean * (p.logits - q.logits) + p.log_norm() + no - q.log_norm() - no_q


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _low_rank_normal(p: Any, q: Any) -> Any:
    n, factor = p.event_shape[0], q.scale_tril
    matrix = linalg.solve_triangular(factor, p.scale_tril, upper=False)
    difference = linalg.solve_triangular(factor, unsqueeze(q.loc - p.loc, -1), upper=False)
    squares = (matrix**2).sum((-2, -1)) + (difference**2).sum((-2, -1))
    return 0.5 * (log_det_from_tril(factor) - log_det_from_tril(p.scale_tril) + squares - n)


@register_kl(Wishart, Wishart)
def _wishart(p: Any, q: Any) -> Any:
    n = p.event_shape[0]
    matrix = linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    trace = (matrix**2).sum((-2, -1))
    log_dets = log_det_from_tril(q.scale_tril) - log_det_from_tril(p.scale_tril)
    norms = mvlgamma(q.df / 2, n) - mvlgamma(p.df / 2, n)
    slopes = p.mean_log_det() - n * math.log(2) - log_det_from_tril(p.scale_tril)
    return 0.5 * (q.df * log_dets + (p.df - q.df) * slopes + p.df * (trace - n)) + norms
