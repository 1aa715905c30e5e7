"""KL divergences between different classes: -entropy(p) minus the mean of log q under p.

If log q is a combination of x, x² and log x, only their means under p are needed.
"""

from __future__ import annotations

import math
from typing import Any

from lucid.distributions.continuous import (
    EULER,
    Exponential,
    Gumbel,
    Laplace,
    Normal,
    Uniform,
)
from lucid.distributions.gammas import Beta, Gamma
from lucid.distributions.kl.registry import register_kl
from lucid.distributions.tails import Pareto
from lucid.ops.elementwise.arithmetic import abs
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import exp, log
from lucid.ops.special.error_and_gamma import digamma, erf, lgamma


def mean_log(p: Any) -> Any:
    """Return the mean of log x under p, where x is positive."""
    if isinstance(p, Exponential):
        return -EULER - log(p.rate)
    if isinstance(p, Gamma):
        return digamma(p.concentration) - log(p.rate)
    if isinstance(p, Beta):
        a, b = p.concentration1, p.concentration0
        return digamma(a) - digamma(a + b)
    if isinstance(p, Pareto):
        return log(p.scale) + 1 / p.alpha
    low = where(p.low > 0, p.low, 1.0)
    start = where(p.low > 0, p.low * log(low), 0.0)
    return (p.high * log(p.high) - start) / (p.high - p.low) - 1


def infinite_outside(p: Any, low: Any, high: Any, found: Any) -> Any:
    """Return `found`, and inf where the support of p exceeds [low, high]."""
    if isinstance(p, Uniform):
        return where((p.low < low) | (p.high > high), math.inf, found)
    return found


def to_normal(p: Any, q: Any) -> Any:
    square = p.variance + (p.mean - q.loc) ** 2
    return log(q.scale) + 0.5 * math.log(2 * math.pi) + square / (2 * q.scale**2) - p.entropy()


def to_exponential(p: Any, q: Any) -> Any:
    return infinite_outside(p, 0.0, math.inf, q.rate * p.mean - log(q.rate) - p.entropy())


def to_gamma(p: Any, q: Any) -> Any:
    a, b = q.concentration, q.rate
    constant = lgamma(a) - a * log(b)
    found = constant - (a - 1) * mean_log(p) + b * p.mean - p.entropy()
    return infinite_outside(p, 0.0, math.inf, found)


for _p in (Beta, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_p, Normal)(to_normal)
for _p in (Beta, Gamma, Uniform):
    register_kl(_p, Exponential)(to_exponential)
for _p in (Beta, Exponential, Uniform):
    register_kl(_p, Gamma)(to_gamma)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    t = (p.loc - q.loc) / p.scale
    difference = p.scale * math.sqrt(2 / math.pi) * exp(-0.5 * t * t)
    difference = difference + abs(p.loc - q.loc) * erf(abs(t) / math.sqrt(2))
    return log(2 * q.scale) + difference / q.scale - p.entropy()


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    found = log(q.high - q.low) - p.entropy()
    return where((q.low > 0) | (q.high < 1), math.inf, found)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    other = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    constant = lgamma(a) + lgamma(b) - lgamma(a + b)
    found = constant - (a - 1) * mean_log(p) - (b - 1) * mean_log(other) - p.entropy()
    return infinite_outside(p, 0.0, 1.0, found)
