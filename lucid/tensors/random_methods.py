"""Methods of Tensor that draw random numbers, in place or with the tensor's shape.

They use lucid.random, which is above tensors in the import order, so it is imported on call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import cast, get_default_dtype
from lucid.ops.elementwise.exponential import exp, log1p
from lucid.ops.elementwise.rounding import ceil
from lucid.ops.elementwise.trigonometric import tan
from lucid.tape.node import Traced
from lucid.tensors.inplace import copy_


def uniform_like(x: Any, generator: Any) -> Any:
    """Return uniform numbers in [0, 1) with the shape of `x` and a floating dtype."""
    from lucid.random import rand

    return rand(x.shape, generator=generator, dtype=float_dtype(x))


def float_dtype(x: Any) -> np.dtype:
    return x.dtype if x.dtype.kind == "f" else get_default_dtype()


@public_function("Tensor")
def uniform_(x: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Any:
    """Fill the tensor with uniform numbers in [from_, to)."""
    if from_ > to:
        raise ArgumentError(f"uniform_: from_={from_} must not exceed to={to}")
    return copy_(x, uniform_like(x, generator) * (to - from_) + from_)


@public_function("Tensor")
def normal_(x: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Fill the tensor with numbers from a normal distribution."""
    from lucid.random import randn

    if std < 0:
        raise ArgumentError(f"normal_: the standard deviation {std} is negative")
    return copy_(x, randn(x.shape, generator=generator, dtype=float_dtype(x)) * std + mean)


@public_function("Tensor")
def log_normal_(x: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    """Fill the tensor with numbers whose logarithm is normally distributed."""
    from lucid.random import randn

    if not std > 0:
        raise ArgumentError(f"log_normal_: the standard deviation {std} is not positive")
    return copy_(x, exp(randn(x.shape, generator=generator, dtype=float_dtype(x)) * std + mean))


@public_function("Tensor")
def exponential_(x: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Fill the tensor with numbers from the exponential distribution with rate `lambd`."""
    if not lambd > 0:
        raise ArgumentError(f"exponential_: the rate {lambd} is not positive")
    return copy_(x, log1p(-uniform_like(x, generator)) * (-1.0 / lambd))


@public_function("Tensor")
def cauchy_(x: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    """Fill the tensor with numbers from a Cauchy distribution."""
    if not sigma > 0:
        raise ArgumentError(f"cauchy_: sigma {sigma} is not positive")
    return copy_(x, tan((uniform_like(x, generator) - 0.5) * np.pi) * sigma + median)


@public_function("Tensor")
def geometric_(x: Any, p: float, *, generator: Any = None) -> Any:
    """Fill the tensor with the number of trials, of probability `p`, up to the first success."""
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_: the probability {p} is not in (0, 1)")
    trials = ceil(log1p(-uniform_like(x, generator)) / np.log1p(-p))
    return copy_(x, cast(trials.clamp(min=1.0), x.dtype))


@public_function("Tensor")
def bernoulli_(x: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill the tensor with 1 with probability `p`, and 0 otherwise."""
    if not isinstance(p, Traced) and not 0 <= p <= 1:
        raise ArgumentError(f"bernoulli_: the probability {p} is not in [0, 1]")
    return copy_(x, cast(uniform_like(x, generator) < p, x.dtype))


@public_function("Tensor")
def random_(x: Any, from_: Any = None, to: Any = None, *, generator: Any = None) -> Any:
    """Fill the tensor with uniform integers in [from_, to); `random_(to)` starts at 0.

    Without bounds, all non-negative integers that the dtype represents exactly are drawn.
    """
    from lucid.random import randint

    if to is None:
        from_, to = 0, random_upper_bound(x.dtype) if from_ is None else from_
    from_ = 0 if from_ is None else from_
    if not from_ < to:
        raise ArgumentError(f"random_: from_={from_} must be less than to={to}")
    return copy_(x, cast(randint(from_, to, x.shape, generator=generator), x.dtype))


def random_upper_bound(dtype: np.dtype) -> int:
    """Return the exclusive upper bound of the integers that `random_` draws by default."""
    if dtype.kind == "b":
        return 2
    if dtype.kind == "f":
        return 2 ** (np.finfo(dtype).nmant + 1)
    return min(int(np.iinfo(dtype).max), 2**62) + (dtype.itemsize < 8)
