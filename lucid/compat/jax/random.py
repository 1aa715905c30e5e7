"""jax.random: numbers as pure functions of keys; keys are Lucid's, so the numbers differ."""

from __future__ import annotations

from typing import Any

import numpy as np

import lucid
from lucid import distributions as _distributions
from lucid.ops.random import keyed
from lucid.random import fold_in, key, split

__all__ = ["PRNGKey", "fold_in", "key", "split"]

PRNGKey = key


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard normal numbers."""
    return keyed.normal(key, shape, dtype)


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Uniform numbers in [minval, maxval)."""
    return keyed.uniform(key, shape, minval, maxval, dtype)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """Booleans that are True with probability `p`."""
    return keyed.bernoulli(key, p, shape)


def randint(key: Any, shape: Any, minval: int, maxval: int, dtype: Any = "int64") -> Any:
    """Integers in [minval, maxval)."""
    return keyed.randint(key, shape, minval, maxval, dtype)


def permutation(key: Any, x: Any, axis: int = 0) -> Any:
    """The numbers below `x`, or the rows of an array, in random order."""
    if isinstance(x, (int, np.integer)):
        return keyed.permutation(key, int(x))
    x = lucid.as_tensor(x)
    return lucid.index_select(x, axis, keyed.permutation(key, x.shape[axis]))


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None) -> Any:
    """Elements of `a`, or numbers below it, drawn with probabilities `p`."""
    a = lucid.arange(a) if isinstance(a, (int, np.integer)) else lucid.as_tensor(a)
    size = int(np.prod(shape))
    if not replace:
        scores = gumbel(key, (a.shape[0],)) + (0.0 if p is None else lucid.log(p))
        drawn = lucid.argsort(scores, descending=True)[:size]
    elif p is None:
        drawn = randint(key, (size,), 0, a.shape[0])
    else:
        total = lucid.cumsum(lucid.as_tensor(p), 0)
        drawn = lucid.searchsorted(total, uniform(key, (size,)) * total[-1], right=True)
    return a[drawn].reshape((*(shape if isinstance(shape, tuple) else (shape,)), *a.shape[1:]))


def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard Gumbel numbers."""
    return -lucid.log(-lucid.log(uniform(key, shape, dtype).clamp(min=1e-38)))


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard exponential numbers."""
    return -lucid.log1p(-uniform(key, shape, dtype))


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard Laplace numbers."""
    u = uniform(key, shape, dtype, -1.0, 1.0)
    return -u.sign() * lucid.log1p(-u.abs())


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Indices drawn with log-probabilities `logits` along an axis."""
    logits = lucid.movedim(lucid.as_tensor(logits), axis, -1)
    shape = logits.shape[:-1] if shape is None else tuple(shape)
    noise = gumbel(key, (*shape, logits.shape[-1]))
    return lucid.argmax(noise + logits, dim=-1)


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard normal numbers between `lower` and `upper`."""
    standard = _distributions.Normal(0.0, 1.0)
    low, high = (standard.cdf(lucid.as_tensor(float(x))) for x in (lower, upper))
    return standard.icdf(uniform(key, shape, dtype) * (high - low) + low)
