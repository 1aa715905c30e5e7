"""Compositions of exponentials for complex numbers; only real parts can overflow.

`logaddexp` and `logcumsumexp` continue the angle of the greater operand, as in PyTorch: their
imaginary parts may exceed ±pi. That of `logsumexp` does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ops.core.errstate import quiet


def sigmoid(z: Any) -> Any:
    """1 / (1 + e**-z), by whichever of e**z and e**-z does not overflow."""
    from lucid.ops.elementwise.complexes import real
    from lucid.ops.elementwise.conditional import where
    from lucid.ops.elementwise.exponential import exp

    right = real(z) > 0
    power = exp(where(right, -z, z))
    return where(right, 1.0, power) / (1 + power)


def logaddexp(a: Any, b: Any) -> Any:
    """log(e**a + e**b), with the greater real part factored out."""
    from lucid.ops.elementwise.complexes import real
    from lucid.ops.elementwise.conditional import where
    from lucid.ops.elementwise.exponential import exp, log1p
    from lucid.ops.elementwise.logic import isinf

    swap = real(a) < real(b)
    high, low = where(swap, b, a), where(swap, a, b)
    both_infinite = isinf(real(low)) & (real(low) == real(high))
    return high + log1p(exp(where(both_infinite, 0.0, low - where(both_infinite, 0.0, high))))


def logsumexp(z: Any, axes: tuple[int, ...]) -> Any:
    """log(sum(e**z)) over these axes, with the greatest real part factored out."""
    from lucid.ops.elementwise.complexes import real
    from lucid.ops.elementwise.conditional import where
    from lucid.ops.elementwise.exponential import exp, log
    from lucid.ops.elementwise.logic import isfinite
    from lucid.ops.reduce.extrema import amax
    from lucid.ops.reduce.reduction import sum

    if not z.numel():
        return log(sum(exp(z), axis=axes, keepdims=True))
    top = amax(real(z).detach(), axes, keepdim=True) if axes else real(z).detach()
    top = where(isfinite(top), top, 0.0)
    return log(sum(exp(z - top), axis=axes, keepdims=True)) + top


@quiet
def logcumsumexp(rows: np.ndarray) -> np.ndarray:
    """log(cumsum(e**z)) along axis 0 of an array."""
    out = np.empty_like(rows)
    out[:1] = rows[:1]
    for i in range(1, len(rows)):
        before, own = out[i - 1], rows[i]
        swap = before.real < own.real
        high, low = np.where(swap, own, before), np.where(swap, before, own)
        both_infinite = np.isinf(low.real) & (low.real == high.real)
        gap = np.where(both_infinite, 0, low - np.where(both_infinite, 0, high))
        out[i] = high + np.log1p(np.exp(gap))
    return out
