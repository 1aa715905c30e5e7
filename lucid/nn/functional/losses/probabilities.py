"""Losses of probabilities: binary cross entropy and the Kullback-Leibler divergence."""

from __future__ import annotations

import math
from typing import Any

from lucid.errors import ArgumentError
from lucid.nn.functional.arguments import (
    as_real,
    as_reals,
    check_choice,
    check_same_shape,
    concrete_array,
    reduce_loss,
    resolve_reduction,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import exp, log, log1p
from lucid.ops.higher_order.region import compile_when_hot


@public_function("nn.functional")
def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-(t log p + (1 - t) log(1 - p)) for probabilities p, with logs clamped to at least -100."""
    name = "binary_cross_entropy"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    p, t = as_reals(name, input, target)
    check_same_shape(name, "input and target", p, t)
    known = concrete_array(p)
    if known is not None and known.size and not (0 <= known.min() and known.max() <= 1):
        if not (known != known).any():
            facts = f"input from {known.min()} to {known.max()}; probabilities must be in [0, 1]"
            raise ArgumentError(f"{name}: {facts}; apply sigmoid first")
    loss = -(t * clamp(log(p), -100.0) + (1 - t) * clamp(log1p(-p), -100.0))
    return reduce_loss(loss if weight is None else loss * as_real(name, weight), reduction)


@public_function("nn.functional")
@compile_when_hot
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """`binary_cross_entropy(sigmoid(x), t)`, accurate for x of any size.

    `pos_weight` multiplies the term of t; it broadcasts with the target.

    >>> import lucid
    >>> lucid.nn.functional.binary_cross_entropy_with_logits(
    ...     lucid.tensor([-1000.0, 1000.0]), lucid.tensor([1.0, 1.0]), reduction="none")
    Tensor([1000.,    0.])
    """
    name = "binary_cross_entropy_with_logits"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, t = as_reals(name, input, target)
    check_same_shape(name, "input and target", x, t)
    loss = bce_with_logits(x, t, None if pos_weight is None else as_real(name, pos_weight))
    return reduce_loss(loss if weight is None else loss * as_real(name, weight), reduction)


def bce_with_logits(x: Any, t: Any, positive: Any = None) -> Any:
    """Return `positive` t softplus(-x) + (1 - t) softplus(x), computed with one softplus, of -|x|.

    softplus(-x) is softplus(x) - x: on each side of 0 the smaller of the two is computed, so a loss
    near 0 is exact.
    """
    above = x > 0
    small = log1p(exp(where(above, -x, x)))
    if positive is None:
        return where(above, (1 - t) * x, -t * x) + small
    ones = t * positive
    return where(above, (1 - t) * x, -ones * x) + (1 - t + ones) * small


@public_function("nn.functional")
@compile_when_hot
def kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """t (log t - x) for log-probabilities x; its sum is the divergence of x from t.

    A target of 0 (-inf with `log_target`) contributes nothing. `batchmean` divides the sum by the
    batch size, which gives the divergence; `mean` divides by the number of elements.
    """
    name = "kl_div"
    if size_average is None and reduce is None:
        check_choice(name, reduction, "reduction", ("none", "mean", "sum", "batchmean"))
    else:
        reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, t = as_reals(name, input, target)
    never = t == (-math.inf if log_target else 0)
    share = exp(t) if log_target else t
    logarithm = where(never, 0.0, t) if log_target else log(where(never, 1.0, t))
    loss = share * (logarithm - where(never, 0.0, x))
    if reduction == "batchmean":
        return loss.sum() / (x.shape[0] if x.ndim else 1)
    return reduce_loss(loss, reduction)
