"""Univariate distributions with heavy tails, on an interval, or on a circle."""

from __future__ import annotations

import math
from typing import Any

from lucid.distributions.continuous import EULER, LocationScale
from lucid.distributions.distribution import Distribution, positive, tensor_like, where_supported
from lucid.distributions.gammas import Gamma
from lucid.ops.elementwise.arithmetic import abs
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, expm1, log, log1p, sqrt
from lucid.ops.elementwise.logarithms import xlogy
from lucid.ops.elementwise.rounding import sign
from lucid.ops.elementwise.trigonometric import acos, atan, cos, tan
from lucid.ops.random.keyed import split, uniform
from lucid.ops.shape.creation import full_like
from lucid.ops.special.bessel import i0e, i1e
from lucid.ops.special.beta_functions import gammaincinv
from lucid.ops.special.error_and_gamma import digamma, lgamma
from lucid.ops.special.incomplete_gamma import gammaincc
from lucid.public.declare import public
from lucid.random import distributions as sampling
from lucid.random.draws import next_key
from lucid.random.rejection import sample_by_rejection


@public("distributions")
class HalfCauchy(Distribution):
    """The distribution of |x| for Cauchy x with location 0."""

    has_rsample = True
    checks = (("scale", positive),)
    scale: Any

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, scale=scale)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return abs(sampling.cauchy(self.scale * 0.0, self.scale, shape, generator=generator))

    def log_prob(self, value: Any) -> Any:
        z = tensor_like(value, self.scale) / self.scale
        return where_supported(z >= 0, math.log(2 / math.pi) - log(self.scale) - log1p(z * z))

    def cdf(self, value: Any) -> Any:
        return clamp(2 / math.pi * atan(tensor_like(value, self.scale) / self.scale), min=0.0)

    def icdf(self, value: Any) -> Any:
        return self.scale * tan(math.pi / 2 * tensor_like(value, self.scale))

    def entropy(self) -> Any:
        return math.log(2 * math.pi) + log(self.scale)

    mean = property(lambda self: full_like(self.scale, math.inf), doc="inf.")
    mode = property(lambda self: self.scale * 0.0, doc="0.")
    variance = property(lambda self: full_like(self.scale, math.inf), doc="inf.")


@public("distributions")
class Pareto(Distribution):
    """The Pareto distribution, P(X > x) = (scale / x)^alpha for x ≥ scale."""

    has_rsample = True
    checks = (("scale", positive), ("alpha", positive))
    scale: Any
    alpha: Any

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, scale=scale, alpha=alpha)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return self.scale * exp(sampling.exponential(self.alpha, shape, generator=generator))

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.scale)
        in_support = value >= self.scale
        ratio = log(where(in_support, value, self.scale) / self.scale)
        return where_supported(in_support, log(self.alpha / self.scale) - (self.alpha + 1) * ratio)

    def cdf(self, value: Any) -> Any:
        value = tensor_like(value, self.scale)
        ratio = log(where(value >= self.scale, value, self.scale) / self.scale)
        return -expm1(-self.alpha * ratio)

    def icdf(self, value: Any) -> Any:
        return self.scale * exp(-log1p(-tensor_like(value, self.scale)) / self.alpha)

    def entropy(self) -> Any:
        return log(self.scale / self.alpha) + 1 + 1 / self.alpha

    @property
    def mean(self) -> Any:
        """alpha scale / (alpha - 1), or inf."""
        return moment_or(self.alpha > 1, self.alpha, 2.0, lambda a: a * self.scale / (a - 1))

    mode = property(lambda self: self.scale, doc="scale.")

    @property
    def variance(self) -> Any:
        """scale² alpha / ((alpha - 1)² (alpha - 2)), or inf."""
        found = lambda a: self.scale**2 * a / ((a - 1) ** 2 * (a - 2))  # noqa: E731
        return moment_or(self.alpha > 2, self.alpha, 3.0, found)


def moment_or(exists: Any, x: Any, harmless: float, moment: Any, missing: float = math.inf) -> Any:
    """Return `moment(x)` where it exists and `missing` elsewhere, with finite gradients."""
    return where(exists, moment(where(exists, x, harmless)), missing)


@public("distributions")
class GeneralizedPareto(LocationScale):
    """P(X > x) = (1 + concentration z)^(-1 / concentration) with z = (x - loc) / scale ≥ 0."""

    concentration: Any

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.set_parameters(validate_args, loc=loc, scale=scale, concentration=concentration)

    def is_near_zero(self) -> Any:
        """True where the concentration is so small that two terms of the series suffice."""
        return abs(self.concentration) < 1e-7

    def log_tail(self, z: Any) -> Any:
        """Return log P(Z > z) for z in the support."""
        near_zero, k = self.is_near_zero(), self.concentration
        far = where(near_zero, 1.0, k)
        return where(
            near_zero, (k * z / 2 - 1) * z, -log1p(far * where(near_zero, z * 0.0, z)) / far
        )

    def in_support(self, z: Any) -> Any:
        return (z >= 0) & (1 + self.concentration * z > 0)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return self.icdf(uniform(next_key(generator), shape, dtype=self.loc.dtype))

    def log_prob(self, value: Any) -> Any:
        z = self.standardize(value)
        supported = self.in_support(z)
        tail = self.log_tail(where(supported, z, 0.0))
        return where_supported(supported, (1 + self.concentration) * tail - log(self.scale))

    def cdf(self, value: Any) -> Any:
        z = self.standardize(value)
        supported = self.in_support(z)
        return where(
            supported, -expm1(self.log_tail(where(supported, z, 0.0))), where(z < 0, 0.0, 1.0)
        )

    def icdf(self, value: Any) -> Any:
        unit = -log1p(-tensor_like(value, self.loc))
        near_zero, k = self.is_near_zero(), self.concentration
        far = where(near_zero, 1.0, k)
        z = where(near_zero, (1 + k * unit / 2) * unit, expm1(far * unit) / far)
        return self.loc + self.scale * z

    def entropy(self) -> Any:
        return 1 + log(self.scale) + self.concentration

    @property
    def mean(self) -> Any:
        """loc + scale / (1 - concentration), or inf."""
        k = self.concentration
        return moment_or(k < 1, k, 0.0, lambda k: self.loc + self.scale / (1 - k))

    @property
    def variance(self) -> Any:
        """scale² / ((1 - k)² (1 - 2k)) for the concentration k, or inf."""
        found = lambda k: self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))  # noqa: E731
        return moment_or(self.concentration < 0.5, self.concentration, 0.0, found)


@public("distributions")
class InverseGamma(Gamma):
    """The distribution of 1/x for x from Gamma(concentration, rate)."""

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return 1 / super().draw(shape, generator)

    def log_prob(self, value: Any) -> Any:
        value, a = tensor_like(value, self.rate), self.concentration
        x = where(value > 0, value, 1.0)
        density = xlogy(a, self.rate) - lgamma(a) - (a + 1) * log(x) - self.rate / x
        return where_supported(value > 0, density)

    def cdf(self, value: Any) -> Any:
        value = tensor_like(value, self.rate)
        x = where(value > 0, value, 1.0)
        return where(value > 0, gammaincc(self.concentration, self.rate / x), 0.0)

    def icdf(self, value: Any) -> Any:
        return self.rate / gammaincinv(self.concentration, 1 - tensor_like(value, self.rate))

    def entropy(self) -> Any:
        a = self.concentration
        return a + log(self.rate) + lgamma(a) - (1 + a) * digamma(a)

    @property
    def mean(self) -> Any:
        """rate / (concentration - 1), or inf."""
        a = self.concentration
        return moment_or(a > 1, a, 2.0, lambda a: self.rate / (a - 1))

    @property
    def mode(self) -> Any:
        """rate / (concentration + 1)."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        """rate² / ((a - 1)² (a - 2)) for the concentration a, or inf."""
        found = lambda a: (self.rate / (a - 1)) ** 2 / (a - 2)  # noqa: E731
        return moment_or(self.concentration > 2, self.concentration, 3.0, found)


@public("distributions")
class Kumaraswamy(Distribution):
    """P(X ≤ x) = 1 - (1 - x^a)^b on [0, 1], with a = concentration1 and b = concentration0."""

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
        unit = uniform(next_key(generator), shape, dtype=self.concentration1.dtype)
        return self.icdf(unit)

    def log_prob(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        value = tensor_like(value, a)
        in_support = (value >= 0) & (value <= 1)
        x = where(in_support, value, 0.5)
        return where_supported(in_support, log(a * b) + xlogy(a - 1, x) + xlogy(b - 1, 1 - x**a))

    def cdf(self, value: Any) -> Any:
        x = clamp(tensor_like(value, self.concentration1), 0.0, 1.0)
        return 1 - (1 - x**self.concentration1) ** self.concentration0

    def icdf(self, value: Any) -> Any:
        tail = log1p(-tensor_like(value, self.concentration1)) / self.concentration0
        return (-expm1(tail)) ** (1 / self.concentration1)

    def moment(self, n: int) -> Any:
        """Return the mean of xⁿ: b B(1 + n/a, b)."""
        a, b = self.concentration1, self.concentration0
        return exp(log(b) + lgamma(1 + n / a) + lgamma(b) - lgamma(1 + n / a + b))

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return (1 - 1 / b) + (1 - 1 / a) * (digamma(b + 1) + EULER) - log(a * b)

    mean = property(lambda self: self.moment(1), doc="b B(1 + 1/a, b).")

    @property
    def mode(self) -> Any:
        """((a - 1) / (a b - 1))^(1/a) if a, b ≥ 1 and not both are 1, else nan."""
        a, b = self.concentration1, self.concentration0
        exists = (a >= 1) & (b >= 1) & (a * b > 1)
        a, b = where(exists, a, 2.0), where(exists, b, 2.0)
        return where(exists, ((a - 1) / (a * b - 1)) ** (1 / a), math.nan)

    @property
    def variance(self) -> Any:
        """The mean of x² minus the square of the mean."""
        return self.moment(2) - self.moment(1) ** 2


@public("distributions")
class FisherSnedecor(Distribution):
    """The F distribution, the ratio of mean squares of `df1` and `df2` normal numbers."""

    has_rsample = True
    checks = (("df1", positive), ("df2", positive))
    df1: Any
    df2: Any

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, df1=df1, df2=df2)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        numerator, denominator = (
            sampling.gamma(df / 2, df / 2, shape, generator=generator)
            for df in (self.df1, self.df2)
        )
        return numerator / denominator

    def log_prob(self, value: Any) -> Any:
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        value = tensor_like(value, a)
        x = clamp(value, min=0.0)
        norm = lgamma(a) + lgamma(b) - lgamma(a + b)
        density = a * log(ratio) + xlogy(a - 1, x) - (a + b) * log1p(ratio * x) - norm
        return where_supported(value >= 0, density)

    @property
    def mean(self) -> Any:
        """df2 / (df2 - 2) if df2 > 2, else nan."""
        return moment_or(self.df2 > 2, self.df2, 3.0, lambda n: n / (n - 2), math.nan)

    @property
    def mode(self) -> Any:
        """(df1 - 2) / df1 · df2 / (df2 + 2) if df1 > 2, else nan."""
        found = lambda m: (m - 2) / m * self.df2 / (self.df2 + 2)  # noqa: E731
        return moment_or(self.df1 > 2, self.df1, 3.0, found, math.nan)

    @property
    def variance(self) -> Any:
        """2 n² (m + n - 2) / (m (n - 2)² (n - 4)) for m = df1 and n = df2 > 4, else nan."""
        m = self.df1
        found = lambda n: 2 * n**2 * (m + n - 2) / (m * (n - 2) ** 2 * (n - 4))  # noqa: E731
        return moment_or(self.df2 > 4, self.df2, 5.0, found, math.nan)


@public("distributions")
class VonMises(Distribution):
    """Angles in [-π, π) with density proportional to e^(concentration cos(x - loc))."""

    checks = (("concentration", positive),)
    loc: Any
    concentration: Any

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, loc=loc, concentration=concentration)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        k = self.concentration.detach().expand(shape)
        shifted = sample_centered_von_mises(next_key(generator), k) + self.loc + math.pi
        return shifted % (2 * math.pi) - math.pi

    def log_prob(self, value: Any) -> Any:
        apart = tensor_like(value, self.loc) - self.loc
        k = self.concentration
        return k * (cos(apart) - 1) - math.log(2 * math.pi) - log(i0e(k))

    mean = property(lambda self: self.loc, doc="loc, on the circle.")
    mode = property(lambda self: self.loc, doc="loc.")

    @property
    def variance(self) -> Any:
        """1 - I₁ / I₀ of the concentration, on the circle."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)


def sample_centered_von_mises(key: Any, k: Any) -> Any:
    """Return angles around 0, with a wrapped Cauchy proposal (Best and Fisher, 1979)."""
    dtype = k.dtype
    wide = k.double()
    tau = 1 + sqrt(1 + 4 * wide * wide)
    small = wide < 1e-5
    rho = (tau - sqrt(2 * tau)) / (2 * where(small, 1.0, wide))
    r = where(small, 1 / where(small, wide, 1.0) + wide, (1 + rho * rho) / (2 * rho))

    def propose(key: Any) -> tuple[Any, Any]:
        first, second = split(key)
        first, third = split(first)
        z = cos(math.pi * uniform(first, k.shape, dtype="float64"))
        u = 1 - uniform(second, k.shape, dtype="float64")
        f = (1 + r * z) / (r + z)
        c = wide * (r - f)
        side = sign(uniform(third, k.shape, dtype="float64") - 0.5)
        accepted = (c * (2 - c) > u) | (log(c / u) + 1 - c >= 0)
        return side * acos(clamp(f, -1.0, 1.0)), accepted

    return sample_by_rejection(key, wide > 0, "float64", propose).to(dtype)
