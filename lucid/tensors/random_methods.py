"""The methods of Tensor that draw random numbers: into the tensor itself, or in its shape.

They draw from lucid.random, which stands above tensors, so it is looked up when they are called.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import cast, get_default_dtype
from lucid.ops.elementwise.exponential import exp, log1p
from lucid.ops.elementwise.rounding import ceil
from lucid.ops.elementwise.trigonometric import tan
from lucid.tape.node import Traced
from lucid.tensors.inplace import copy_


def uniform(x: Any, generator: Any) -> Any:
    """Numbers in [0, 1), in the shape of `x` and in a floating dtype."""
    from lucid.random import rand

    return rand(x.shape, generator=generator, dtype=floating(x))


def floating(x: Any) -> np.dtype:
    return x.dtype if x.dtype.kind == "f" else get_default_dtype()


@explained
def uniform_(x: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Any:
    """Overwrite every element with a number uniform in [from_, to)."""
    if from_ > to:
        raise ArgumentError(f"uniform_: from {from_} to {to}{at_line()}")
    return copy_(x, uniform(x, generator) * (to - from_) + from_)


@explained
def normal_(x: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Overwrite every element with a number from a normal distribution."""
    from lucid.random import randn

    if std < 0:
        raise ArgumentError(f"normal_: the standard deviation {std} is negative{at_line()}")
    return copy_(x, randn(x.shape, generator=generator, dtype=floating(x)) * std + mean)


@explained
def log_normal_(x: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    """Overwrite every element with e to the power of a number from a normal distribution."""
    from lucid.random import randn

    if not std > 0:
        raise ArgumentError(f"log_normal_: the standard deviation {std} is not positive{at_line()}")
    return copy_(x, exp(randn(x.shape, generator=generator, dtype=floating(x)) * std + mean))


@explained
def exponential_(x: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Overwrite every element with a number from the exponential distribution of rate `lambd`."""
    if not lambd > 0:
        raise ArgumentError(f"exponential_: the rate {lambd} is not positive{at_line()}")
    return copy_(x, log1p(-uniform(x, generator)) * (-1.0 / lambd))


@explained
def cauchy_(x: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    """Overwrite every element with a number from Cauchy's distribution."""
    if not sigma > 0:
        raise ArgumentError(f"cauchy_: sigma {sigma} is not positive{at_line()}")
    return copy_(x, tan((uniform(x, generator) - 0.5) * np.pi) * sigma + median)


@explained
def geometric_(x: Any, p: float, *, generator: Any = None) -> Any:
    """Overwrite every element with the number of trials up to the first success, of chance `p`."""
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_: the probability {p} does not lie in (0, 1){at_line()}")
    trials = ceil(log1p(-uniform(x, generator)) / np.log1p(-p))
    return copy_(x, cast(trials.clamp(min=1.0), x.dtype))


@explained
def bernoulli_(x: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Overwrite every element with 1 with probability `p`, else 0."""
    if not isinstance(p, Traced) and not 0 <= p <= 1:
        raise ArgumentError(f"bernoulli_: the probability {p} does not lie in [0, 1]{at_line()}")
    return copy_(x, cast(uniform(x, generator) < p, x.dtype))


@explained
def random_(x: Any, from_: Any = None, to: Any = None, *, generator: Any = None) -> Any:
    """Overwrite every element with an integer uniform in [from_, to): `random_(to)` starts at 0.

    Without bounds they are all that the dtype holds exactly and that are not negative.
    """
    from lucid.random import randint

    if to is None:
        from_, to = 0, most(x.dtype) if from_ is None else from_
    from_ = 0 if from_ is None else from_
    if not from_ < to:
        raise ArgumentError(f"random_: from {from_} to {to}{at_line()}")
    return copy_(x, cast(randint(from_, to, x.shape, generator=generator), x.dtype))


def most(dtype: np.dtype) -> int:
    """One more than the largest integer that random_ draws."""
    if dtype.kind == "b":
        return 2
    if dtype.kind == "f":
        return 2 ** (np.finfo(dtype).nmant + 1)
    return min(int(np.iinfo(dtype).max), 2**62) + (dtype.itemsize < 8)


class Filling(Traced):
    """Random numbers in the place or the shape of a tensor."""

    __slots__ = ()

    uniform_ = uniform_
    normal_ = normal_
    log_normal_ = log_normal_
    exponential_ = exponential_
    cauchy_ = cauchy_
    geometric_ = geometric_
    bernoulli_ = bernoulli_
    random_ = random_

    def bernoulli(self, p: Any = None, *, generator: Any = None) -> Any:
        """1 with a probability of this tensor's elements (or `p`), else 0."""
        from lucid.random import bernoulli

        return bernoulli(self, p, generator=generator)

    def multinomial(
        self, num_samples: int, replacement: bool = False, *, generator: Any = None
    ) -> Any:
        """Indices drawn with probabilities proportional to the last axis of this tensor."""
        from lucid.random import multinomial

        return multinomial(self, num_samples, replacement, generator=generator)
