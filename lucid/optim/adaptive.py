"""Rules with a step size per element: RMSprop, Adagrad, Adadelta, Adafactor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from lucid.ops.elementwise.conditional import clamp, maximum, minimum
from lucid.ops.elementwise.exponential import rsqrt, sqrt
from lucid.ops.shape.creation import full_like, zeros, zeros_like
from lucid.optim.optimizer import Optimizer, State, constructor_arguments, counter
from lucid.public.declare import public


@public("optim")
class RMSprop(Optimizer):
    """The gradient divided by the root of a running mean of its square."""

    optional = ("weight_decay", "momentum")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        state = {"step": counter(), "square_avg": zeros_like(p)}
        if h.momentum is not None:
            state["momentum_buffer"] = zeros_like(p)
        if h.centered:
            state["grad_avg"] = zeros_like(p)
        return state

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        if h.weight_decay is not None:
            g = g + h.weight_decay * p
        square = h.alpha * s["square_avg"] + (1 - h.alpha) * g * g
        new = {"step": s["step"] + 1, "square_avg": square}
        if h.centered:
            new["grad_avg"] = s["grad_avg"] + (1 - h.alpha) * (g - s["grad_avg"])
            square = square - new["grad_avg"] ** 2
        scaled = g / (sqrt(square) + h.eps)
        if h.momentum is not None:
            scaled = new["momentum_buffer"] = h.momentum * s["momentum_buffer"] + scaled
        return p - h.lr * scaled, new


@public("optim")
class Adagrad(Optimizer):
    """The gradient divided by the root of the sum of its past squares."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        first = zeros_like(p) + h.initial_accumulator_value
        return {"step": counter(), "sum": first}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        if h.weight_decay is not None:
            g = g + h.weight_decay * p
        step, total = s["step"] + 1, s["sum"] + g * g
        rate = h.lr / (1 + (step - 1) * h.lr_decay)
        return p - rate * (g / (sqrt(total) + h.eps)), {"step": step, "sum": total}


@public("optim")
class Adadelta(Optimizer):
    """Steps in the units of the parameter: the RMS of past steps over the RMS of gradients."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        return {
            "step": counter(), "square_avg": zeros_like(p), "acc_delta": zeros_like(p)
        }  # fmt: skip

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        if h.weight_decay is not None:
            g = g + h.weight_decay * p
        square = h.rho * s["square_avg"] + (1 - h.rho) * g * g
        delta = sqrt(s["acc_delta"] + h.eps) / sqrt(square + h.eps) * g
        steps = h.rho * s["acc_delta"] + (1 - h.rho) * delta * delta
        return p - h.lr * delta, {"step": s["step"] + 1, "square_avg": square, "acc_delta": steps}


@public("optim")
class Adafactor(Optimizer):
    """Adam with a factored second moment, and steps relative to the size of the parameter."""

    signed = ("beta2_decay",)
    kinds = "f"

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        if p.ndim < 2:
            return {"step": counter(), "variance": zeros_like(p)}
        *rest, rows, columns = p.shape
        return {
            "step": counter(),
            "row_var": zeros(*rest, rows, 1, dtype=p.dtype),
            "col_var": zeros(*rest, 1, columns, dtype=p.dtype),
        }

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        eps1 = float(np.finfo(p.dtype).eps) if h.eps[0] is None else h.eps[0]
        step = s["step"] + 1
        fresh = step**h.beta2_decay
        size = maximum(h.eps[1], root_mean_square(p).to("float64"))
        rate = size * minimum(h.lr, rsqrt(step))
        if h.weight_decay is not None:
            p = p * (1 - h.lr * h.weight_decay)
        square = g * g
        new: State = {"step": step}
        if p.ndim < 2:
            estimate = new["variance"] = s["variance"] + fresh * (square - s["variance"])
        else:
            rows, columns = square.mean(-1, keepdim=True), square.mean(-2, keepdim=True)
            rows = new["row_var"] = s["row_var"] + fresh * (rows - s["row_var"])
            columns = new["col_var"] = s["col_var"] + fresh * (columns - s["col_var"])
            estimate = rows * columns / clamp(rows.mean(-2, keepdim=True), min=eps1)
        step_ = rsqrt(maximum(estimate, full_like(estimate, eps1 * eps1))) * g
        most = maximum(1.0, (root_mean_square(step_) / h.d).to("float64"))
        return p - rate / most * step_, new


def root_mean_square(x: Any) -> Any:
    return sqrt((x * x).mean())
