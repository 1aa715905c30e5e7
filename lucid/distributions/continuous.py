"""Distributions of one real number."""

from __future__ import annotations

import math
from typing import Any

from lucid.distributions.distribution import (
    Checks,
    Distribution,
    positive,
    tensor_like,
    where_supported,
)
from lucid.errors import ArgumentError
from lucid.ops.elementwise.arithmetic import abs
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, expm1, log, log1p, sqrt
from lucid.ops.elementwise.logarithms import xlogy
from lucid.ops.elementwise.rounding import sign
from lucid.ops.elementwise.trigonometric import atan, tan
from lucid.ops.random.keyed import normal, uniform
from lucid.ops.shape.creation import full_like
from lucid.ops.special.beta_functions import stdtr, stdtrit
from lucid.ops.special.error_and_gamma import digamma, lgamma
from lucid.ops.special.normal import ndtr, ndtri
from lucid.public.declare import public
from lucid.random import distributions as sampling
from lucid.random.draws import next_key

EULER = 0.5772156649015329
LOG_ROOT = math.log(math.sqrt(2 * math.pi))


class LocationScale(Distribution):
    """Distributions of loc + scale · z."""

    has_rsample = True
    checks: Checks = (("scale", positive),)
    loc: Any
    scale: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, loc=loc, scale=scale)

    def standardize(self, value: Any) -> Any:
        return (tensor_like(value, self.loc) - self.loc) / self.scale

    mean = property(lambda self: self.loc, doc="The location, where the distribution is symmetric.")
    mode = property(lambda self: self.loc, doc="The location.")


@public("distributions")
class Normal(LocationScale):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    >>> import lucid
    >>> lucid.distributions.Normal(0.0, 1.0).log_prob(lucid.tensor(0.0))
    Tensor(-0.9189385)
    """

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        noise = normal(next_key(generator), shape, dtype=self.loc.dtype)
        return self.loc + self.scale * noise

    def log_prob(self, value: Any) -> Any:
        z = self.standardize(value)
        return -z * z / 2 - log(self.scale) - LOG_ROOT

    def cdf(self, value: Any) -> Any:
        return ndtr(self.standardize(value))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * ndtri(tensor_like(value, self.loc))

    def entropy(self) -> Any:
        return 0.5 + LOG_ROOT + log(self.scale)

    variance = property(lambda self: self.scale**2, doc="scale².")


@public("distributions")
class Laplace(LocationScale):
    """The Laplace distribution with density e^(-|x - loc| / scale) / (2 scale)."""

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.laplace(self.loc, self.scale, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        return -abs(self.standardize(value)) - log(2 * self.scale)

    def cdf(self, value: Any) -> Any:
        z = self.standardize(value)
        return 0.5 - 0.5 * sign(z) * expm1(-abs(z))

    def icdf(self, value: Any) -> Any:
        half = tensor_like(value, self.loc) - 0.5
        return self.loc - self.scale * sign(half) * log1p(-2 * abs(half))

    def entropy(self) -> Any:
        return 1 + log(2 * self.scale)

    variance = property(lambda self: 2 * self.scale**2, doc="2 scale².")


@public("distributions")
class Cauchy(LocationScale):
    """The Cauchy distribution with density 1 / (π scale (1 + z²)), which has no mean."""

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.cauchy(self.loc, self.scale, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        return -math.log(math.pi) - log(self.scale) - log1p(self.standardize(value) ** 2)

    def cdf(self, value: Any) -> Any:
        return atan(self.standardize(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * tan(math.pi * (tensor_like(value, self.loc) - 0.5))

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + log(self.scale)

    mean = property(lambda self: full_like(self.loc, math.nan), doc="nan: the mean is undefined.")
    variance = property(lambda self: full_like(self.loc, math.inf), doc="inf.")


@public("distributions")
class Gumbel(LocationScale):
    """The Gumbel distribution of maxima, P(X ≤ x) = e^(-e^(-z))."""

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.gumbel(self.loc, self.scale, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        z = self.standardize(value)
        return -z - exp(-z) - log(self.scale)

    def cdf(self, value: Any) -> Any:
        return exp(-exp(-self.standardize(value)))

    def icdf(self, value: Any) -> Any:
        return self.loc - self.scale * log(-log(tensor_like(value, self.loc)))

    def entropy(self) -> Any:
        return log(self.scale) + 1 + EULER

    mean = property(lambda self: self.loc + EULER * self.scale, doc="loc + γ scale.")
    variance = property(lambda self: math.pi**2 / 6 * self.scale**2, doc="π² scale² / 6.")


@public("distributions")
class StudentT(LocationScale):
    """Student's t distribution with `df` degrees of freedom."""

    checks = (("df", positive), ("scale", positive))
    df: Any

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.set_parameters(validate_args, df=df, loc=loc, scale=scale)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        noise = normal(next_key(generator), shape, dtype=self.loc.dtype)
        chi2 = 2 * sampling.gamma(self.df / 2, 1.0, shape, generator=generator)
        return self.loc + self.scale * noise * sqrt(self.df / chi2)

    def log_prob(self, value: Any) -> Any:
        z, df = self.standardize(value), self.df
        norm = log(self.scale) + 0.5 * log(df * math.pi) + lgamma(df / 2) - lgamma((df + 1) / 2)
        return -0.5 * (df + 1) * log1p(z * z / df) - norm

    def cdf(self, value: Any) -> Any:
        return stdtr(self.df, self.standardize(value))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * stdtrit(self.df, tensor_like(value, self.loc))

    def entropy(self) -> Any:
        df = self.df
        log_beta = lgamma(df / 2) + 0.5 * math.log(math.pi) - lgamma((df + 1) / 2)
        slope = digamma((df + 1) / 2) - digamma(df / 2)
        return log(self.scale) + (df + 1) / 2 * slope + 0.5 * log(df) + log_beta

    @property
    def mean(self) -> Any:
        """loc if df > 1, else nan."""
        return where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Any:
        """scale² df / (df - 2) if df > 2, else inf or nan."""
        wide = where(self.df > 2, self.df, 3.0)
        few = where(self.df > 1, full_like(self.df, math.inf), math.nan)
        return where(self.df > 2, self.scale**2 * wide / (wide - 2), few)


@public("distributions")
class HalfNormal(Distribution):
    """The distribution of |x| for normal x with mean 0."""

    has_rsample = True
    checks = (("scale", positive),)
    scale: Any

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, scale=scale)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        noise = normal(next_key(generator), shape, dtype=self.scale.dtype)
        return abs(noise) * self.scale

    def log_prob(self, value: Any) -> Any:
        z = tensor_like(value, self.scale) / self.scale
        return where_supported(z >= 0, math.log(2) - z * z / 2 - log(self.scale) - LOG_ROOT)

    def cdf(self, value: Any) -> Any:
        return clamp(2 * ndtr(tensor_like(value, self.scale) / self.scale) - 1, min=0.0)

    def icdf(self, value: Any) -> Any:
        return self.scale * ndtri((tensor_like(value, self.scale) + 1) / 2)

    def entropy(self) -> Any:
        return 0.5 + LOG_ROOT + log(self.scale) - math.log(2)

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi), doc="scale √(2/π).")
    mode = property(lambda self: self.scale * 0.0, doc="0.")
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi), doc="scale² (1 - 2/π).")


@public("distributions")
class Uniform(Distribution):
    """The uniform distribution on [low, high)."""

    has_rsample = True
    low: Any
    high: Any

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, low=low, high=high)

    def check(self) -> None:
        super().check()
        gap = self.high - self.low
        if gap.raw is not None and not bool((gap.detach() > 0).all()):
            raise ArgumentError("Uniform: low must be less than high")

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        unit = uniform(next_key(generator), shape, dtype=self.low.dtype)
        return self.low + (self.high - self.low) * unit

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.low)
        within = (value >= self.low) & (value < self.high)
        return where_supported(within, -log(self.high - self.low) + value * 0.0)

    def cdf(self, value: Any) -> Any:
        return clamp((tensor_like(value, self.low) - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: Any) -> Any:
        return self.low + (self.high - self.low) * tensor_like(value, self.low)

    def entropy(self) -> Any:
        return log(self.high - self.low)

    mean = property(lambda self: (self.low + self.high) / 2, doc="(low + high) / 2.")
    variance = property(lambda self: (self.high - self.low) ** 2 / 12, doc="(high - low)² / 12.")


@public("distributions")
class Exponential(Distribution):
    """The exponential distribution with density rate e^(-rate x)."""

    has_rsample = True
    checks = (("rate", positive),)
    rate: Any

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, rate=rate)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.exponential(self.rate, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.rate)
        return where_supported(value >= 0, log(self.rate) - self.rate * value)

    def cdf(self, value: Any) -> Any:
        return -expm1(-self.rate * clamp(tensor_like(value, self.rate), min=0.0))

    def icdf(self, value: Any) -> Any:
        return -log1p(-tensor_like(value, self.rate)) / self.rate

    def entropy(self) -> Any:
        return 1 - log(self.rate)

    mean = property(lambda self: 1 / self.rate, doc="1 / rate.")
    mode = property(lambda self: self.rate * 0.0, doc="0.")
    variance = property(lambda self: 1 / self.rate**2, doc="1 / rate².")


@public("distributions")
class Weibull(Distribution):
    """The Weibull distribution, P(X > x) = e^(-(x / scale)^concentration)."""

    has_rsample = True
    checks = (("scale", positive), ("concentration", positive))
    scale: Any
    concentration: Any

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, scale=scale, concentration=concentration)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        unit = sampling.exponential(1.0, shape, generator=generator, dtype=self.scale.dtype)
        return self.scale * unit ** (1 / self.concentration)

    def log_prob(self, value: Any) -> Any:
        value, k = tensor_like(value, self.scale), self.concentration
        z = clamp(value / self.scale, min=0.0)
        return where_supported(value >= 0, log(k / self.scale) + xlogy(k - 1, z) - z**k)

    def cdf(self, value: Any) -> Any:
        z = clamp(tensor_like(value, self.scale) / self.scale, min=0.0)
        return -expm1(-(z**self.concentration))

    def icdf(self, value: Any) -> Any:
        unit = -log1p(-tensor_like(value, self.scale))
        return self.scale * unit ** (1 / self.concentration)

    def entropy(self) -> Any:
        k = self.concentration
        return EULER * (1 - 1 / k) + log(self.scale / k) + 1

    @property
    def mean(self) -> Any:
        """scale Γ(1 + 1/concentration)."""
        return self.scale * exp(lgamma(1 + 1 / self.concentration))

    @property
    def variance(self) -> Any:
        """scale² (Γ(1 + 2/k) - Γ(1 + 1/k)²)."""
        k = self.concentration
        return self.scale**2 * (exp(lgamma(1 + 2 / k)) - exp(2 * lgamma(1 + 1 / k)))
