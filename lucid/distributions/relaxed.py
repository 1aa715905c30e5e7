"""Relaxed (differentiable) discrete distributions, NegativeBinomial and ContinuousBernoulli."""

from __future__ import annotations

import math
from typing import Any

from lucid.distributions.discrete import Categorical, OneHotCategorical, ProbsOrLogits
from lucid.distributions.distribution import (
    Distribution,
    as_float,
    nonnegative,
    probs_or_logits,
    softplus,
    tensor_like,
    unit_interval,
    where_supported,
)
from lucid.errors import ArgumentError
from lucid.ops.elementwise.arithmetic import abs
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, log, log1p, sigmoid
from lucid.ops.elementwise.logarithms import logit
from lucid.ops.elementwise.rounding import floor
from lucid.ops.nn.softmax import log_softmax
from lucid.ops.random.keyed import uniform
from lucid.ops.reduce.reduction import logsumexp
from lucid.ops.special.error_and_gamma import lgamma
from lucid.public.declare import public
from lucid.random import distributions as sampling
from lucid.random.draws import next_key


@public("distributions")
class NegativeBinomial(ProbsOrLogits):
    """The number of successes before `total_count` failures, with success probability p."""

    checks = (("probs", unit_interval), ("total_count", nonnegative))

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = probs_or_logits("NegativeBinomial", probs, logits)
        self.set_parameters(validate_args, total_count=total_count, **given)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        rate = exp(-self.logits)
        mean = sampling.gamma(self.total_count, rate, shape, generator=generator)
        return sampling.poisson(mean.detach(), shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        n = self.total_count
        value = tensor_like(value, n)
        k = clamp(value, min=0.0)
        yes, no = self.log_probabilities()
        nothing = (n == 0) & (k == 0)
        filled = where(nothing, 1.0, n)
        ways = where(nothing, 0.0, lgamma(filled + k) - lgamma(1 + k) - lgamma(filled))
        return where_supported((value == k) & (k == floor(k)), ways + n * no + k * yes)

    mean = property(lambda self: self.total_count * exp(self.logits), doc="n p / (1 - p).")

    @property
    def mode(self) -> Any:
        """(n - 1) p / (1 - p), rounded down, at least 0."""
        return clamp(floor((self.total_count - 1) * exp(self.logits)), min=0.0)

    variance = property(lambda self: self.mean / sigmoid(-self.logits), doc="n p / (1 - p)².")


@public("distributions")
class RelaxedBernoulli(ProbsOrLogits):
    """A number in (0, 1), closer to 0 or 1 the lower the `temperature`.

    (Maddison and others, The Concrete distribution, 2017; Jang and others, 2017.)
    """

    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.set_parameters(validate_args, **probs_or_logits("RelaxedBernoulli", probs, logits))
        self.temperature = check_temperature(type(self).__name__, temperature, self.params)

    def options(self) -> dict[str, Any]:
        return {"temperature": self.temperature, **super().options()}

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        unit = uniform(next_key(generator), shape, dtype=self.logits.dtype)
        unit = clamp(unit, min=2.0**-24)
        return sigmoid((self.logits + log(unit) - log1p(-unit)) / self.temperature)

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.logits)
        within = (value > 0) & (value < 1)
        x = logit(where(within, value, 0.5))
        difference = self.logits - x * self.temperature
        slope = softplus(-x) + softplus(x)
        return where_supported(
            within, log(self.temperature) + difference - 2 * softplus(difference) + slope
        )


def check_temperature(name: str, temperature: Any, given: dict[str, Any]) -> Any:
    found = as_float(temperature, given.values())
    if found.raw is not None and not bool((found.detach() > 0).all()):
        raise ArgumentError(f"{name}: temperature must be positive, not {found.tolist()!r}")
    return found


@public("distributions")
class RelaxedOneHotCategorical(Categorical):
    """Vectors that sum to 1, closer to one-hot the lower the `temperature`."""

    has_rsample, has_enumerate_support = True, False

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self.event_shape = (self.num_events,)
        self.temperature = check_temperature(type(self).__name__, temperature, self.params)

    def options(self) -> dict[str, Any]:
        return {"temperature": self.temperature, **super().options()}

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        noise = sampling.gumbel(size=shape, generator=generator, dtype=self.logits.dtype)
        return exp(log_softmax((self.logits + noise) / self.temperature, -1))

    def log_prob(self, value: Any) -> Any:
        value, n = tensor_like(value, self.logits), self.num_events
        within = ((value > 0) & (value < 1)).all(-1)
        shares = log(where(value > 0, value, 1.0))
        score = self.logits - self.temperature * shares
        score = (score - logsumexp(score, -1, keepdim=True) - shares).sum(-1)
        return where_supported(within, score + math.lgamma(n) + (n - 1) * log(self.temperature))

    # the formulas of categories do not hold
    enumerate_support, entropy = Distribution.enumerate_support, Distribution.entropy
    mean, mode, variance = Distribution.mean, Distribution.mode, Distribution.variance


@public("distributions")
class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot draws with the gradient of the probabilities (straight-through estimator)."""

    has_rsample = True

    def rsample(self, sample_shape: Any = (), *, generator: Any = None) -> Any:
        """Return one-hot draws with the gradient of the probabilities."""
        drawn = self.sample(sample_shape, generator=generator)
        return drawn + (self.probs - self.probs.detach())


@public("distributions")
class ContinuousBernoulli(ProbsOrLogits):
    """The density is proportional to p^x (1 - p)^(1 - x) on [0, 1].

    Near p = 1/2, within `lims`, a series replaces the formulas.
    """

    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self.lims = lims
        self.set_parameters(validate_args, **probs_or_logits("ContinuousBernoulli", probs, logits))

    def options(self) -> dict[str, Any]:
        return {"lims": self.lims, **super().options()}

    def parts(self) -> tuple[Any, Any, Any]:
        """Return whether p is outside `lims`, p there (else `lims[0]`), and p - 1/2."""
        far = (self.p <= self.lims[0]) | (self.p > self.lims[1])
        return far, where(far, self.p, self.lims[0]), self.p - 0.5

    def log_norm(self) -> Any:
        """Return log(2 artanh(1 - 2p) / (1 - 2p))."""
        far, p, x = self.parts()
        exact = log(abs(log1p(-p) - log(p))) - log(abs(1 - 2 * p))
        return where(far, exact, math.log(2) + (4 / 3 + 104 / 45 * x * x) * x * x)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return self.icdf(uniform(next_key(generator), shape, dtype=self.p.dtype))

    def log_prob(self, value: Any) -> Any:
        x = tensor_like(value, self.p)
        yes, no = self.log_probabilities()
        return where_supported((x >= 0) & (x <= 1), x * yes + (1 - x) * no + self.log_norm())

    def cdf(self, value: Any) -> Any:
        far, p, _ = self.parts()
        x = clamp(tensor_like(value, self.p), 0.0, 1.0)
        exact = (p**x * (1 - p) ** (1 - x) + p - 1) / (2 * p - 1)
        return where(far, exact, x)

    def icdf(self, value: Any) -> Any:
        far, p, _ = self.parts()
        u = tensor_like(value, self.p)
        exact = (log1p(-p + u * (2 * p - 1)) - log1p(-p)) / (log(p) - log1p(-p))
        return where(far, exact, u)

    def entropy(self) -> Any:
        yes, no = self.log_probabilities()
        return self.mean * (no - yes) - self.log_norm() - no

    @property
    def mean(self) -> Any:
        """p / (2p - 1) + 1 / (2 artanh(1 - 2p))."""
        far, p, x = self.parts()
        exact = p / (2 * p - 1) + 1 / (log1p(-p) - log(p))
        return where(far, exact, 0.5 + (1 / 3 + 16 / 45 * x * x) * x)

    @property
    def variance(self) -> Any:
        """p (p - 1) / (1 - 2p)² + 1 / (2 artanh(1 - 2p))²."""
        far, p, x = self.parts()
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (log1p(-p) - log(p)) ** 2
        return where(far, exact, 1 / 12 - (1 / 15 - 128 / 945 * x * x) * x * x)
