"""Draws from named distributions: `random.gamma(2.0, size=(3,), generator=g)`, or with `key=`.

Parameters are numbers or tensors that broadcast; the shape is `size`, or the broadcast shape of the
parameters. Draws from continuous distributions are reparameterized, so gradients reach them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.types import broadcast_shapes, dtype_of
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast, get_default_dtype
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, log, log1p, sigmoid
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.trigonometric import tan
from lucid.ops.nn.softmax import softmax
from lucid.ops.random.keyed import as_key, split
from lucid.ops.random.keyed import normal as keyed_normal
from lucid.ops.random.keyed import uniform as keyed_uniform
from lucid.ops.reduce.extrema import argmax
from lucid.ops.shape.creation import checked_size
from lucid.ops.special.normal import ndtr, ndtri
from lucid.random import rejection
from lucid.random.draws import next_key
from lucid.tape.node import Traced


class DrawArguments:
    """The key, shape, dtype and parameters of a draw."""

    def __init__(self, name: str, params: Any, size: Any, key: Any, generator: Any, dtype: Any):
        self.key = next_key(generator) if key is None else as_key(key)
        found = [p.dtype for p in params if isinstance(p, (Traced, np.ndarray))]
        found = [d for d in found if d.kind == "f"]
        self.dtype = dtype_of(dtype) if dtype is not None else (
            np.result_type(*found) if found else get_default_dtype()
        )  # fmt: skip
        if self.dtype.kind != "f":
            raise DTypeError(f"{name}: dtype {self.dtype} is not a floating dtype")
        shapes = broadcast_shapes(*[np.shape(p) for p in params])
        self.shape = shapes if size is None else checked_size(name, (size,))
        if not broadcasts_to(shapes, self.shape):
            raise ShapeError(
                f"{name}: parameters of shape {shapes} do not broadcast to size {self.shape}"
            )
        self.params = [cast(as_tensor(p), self.dtype) for p in params]

    def broadcast_params(self, dtype: Any = None) -> list[Any]:
        """Return the parameters expanded to the shape of the draw."""
        return [cast(p, dtype or self.dtype).expand(self.shape) for p in self.params]

    def unit_uniform(self, key: Any = None) -> Any:
        """Return uniform numbers in (0, 1]."""
        return 1 - keyed_uniform(self.key if key is None else key, self.shape, dtype=self.dtype)


def broadcasts_to(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """True if `shape` broadcasts to `whole`."""
    pairs = zip(reversed(shape), reversed(whole))
    return len(shape) <= len(whole) and all(n in (1, m) for n, m in pairs)


@public_function("random")
def exponential(
    rate: Any = 1.0, size: Any = None, *, key: Any = None, generator: Any = None, dtype: Any = None
) -> Any:
    """Return draws with density rate e^(-rate x)."""
    draw = DrawArguments("exponential", (rate,), size, key, generator, dtype)
    return -log(draw.unit_uniform()) / draw.params[0]


@public_function("random")
def laplace(
    loc: Any = 0.0, scale: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return draws with density e^(-|x - loc| / scale) / (2 scale)."""
    draw = DrawArguments("laplace", (loc, scale), size, key, generator, dtype)
    first, second = split(draw.key)
    negative = keyed_uniform(first, draw.shape, dtype=draw.dtype) < 0.5
    magnitude = -log(draw.unit_uniform(second))
    return draw.params[0] + draw.params[1] * where(negative, -magnitude, magnitude)


@public_function("random")
def cauchy(
    loc: Any = 0.0, scale: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return draws from a Cauchy distribution, the tangents of uniform angles."""
    draw = DrawArguments("cauchy", (loc, scale), size, key, generator, dtype)
    return draw.params[0] + draw.params[1] * tan(math.pi * (draw.unit_uniform() - 0.5))


@public_function("random")
def gumbel(
    loc: Any = 0.0, scale: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return draws from a Gumbel distribution: loc - scale log(-log u)."""
    draw = DrawArguments("gumbel", (loc, scale), size, key, generator, dtype)
    tiny = float(np.finfo(draw.dtype).tiny)
    return draw.params[0] - draw.params[1] * log(clamp(-log(draw.unit_uniform()), min=tiny))


@public_function("random")
def log_normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return draws whose logarithm is normal with this mean and standard deviation."""
    draw = DrawArguments("log_normal", (mean, std), size, key, generator, dtype)
    noise = keyed_normal(draw.key, draw.shape, dtype=draw.dtype)
    return exp(draw.params[0] + draw.params[1] * noise)


@public_function("random")
def truncated_normal(
    mean: Any = 0.0, std: Any = 1.0, low: Any = -2.0, high: Any = 2.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return draws from a normal distribution truncated to [low, high]."""
    draw = DrawArguments("truncated_normal", (mean, std, low, high), size, key, generator, dtype)
    mean, std, low, high = draw.broadcast_params("float64")
    a, b = (low - mean) / std, (high - mean) / std
    right = a > 0  # the cdf is more accurate in the left tail
    first, last = ndtr(where(right, -b, a)), ndtr(where(right, -a, b))
    z = ndtri(first + (last - first) * cast(draw.unit_uniform(), "float64"))
    x = mean + std * where(right, -z, z)
    return clamp(cast(x, draw.dtype), cast(low, draw.dtype), cast(high, draw.dtype))


@public_function("random")
def gamma(
    concentration: Any, rate: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return draws with density proportional to x^(concentration - 1) e^(-rate x)."""
    draw = DrawArguments("gamma", (concentration, rate), size, key, generator, dtype)
    a, rate = draw.broadcast_params()
    tiny = float(np.finfo(draw.dtype).tiny)
    return clamp(exp(rejection.log_gamma(draw.key, a)) / rate, min=tiny)


@public_function("random")
def beta(
    a: Any, b: Any, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return draws with density proportional to x^(a - 1) (1 - x)^(b - 1)."""
    draw = DrawArguments("beta", (a, b), size, key, generator, dtype)
    first, second = split(draw.key)
    a, b = draw.broadcast_params()
    return sigmoid(rejection.log_gamma(first, a) - rejection.log_gamma(second, b))


@public_function("random")
def dirichlet(
    concentration: Any, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return draws from a Dirichlet distribution over the last axis, which `size` excludes."""
    concentration = as_tensor(concentration)
    whole = None if size is None else (*checked_size("dirichlet", (size,)), concentration.shape[-1])
    draw = DrawArguments("dirichlet", (concentration,), whole, key, generator, dtype)
    return softmax(rejection.log_gamma(draw.key, draw.broadcast_params()[0]), -1)


@public_function("lucid", "random")
def poisson(
    input: Any, size: Any = None, *, key: Any = None, generator: Any = None, dtype: Any = None
) -> Any:
    """Return draws from a Poisson distribution with rate `input`."""
    draw = DrawArguments("poisson", (input,), size, key, generator, dtype)
    return cast(
        rejection.poisson(draw.key, draw.broadcast_params("float64")[0].detach()), draw.dtype
    )


@public_function("lucid", "random")
def binomial(
    count: Any, prob: Any, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return draws of the number of successes in `count` trials of probability `prob`."""
    draw = DrawArguments("binomial", (count, prob), size, key, generator, dtype)
    n, chance = [x.detach() for x in draw.broadcast_params("float64")]
    return cast(rejection.binomial(draw.key, n, chance), draw.dtype)


@public_function("random")
def geometric(
    p: Any, size: Any = None, *, key: Any = None, generator: Any = None, dtype: Any = None
) -> Any:
    """Return draws of the number of failures before the first success of probability `p`."""
    draw = DrawArguments("geometric", (p,), size, key, generator, dtype)
    return floor(log(draw.unit_uniform()) / log1p(-draw.params[0].detach()))


@public_function("random")
def categorical(logits: Any, size: Any = None, *, key: Any = None, generator: Any = None) -> Any:
    """Return draws of indices along the last axis with probabilities softmax(logits)."""
    logits = as_tensor(logits).detach()
    whole = None if size is None else (*checked_size("categorical", (size,)), logits.shape[-1])
    draw = DrawArguments("categorical", (logits,), whole, key, generator, None)
    noise = -log(clamp(-log(draw.unit_uniform()), min=float(np.finfo(draw.dtype).tiny)))
    return argmax(draw.params[0] + noise, -1)
