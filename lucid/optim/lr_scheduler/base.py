"""LRScheduler: the learning rate as a function of the step count.

Count and rates are tensors and the formulas are tensor operations, so a scheduler may be advanced
inside a jitted training step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.ops.core.constructors import ClearConstructor
from lucid.ops.elementwise.conditional import where
from lucid.optim.optimizer import Optimizer
from lucid.public.declare import public
from lucid.tape.node import is_recording, wrap
from lucid.tensors.mutation import assign
from lucid.tensors.tensor import Tensor


@public("optim.lr_scheduler")
class LRScheduler(ClearConstructor):
    """The base of all schedulers; a subclass defines `rate`, the next rate of one group.

    A subclass that defines `get_lr` instead, the next rates of all groups as numbers, runs in
    Python at every step, and therefore outside jitted functions.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(
                f"{type(self).__name__}: expected an Optimizer, not {type(optimizer).__name__}"
            )
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ArgumentError(
                    f"{type(self).__name__}: group {i} has no initial_lr to resume from at step "
                    f"{last_epoch}"
                )
        self.base_lrs: list[Any] = [group["initial_lr"] for group in optimizer.param_groups]
        self._count = scalar_state(last_epoch)
        self.start()

    def start(self) -> None:
        """Take the first step, from -1 to 0, on construction."""
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
            count = self._count + 1.0 if epoch is None else as_scalar(epoch)
            assign(self._count, count, "step")
            if type(self).get_lr is not LRScheduler.get_lr:
                check_not_recording(type(self).__name__)
                for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                    group["lr"] = float(rate)
                return
            for i, group in enumerate(self.optimizer.param_groups):
                old = group.tensor("lr")
                next_rate = self.rate if epoch is None else self.rate_at
                group["lr"] = next_rate(self._count, old, i)

    def rate(self, t: Any, rate: Any, i: int) -> Any:
        """Return the rate of group `i` at step `t`, given the previous `rate`."""
        name = type(self).__name__
        raise ArgumentError(f"{name}: a scheduler defines rate or get_lr")

    def rate_at(self, t: Any, rate: Any, i: int) -> Any:
        """Return the rate of group `i` at step `t` in closed form, if there is one."""
        return self.rate(t, rate, i)

    def get_lr(self) -> list[float]:
        """Return the rates of all groups at this step."""
        groups = enumerate(self.optimizer.param_groups)
        return [as_scalar(self.rate(self._count, g.tensor("lr"), i)).item() for i, g in groups]

    def get_last_lr(self) -> list[float]:
        """Return the current rates of all groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return state and settings, without the optimizer and without functions."""
        kept = {name: x for name, x in self.__dict__.items() if is_saved(x) and name != "_count"}
        state = {name: x.item() if isinstance(x, Tensor) else x for name, x in kept.items()}
        return {**state, "last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a `state_dict`."""
        for name, value in state_dict.items():
            mine = self.__dict__.get("_count" if name == "last_epoch" else name)
            if isinstance(mine, Tensor):
                mine.fill_(float(value))
            else:
                self.__dict__[name] = value


def is_saved(x: Any) -> bool:
    """True if a value belongs in a `state_dict`."""
    if isinstance(x, (list, tuple)):
        return all(is_saved(part) for part in x)
    return isinstance(x, (int, float, str, bool, dict, Tensor, type(None)))


def scalar_state(value: float) -> Any:
    """Return a new 0-d tensor for the state of a scheduler."""
    return wrap(np.array(float(value), np.float64))


def as_scalar(value: Any) -> Any:
    """Return a tensor as it is, a number as a 0-d tensor."""
    return value if isinstance(value, Tensor) else scalar_state(value)


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """Call `where`, with numbers in double precision."""
    return where(condition, as_scalar(yes), as_scalar(no))


def per_group(what: str, value: Any, groups: Sequence[Any]) -> list[Any]:
    """Return one value per group, from one value or a list."""
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ArgumentError(f"{what}: {len(value)} values for {len(groups)} groups")
    return list(value)


def check_not_recording(what: str) -> None:
    """Raise ArgumentError inside a jitted function, for a scheduler that runs in Python."""
    if is_recording():
        raise ArgumentError(
            f"{what}: a Python function cannot be called inside a jitted step; call step() "
            "outside of it; the rate is read at every call"
        )
