"""Distributions of whole numbers and of categories."""

from __future__ import annotations

import math
from typing import Any

from lucid import random
from lucid.distributions.distribution import (
    Distribution,
    chance,
    chances,
    inside,
    natural,
    not_negative,
    one_of,
    softplus,
    tensor_like,
)
from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, log, log1p, sigmoid
from lucid.ops.elementwise.logarithms import xlogy
from lucid.ops.elementwise.logic import eq
from lucid.ops.elementwise.rounding import floor
from lucid.ops.index.lookup import gather
from lucid.ops.nn.softmax import log_softmax
from lucid.ops.random.keyed import uniform
from lucid.ops.reduce.extrema import argmax
from lucid.ops.shape.creation import arange, eye, full_like
from lucid.ops.shape.shaping import squeeze, unsqueeze
from lucid.ops.special.error_and_gamma import lgamma
from lucid.random import distributions as drawing


class TwoForms(Distribution):
    """Distributions of a chance, given as `probs` or as `logits` = log(p / (1 - p))."""

    checks = (("probs", chance), ("total_count", natural))

    @property
    def p(self) -> Any:
        return self.given["probs"] if "probs" in self.given else sigmoid(self.given["logits"])

    def log_chances(self) -> tuple[Any, Any]:
        """log p and log(1 - p)."""
        if "probs" in self.given:
            return log(self.given["probs"]), log1p(-self.given["probs"])
        x = self.given["logits"]
        return -softplus(-x), -softplus(x)

    def __getattr__(self, name: str) -> Any:
        if name == "probs":
            return self.p
        if name == "logits":
            yes, no = self.log_chances()
            return yes - no
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


def times(n: Any, log_p: Any) -> Any:
    """n log p, which is 0 where n is 0."""
    none = n == 0
    return where(none, n * 0.0, n * where(none, log_p * 0.0 - 1.0, log_p))


class Bernoulli(TwoForms):
    """1 with probability p, else 0."""

    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.take(validate_args, **one_of("Bernoulli", probs, logits))

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        p = self.p
        return cast(uniform(random.next_key(generator), shape, dtype=p.dtype) < p, p.dtype)

    def log_prob(self, value: Any) -> Any:
        x = tensor_like(value, self.p)
        yes, no = self.log_chances()
        return inside((x == 0) | (x == 1), times(x, yes) + times(1 - x, no))

    def enumerate_support(self, expand: bool = True) -> Any:
        """0 and 1."""
        return self.enumerated(arange(2, dtype=self.p.dtype), expand)

    def entropy(self) -> Any:
        yes, no = self.log_chances()
        return -times(self.p, yes) - times(1 - self.p, no)

    @property
    def mean(self) -> Any:
        """p."""
        return self.p

    @property
    def mode(self) -> Any:
        """The more probable one, nan where there is none."""
        return where(self.p == 0.5, math.nan, cast(self.p > 0.5, self.p.dtype))

    @property
    def variance(self) -> Any:
        """p (1 - p)."""
        return self.p * (1 - self.p)


class Binomial(TwoForms):
    """The number of successes in `total_count` trials."""

    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.take(validate_args, total_count=total_count, **one_of("Binomial", probs, logits))

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return drawing.binomial(self.total_count, self.p, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        n = self.total_count
        value = tensor_like(value, n)
        k = clamp(value, min=0.0)
        k = where(k > n, n, k)
        yes, no = self.log_chances()
        ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
        return inside((value == k) & (k == floor(k)), ways + times(k, yes) + times(n - k, no))

    def enumerate_support(self, expand: bool = True) -> Any:
        """From 0 to the number of trials, which is the same in the whole batch."""
        total = int(self.total_count.max().item())
        if total != self.total_count.min().item():
            raise self.lacks("support: the numbers of trials differ, and so a common")
        return self.enumerated(arange(1 + total, dtype=self.p.dtype), expand)

    @property
    def mean(self) -> Any:
        """n p."""
        return self.total_count * self.p

    @property
    def variance(self) -> Any:
        """n p (1 - p)."""
        return self.total_count * self.p * (1 - self.p)


class Geometric(TwoForms):
    """The failures before the first success."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.take(validate_args, **one_of("Geometric", probs, logits))

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return drawing.geometric(self.p, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.p)
        k = clamp(value, min=0.0)
        yes, no = self.log_chances()
        return inside((value == k) & (k == floor(k)), times(k, no) + yes)

    def entropy(self) -> Any:
        yes, no = self.log_chances()
        return -(times(self.p, yes) + times(1 - self.p, no)) / self.p

    @property
    def mean(self) -> Any:
        """1/p - 1."""
        return 1 / self.p - 1

    @property
    def mode(self) -> Any:
        """0."""
        return self.p * 0.0

    @property
    def variance(self) -> Any:
        """(1/p - 1) / p."""
        return (1 / self.p - 1) / self.p


class Poisson(Distribution):
    """How often something happens that happens `rate` times in the mean."""

    checks = (("rate", not_negative),)
    rate: Any

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.take(validate_args, rate=rate)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return drawing.poisson(self.rate, shape, generator=generator)

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.rate)
        k = clamp(value, min=0.0)
        density = xlogy(k, self.rate) - self.rate - lgamma(k + 1)
        return inside((value == k) & (k == floor(k)), density)

    @property
    def mean(self) -> Any:
        """rate."""
        return self.rate

    @property
    def mode(self) -> Any:
        """The whole part of the rate."""
        return floor(self.rate)

    @property
    def variance(self) -> Any:
        """rate."""
        return self.rate


class Categorical(Distribution):
    """One of n indices; `probs` may be weights of any sum, `logits` are their logarithms."""

    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = one_of("Categorical", probs, logits)
        if "probs" in given:
            probs = tensor_like(given["probs"], as_tensor(0.0))
            given = {"probs": probs / probs.sum(-1, keepdim=True)}
        self.take(validate_args, 1, **given)
        self.num_events = self.event_shape[0]
        self.event_shape = ()
        if "probs" in self.given:
            self.logits = log(self.given["probs"])
        else:
            self.logits = log_softmax(self.given["logits"], -1)
            self.probs = exp(self.logits)

    checks = (("probs", chances),)
    probs: Any

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return drawing.categorical(self.logits, shape, generator=generator)

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
        """All indices."""
        return self.enumerated(arange(self.num_events), expand)

    def entropy(self) -> Any:
        return -times(self.probs, self.logits).sum(-1)

    @property
    def mean(self) -> Any:
        """nan: categories have none."""
        return full_like(self.logits[..., 0], math.nan)

    @property
    def mode(self) -> Any:
        """The most probable index."""
        return argmax(self.logits, -1)

    @property
    def variance(self) -> Any:
        """nan: categories have none."""
        return full_like(self.logits[..., 0], math.nan)


def hot(index: Any, n: int, dtype: Any) -> Any:
    """1 at an index of a new last axis, 0 elsewhere."""
    return cast(eq(unsqueeze(index, -1), arange(n)), dtype)


class OneHotCategorical(Categorical):
    """One of n categories, as a vector with 1 in its place."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self.event_shape = (self.num_events,)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        index = drawing.categorical(self.logits, shape[:-1], generator=generator)
        return hot(index, self.num_events, self.logits.dtype)

    def log_prob(self, value: Any) -> Any:
        return times(tensor_like(value, self.logits), self.logits).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All categories."""
        return self.enumerated(eye(self.num_events, dtype=self.logits.dtype), expand)

    @property
    def mean(self) -> Any:
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Any:
        """The most probable category."""
        return hot(argmax(self.logits, -1), self.num_events, self.logits.dtype)

    @property
    def variance(self) -> Any:
        """p (1 - p)."""
        return self.probs * (1 - self.probs)


class Multinomial(OneHotCategorical):
    """How often each category comes in `total_count` draws."""

    has_enumerate_support = False

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int) or total_count < 0:
            raise ArgumentError(
                f"Multinomial: total_count is a whole number, not {total_count!r}{at_line()}"
            )
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    def options(self) -> dict[str, Any]:
        return {"total_count": self.total_count, **super().options()}

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        whole = (self.total_count, *shape[:-1])
        index = drawing.categorical(self.logits, whole, generator=generator)
        return hot(index, self.num_events, self.logits.dtype).sum(0)

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.logits)
        ways = lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1)
        return ways + times(value, self.logits).sum(-1)

    def entropy(self) -> Any:
        raise self.lacks("entropy")

    def enumerate_support(self, expand: bool = True) -> Any:
        raise self.lacks("short list of values")

    @property
    def mean(self) -> Any:
        """n p."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        raise self.lacks("mode")

    @property
    def variance(self) -> Any:
        """n p (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)
