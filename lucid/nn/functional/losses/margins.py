"""Margin losses: the correct answer must lead the wrong ones by a margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid.errors import ArgumentError, ShapeError
from lucid.nn.functional.arguments import (
    as_integers,
    as_real,
    as_reals,
    check_number,
    check_same_shape,
    concrete_array,
    reduce_loss,
    resolve_reduction,
)
from lucid.nn.functional.distances import pairwise_distance
from lucid.nn.functional.losses.classes import check_classes
from lucid.nn.functional.losses.probabilities import bce_with_logits
from lucid.ops.core.arguments import number, public_function
from lucid.ops.core.promote import as_tensor, cast, promote_tensors
from lucid.ops.elementwise.conditional import clamp, minimum, where
from lucid.ops.elementwise.exponential import logaddexp, rsqrt
from lucid.ops.index.gather_scatter import Gather, TakeAlong
from lucid.ops.reduce.cumulative import cumsum
from lucid.ops.shape.creation import arange
from lucid.public.declare import public
from lucid.tape.bind import bind


@public_function("nn.functional")
def soft_margin_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """log(1 + exp(-t x)) for targets 1 and -1, without overflow."""
    name = "soft_margin_loss"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, t = as_reals(name, input, target)
    return reduce_loss(logaddexp(-t * x, 0.0), reduction)


@public_function("nn.functional")
def hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    name = "hinge_embedding_loss"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, t = as_real(name, input), as_tensor(target)
    far = clamp(check_number(name, margin, "margin") - x, 0.0)
    return reduce_loss(where(t != 1, far, 0.0) + where(t != -1, x, 0.0), reduction)


@public_function("nn.functional")
def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """max(0, margin - t (x1 - x2)): t is 1 if x1 should rank higher, -1 if x2 should."""
    name = "margin_ranking_loss"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, y, t = as_reals(name, input1, input2, target)
    return reduce_loss(clamp(check_number(name, margin, "margin") - t * (x - y), 0.0), reduction)


@public_function("nn.functional")
def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The mean over all other classes i of max(0, margin - x[t] + x[i])**p."""
    name = "multi_margin_loss"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    p = number(name, "p", p)
    if p not in (1, 2):
        raise ArgumentError(f"{name}: p={p}; it must be 1 or 2")
    x, t = as_real(name, input), as_integers(name, target)
    if x.ndim == 0:  # one class
        x = x.reshape(1)
    if x.ndim not in (1, 2) or (t.shape != x.shape[:-1] and t.shape != (1,)):
        facts = f"input of shape {x.shape} and target of shape {t.shape}"
        raise ShapeError(f"{name}: {facts}; there must be one target per row")
    classes, shape = x.shape[-1], t.shape
    check_classes(name, t, classes)
    t = t.reshape(*x.shape[:-1], 1)
    short = clamp(check_number(name, margin, "margin") - bind(TakeAlong(x.ndim - 1), x, t) + x, 0.0)
    short = short if p == 1 else short * short
    if weight is not None:
        short = short * bind(Gather((0,)), class_weight(name, weight, classes), t)
    loss = where(arange(classes) == t, 0.0, short).sum(axis=-1) / classes
    return reduce_loss(loss.reshape(shape), reduction)


def class_weight(name: str, weight: Any, classes: int) -> Any:
    """Return the class weights, with their shape checked."""
    weight = as_real(name, weight)
    if weight.shape != (classes,):
        raise ShapeError(f"{name}: weight of shape {weight.shape} for {classes} classes")
    return weight


@public_function("nn.functional")
def multilabel_margin_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """max(0, 1 - x[t] + x[i]) / classes, summed over targets t and non-target classes i.

    The targets of a row are those before its first negative number.
    """
    name = "multilabel_margin_loss"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, t = as_real(name, input), as_integers(name, target)
    check_same_shape(name, "input and target", x, t)
    if x.ndim == 0:  # one class
        x, t = x.reshape(1), t.reshape(1)
    if x.ndim not in (1, 2):
        raise ShapeError(f"{name}: input of shape {x.shape}; it must be a vector or a matrix")
    classes = x.shape[-1]
    known = concrete_array(t)
    if known is not None and known.size and known.max() >= classes:
        raise ArgumentError(f"{name}: target {known.max()} is out of range for {classes} classes")
    is_label = cumsum(cast(t < 0, "int64"), -1) == 0
    labels = where(is_label, t, 0)
    taken = (is_label[..., None] & (labels[..., None] == arange(classes))).any(-2)
    ahead = bind(TakeAlong(x.ndim - 1), x, labels)
    short = clamp(1 - ahead[..., :, None] + x[..., None, :], 0.0)
    counts = is_label[..., :, None] & ~taken[..., None, :]
    return reduce_loss(where(counts, short, 0.0).sum(axis=(-2, -1)) / max(classes, 1), reduction)


@public_function("nn.functional")
def multilabel_soft_margin_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The binary cross entropy of logits, averaged over classes (the last axis)."""
    name = "multilabel_soft_margin_loss"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, t = as_reals(name, input, target)
    loss = bce_with_logits(x, t)
    if weight is not None:
        loss = loss * as_real(name, weight)
    return reduce_loss(loss.mean(-1) if loss.ndim else loss, reduction)


@public_function("nn.functional")
def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1."""
    name = "cosine_embedding_loss"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, y = as_reals(name, input1, input2)
    t = as_tensor(target)
    if x.ndim not in (1, 2) or y.ndim != x.ndim or t.ndim != x.ndim - 1:
        facts = f"inputs of shapes {x.shape} and {y.shape} and target of shape {t.shape}"
        raise ShapeError(f"{name}: {facts}; they must be vectors and a number, or rows of these")
    tiny = 1e-12
    sizes = ((x * x).sum(axis=-1) + tiny) * ((y * y).sum(axis=-1) + tiny)
    cosine = (x * y).sum(axis=-1) * rsqrt(sizes)
    apart = clamp(cosine - check_number(name, margin, "margin"), 0.0)
    return reduce_loss(where(t == 1, 1 - cosine, where(t == -1, apart, 0.0)), reduction)


@public_function("nn.functional")
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """max(0, margin + |a - p| - |a - n|), for p-norms along the last axis.

    `swap` replaces |a - n| by |p - n| where that is smaller.
    """
    name = "triplet_margin_loss"
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    if not check_number(name, margin, "margin") > 0:
        raise ArgumentError(f"{name}: margin={margin}; it must be positive")
    a, b, c = promote_tensors(anchor, positive, negative, floating=True)

    def distance(x: Any, y: Any) -> Any:
        return pairwise_distance(x, y, p, eps)

    return triplet(name, a, b, c, distance, margin, swap, reduction)


@public("nn.functional")
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """`triplet_margin_loss` with a user-defined distance."""
    name = "triplet_margin_with_distance_loss"
    reduction = resolve_reduction(name, reduction)
    if not check_number(name, margin, "margin") > 0:
        raise ArgumentError(f"{name}: margin={margin}; it must be positive")
    a, b, c = promote_tensors(anchor, positive, negative, floating=True)
    if distance_function is not None and not callable(distance_function):
        raise ArgumentError(f"{name}: distance_function={distance_function!r}")
    distance = pairwise_distance if distance_function is None else distance_function
    return triplet(name, a, b, c, distance, margin, swap, reduction)


def triplet(
    name: str,
    a: Any,
    b: Any,
    c: Any,
    distance: Callable[[Any, Any], Any],
    margin: float,
    swap: Any,
    reduction: str,
) -> Any:
    """Return max(0, margin + distance(a, b) - distance(a, c)), reduced."""
    if not a.ndim == b.ndim == c.ndim:
        facts = f"anchor {a.shape}, positive {b.shape} and negative {c.shape}"
        raise ShapeError(f"{name}: {facts}: as many axes")
    near, far = distance(a, b), distance(a, c)
    if swap:
        far = minimum(far, distance(b, c))
    return reduce_loss(clamp(margin + near - far, 0.0), reduction)
