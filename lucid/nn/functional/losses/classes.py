"""Classification losses: negative log-likelihood and cross entropy.

Classes are axis 1, or axis 0 of a vector. Cross entropy of class indices reads the log-softmax at
the target only, so neither the full log-softmax nor a one-hot array is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.nn.functional.arguments import (
    as_integers,
    as_real,
    as_reals,
    check_integer,
    check_number,
    concrete_array,
    reduce_loss,
    resolve_reduction,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.core.kinds import times
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.higher_order.expected_call import expect_calls
from lucid.ops.higher_order.region import compile_when_hot
from lucid.ops.index.gather_scatter import Gather, TakeAlong
from lucid.ops.nn.softmax import LogSoftmaxAt, log_softmax
from lucid.tape.bind import bind


class Targets(NamedTuple):
    """Prepared class indices; every field has an axis of size 1 in place of the classes.

    axis       the axis of the classes
    indices    the classes; 0 where ignored
    kept       True where the target is not ignored; None if no target is ignored
    weights    the weight of each target, 0 where ignored; None if all are 1
    """

    axis: int
    indices: Any
    kept: Any
    weights: Any

    def reduce(self, loss: Any, reduction: str) -> Any:
        """Return the loss per target, 0 where ignored, its sum or its weighted mean."""
        if self.kept is not None:
            loss = where(self.kept, loss, 0.0)
        if reduction == "none":
            return loss.squeeze(self.axis)
        if reduction == "sum" or self.weights is None:
            return reduce_loss(loss, reduction)
        return loss.sum() / self.weights.sum()


def class_axis(name: str, x: Any, target: Any) -> int:
    """Return the axis of classes; raise ShapeError if the target does not fit the input."""
    axis = 1 if x.ndim > 1 else 0
    if not x.ndim or target.shape != x.shape[:axis] + x.shape[axis + 1 :]:
        facts = f"input of shape {x.shape} and target of shape {target.shape}"
        remedy = (
            "classes are axis 1 of the input (axis 0 of a vector), and the target has no such axis"
        )
        raise ShapeError(f"{name}: {facts}; {remedy}")
    return axis


def check_classes(name: str, target: Any, classes: int, ignored: Any = None) -> bool:
    """Raise IndexingError for targets out of range; True if certainly none is ignored."""
    known = concrete_array(target)
    if known is None:
        return False
    if not known.size or 0 <= known.min() <= known.max() < classes:
        return ignored is None or not 0 <= ignored < classes
    wrong = known[(known < 0) | (known >= classes)]
    wrong = wrong[wrong != ignored] if ignored is not None else wrong
    if wrong.size:
        raise IndexingError(f"{name}: target {wrong[0]} is out of range for {classes} classes")
    return False


def make_targets(name: str, x: Any, target: Any, weight: Any, ignore_index: Any) -> Targets:
    """Return the prepared targets, with ignored ones masked."""
    axis = class_axis(name, x, target)
    ignored, classes = check_integer(name, ignore_index, "ignore_index", -(2**63)), x.shape[axis]
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
    """Return the class weights, with their shape checked."""
    weight = as_real(name, weight)
    classes = x.shape[1 if x.ndim > 1 else 0]
    if weight.shape != (classes,):
        raise ShapeError(f"{name}: weight of shape {weight.shape} for {classes} classes")
    return weight


@public_function("nn.functional")
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
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    x, t = as_real(name, input), as_integers(name, target)
    found = make_targets(name, x, t, weight, ignore_index)
    loss = -bind(TakeAlong(found.axis), x, found.indices)
    return found.reduce(loss if weight is None else loss * found.weights, reduction)


def are_in_range(x: Any, target: Any = None, *others: Any) -> bool:
    """True if all targets are probabilities, or known classes in range."""
    known = None if others else getattr(target, "raw", None)
    if known is not None and known.dtype.kind == "f":
        return True
    if known.__class__ is not np.ndarray or not known.size or known.dtype.kind != "i":
        return False
    known = known.view(f"u{known.itemsize}")  # what is negative is large
    return bool(np.maximum.reduce(known, None) < x.shape[1 if x.ndim > 1 else 0])


@public_function("nn.functional")
@expect_calls(in_range=are_in_range)
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
    """Return -log softmax(x) at the class t, or its expectation under probabilities t.

    Integer targets are classes; those equal to `ignore_index` are ignored. Floating targets are
    probabilities in the shape of the input. `label_smoothing` mixes the target with the uniform
    distribution.

    >>> import lucid
    >>> lucid.nn.functional.cross_entropy(lucid.tensor([[0.0, 0.0]]), lucid.tensor([1]))
    Tensor(0.6931472)
    """
    name, smooth = (
        "cross_entropy",
        check_number("cross_entropy", label_smoothing, "label_smoothing"),
    )
    reduction = resolve_reduction(name, reduction, size_average, reduce)
    if not 0 <= smooth <= 1:
        raise ArgumentError(f"{name}: label_smoothing={smooth}; it must be between 0 and 1")
    x, t = as_real(name, input), as_tensor(target)
    if t.dtype.kind == "f":
        return soft_cross_entropy(name, x, t, weight, reduction, smooth)
    t = as_integers(name, t)
    if weight is None and not smooth:
        axis = class_axis(name, x, t)
        ignored = check_integer(name, ignore_index, "ignore_index", -(2**63))
        if check_classes(name, t, x.shape[axis], ignored):
            return unweighted_cross_entropy(x, t, axis, reduction)
    found = make_targets(name, x, t, weight, ignore_index)
    loss = -bind(LogSoftmaxAt(found.axis), x, found.indices)
    if weight is not None:
        loss = loss * found.weights
    if smooth:
        loss = (1 - smooth) * loss + smooth * uniform_cross_entropy(name, x, weight, found.axis)
    return found.reduce(loss, reduction)


@compile_when_hot
def unweighted_cross_entropy(x: Any, target: Any, axis: int, reduction: str) -> Any:
    """Return the cross entropy with neither weights nor ignored targets."""
    indices = target.reshape((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    loss = -bind(LogSoftmaxAt(axis), x, indices)
    return Targets(axis, indices, None, None).reduce(loss, reduction)


def uniform_cross_entropy(name: str, x: Any, weight: Any, axis: int) -> Any:
    """Return the cross entropy with the uniform distribution, per target."""
    scores = log_softmax(x, axis)
    if weight is not None:
        vector = weight_vector(name, x, weight)
        scores = scores * vector.reshape(-1, *[1] * (x.ndim - axis - 1))
    return -scores.mean(axis, keepdim=True)


def soft_cross_entropy(
    name: str, x: Any, t: Any, weight: Any, reduction: str, smooth: float
) -> Any:
    """Return -sum(t w log_softmax(x)) over classes; the mean is over targets, unweighted."""
    if t.shape != x.shape or not x.ndim:
        facts = f"input of shape {x.shape} and probabilities of shape {t.shape}"
        remedy = "probabilities have the shape of the input, and class indices must be integers"
        raise ShapeError(f"{name}: {facts}; {remedy}: target.long()")
    x, t = as_reals(name, x, t)
    if weight is None:
        return expected_cross_entropy(x, t, reduction, smooth)
    return expected_cross_entropy(x, t, reduction, smooth, weight_vector(name, x, weight))


@compile_when_hot
def expected_cross_entropy(
    x: Any, t: Any, reduction: str, smooth: float, weight: Any = None
) -> Any:
    """Return the cross entropy of probabilities t."""
    axis = 1 if x.ndim > 1 else 0
    if smooth:
        t = t * (1 - smooth) + smooth / max(x.shape[axis], 1)
    if weight is not None:
        t = t * weight.reshape(-1, *[1] * (x.ndim - axis - 1))
    return reduce_loss(-times(t, log_softmax(x, axis)).sum(axis=axis), reduction)
