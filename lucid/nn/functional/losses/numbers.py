"""Regression losses: how far predictions are from targets."""

from __future__ import annotations

import math
from typing import Any

from lucid.errors import ArgumentError, ShapeError
from lucid.nn.functional.arguments import (
    as_real,
    as_reals,
    check_number,
    check_same_shape,
    concrete_array,
    reduce_loss,
    resolve_reduction,
    warn_if_broadcast,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.core.float16 import in_float32
from lucid.ops.core.promote import promote_tensors
from lucid.ops.elementwise.arithmetic import abs
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import exp, log
from lucid.ops.higher_order.region import compile_when_hot


def reduce_weighted(name: str, loss: Any, weight: Any, reduction: str) -> Any:
    """Reduce a loss; with a weight the mean is weighted."""
    if weight is None:
        return reduce_loss(loss, reduction)
    weight = as_real(name, weight)
    check_same_shape(name, "input and weight", loss, weight)
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduce_loss(loss, reduction)


@public_function("nn.functional")
@in_float32
@compile_when_hot
def mse_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """(x - t)², reduced.

    >>> import lucid
    >>> lucid.nn.functional.mse_loss(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 2.0]))
    Tensor(2.)
    """
    reduction = resolve_reduction("mse_loss", reduction, size_average, reduce)
    x, t = as_reals("mse_loss", input, target)
    gap = x - t
    warn_if_broadcast("mse_loss", x, t)
    return reduce_weighted("mse_loss", gap * gap, weight, reduction)


@public_function("nn.functional")
@compile_when_hot
def l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """|x - t|, reduced; the derivative is 0 where they are equal."""
    reduction = resolve_reduction("l1_loss", reduction, size_average, reduce)
    x, t = promote_tensors(input, target, floating=True)
    gap = x - t
    warn_if_broadcast("l1_loss", x, t)
    return reduce_weighted("l1_loss", abs(gap), weight, reduction)


@public_function("nn.functional")
@compile_when_hot
def smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """d² / (2 beta) where d = |x - t| is below beta, d - beta/2 elsewhere."""
    name, beta = "smooth_l1_loss", check_number("smooth_l1_loss", beta, "beta")
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    if not beta >= 0:
        raise ArgumentError(f"{name}: beta={beta}; it must not be negative")
    x, t = as_reals(name, input, target)
    gap = x - t
    warn_if_broadcast(name, x, t)
    size = abs(gap)
    if beta == 0:
        return reduce_loss(size, reduction)
    return reduce_loss(where(size < beta, gap * gap * (0.5 / beta), size - 0.5 * beta), reduction)


@public_function("nn.functional")
@compile_when_hot
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """d²/2 where d = |x - t| is at most delta, delta (d - delta/2) elsewhere.

    The mean is over all elements even with a weight, as in PyTorch.
    """
    name, delta = "huber_loss", check_number("huber_loss", delta, "delta")
    reduction = resolve_reduction(name, reduction)
    if not delta > 0:
        raise ArgumentError(f"{name}: delta={delta}; it must be positive")
    x, t = as_reals(name, input, target)
    gap = x - t
    warn_if_broadcast(name, x, t)
    size = abs(gap)
    loss = where(size <= delta, 0.5 * (gap * gap), delta * (size - 0.5 * delta))
    if weight is not None:
        weight = as_real(name, weight)
        check_same_shape(name, "input and weight", loss, weight)
        loss = loss * weight
    return reduce_loss(loss, reduction)


@public_function("nn.functional")
def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The negative log-likelihood of counts: eˣ - t x, or x - t log(x + eps) if not `log_input`.

    `full` adds Stirling's approximation of log(t!) where t is above 1.
    """
    name = "poisson_nll_loss"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, t = as_reals(name, input, target)
    loss = exp(x) - t * x if log_input else x - t * log(x + check_number(name, eps, "eps"))
    if full:
        many = where(t > 1, t, 1.0)
        stirling = many * log(many) - many + 0.5 * log(2 * math.pi * many)
        loss = loss + where(t > 1, stirling, 0.0)
    return reduce_loss(loss, reduction)


@public_function("nn.functional")
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """(log v + (x - t)² / v) / 2 with variance v = max(var, eps); `full` adds log(2π) / 2.

    `var` has the shape of the input, a last axis of size 1, or no last axis. Its gradient is that
    of v, even below eps.
    """
    name, eps = "gaussian_nll_loss", check_number("gaussian_nll_loss", eps, "eps")
    reduction = resolve_reduction(name, reduction)
    x, t = as_reals(name, input, target)
    var = check_variance(name, x, var)
    v = where(var < eps, eps + (var - var.detach()), var)
    gap = x - t
    loss = 0.5 * (log(v) + gap * gap / v)
    return reduce_loss(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def check_variance(name: str, x: Any, var: Any) -> Any:
    """Return the variance in a shape that broadcasts with `x`."""
    x, var = as_reals(name, x, var)
    known = concrete_array(var)
    if known is not None and (known < 0).any():
        raise ArgumentError(f"{name}: var has negative elements")
    if not var.ndim or var.shape in (x.shape, (*x.shape[:-1], 1)):
        return var
    if var.shape == x.shape[:-1]:
        return var[..., None]
    if var.ndim <= x.ndim and all(n in (1, m) for n, m in zip(var.shape[::-1], x.shape[::-1])):
        return var
    facts = f"var of shape {var.shape} for input of shape {x.shape}"
    raise ShapeError(f"{name}: {facts}; it must have that shape, or 1 in the last axis")
