"""Schedulers made of schedulers: in sequence, or chained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.ops.core.constructors import ClearConstructor
from lucid.optim.lr_scheduler.base import LRScheduler, choose, scalar_state
from lucid.optim.optimizer import Optimizer
from lucid.public.declare import public
from lucid.tensors.mutation import assign
from lucid.tensors.tensor import Tensor


class SchedulerGroup(ClearConstructor):
    """The base of schedulers that hold several schedulers of one optimizer."""

    optimizer: Optimizer

    def __init__(self, name: str, schedulers: Sequence[LRScheduler], optimizer: Any) -> None:
        self._schedulers = list(schedulers)
        if not self._schedulers:
            raise ArgumentError(f"{name}: no scheduler was given")
        self.optimizer = self._schedulers[0].optimizer if optimizer is None else optimizer
        if any(s.optimizer is not self.optimizer for s in self._schedulers):
            raise ArgumentError(f"{name}: the schedulers have different optimizers")

    def get_last_lr(self) -> list[float]:
        """Return the current rates of all groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all schedulers."""
        return {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a `state_dict`."""
        for schedule, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            schedule.load_state_dict(state)


@public("optim.lr_scheduler")
class ChainedScheduler(SchedulerGroup):
    """Apply all schedulers at every step, each to the rate of the previous one."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Any = None) -> None:
        super().__init__("ChainedScheduler", schedulers, optimizer)

    def step(self) -> None:
        """Advance all schedulers by one."""
        for schedule in self._schedulers:
            schedule.step()


@public("optim.lr_scheduler")
class SequentialLR(SchedulerGroup):
    """Run schedulers in sequence, each from its milestone on."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        super().__init__("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(self._schedulers) - 1:
            raise ArgumentError(
                f"SequentialLR: {len(schedulers)} schedulers need {len(schedulers) - 1} "
                f"milestones, not {len(milestones)}"
            )
        self._milestones = list(milestones)
        self._count = scalar_state(last_epoch + 1)
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for schedule in self._schedulers:
            schedule.last_epoch -= 1
        self._schedulers[0].step()

    @property
    def last_epoch(self) -> int:
        """The number of steps so far."""
        return int(self._count.item())

    def step(self) -> None:
        """Advance the active scheduler; at its milestone it starts at 0.

        All are computed, and the state of the active one is kept.
        """
        with no_grad():
            assign(self._count, self._count + 1.0, "step")
            bounds = [0, *self._milestones, None]
            before = self.snapshot()
            kept = before
            for k, schedule in enumerate(self._schedulers):
                self.restore(before)
                low, high = bounds[k], bounds[k + 1]
                if k > 0:
                    starts = self._count == float(low)  # type: ignore[arg-type]
                    assign(schedule._count, choose(starts, -1.0, schedule._count), "step")
                    for group, base in zip(self.optimizer.param_groups, schedule.base_lrs):
                        group["lr"] = choose(starts, base, group.tensor("lr"))
                schedule.step()
                turn = self._count >= float(low)  # type: ignore[arg-type]
                if high is not None:
                    turn = turn & (self._count < float(high))
                after = self.snapshot()
                kept = [choose(turn, new, old) for new, old in zip(after, kept)]
            self.restore(kept)

    def state(self) -> list[Any]:
        """Return every tensor that a step may change."""
        found = [x for s in self._schedulers for x in s.__dict__.values() if isinstance(x, Tensor)]
        for group in self.optimizer.param_groups:
            for name in ("lr", "momentum", "betas"):
                if name in group:
                    value = group.tensor(name)
                    found += list(value) if isinstance(value, tuple) else [value]
        return found

    def snapshot(self) -> list[Any]:
        return [x.detach().clone() for x in self.state()]

    def restore(self, values: list[Any]) -> None:
        for x, value in zip(self.state(), values, strict=True):
            assign(x, value, "step")

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all schedulers, and the step count."""
        return {**super().state_dict(), "last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a `state_dict`."""
        super().load_state_dict(state_dict)
        self._count.fill_(float(state_dict["last_epoch"]))
