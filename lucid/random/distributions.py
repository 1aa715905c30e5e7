"""Draws from distributions by name: `random.gamma(2.0, size=(3,), generator=g)`, or with `key=`.

Parameters are numbers or tensors that broadcast; the shape is `size`, or theirs. Draws from
continuous distributions follow their parameters: gradients pass through them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.types import broadcast_shapes, dtype_of
from lucid.ops.core.arguments import explained
from lucid.ops.core.axes import shape_of
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
from lucid.ops.special.normal import ndtr, ndtri
from lucid.random import next_key, rejection
from lucid.tape.node import Traced

__all__ = [
    "beta", "binomial", "categorical", "cauchy", "dirichlet", "exponential", "gamma", "geometric",
    "gumbel", "laplace", "log_normal", "poisson", "truncated_normal",
]  # fmt: skip


class Draw:
    """What every draw starts from: a key, a shape, a dtype, and parameters of both."""

    def __init__(self, name: str, params: Any, size: Any, key: Any, generator: Any, dtype: Any):
        self.key = next_key(generator) if key is None else as_key(key)
        found = [p.dtype for p in params if isinstance(p, (Traced, np.ndarray))]
        found = [d for d in found if d.kind == "f"]
        self.dtype = dtype_of(dtype) if dtype is not None else (
            np.result_type(*found) if found else get_default_dtype()
        )  # fmt: skip
        if self.dtype.kind != "f":
            raise DTypeError(f"{name}: dtype {self.dtype}; draws are real numbers{at_line()}")
        shapes = broadcast_shapes(*[np.shape(p) for p in params])
        self.shape = shapes if size is None else shape_of(name, (size,))
        if not fits(shapes, self.shape):
            raise ShapeError(
                f"{name}: parameters of shape {shapes} for size {self.shape}{at_line()}"
            )
        self.params = [cast(as_tensor(p), self.dtype) for p in params]

    def spread(self, dtype: Any = None) -> list[Any]:
        """The parameters in the shape of the draw."""
        return [cast(p, dtype or self.dtype).expand(self.shape) for p in self.params]

    def unit(self, key: Any = None) -> Any:
        """Uniform in (0, 1]."""
        return 1 - keyed_uniform(self.key if key is None else key, self.shape, dtype=self.dtype)


def fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another."""
    pairs = zip(reversed(shape), reversed(whole))
    return len(shape) <= len(whole) and all(n in (1, m) for n, m in pairs)


@explained
def exponential(
    rate: Any = 1.0, size: Any = None, *, key: Any = None, generator: Any = None, dtype: Any = None
) -> Any:
    """Draws with density rate e^(-rate x)."""
    draw = Draw("exponential", (rate,), size, key, generator, dtype)
    return -log(draw.unit()) / draw.params[0]


@explained
def laplace(
    loc: Any = 0.0, scale: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Draws with density e^(-|x - loc| / scale) / (2 scale)."""
    draw = Draw("laplace", (loc, scale), size, key, generator, dtype)
    first, second = split(draw.key)
    left = keyed_uniform(first, draw.shape, dtype=draw.dtype) < 0.5
    size_of = -log(draw.unit(second))
    return draw.params[0] + draw.params[1] * where(left, -size_of, size_of)


@explained
def cauchy(
    loc: Any = 0.0, scale: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Draws from Cauchy's distribution: the tangent of a uniform angle."""
    draw = Draw("cauchy", (loc, scale), size, key, generator, dtype)
    return draw.params[0] + draw.params[1] * tan(math.pi * (draw.unit() - 0.5))


@explained
def gumbel(
    loc: Any = 0.0, scale: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Draws of the greatest of many: loc - scale log(-log u)."""
    draw = Draw("gumbel", (loc, scale), size, key, generator, dtype)
    tiny = float(np.finfo(draw.dtype).tiny)
    return draw.params[0] - draw.params[1] * log(clamp(-log(draw.unit()), min=tiny))


@explained
def log_normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Draws whose logarithm is normal with this mean and standard deviation."""
    draw = Draw("log_normal", (mean, std), size, key, generator, dtype)
    noise = keyed_normal(draw.key, draw.shape, dtype=draw.dtype)
    return exp(draw.params[0] + draw.params[1] * noise)


@explained
def truncated_normal(
    mean: Any = 0.0, std: Any = 1.0, low: Any = -2.0, high: Any = 2.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Normal draws that lie between `low` and `high`."""
    draw = Draw("truncated_normal", (mean, std, low, high), size, key, generator, dtype)
    mean, std, low, high = draw.spread("float64")
    a, b = (low - mean) / std, (high - mean) / std
    right = a > 0  # the left half of the line has the finer numbers
    first, last = ndtr(where(right, -b, a)), ndtr(where(right, -a, b))
    z = ndtri(first + (last - first) * cast(draw.unit(), "float64"))
    x = mean + std * where(right, -z, z)
    return clamp(cast(x, draw.dtype), cast(low, draw.dtype), cast(high, draw.dtype))


@explained
def gamma(
    concentration: Any, rate: Any = 1.0, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Draws with density proportional to x^(concentration - 1) e^(-rate x)."""
    draw = Draw("gamma", (concentration, rate), size, key, generator, dtype)
    a, rate = draw.spread()
    tiny = float(np.finfo(draw.dtype).tiny)
    return clamp(exp(rejection.log_gamma(draw.key, a)) / rate, min=tiny)


@explained
def beta(
    a: Any, b: Any, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Draws with density proportional to x^(a - 1) (1 - x)^(b - 1)."""
    draw = Draw("beta", (a, b), size, key, generator, dtype)
    first, second = split(draw.key)
    a, b = draw.spread()
    return sigmoid(rejection.log_gamma(first, a) - rejection.log_gamma(second, b))


@explained
def dirichlet(
    concentration: Any, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Draws of chances that sum to 1 over the last axis; `size` is without that axis."""
    concentration = as_tensor(concentration)
    whole = None if size is None else (*shape_of("dirichlet", (size,)), concentration.shape[-1])
    draw = Draw("dirichlet", (concentration,), whole, key, generator, dtype)
    return softmax(rejection.log_gamma(draw.key, draw.spread()[0]), -1)


@explained
def poisson(
    input: Any, size: Any = None, *, key: Any = None, generator: Any = None, dtype: Any = None
) -> Any:
    """Draws of how often something happens that happens `input` times in the mean."""
    draw = Draw("poisson", (input,), size, key, generator, dtype)
    return cast(rejection.poisson(draw.key, draw.spread("float64")[0].detach()), draw.dtype)


@explained
def binomial(
    count: Any, prob: Any, size: Any = None,
    *, key: Any = None, generator: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Draws of how many of `count` trials succeed, each with probability `prob`."""
    draw = Draw("binomial", (count, prob), size, key, generator, dtype)
    n, chance = [x.detach() for x in draw.spread("float64")]
    return cast(rejection.binomial(draw.key, n, chance), draw.dtype)


@explained
def geometric(
    p: Any, size: Any = None, *, key: Any = None, generator: Any = None, dtype: Any = None
) -> Any:
    """Draws of the failures before the first success, of probability `p`."""
    draw = Draw("geometric", (p,), size, key, generator, dtype)
    return floor(log(draw.unit()) / log1p(-draw.params[0].detach()))


@explained
def categorical(logits: Any, size: Any = None, *, key: Any = None, generator: Any = None) -> Any:
    """Draws of indices along the last axis with probabilities softmax(logits)."""
    logits = as_tensor(logits).detach()
    whole = None if size is None else (*shape_of("categorical", (size,)), logits.shape[-1])
    draw = Draw("categorical", (logits,), whole, key, generator, None)
    noise = -log(clamp(-log(draw.unit()), min=float(np.finfo(draw.dtype).tiny)))
    return argmax(draw.params[0] + noise, -1)
