"""LRScheduler: the learning rate as a function of the number of steps.

Count and rates are tensors and the formulas are tensor operations, so a schedule may be advanced
inside a jitted training step: nothing of it is frozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.ops.elementwise.conditional import where
from lucid.optim.optimizer import Optimizer
from lucid.tape.node import is_recording, wrap
from lucid.tensors.mutation import assign
from lucid.tensors.tensor import Tensor


class LRScheduler:
    """The base of all schedules; a subclass gives `rate`, the next rate of one group.

    One that gives `get_lr` instead, the next rates of all groups as numbers, is called by Python
    at every step, and so outside of jitted functions.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(
                f"{type(self).__name__}: an optimizer is needed, not a "
                f"{type(optimizer).__name__}{at_line()}"
            )
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ArgumentError(
                    f"{type(self).__name__}: group {i} has no initial_lr to go on from at step "
                    f"{last_epoch}{at_line()}"
                )
        self.base_lrs: list[Any] = [group["initial_lr"] for group in optimizer.param_groups]
        self._count = number(last_epoch)
        self.start()

    def start(self) -> None:
        """The first step, from -1 to 0, made when the schedule is built."""
        self.step()

    @property
    def last_epoch(self) -> int:
        """The number of steps so far."""
        return int(self._count.item())

    @last_epoch.setter
    def last_epoch(self, value: int) -> None:
        self._count.fill_(float(value))

    def step(self, epoch: Any = None) -> None:
        """Advance by one (or to `epoch`) and set the rates of all groups."""
        with no_grad():
            count = self._count + 1.0 if epoch is None else as_number(epoch)
            assign(self._count, count, "step")
            if type(self).get_lr is not LRScheduler.get_lr:
                check_outside(type(self).__name__)
                for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                    group["lr"] = float(rate)
                return
            for i, group in enumerate(self.optimizer.param_groups):
                old = group.tensor("lr")
                next_rate = self.rate if epoch is None else self.rate_at
                group["lr"] = next_rate(self._count, old, i)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        """The rate of group `i` at step `t`, where it was `rate` before."""
        raise NotImplementedError

    def rate_at(self, t: Any, rate: Any, i: int) -> Any:
        """The rate of group `i` at step `t`, whatever was before, where it has such a formula."""
        return self.rate(t, rate, i)

    def get_lr(self) -> list[float]:
        """The rates of all groups that follow from the present ones at this step."""
        groups = enumerate(self.optimizer.param_groups)
        return [as_number(self.rate(self._count, g.tensor("lr"), i)).item() for i, g in groups]

    def get_last_lr(self) -> list[float]:
        """The rates of all groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The state and settings, without the optimizer and without functions."""
        kept = {name: x for name, x in self.__dict__.items() if is_state(x) and name != "_count"}
        state = {name: x.item() if isinstance(x, Tensor) else x for name, x in kept.items()}
        return {**state, "last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`."""
        for name, value in state_dict.items():
            mine = self.__dict__.get("_count" if name == "last_epoch" else name)
            if isinstance(mine, Tensor):
                mine.fill_(float(value))
            else:
                self.__dict__[name] = value


def is_state(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return all(is_state(part) for part in x)
    return isinstance(x, (int, float, str, bool, dict, Tensor, type(None)))


def number(value: float) -> Any:
    """A new 0-d tensor that a schedule keeps as state."""
    return wrap(np.array(float(value), np.float64))


def as_number(value: Any) -> Any:
    return value if isinstance(value, Tensor) else number(value)


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """`where`, with numbers in double precision."""
    return where(condition, as_number(yes), as_number(no))


def per_group(what: str, value: Any, groups: Sequence[Any]) -> list[Any]:
    """A value for every group: the same one, or one of a list."""
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ArgumentError(f"{what}: {len(value)} values for {len(groups)} groups{at_line()}")
    return list(value)


def check_outside(what: str) -> None:
    """Refuse a schedule that calls Python with the count inside a jitted function."""
    if is_recording():
        raise ArgumentError(
            f"{what}: a function of Python cannot be called inside a jitted step; call step() "
            f"outside of it, the rate is read anew at every call{at_line()}"
        )
