"""L-BFGS: quasi-Newton steps from recent changes of the gradient."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.autograd import enable_grad, no_grad
from lucid.errors import ArgumentError
from lucid.ops.core.promote import as_tensor
from lucid.optim.line_search import strong_wolfe
from lucid.optim.optimizer import Optimizer, constructor_arguments
from lucid.public.declare import public
from lucid.tape.node import is_recording

MIN_CURVATURE = 1e-10


@public("optim")
class LBFGS(Optimizer):
    """L-BFGS for a loss that `closure` recomputes, with gradients, on every call.

    All parameters form one vector; the arithmetic on it is NumPy's.

    >>> import lucid
    >>> w = lucid.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 1.0) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> bool((w - 1.0).abs().max() < 1e-4)
    True
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        **ignored: Any,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ArgumentError(
                f"LBFGS: line_search_fn must be 'strong_wolfe' or None, not {line_search_fn!r}"
            )
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(*constructor_arguments(locals()))
        if len(self.param_groups) != 1:
            raise ArgumentError("LBFGS: only one parameter group is supported")
        self._params = list(self.param_groups[0]["params"])
        self._memory = History(history_size)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Run up to `max_iter` iterations; return the loss before them."""
        if closure is None:
            raise ArgumentError("LBFGS: step() needs a closure that computes the loss")
        if is_recording():
            raise ArgumentError(
                "LBFGS: steps depend on values and cannot be part of a jitted function; jit the "
                "closure instead"
            )
        return LBFGSStep(self, closure).run()

    def state_dict(self) -> dict[str, Any]:
        """Return the settings, and the history of steps and gradient changes."""
        return {**super().state_dict(), "memory": self._memory.state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a `state_dict`."""
        super().load_state_dict(state_dict)
        self._memory.restore(state_dict["memory"])


class History:
    """The last steps s and gradient changes y, and the state of the last iteration."""

    def __init__(self, size: int) -> None:
        self.pairs: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=size)
        self.scale = 1.0
        self.iterations = self.evaluations = 0
        self.direction: np.ndarray | None = None
        self.gradient: np.ndarray | None = None
        self.length = 0.0

    def add(self, s: np.ndarray, y: np.ndarray) -> None:
        """Add a step and its gradient change, if their curvature is positive."""
        curvature = float(y @ s)
        if curvature > MIN_CURVATURE:
            self.pairs.append((s, y))
            self.scale = curvature / float(y @ y)

    def two_loop_recursion(self, gradient: np.ndarray) -> np.ndarray:
        """Return minus the approximate inverse Hessian times the gradient."""
        q = -gradient
        weights = []
        for s, y in reversed(self.pairs):
            a = float(s @ q) / float(y @ s)
            weights.append(a)
            q = q - a * y
        q = q * self.scale
        for (s, y), a in zip(self.pairs, reversed(weights)):
            q = q + s * (a - float(y @ q) / float(y @ s))
        return q

    def state(self) -> dict[str, Any]:
        return {**self.__dict__, "pairs": [list(pair) for pair in self.pairs]}

    def restore(self, state: dict[str, Any]) -> None:
        kept = {name: as_array(x) for name, x in state.items() if name != "pairs"}
        self.__dict__.update(kept)
        pairs = [(as_array(s), as_array(y)) for s, y in state["pairs"]]
        self.pairs = deque(pairs, maxlen=self.pairs.maxlen)


def as_array(x: Any) -> Any:
    return x if x is None or isinstance(x, (int, float)) else np.array(x)


def real_dtype(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype


def as_reals(x: np.ndarray) -> np.ndarray:
    """Return the elements of an array as a real vector; a complex one as pairs."""
    return np.ascontiguousarray(x).reshape(-1).view(real_dtype(x.dtype))


class LBFGSStep:
    """One call of `step`."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]) -> None:
        self.params, self.memory = optimizer._params, optimizer._memory
        self.h = dict(optimizer.param_groups[0])
        self.closure = closure
        self.evaluations = 0

    def evaluate(self) -> tuple[float, np.ndarray]:
        with enable_grad():
            loss = self.closure()
        self.first_loss = getattr(self, "first_loss", loss)
        self.evaluations += 1
        self.memory.evaluations += 1
        return as_tensor(loss).item(), self.flat_gradient()

    def flat_gradient(self) -> np.ndarray:
        parts = [np.zeros(p.shape, p.dtype) if p.grad is None else p.grad for p in self.params]
        return np.concatenate([as_reals(as_tensor(part).detach().numpy()) for part in parts])

    def move(self, length: float, direction: np.ndarray) -> None:
        start = 0
        with no_grad():
            for p in self.params:
                n = p.numel() * (2 if p.dtype.kind == "c" else 1)
                part = (length * direction[start : start + n]).astype(real_dtype(p.dtype))
                p.add_(part.view(p.dtype).reshape(p.shape))
                start += n

    def evaluate_at(
        self, start: list[Any], length: float, direction: np.ndarray
    ) -> tuple[float, Any]:
        self.move(length, direction)
        found = self.evaluate()
        self.restore(start)
        return found

    def restore(self, values: list[Any]) -> None:
        with no_grad():
            for p, value in zip(self.params, values):
                p.copy_(value)

    def run(self) -> Any:
        h, memory = self.h, self.memory
        loss, gradient = self.evaluate()
        if np.abs(gradient).max(initial=0.0) <= h["tolerance_grad"]:
            return self.first_loss
        for _ in range(h["max_iter"]):
            memory.iterations += 1
            direction, length = self.next_direction(gradient)
            before, slope = loss, float(gradient @ direction)
            memory.direction, memory.gradient, memory.length = direction, gradient, length
            if slope > -h["tolerance_change"]:
                break
            loss, gradient, length = self.advance(loss, gradient, direction, length, slope)
            memory.length = length
            if self.is_converged(before, loss, gradient, direction, length):
                break
        return self.first_loss

    def next_direction(self, gradient: np.ndarray) -> tuple[np.ndarray, float]:
        memory, rate = self.memory, self.h["lr"]
        if memory.direction is None or memory.gradient is None:
            return -gradient, min(1.0, 1.0 / float(np.abs(gradient).sum())) * rate
        memory.add(memory.direction * memory.length, gradient - memory.gradient)
        return memory.two_loop_recursion(gradient), rate

    def advance(
        self, loss: float, gradient: np.ndarray, direction: np.ndarray, length: float, slope: float
    ) -> tuple[float, np.ndarray, float]:
        """Move by a line search, or by a step of the given length."""
        if self.h["line_search_fn"] is None:
            self.move(length, direction)
            return *self.evaluate(), length
        start = [p.detach().clone() for p in self.params]
        found = strong_wolfe(
            lambda t: self.evaluate_at(start, t, direction), length, direction, loss, gradient,
            slope, tolerance_change=self.h["tolerance_change"],
        )  # fmt: skip
        self.move(found.length, direction)
        return found.loss, found.gradient, found.length

    def is_converged(
        self, before: float, loss: float, gradient: np.ndarray, direction: Any, length: float
    ) -> bool:
        h = self.h
        return (
            self.evaluations >= h["max_eval"]
            or np.abs(gradient).max(initial=0.0) <= h["tolerance_grad"]
            or np.abs(direction * length).max(initial=0.0) <= h["tolerance_change"]
            or abs(loss - before) < h["tolerance_change"]
        )
