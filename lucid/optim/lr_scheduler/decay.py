"""Schedulers that multiply the rate by a factor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from lucid.errors import ArgumentError
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.elementwise.rounding import floor
from lucid.optim.lr_scheduler.base import (
    LRScheduler,
    as_scalar,
    check_not_recording,
    choose,
    per_group,
)
from lucid.optim.optimizer import Optimizer
from lucid.public.declare import public


@public("optim.lr_scheduler")
class LambdaLR(LRScheduler):
    """The initial rate times a function of the step count."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = per_group("LambdaLR", lr_lambda, optimizer.param_groups)
        super().__init__(optimizer, last_epoch)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        check_not_recording("LambdaLR")
        return self.base_lrs[i] * self.lr_lambdas[i](self.last_epoch)


@public("optim.lr_scheduler")
class MultiplicativeLR(LRScheduler):
    """Multiply the rate by a function of the step count at every step."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = per_group("MultiplicativeLR", lr_lambda, optimizer.param_groups)
        super().__init__(optimizer, last_epoch)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        check_not_recording("MultiplicativeLR")
        count = self.last_epoch
        return rate * self.lr_lambdas[i](count) if count > 0 else rate


@public("optim.lr_scheduler")
class StepLR(LRScheduler):
    """Multiply the rate by gamma every `step_size` steps.

    >>> import lucid
    >>> w = lucid.ones(2, requires_grad=True)
    >>> optimizer = lucid.optim.SGD([w], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(optimizer.param_groups[0]["lr"])
    ...     schedule.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        return rate * choose((t > 0) & (t % self.step_size == 0), self.gamma, 1.0)

    def rate_at(self, t: Any, rate: Any, i: int) -> Any:
        return self.base_lrs[i] * self.gamma ** floor(t / self.step_size)


@public("optim.lr_scheduler")
class MultiStepLR(LRScheduler):
    """Multiply the rate by gamma at every milestone."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        for milestone, times in Counter(self.milestones).items():
            rate = rate * choose(t == milestone, self.gamma**times, 1.0)
        return rate

    def rate_at(self, t: Any, rate: Any, i: int) -> Any:
        passed = sum(choose(t >= milestone, 1.0, 0.0) for milestone in self.milestones)
        return self.base_lrs[i] * self.gamma ** as_scalar(passed)


@public("optim.lr_scheduler")
class ConstantLR(LRScheduler):
    """Multiply the rate by `factor` for the first `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < factor <= 1:
            raise ArgumentError(f"ConstantLR: factor must be in (0, 1], not {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        rate = rate * choose(t == 0, self.factor, 1.0)
        return rate * choose(t == self.total_iters, 1.0 / self.factor, 1.0)

    def rate_at(self, t: Any, rate: Any, i: int) -> Any:
        return self.base_lrs[i] * choose(t >= self.total_iters, 1.0, self.factor)


@public("optim.lr_scheduler")
class LinearLR(LRScheduler):
    """Multiply the rate by a factor that changes linearly from `start_factor` to `end_factor`."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ArgumentError(
                f"LinearLR: factors must be in (0, 1], not {start_factor} and {end_factor}"
            )
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        slope = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (t - 1) * slope
        later = choose(t > self.total_iters, 1.0, 1.0 + slope / before)
        return rate * choose(t == 0, self.start_factor, later)

    def rate_at(self, t: Any, rate: Any, i: int) -> Any:
        share = clamp(t, max=float(self.total_iters)) / self.total_iters
        slope = self.end_factor - self.start_factor
        return self.base_lrs[i] * (self.start_factor + slope * share)


@public("optim.lr_scheduler")
class ExponentialLR(LRScheduler):
    """Multiply the rate by gamma at every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        return rate * choose(t > 0, self.gamma, 1.0)

    def rate_at(self, t: Any, rate: Any, i: int) -> Any:
        return self.base_lrs[i] * self.gamma**t


@public("optim.lr_scheduler")
class PolynomialLR(LRScheduler):
    """Decay the rate to 0 as (1 - t / total_iters)^power."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        inside = (t > 0) & (t <= self.total_iters)
        now = clamp(1.0 - t / self.total_iters, min=0.0)
        before = choose(inside, 1.0 - (t - 1) / self.total_iters, 1.0)
        return rate * choose(inside, (now / before) ** self.power, 1.0)

    def rate_at(self, t: Any, rate: Any, i: int) -> Any:
        return self.base_lrs[i] * clamp(1.0 - t / self.total_iters, min=0.0) ** self.power
