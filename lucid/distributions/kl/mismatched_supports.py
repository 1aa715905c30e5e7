"""KL divergences to Gumbel, Pareto and ContinuousBernoulli, and infinite ones.

A divergence is infinite where p has values that q never takes.
"""

from __future__ import annotations

import math
from typing import Any

from lucid.distributions.continuous import Exponential, Gumbel, Laplace, Normal, Uniform
from lucid.distributions.discrete import Bernoulli, Binomial, Poisson
from lucid.distributions.gammas import Beta, Gamma
from lucid.distributions.kl.mixed import (
    infinite_outside,
    mean_log,
    to_exponential,
    to_gamma,
    to_normal,
)
from lucid.distributions.kl.registry import kl_divergence, register_kl
from lucid.distributions.relaxed import ContinuousBernoulli
from lucid.distributions.tails import Pareto
from lucid.distributions.transforms import TransformedDistribution
from lucid.errors import LucidError
from lucid.ir.types import broadcast_shapes
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import exp, expm1, log, log1p
from lucid.ops.shape.creation import full


def infinite(p: Any, q: Any) -> Any:
    return full(broadcast_shapes(p.batch_shape, q.batch_shape), math.inf, dtype=p.mean.dtype)


INFINITE_PAIRS = {
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Poisson: (Bernoulli, Binomial),
}

for _p, _qs in INFINITE_PAIRS.items():
    for _q in _qs:
        register_kl(_p, _q)(infinite)

for _p in (ContinuousBernoulli, Pareto):
    register_kl(_p, Normal)(to_normal)
    register_kl(_p, Exponential)(to_exponential)
register_kl(Pareto, Gamma)(to_gamma)


def mean_exp(p: Any, s: Any) -> Any:
    """Return the mean of exp(s x) under p, for s below 0."""
    if isinstance(p, Normal):
        return exp(s * p.loc + 0.5 * (s * p.scale) ** 2)
    if isinstance(p, Uniform):
        width = s * (p.high - p.low)
        return exp(s * p.low) * expm1(width) / width
    shape = p.concentration if isinstance(p, Gamma) else 1.0
    return exp(-shape * log1p(-s / p.rate))


def to_gumbel(p: Any, q: Any) -> Any:
    start = q.loc / q.scale
    powers = exp(start) * mean_exp(p, -1 / q.scale)
    return log(q.scale) + p.mean / q.scale - start + powers - p.entropy()


for _p in (Exponential, Gamma, Normal, Uniform):
    register_kl(_p, Gumbel)(to_gumbel)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _to_continuous_bernoulli(p: Any, q: Any) -> Any:
    _, no = q.log_probabilities()
    return infinite_outside(p, 0.0, 1.0, -p.mean * q.logits - no - q.log_norm() - p.entropy())


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    found = log(q.high - q.low) - p.entropy()
    return where((q.low > 0) | (q.high < 1), math.inf, found)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    constant = log(q.alpha) + q.alpha * log(q.scale)
    found = (q.alpha + 1) * mean_log(p) - constant - p.entropy()
    return infinite_outside(p, q.scale, math.inf, found)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return q.rate - p.mean * log(q.rate) - p.entropy()


def same_transform(a: Any, b: Any) -> bool:
    """True if `a` and `b` are the same object, or of one class with equal attributes."""
    if a is b or type(a) is not type(b) or vars(a).keys() != vars(b).keys():
        return a is b
    return all(x is y or (isinstance(x, (int, float)) and x == y)
               for x, y in zip(vars(a).values(), vars(b).values()))  # fmt: skip


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    """Return the divergence of the base distributions, if both have the same transforms."""
    same = len(p.transforms) == len(q.transforms) and p.event_shape == q.event_shape
    if not (same and all(map(same_transform, p.transforms, q.transforms))):
        facts = f"{p.transforms} and {q.transforms} are different transforms"
        raise LucidError(f"kl_divergence: {facts}; register_kl adds a formula")
    inner = kl_divergence(p.base_dist, q.base_dist)
    extra = len(inner.shape) - len(p.batch_shape)
    return inner.sum(tuple(range(-extra, 0))) if extra > 0 else inner
