"""Losses of classes: the negative log-likelihood and cross entropy, of indices or probabilities.

Classes are axis 1, or axis 0 of a vector. Cross entropy of indices reads the log-softmax at the
target alone, so neither the others nor a one-hot array are ever written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.ir.source import at_line
from lucid.nn.functional.arguments import (
    integers,
    known_array,
    number,
    real,
    reals,
    reduced,
    reduction_of,
    whole,
)
from lucid.nn.functional.linear_maps import linear
from lucid.ops.core.arguments import explained
from lucid.ops.core.kinds import times
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.higher_order.region import fused_when_hot
from lucid.ops.index.gather_scatter import Gather, TakeAlong
from lucid.ops.nn.softmax import LogSoftmaxAt, log_softmax
from lucid.tape.bind import bind


class Targets(NamedTuple):
    """Class indices made ready; all have an axis of size 1 in the place of the classes.

    axis       that of the classes
    indices    the classes; 0 where ignored
    kept       where the target is not to be ignored; None where all count
    weights    the weight of each target, 0 where ignored; None where all are 1
    """

    axis: int
    indices: Any
    kept: Any
    weights: Any

    def reduced(self, loss: Any, reduction: str) -> Any:
        """The loss of every target, 0 for what is ignored; its mean is over the weights."""
        if self.kept is not None:
            loss = where(self.kept, loss, 0.0)
        if reduction == "none":
            return loss.squeeze(self.axis)
        if reduction == "sum" or self.weights is None:
            return reduced(loss, reduction)
        return loss.sum() / self.weights.sum()


def class_axis(name: str, x: Any, target: Any) -> int:
    """The axis of classes, where the target fits the input."""
    axis = 1 if x.ndim > 1 else 0
    if not x.ndim or target.shape != x.shape[:axis] + x.shape[axis + 1 :]:
        facts = f"input of shape {x.shape} and target of shape {target.shape}"
        remedy = "classes are axis 1 of the input (axis 0 of a vector), and the target lacks it"
        raise ShapeError(f"{name}: {facts}; {remedy}{at_line()}")
    return axis


def check_classes(name: str, target: Any, classes: int, ignored: Any = None) -> bool:
    """Refuse targets out of range; True where it is known that none is to be ignored."""
    known = known_array(target)
    if known is None:
        return False
    if not known.size or 0 <= known.min() <= known.max() < classes:
        return ignored is None or not 0 <= ignored < classes
    wrong = known[(known < 0) | (known >= classes)]
    wrong = wrong[wrong != ignored] if ignored is not None else wrong
    if wrong.size:
        facts = f"a target of {wrong[0]}; there are {classes} classes"
        raise IndexingError(f"{name}: {facts}, from 0 to {classes - 1}{at_line()}")
    return False


def targets_of(name: str, x: Any, target: Any, weight: Any, ignore_index: Any) -> Targets:
    axis = class_axis(name, x, target)
    ignored, classes = whole(name, ignore_index, "ignore_index", -(2**63)), x.shape[axis]
    all_count = check_classes(name, target, classes, ignored)
    indices = target.reshape((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    kept = None
    if not all_count:
        kept = indices != ignored
        indices = where(kept, indices, 0)
    weights = None
    if weight is not None:
        weights = bind(Gather((0,)), weight_vector(name, x, weight), indices)
    if kept is not None:
        weights = cast(kept, x.dtype) if weights is None else where(kept, weights, 0.0)
    return Targets(axis, indices, kept, weights)


def weight_vector(name: str, x: Any, weight: Any) -> Any:
    weight = real(name, weight)
    classes = x.shape[1 if x.ndim > 1 else 0]
    if weight.shape != (classes,):
        facts = f"weight of shape {weight.shape} for {classes} classes"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    return weight


@explained
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-x[t] for log-probabilities x and class indices t; the mean is weighted by class.

    >>> import lucid
    >>> lucid.nn.functional.nll_loss(lucid.tensor([[-1.0, -2.0]]), lucid.tensor([1]))
    Tensor(2.)
    """
    name = "nll_loss"
    reduction = reduction_of(name, reduction, size_average, reduce)
    x, t = real(name, input), integers(name, target)
    found = targets_of(name, x, t, weight, ignore_index)
    loss = -bind(TakeAlong(found.axis), x, found.indices)
    return found.reduced(loss if weight is None else loss * found.weights, reduction)


@explained
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """The negative log of softmax(x) at the class t, or its mean under probabilities t.

    Integer targets are classes; those equal to `ignore_index` do not count. Floating targets have
    the shape of the input. `label_smoothing` mixes the target with the uniform distribution.

    >>> import lucid
    >>> lucid.nn.functional.cross_entropy(lucid.tensor([[0.0, 0.0]]), lucid.tensor([1]))
    Tensor(0.6931472)
    """
    name, smooth = "cross_entropy", number("cross_entropy", label_smoothing, "label_smoothing")
    reduction = reduction_of(name, reduction, size_average, reduce)
    if not 0 <= smooth <= 1:
        facts = f"label_smoothing={smooth}; it lies between 0 and 1"
        raise ArgumentError(f"{name}: {facts}{at_line()}")
    x, t = real(name, input), as_tensor(target)
    if t.dtype.kind == "f":
        return of_probabilities(name, x, t, weight, reduction, smooth)
    t = integers(name, t)
    if weight is None and not smooth:
        axis = class_axis(name, x, t)
        ignored = whole(name, ignore_index, "ignore_index", -(2**63))
        if check_classes(name, t, x.shape[axis], ignored):
            return of_all_classes(x, t, axis, reduction)
    found = targets_of(name, x, t, weight, ignore_index)
    loss = -bind(LogSoftmaxAt(found.axis), x, found.indices)
    if weight is not None:
        loss = loss * found.weights
    if smooth:
        loss = (1 - smooth) * loss + smooth * spread_loss(name, x, weight, found.axis)
    return found.reduced(loss, reduction)


@fused_when_hot
def of_all_classes(x: Any, target: Any, axis: int, reduction: str) -> Any:
    """The cross entropy where every target counts, and as much as the others."""
    indices = target.reshape((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    loss = -bind(LogSoftmaxAt(axis), x, indices)
    return Targets(axis, indices, None, None).reduced(loss, reduction)


@explained
def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: Any = None,
    label_smoothing: float = 0.0,
) -> Any:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target, ...)`."""
    scores = linear(input, linear_weight, linear_bias)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        scores,
        target,
        weight,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def spread_loss(name: str, x: Any, weight: Any, axis: int) -> Any:
    """The cross entropy with the uniform distribution, of every target."""
    scores = log_softmax(x, axis)
    if weight is not None:
        vector = weight_vector(name, x, weight)
        scores = scores * vector.reshape(-1, *[1] * (x.ndim - axis - 1))
    return -scores.mean(axis, keepdim=True)


def of_probabilities(name: str, x: Any, t: Any, weight: Any, reduction: str, smooth: float) -> Any:
    """-sum(t w log_softmax(x)) over classes; the mean is over the targets, whatever the weights."""
    if t.shape != x.shape or not x.ndim:
        facts = f"input of shape {x.shape} and probabilities of shape {t.shape}"
        remedy = "probabilities have the shape of the input, and numbers of classes are integers"
        raise ShapeError(f"{name}: {facts}; {remedy}: target.long(){at_line()}")
    x, t = reals(name, x, t)
    axis = 1 if x.ndim > 1 else 0
    if smooth:
        t = t * (1 - smooth) + smooth / max(x.shape[axis], 1)
    if weight is not None:
        vector = weight_vector(name, x, weight)
        t = t * vector.reshape(-1, *[1] * (x.ndim - axis - 1))
    return reduced(-times(t, log_softmax(x, axis)).sum(axis=axis), reduction)
