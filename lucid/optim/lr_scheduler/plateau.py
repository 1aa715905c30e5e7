"""ReduceLROnPlateau: the rate falls when a measure no longer improves."""

from __future__ import annotations

import math
from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.ops.elementwise.conditional import clamp, maximum
from lucid.optim.lr_scheduler.base import as_number, choose, is_state, number, per_group
from lucid.optim.optimizer import Optimizer
from lucid.tensors.mutation import assign
from lucid.tensors.tensor import Tensor

COUNTS = {
    "best": "_best",
    "num_bad_epochs": "_bad",
    "cooldown_counter": "_rest",
    "last_epoch": "_count",
}


class ReduceLROnPlateau:
    """Multiply the rate by `factor` after more than `patience` steps without improvement."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                "ReduceLROnPlateau: mode is min or max and threshold_mode rel or abs, not "
                f"{mode!r} and {threshold_mode!r}{at_line()}"
            )
        if factor >= 1:
            raise ArgumentError(f"ReduceLROnPlateau: factor is below 1, not {factor}{at_line()}")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.min_lrs = per_group("ReduceLROnPlateau", min_lr, optimizer.param_groups)
        self._best = number(math.inf if mode == "min" else -math.inf)
        self._bad, self._rest, self._count = number(0), number(0), number(0)

    @property
    def best(self) -> float:
        """The best measure so far."""
        return self._best.item()

    @property
    def num_bad_epochs(self) -> int:
        """The steps without improvement."""
        return int(self._bad.item())

    @property
    def last_epoch(self) -> int:
        """The number of steps so far."""
        return int(self._count.item())

    def is_better(self, measure: Any) -> Any:
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            bound = self._best * (1.0 + sign * self.threshold)
        else:
            bound = self._best + sign * self.threshold
        return measure > bound if self.mode == "max" else measure < bound

    @property
    def cooldown_counter(self) -> int:
        """The steps after a reduction for which nothing is counted yet."""
        return int(self._rest.item())

    @property
    def in_cooldown(self) -> bool:
        """Is a reduction less than `cooldown` steps ago?"""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Look at a new value of the measure; `epoch` sets the count of steps."""
        with no_grad():
            measure = as_number(metrics).detach().to("float64")
            better = self.is_better(measure)
            resting = self._rest > 0
            bad = choose(better, 0.0, self._bad + 1.0)
            bad = choose(resting, 0.0, bad)
            reduce = bad > self.patience
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                old = group.tensor("lr")
                new = maximum(old * self.factor, least)
                group["lr"] = choose(reduce & (old - new > self.eps), new, old)
            assign(self._best, choose(better, measure, self._best), "step")
            assign(self._bad, choose(reduce, 0.0, bad), "step")
            rest = clamp(self._rest - 1.0, min=0.0)
            assign(self._rest, choose(reduce, float(self.cooldown), rest), "step")
            count = self._count + 1.0 if epoch is None else as_number(epoch)
            assign(self._count, count, "step")

    def get_last_lr(self) -> list[float]:
        """The rates of all groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The settings, the best measure and the counts."""
        settings = {name: x for name, x in self.__dict__.items() if is_state(x)}
        return {
            **{name: x for name, x in settings.items() if not isinstance(x, Tensor)},
            **{name: getattr(self, name) for name in COUNTS},
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`."""
        for name, value in state_dict.items():
            if name in COUNTS:
                getattr(self, COUNTS[name]).fill_(float(value))
            elif name != "optimizer":
                self.__dict__[name] = value
