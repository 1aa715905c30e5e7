"""Losses of probabilities: binary cross entropy and the Kullback-Leibler divergence."""

from __future__ import annotations

import math
from typing import Any

from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.nn.functional.arguments import (
    choice,
    known_array,
    real,
    reals,
    reduced,
    reduction_of,
    same_shape,
)
from lucid.ops.core.arguments import explained
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, log, log1p
from lucid.ops.higher_order.region import fused_when_hot


@explained
def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-(t log p + (1 - t) log(1 - p)) for probabilities p, with logarithms of at least -100."""
    name = "binary_cross_entropy"
    reduction = reduction_of(name, reduction, size_average, reduce)
    p, t = reals(name, input, target)
    same_shape(name, "input and target", p, t)
    known = known_array(p)
    if known is not None and known.size and not (0 <= known.min() and known.max() <= 1):
        if not (known != known).any():
            facts = f"input from {known.min()} to {known.max()}; probabilities are in [0, 1]"
            raise ArgumentError(f"{name}: {facts}: take the sigmoid first{at_line()}")
    loss = -(t * clamp(log(p), -100.0) + (1 - t) * clamp(log1p(-p), -100.0))
    return reduced(loss if weight is None else loss * real(name, weight), reduction)


@explained
@fused_when_hot
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """`binary_cross_entropy(sigmoid(x), t)`, exact for x of any size.

    `pos_weight` multiplies the part of t; it broadcasts with the target.

    >>> import lucid
    >>> lucid.nn.functional.binary_cross_entropy_with_logits(
    ...     lucid.tensor([-1000.0, 1000.0]), lucid.tensor([1.0, 1.0]), reduction="none")
    Tensor([1000.,    0.])
    """
    name = "binary_cross_entropy_with_logits"
    reduction = reduction_of(name, reduction, size_average, reduce)
    x, t = reals(name, input, target)
    same_shape(name, "input and target", x, t)
    loss = of_logits(x, t, None if pos_weight is None else real(name, pos_weight))
    return reduced(loss if weight is None else loss * real(name, weight), reduction)


def of_logits(x: Any, t: Any, positive: Any = None) -> Any:
    """`positive` t softplus(-x) + (1 - t) softplus(x), with one softplus, of -|x|.

    softplus(-x) is softplus(x) - x: on each side of 0 the small one of the two is computed, so that
    a loss near 0 is exact.
    """
    above = x > 0
    small = log1p(exp(where(above, -x, x)))
    if positive is None:
        return where(above, (1 - t) * x, -t * x) + small
    ones = t * positive
    return where(above, (1 - t) * x, -ones * x) + (1 - t + ones) * small


@explained
@fused_when_hot
def kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """t (log t - x) for log-probabilities x: the divergence of x from t where it is summed.

    A target of 0 (-inf with `log_target`) contributes nothing. `batchmean` is the sum over the
    batch's size, which is the divergence; `mean` divides by the number of all elements.
    """
    name = "kl_div"
    if size_average is None and reduce is None:
        choice(name, reduction, "reduction", ("none", "mean", "sum", "batchmean"))
    else:
        reduction = reduction_of(name, reduction, size_average, reduce)
    x, t = reals(name, input, target)
    never = t == (-math.inf if log_target else 0)
    share = exp(t) if log_target else t
    logarithm = where(never, 0.0, t) if log_target else log(where(never, 1.0, t))
    loss = share * (logarithm - where(never, 0.0, x))
    if reduction == "batchmean":
        return loss.sum() / (x.shape[0] if x.ndim else 1)
    return reduced(loss, reduction)
