"""Cosine schedulers."""

from __future__ import annotations

import math
from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.ops.elementwise.exponential import log
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.trigonometric import cos
from lucid.optim.lr_scheduler.base import LRScheduler, as_scalar, choose, scalar_state
from lucid.optim.optimizer import Optimizer
from lucid.public.declare import public
from lucid.tensors.mutation import assign


@public("optim.lr_scheduler")
class CosineAnnealingLR(LRScheduler):
    """Anneal the rate from its initial value to `eta_min` over half a cosine of `T_max` steps."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_max <= 0:
            raise ArgumentError(f"CosineAnnealingLR: T_max must be positive, not {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        half = math.pi / self.T_max
        at_bottom = (t - 1 - self.T_max) % (2 * self.T_max) == 0
        up = rate + (self.base_lrs[i] - self.eta_min) * (1 - math.cos(half)) / 2
        before = choose(at_bottom, 1.0, 1 + cos(half * (t - 1)))
        down = (1 + cos(half * t)) / before * (rate - self.eta_min) + self.eta_min
        return choose(t == 0, rate, choose(at_bottom, up, down))

    def rate_at(self, t: Any, rate: Any, i: int) -> Any:
        height = (1 + cos(math.pi / self.T_max * t)) / 2
        return self.eta_min + (self.base_lrs[i] - self.eta_min) * height


@public("optim.lr_scheduler")
class CosineAnnealingWarmRestarts(LRScheduler):
    """Repeat half a cosine, each `T_mult` times as long as the previous one."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int) or T_mult < 1 or not isinstance(T_mult, int):
            raise ArgumentError(
                f"CosineAnnealingWarmRestarts: T_0 and T_mult must be positive integers, not {T_0} "
                f"and {T_mult}"
            )
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self._length, self._since = scalar_state(T_0), scalar_state(last_epoch)
        super().__init__(optimizer, last_epoch)

    @property
    def T_i(self) -> int:
        """The length of the current cosine."""
        return int(self._length.item())

    @property
    def T_cur(self) -> float:
        """The steps since the last restart."""
        return self._since.item()

    def step(self, epoch: Any = None) -> None:
        """Advance by one, or to `epoch`, which may be a fraction: `epoch + i / batches`."""
        with no_grad():
            if epoch is None:
                since = self._since + 1.0
                over = since >= self._length
                since = choose(over, since - self._length, since)
                length = choose(over, self._length * self.T_mult, self._length)
                count = self._count + 1.0
            else:
                count = as_scalar(epoch)
                since, length = self.restart_position(count)
            assign(self._since, since, "step")
            assign(self._length, length, "step")
            super().step(floor(count))

    def restart_position(self, t: Any) -> tuple[Any, Any]:
        """Return the steps since the last restart before `t`, and the length of its cosine."""
        if self.T_mult == 1:
            return choose(t >= self.T_0, t % self.T_0, t), scalar_state(self.T_0)
        ratio = t / self.T_0 * (self.T_mult - 1) + 1
        restarts = floor(log(ratio) / math.log(self.T_mult) + 1e-12)
        power = scalar_state(self.T_mult) ** restarts
        return t - self.T_0 * (power - 1) / (self.T_mult - 1), self.T_0 * power

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        height = (1 + cos(math.pi * self._since / self._length)) / 2
        return self.eta_min + (self.base_lrs[i] - self.eta_min) * height
