"""Gamma, Chi2, Beta and Dirichlet."""

from __future__ import annotations

from typing import Any

from lucid.distributions.distribution import (
    Checks,
    Distribution,
    positive,
    tensor_like,
    where_supported,
)
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.elementwise.exponential import log
from lucid.ops.elementwise.logarithms import xlogy
from lucid.ops.special.beta_functions import betainc, betaincinv, gammaincinv
from lucid.ops.special.error_and_gamma import digamma, lgamma
from lucid.ops.special.incomplete_gamma import gammainc
from lucid.public.declare import public
from lucid.random import distributions as sampling


@public("distributions")
class Gamma(Distribution):
    """The gamma distribution, with density proportional to x^(concentration - 1) e^(-rate x)."""

    has_rsample = True
    checks: Checks = (("concentration", positive), ("rate", positive))
    concentration: Any
    rate: Any

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, concentration=concentration, rate=rate)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.gamma(self.concentration, self.rate, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        value, a = tensor_like(value, self.rate), self.concentration
        x = clamp(value, min=0.0)
        density = xlogy(a, self.rate) + xlogy(a - 1, x) - self.rate * x - lgamma(a)
        return where_supported(value >= 0, density)

    def cdf(self, value: Any) -> Any:
        x = clamp(self.rate * tensor_like(value, self.rate), min=0.0)
        return gammainc(self.concentration, x)

    def icdf(self, value: Any) -> Any:
        return gammaincinv(self.concentration, tensor_like(value, self.rate)) / self.rate

    def entropy(self) -> Any:
        a = self.concentration
        return a - log(self.rate) + lgamma(a) + (1 - a) * digamma(a)

    mean = property(lambda self: self.concentration / self.rate, doc="concentration / rate.")

    @property
    def mode(self) -> Any:
        """(concentration - 1) / rate, at least 0."""
        return clamp((self.concentration - 1) / self.rate, min=0.0)

    @property
    def variance(self) -> Any:
        """concentration / rate²."""
        return self.concentration / self.rate**2


@public("distributions")
class Chi2(Gamma):
    """The distribution of the sum of the squares of `df` standard normal numbers."""

    checks = (("df", positive),)
    df: Any

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, df=df)
        self.concentration, self.rate = self.df / 2, self.df * 0.0 + 0.5


@public("distributions")
class Beta(Distribution):
    """The density is proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1)."""

    has_rsample = True
    checks = (("concentration1", positive), ("concentration0", positive))
    concentration1: Any
    concentration0: Any

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.set_parameters(
            validate_args, concentration1=concentration1, concentration0=concentration0
        )

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.beta(self.concentration1, self.concentration0, shape, generator=generator)

    def log_norm(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return lgamma(a) + lgamma(b) - lgamma(a + b)

    def log_prob(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        value = tensor_like(value, a)
        x = clamp(value, 0.0, 1.0)
        density = xlogy(a - 1, x) + xlogy(b - 1, 1 - x) - self.log_norm()
        return where_supported((value >= 0) & (value <= 1), density)

    def cdf(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return betainc(a, b, clamp(tensor_like(value, a), 0.0, 1.0))

    def icdf(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return betaincinv(a, b, tensor_like(value, a))

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        rest = (a - 1) * digamma(a) + (b - 1) * digamma(b) - (a + b - 2) * digamma(a + b)
        return self.log_norm() - rest

    @property
    def mean(self) -> Any:
        """a / (a + b)."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Any:
        """a b / ((a + b)² (a + b + 1))."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))


@public("distributions")
class Dirichlet(Distribution):
    """Vectors that sum to 1, with density proportional to the product of x^(concentration - 1)."""

    has_rsample = True
    checks = (("concentration", positive),)
    concentration: Any

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, 1, concentration=concentration)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.dirichlet(self.concentration, shape[:-1], generator=generator)

    def log_norm(self) -> Any:
        a = self.concentration
        return lgamma(a).sum(-1) - lgamma(a.sum(-1))

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.concentration)
        return xlogy(self.concentration - 1, value).sum(-1) - self.log_norm()

    def entropy(self) -> Any:
        a = self.concentration
        total, k = a.sum(-1), a.shape[-1]
        rest = (total - k) * digamma(total) - ((a - 1) * digamma(a)).sum(-1)
        return self.log_norm() + rest

    @property
    def mean(self) -> Any:
        """concentration over its sum."""
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def variance(self) -> Any:
        """m (1 - m) / (sum + 1) for the mean m."""
        return self.mean * (1 - self.mean) / (self.concentration.sum(-1, keepdim=True) + 1)
