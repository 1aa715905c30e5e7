"""Averages of the weights during training: equal weights (SWA), or exponentially decaying (EMA).

(Izmailov and others, Averaging weights leads to wider optima and better generalization, 2018.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import numpy as np

from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.nn.layers.norm import BatchNorm
from lucid.nn.module import Module
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.trigonometric import cos
from lucid.optim.lr_scheduler.base import LRScheduler, as_scalar, choose, per_group
from lucid.optim.optimizer import Optimizer
from lucid.public.declare import public
from lucid.public.lazy import attach
from lucid.tape.node import wrap

Average = Callable[[Any, Any, Any], Any]


def check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ArgumentError(f"get_ema_avg_fn: decay {decay} is not between 0 and 1")


@public("optim.swa_utils")
def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the update decay · average + (1 - decay) · new, for one parameter."""
    check_decay(decay)

    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


@public("optim.swa_utils")
def get_swa_avg_fn() -> Average:
    """Return the update of a running mean, for one parameter."""

    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def multi_tensor(average: Average) -> Average:
    """Return the same update for lists of parameters, in place."""

    def update(averaged: Any, current: Any, num_averaged: Any) -> None:
        with no_grad():
            for old, new in zip(averaged, current, strict=True):
                old.copy_(cast(average(old, new, num_averaged), old.dtype))

    return update


@public("optim.swa_utils")
def get_ema_multi_avg_fn(decay: float = 0.999) -> Average:
    """Return `get_ema_avg_fn` for lists of parameters, in place."""
    return multi_tensor(get_ema_avg_fn(decay))


@public("optim.swa_utils")
def get_swa_multi_avg_fn() -> Average:
    """Return `get_swa_avg_fn` for lists of parameters, in place."""
    return multi_tensor(get_swa_avg_fn())


@public("optim.swa_utils")
class AveragedModel(Module):
    """A copy of a model whose parameters are averages over its updates.

    avg_fn          (average, new, number so far) -> average; the mean by default
    multi_avg_fn    the same for lists of tensors, in place
    use_buffers     average the buffers too, instead of copying the latest

    >>> import lucid
    >>> model = lucid.nn.Linear(1, 1)
    >>> averaged = lucid.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = lucid.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.detach()
    Tensor([[3.]])
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Average | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("AveragedModel: give avg_fn or multi_avg_fn, not both")
        if not isinstance(model, Module):
            raise ArgumentError(
                f"AveragedModel: model must be a Module, not {type(model).__name__}"
            )
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", wrap(np.zeros((), np.int64)))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the current parameters of the model to the average; the first are copied."""
        mine, theirs = list(self.module.parameters()), list(model.parameters())
        buffers = list(self.module.buffers()), list(model.buffers())
        if [p.shape for p in mine] != [p.shape for p in theirs]:
            raise ArgumentError(
                "AveragedModel: update_parameters takes the model that was averaged so far, whose "
                "parameters have the same shapes"
            )
        with no_grad():
            if self.use_buffers:
                mine, theirs = mine + buffers[0], theirs + buffers[1]
            else:
                for old, new in zip(*buffers, strict=True):
                    old.copy_(new.detach())
            olds, news = ([x.detach() for x in xs] for xs in (mine, theirs))
            for p, old, new, mean in zip(
                mine, olds, news, self.compute_averages(olds, news), strict=True
            ):
                p.copy_(where(self.n_averaged == 0, new, cast(mean, old.dtype)))
            self.n_averaged.add_(1)

    def compute_averages(self, olds: list[Any], news: list[Any]) -> list[Any]:
        """Return the new averages."""
        if self.multi_avg_fn is not None:
            means = [x.clone() for x in olds]
            self.multi_avg_fn(means, news, self.n_averaged)
            return means
        average = get_swa_avg_fn() if self.avg_fn is None else self.avg_fn
        return [average(old, new, self.n_averaged) for old, new in zip(olds, news, strict=True)]


@public("optim.swa_utils")
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the statistics of all batch norms in one pass over the data.

    A batch is a tensor, or a list or tuple whose first element is one.
    """
    norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
    momenta, was_training = [norm.momentum for norm in norms], model.training
    if not norms:
        return
    try:
        model.train()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        with no_grad():
            for batch in loader:
                model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    finally:
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
        model.train(was_training)


@public("optim.swa_utils")
class SWALR(LRScheduler):
    """Anneal the rate to `swa_lr` over `anneal_epochs` steps, along a cosine or a line."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            facts = f"anneal_strategy {anneal_strategy!r}; it must be 'cos' or 'linear'"
            raise ArgumentError(f"SWALR: {facts}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            facts = f"anneal_epochs {anneal_epochs!r}; it must be a nonnegative integer"
            raise ArgumentError(f"SWALR: {facts}")
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        groups = getattr(optimizer, "param_groups", ())
        self.swa_lrs = per_group("SWALR", swa_lr, groups)
        for group, rate in zip(groups, self.swa_lrs):
            group["swa_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def progress(self, t: Any) -> Any:
        """Return the fraction of the annealing completed after `t` steps."""
        part = (t / max(1, self.anneal_epochs)).clamp(0.0, 1.0)
        return part if self.anneal_strategy == "linear" else (1 - cos(math.pi * part)) / 2

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        t = t if self.anneal_epochs else t.clamp(min=1.0)
        before, now, goal = self.progress(t - 1), self.progress(t), as_scalar(self.swa_lrs[i])
        is_there = before == 1
        start = (rate - before * goal) / choose(is_there, 1.0, 1 - before)
        return goal * now + choose(is_there, goal, start) * (1 - now)


_, __dir__, __all__ = attach(__name__)
