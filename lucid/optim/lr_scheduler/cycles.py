"""Schedulers that raise and lower the rate, and the momentum inversely."""

from __future__ import annotations

import math
from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.elementwise.exponential import exp
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.trigonometric import cos
from lucid.optim.lr_scheduler.base import LRScheduler, check_not_recording, choose, per_group
from lucid.optim.optimizer import Optimizer
from lucid.public.declare import public


class MomentumCycle(LRScheduler):
    """The base of schedulers that cycle rate and momentum."""

    cycle_momentum: bool

    def momentum_of(self, optimizer: Optimizer) -> str:
        """Return the name of the momentum setting of an optimizer."""
        name = type(self).__name__
        if "betas" in optimizer.defaults:
            return "betas"
        if "momentum" in optimizer.defaults:
            return "momentum"
        raise ArgumentError(
            f"{name}: {type(optimizer).__name__} has no momentum; give cycle_momentum=False"
        )

    def step(self, epoch: Any = None) -> None:
        """Advance by one, and set the rates and momenta of all groups."""
        super().step(epoch)
        if not self.cycle_momentum:
            return
        with no_grad():
            name = self.momentum_of(self.optimizer)
            for i, group in enumerate(self.optimizer.param_groups):
                value = self.momentum(self._count, i)
                rest = group.tensor(name)
                group[name] = (value, *rest[1:]) if name == "betas" else value

    def momentum(self, t: Any, i: int) -> Any:
        raise NotImplementedError


@public("optim.lr_scheduler")
class CyclicLR(MomentumCycle):
    """Cycle the rate between two bounds, with an optionally shrinking amplitude."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Any = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        groups = optimizer.param_groups
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ArgumentError(
                f"CyclicLR: mode must be triangular, triangular2 or exp_range, not {mode!r}"
            )
        self.lows = per_group("CyclicLR", base_lr, groups)
        self.max_lrs = per_group("CyclicLR", max_lr, groups)
        down = step_size_up if step_size_down is None else step_size_down
        if not (step_size_up > 0 and down >= 0):
            facts = f"step_size_up={step_size_up!r}, step_size_down={down!r}"
            raise ArgumentError(f"CyclicLR: {facts}; a cycle has at least one step up")
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self.scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, low in zip(groups, self.lows):
                group["lr"] = float(low)
        self.base_momentums = per_group("CyclicLR", base_momentum, groups)
        self.max_momentums = per_group("CyclicLR", max_momentum, groups)
        if cycle_momentum:
            self.momentum_of(optimizer)
        super().__init__(optimizer, last_epoch)

    def height(self, t: Any) -> tuple[Any, Any]:
        """Return the position in the cycle, from 0 to 1, and the amplitude of this cycle."""
        cycle = floor(1 + t / self.total_size)
        x = 1.0 + t / self.total_size - cycle
        up, down = x / self.step_ratio, (x - 1) / (self.step_ratio - 1)
        height = choose(x <= self.step_ratio, up, down)
        return height, self.amplitude(t, cycle)

    def amplitude(self, t: Any, cycle: Any) -> Any:
        if self.scale_fn is not None:
            check_not_recording("CyclicLR")
            return self.scale_fn((cycle if self.scale_mode == "cycle" else t).item())
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            return 2.0 ** (1 - cycle)
        return exp(t * math.log(self.gamma)) if self.gamma > 0 else 0.0

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        height, amplitude = self.height(t)
        return self.lows[i] + (self.max_lrs[i] - self.lows[i]) * height * amplitude

    def momentum(self, t: Any, i: int) -> Any:
        height, amplitude = self.height(t)
        low, high = self.base_momentums[i], self.max_momentums[i]
        return high - (high - low) * height * amplitude


@public("optim.lr_scheduler")
class OneCycleLR(MomentumCycle):
    """Raise the rate to `max_lr`, then lower it far below its start, over all training steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not 0 <= pct_start <= 1:
            raise ArgumentError(
                "OneCycleLR: total_steps must be positive and pct_start in [0, 1], not "
                f"{total_steps} and {pct_start}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"OneCycleLR: anneal_strategy must be cos or linear, not {anneal_strategy!r}"
            )
        groups = optimizer.param_groups
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        self.cycle_momentum = cycle_momentum
        tops = per_group("OneCycleLR", max_lr, groups)
        starts = [top / div_factor for top in tops]
        ends = [start / final_div_factor for start in starts]
        low, high = (per_group("OneCycleLR", m, groups) for m in (base_momentum, max_momentum))
        first, last = float(pct_start * total_steps) - 1, float(total_steps - 1)
        if three_phase:
            second = float(2 * pct_start * total_steps) - 2
            self.phases = [
                (first, starts, tops, high, low),
                (second, tops, starts, low, high),
                (last, starts, ends, high, high),
            ]
        else:
            self.phases = [(first, starts, tops, high, low), (last, tops, ends, low, high)]
        if cycle_momentum:
            self.momentum_of(optimizer)
        if last_epoch == -1:
            for group, start in zip(groups, starts):
                group["initial_lr"] = start
        super().__init__(optimizer, last_epoch)

    def interpolate(self, t: Any, values: list[tuple[float, float, float]]) -> Any:
        """Return the value at step `t`, from (end of phase, value at start, value at end)."""
        begin, result = 0.0, None
        for end, low, high in values:
            part = clamp((t - begin) / (end - begin), 0.0, 1.0)
            if self.anneal_strategy == "cos":
                value = high + (low - high) / 2.0 * (1 + cos(math.pi * part))
            else:
                value = low + (high - low) * part
            result = value if result is None else choose(t > begin, value, result)
            begin = end
        return result

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        return self.interpolate(t, [(p[0], p[1][i], p[2][i]) for p in self.phases])

    def momentum(self, t: Any, i: int) -> Any:
        return self.interpolate(t, [(p[0], p[3][i], p[4][i]) for p in self.phases])
