"""ReduceLROnPlateau: reduce the rate when a metric stops improving."""

from __future__ import annotations

import math
from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.ops.core.constructors import ClearConstructor
from lucid.ops.elementwise.conditional import clamp, maximum
from lucid.optim.lr_scheduler.base import as_scalar, choose, is_saved, per_group, scalar_state
from lucid.optim.optimizer import Optimizer
from lucid.public.declare import public
from lucid.tensors.mutation import assign
from lucid.tensors.tensor import Tensor

COUNTERS = {
    "best": "_best",
    "num_bad_epochs": "_bad_epochs",
    "cooldown_counter": "_cooldown_left",
    "last_epoch": "_count",
}


@public("optim.lr_scheduler")
class ReduceLROnPlateau(ClearConstructor):
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
                "ReduceLROnPlateau: mode must be min or max and threshold_mode rel or abs, not "
                f"{mode!r} and {threshold_mode!r}"
            )
        if factor >= 1:
            raise ArgumentError(f"ReduceLROnPlateau: factor must be below 1, not {factor}")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.min_lrs = per_group("ReduceLROnPlateau", min_lr, optimizer.param_groups)
        self._best = scalar_state(math.inf if mode == "min" else -math.inf)
        self._bad_epochs, self._cooldown_left, self._count = (
            scalar_state(0),
            scalar_state(0),
            scalar_state(0),
        )

    @property
    def best(self) -> float:
        """The best metric so far."""
        return self._best.item()

    @property
    def num_bad_epochs(self) -> int:
        """The number of steps without improvement."""
        return int(self._bad_epochs.item())

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
        """The remaining steps after a reduction in which bad steps are not counted."""
        return int(self._cooldown_left.item())

    @property
    def in_cooldown(self) -> bool:
        """True if a reduction was less than `cooldown` steps ago."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Record a new value of the metric; `epoch` sets the step count."""
        with no_grad():
            measure = as_scalar(metrics).detach().to("float64")
            better = self.is_better(measure)
            resting = self._cooldown_left > 0
            bad = choose(better, 0.0, self._bad_epochs + 1.0)
            bad = choose(resting, 0.0, bad)
            reduce = bad > self.patience
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                old = group.tensor("lr")
                new = maximum(old * self.factor, least)
                group["lr"] = choose(reduce & (old - new > self.eps), new, old)
            assign(self._best, choose(better, measure, self._best), "step")
            assign(self._bad_epochs, choose(reduce, 0.0, bad), "step")
            rest = clamp(self._cooldown_left - 1.0, min=0.0)
            assign(self._cooldown_left, choose(reduce, float(self.cooldown), rest), "step")
            count = self._count + 1.0 if epoch is None else as_scalar(epoch)
            assign(self._count, count, "step")

    def get_last_lr(self) -> list[float]:
        """Return the current rates of all groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return the settings, the best metric and the counters."""
        settings = {name: x for name, x in self.__dict__.items() if is_saved(x)}
        return {
            **{name: x for name, x in settings.items() if not isinstance(x, Tensor)},
            **{name: getattr(self, name) for name in COUNTERS},
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a `state_dict`."""
        for name, value in state_dict.items():
            if name in COUNTERS:
                getattr(self, COUNTERS[name]).fill_(float(value))
            elif name != "optimizer":
                self.__dict__[name] = value
