"""Distributions of integers and categories."""

from __future__ import annotations

import math
from typing import Any

from lucid.distributions.distribution import (
    Distribution,
    nonnegative,
    nonnegative_integer,
    probs_or_logits,
    simplex,
    softplus,
    tensor_like,
    unit_interval,
    where_supported,
)
from lucid.errors import ArgumentError
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, log, log1p, sigmoid
from lucid.ops.elementwise.logarithms import xlogy
from lucid.ops.elementwise.logic import eq
from lucid.ops.elementwise.rounding import ceil, floor
from lucid.ops.index.lookup import gather
from lucid.ops.nn.softmax import log_softmax
from lucid.ops.random.keyed import uniform
from lucid.ops.reduce.extrema import argmax
from lucid.ops.shape.creation import arange, eye, full_like
from lucid.ops.shape.shaping import squeeze, unsqueeze
from lucid.ops.special.beta_functions import pdtrik
from lucid.ops.special.error_and_gamma import lgamma
from lucid.ops.special.incomplete_gamma import gammaincc
from lucid.public.declare import public
from lucid.random import distributions as sampling
from lucid.random.draws import next_key


class ProbsOrLogits(Distribution):
    """Distributions of a probability, given as `probs` or as `logits` = log(p / (1 - p))."""

    checks = (("probs", unit_interval), ("total_count", nonnegative_integer))

    @property
    def p(self) -> Any:
        return self.params["probs"] if "probs" in self.params else sigmoid(self.params["logits"])

    def log_probabilities(self) -> tuple[Any, Any]:
        """Return log p and log(1 - p)."""
        if "probs" in self.params:
            return log(self.params["probs"]), log1p(-self.params["probs"])
        x = self.params["logits"]
        return -softplus(-x), -softplus(x)

    def __getattr__(self, name: str) -> Any:
        if name == "probs":
            return self.p
        if name == "logits":
            yes, no = self.log_probabilities()
            return yes - no
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


def xlogp(n: Any, log_p: Any) -> Any:
    """Return n log p, and 0 where n is 0."""
    none = n == 0
    return where(none, n * 0.0, n * where(none, log_p * 0.0 - 1.0, log_p))


@public("distributions")
class Bernoulli(ProbsOrLogits):
    """1 with probability p, and 0 otherwise."""

    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.set_parameters(validate_args, **probs_or_logits("Bernoulli", probs, logits))

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        p = self.p
        return cast(uniform(next_key(generator), shape, dtype=p.dtype) < p, p.dtype)

    def log_prob(self, value: Any) -> Any:
        x = tensor_like(value, self.p)
        yes, no = self.log_probabilities()
        return where_supported((x == 0) | (x == 1), xlogp(x, yes) + xlogp(1 - x, no))

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return 0 and 1."""
        return self.expand_support(arange(2, dtype=self.p.dtype), expand)

    def entropy(self) -> Any:
        yes, no = self.log_probabilities()
        return -xlogp(self.p, yes) - xlogp(1 - self.p, no)

    mean = property(lambda self: self.p, doc="p.")

    @property
    def mode(self) -> Any:
        """The more probable value, nan if p is 0.5."""
        return where(self.p == 0.5, math.nan, cast(self.p > 0.5, self.p.dtype))

    variance = property(lambda self: self.p * (1 - self.p), doc="p (1 - p).")


@public("distributions")
class Binomial(ProbsOrLogits):
    """The number of successes in `total_count` trials."""

    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.set_parameters(
            validate_args, total_count=total_count, **probs_or_logits("Binomial", probs, logits)
        )

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.binomial(self.total_count, self.p, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        n = self.total_count
        value = tensor_like(value, n)
        k = clamp(value, min=0.0)
        k = where(k > n, n, k)
        yes, no = self.log_probabilities()
        ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
        return where_supported(
            (value == k) & (k == floor(k)), ways + xlogp(k, yes) + xlogp(n - k, no)
        )

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return 0 to `total_count`, which must be the same in the whole batch."""
        total = int(self.total_count.max().item())
        if total != self.total_count.min().item():
            raise self.no_formula("the support of a batch with different total_count")
        return self.expand_support(arange(1 + total, dtype=self.p.dtype), expand)

    mean = property(lambda self: self.total_count * self.p, doc="n p.")
    variance = property(lambda self: self.total_count * self.p * (1 - self.p), doc="n p (1 - p).")


@public("distributions")
class Geometric(ProbsOrLogits):
    """The number of failures before the first success."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.set_parameters(validate_args, **probs_or_logits("Geometric", probs, logits))

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.geometric(self.p, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.p)
        k = clamp(value, min=0.0)
        yes, no = self.log_probabilities()
        return where_supported((value == k) & (k == floor(k)), xlogp(k, no) + yes)

    def entropy(self) -> Any:
        yes, no = self.log_probabilities()
        return -(xlogp(self.p, yes) + xlogp(1 - self.p, no)) / self.p

    mean = property(lambda self: 1 / self.p - 1, doc="1/p - 1.")
    mode = property(lambda self: self.p * 0.0, doc="0.")
    variance = property(lambda self: (1 / self.p - 1) / self.p, doc="(1/p - 1) / p.")


@public("distributions")
class Poisson(Distribution):
    """The Poisson distribution with mean `rate`."""

    checks = (("rate", nonnegative),)
    rate: Any

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.set_parameters(validate_args, rate=rate)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.poisson(self.rate, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.rate)
        k = clamp(value, min=0.0)
        density = xlogy(k, self.rate) - self.rate - lgamma(k + 1)
        return where_supported((value == k) & (k == floor(k)), density)

    def cdf(self, value: Any) -> Any:
        k = floor(tensor_like(value, self.rate))
        return where(k < 0, 0.0, gammaincc(clamp(k, min=0.0) + 1, self.rate))

    def icdf(self, value: Any) -> Any:
        """The smallest k with cdf(k) >= value; the derivative is 0."""
        value = tensor_like(value, self.rate)
        k = clamp(ceil(pdtrik(value, self.rate)), min=0.0)
        k = where((k >= 1) & (self.cdf(k - 1) >= value), k - 1, k)
        return where(value == 1, math.inf, k).detach()

    mean = property(lambda self: self.rate, doc="rate.")
    mode = property(lambda self: floor(self.rate), doc="The rate, rounded down.")
    variance = property(lambda self: self.rate, doc="rate.")


@public("distributions")
class Categorical(Distribution):
    """One of n indices; `probs` are weights of any positive sum, `logits` their logarithms."""

    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = probs_or_logits("Categorical", probs, logits)
        if "probs" in given:
            probs = tensor_like(given["probs"], as_tensor(0.0))
            given = {"probs": probs / probs.sum(-1, keepdim=True)}
        self.set_parameters(validate_args, 1, **given)
        self.num_events = self.event_shape[0]
        self.event_shape = ()
        if "probs" in self.params:
            self.logits = log(self.params["probs"])
        else:
            self.logits = log_softmax(self.params["logits"], -1)
            self.probs = exp(self.logits)

    checks = (("probs", simplex),)
    probs: Any

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return sampling.categorical(self.logits, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        value = as_tensor(value)
        index = unsqueeze(cast(value, "int64"), -1)
        logits = self.logits
        if index.ndim > logits.ndim:
            logits = logits.expand((*index.shape[:-1], logits.shape[-1]))
        elif index.shape[:-1] != logits.shape[:-1]:
            index = index.expand((*logits.shape[:-1], 1))
        return squeeze(gather(logits, -1, index), -1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all indices."""
        return self.expand_support(arange(self.num_events), expand)

    def entropy(self) -> Any:
        return -xlogp(self.probs, self.logits).sum(-1)

    @property
    def mean(self) -> Any:
        """nan: not defined for categories."""
        return full_like(self.logits[..., 0], math.nan)

    mode = property(lambda self: argmax(self.logits, -1), doc="The most probable index.")

    @property
    def variance(self) -> Any:
        """nan: not defined for categories."""
        return full_like(self.logits[..., 0], math.nan)


def one_hot_vector(index: Any, n: int, dtype: Any) -> Any:
    """Return 1 at `index` along a new last axis, and 0 elsewhere."""
    return cast(eq(unsqueeze(index, -1), arange(n)), dtype)


@public("distributions")
class OneHotCategorical(Categorical):
    """One of n categories, as a one-hot vector."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self.event_shape = (self.num_events,)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        index = sampling.categorical(self.logits, shape[:-1], generator=generator)
        return one_hot_vector(index, self.num_events, self.logits.dtype)

    def log_prob(self, value: Any) -> Any:
        return xlogp(tensor_like(value, self.logits), self.logits).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all one-hot vectors."""
        return self.expand_support(eye(self.num_events, dtype=self.logits.dtype), expand)

    mean = property(lambda self: self.probs, doc="The probabilities.")

    @property
    def mode(self) -> Any:
        """The most probable category."""
        return one_hot_vector(argmax(self.logits, -1), self.num_events, self.logits.dtype)

    variance = property(lambda self: self.probs * (1 - self.probs), doc="p (1 - p).")


@public("distributions")
class Multinomial(OneHotCategorical):
    """The counts of each category in `total_count` draws."""

    has_enumerate_support = False
    enumerate_support, entropy = Distribution.enumerate_support, Distribution.entropy
    mode = Distribution.mode

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int) or total_count < 0:
            raise ArgumentError(f"Multinomial: total_count must be an integer, not {total_count!r}")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    def options(self) -> dict[str, Any]:
        return {"total_count": self.total_count, **super().options()}

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        whole = (self.total_count, *shape[:-1])
        index = sampling.categorical(self.logits, whole, generator=generator)
        return one_hot_vector(index, self.num_events, self.logits.dtype).sum(0)

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.logits)
        ways = lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1)
        return ways + xlogp(value, self.logits).sum(-1)

    mean = property(lambda self: self.total_count * self.probs, doc="n p.")

    @property
    def variance(self) -> Any:
        """n p (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)
