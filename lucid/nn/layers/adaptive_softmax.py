"""Losses that contain the projection to logits.

AdaptiveLogSoftmaxWithLoss is for many classes of which few are frequent (Grave and others,
Efficient softmax approximation for GPUs, 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import lucid.nn.functional as F
from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.nn.containers import ModuleList, Sequential
from lucid.nn.functional.arguments import as_integers, concrete_array
from lucid.nn.layers.linear import Linear
from lucid.nn.module import Module
from lucid.ops.core.arguments import accepts_device
from lucid.ops.core.promote import as_tensor
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.lookup import gather, index_add
from lucid.ops.shape.joining import cat
from lucid.public.declare import public
from lucid.tape.node import wrap


class LogProbability(NamedTuple):
    """The log-probability of every target, and the loss: the mean of their negatives."""

    output: Any
    loss: Any


@public("nn")
class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of many classes, in clusters ordered by frequency.

    The head holds the classes below the first cutoff and one element for every further cluster,
    whose classes have a smaller matrix each.

    Targets with known values cost only the clusters they are in; inside `jit` and transforms, where
    they are unknown, every cluster is computed for every example.

    >>> import lucid
    >>> layer = lucid.nn.AdaptiveLogSoftmaxWithLoss(8, 100, cutoffs=[10, 40])
    >>> output, loss = layer(lucid.randn(3, 8), lucid.tensor([2, 50, 99]))
    >>> output.shape, layer.log_prob(lucid.randn(3, 8)).exp().sum(1).round(decimals=4).detach()
    ((3,), Tensor([1., 1., 1.]))
    """

    @accepts_device
    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = list(cutoffs)
        within = all([isinstance(c, int) and 0 < c < n_classes for c in given])
        if not given or not within or given != sorted(set(given)):
            facts = (
                f"cutoffs {given}; they must ascend between 1 and n_classes - 1 = {n_classes - 1}"
            )
            raise ArgumentError(f"AdaptiveLogSoftmaxWithLoss: {facts}")
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs, self.div_value, self.head_bias = [*given, n_classes], div_value, head_bias
        self.shortlist_size, self.n_clusters = given[0], len(given)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, dtype=dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(self.clusters(), 1):
            width = int(in_features // div_value**i)
            inner = Linear(in_features, width, bias=False, dtype=dtype)
            self.tail.append(Sequential(inner, Linear(width, high - low, bias=False, dtype=dtype)))

    def clusters(self) -> list[tuple[int, int]]:
        """Return the first and past-the-last class of every cluster after the head."""
        return list(zip(self.cutoffs[:-1], self.cutoffs[1:]))

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> LogProbability:
        x, target = as_tensor(input_), as_integers("AdaptiveLogSoftmaxWithLoss", target_)
        self.check(x, target)
        if not target.ndim:
            output, loss = self.forward(x.unsqueeze(0), target.unsqueeze(0))
            return LogProbability(output.squeeze(0), loss)
        cluster: Any = sum([(target >= low).long() for low, _ in self.clusters()])
        chosen = where(cluster == 0, target, cluster + (self.shortlist_size - 1))
        output = pick_class(F.log_softmax(self.head(x), 1), chosen)
        known = concrete_array(target)
        for tail, (low, high) in zip(self.tail, self.clusters()):
            if known is None:
                local = pick_class(
                    F.log_softmax(tail(x), 1), (target - low).clamp(0, high - low - 1)
                )
                output = output + where((target >= low) & (target < high), local, 0.0)
                continue
            rows = np.flatnonzero((known >= low) & (known < high))
            if rows.size:
                found = wrap(rows)
                local = pick_class(F.log_softmax(tail(x[found]), 1), target[found] - low)
                output = index_add(output, 0, found, local)
        return LogProbability(output, -output.mean())

    def check(self, x: Any, target: Any) -> None:
        name = type(self).__name__
        if target.ndim > 1 or x.ndim != target.ndim + 1 or x.shape[:-1] != target.shape:
            facts = f"an input of {x.shape} and a target of {target.shape}"
            raise ShapeError(f"{name}: {facts}; they must be (N, features) and (N,)")
        known = concrete_array(target)
        if known is None or not known.size:
            return
        if not 0 <= known.min() <= known.max() < self.n_classes:
            facts = f"targets from {known.min()} to {known.max()}"
            raise IndexingError(f"{name}: {facts}; there are {self.n_classes} classes")

    def log_prob(self, x: Any) -> Any:
        """Return the log-probabilities of all classes, (N, n_classes)."""
        head = F.log_softmax(self.head(x), 1)
        n = self.shortlist_size
        parts = [
            F.log_softmax(tail(x), 1) + head[:, n + i : n + i + 1]
            for i, tail in enumerate(self.tail)
        ]
        return cat([head[:, :n], *parts], 1)

    def predict(self, x: Any) -> Any:
        """Return the most probable class of every example."""
        return self.log_prob(x).argmax(dim=1)


def pick_class(log_probabilities: Any, chosen: Any) -> Any:
    """Return one element of every row."""
    return gather(log_probabilities, 1, chosen.unsqueeze(1)).squeeze(1)


@public("nn")
class LinearCrossEntropyLoss(Module):
    """Cross entropy of the logits computed by an inner linear layer.

    >>> import lucid
    >>> loss = lucid.nn.LinearCrossEntropyLoss(8, 5)
    >>> loss(lucid.randn(3, 8), lucid.tensor([0, 4, 2])).shape
    ()
    """

    @accepts_device
    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__()
        if tuple(out_features):
            facts = (
                f"out_features={out_features!r} is not supported; a target has one class per input"
            )
            raise ArgumentError(f"LinearCrossEntropyLoss: {facts}")
        if weight is not None and tuple(weight.shape) != (num_classes,):
            facts = f"a weight of shape {tuple(weight.shape)} for {num_classes} classes"
            raise ShapeError(f"LinearCrossEntropyLoss: {facts}")
        self.num_classes, self.reduction = num_classes, reduction
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.options = options
        self.register_buffer("weight", weight)
        self.linear = Linear(in_features, num_classes, bias=bias, dtype=dtype)

    def forward(self, input: Any, target: Any) -> Any:
        return F.linear_cross_entropy(
            input, self.linear.weight, target, linear_bias=self.linear.bias, weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip
