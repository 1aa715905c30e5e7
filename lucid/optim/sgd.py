"""Gradient descent, with momentum and with averaging."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lucid.errors import ArgumentError
from lucid.ops.elementwise.conditional import maximum, where
from lucid.ops.shape.creation import zeros, zeros_like
from lucid.optim.optimizer import Optimizer, State, constructor_arguments, counter
from lucid.public.declare import public


@public("optim")
class SGD(Optimizer):
    """Gradient descent: v = momentum v + (1 - dampening) g, p = p - lr v.

    The first gradient is not dampened: v starts as g.

    >>> import lucid
    >>> w = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = lucid.optim.SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    Tensor([0.8, 1.6])
    """

    optional = ("momentum", "dampening", "weight_decay")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentError("SGD: nesterov needs a momentum and zero dampening")
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        if h.momentum is None:
            return {}
        state = {"momentum_buffer": zeros_like(p)}
        return state if h.dampening is None else {**state, "step": counter()}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        if h.weight_decay is not None:
            g = g + h.weight_decay * p
        if h.momentum is None:
            return p - h.lr * g, {}
        new = {}
        fresh = g
        if h.dampening is not None:
            fresh = where(s["step"] == 0, g, (1 - h.dampening) * g)
            new["step"] = s["step"] + 1
        v = h.momentum * s["momentum_buffer"] + fresh
        new["momentum_buffer"] = where(h.momentum == 0, s["momentum_buffer"], v)
        step = g + h.momentum * v if h.nesterov else v
        return p - h.lr * step, new


@public("optim")
class ASGD(Optimizer):
    """Gradient descent with a decaying rate; the average of its path is the state `ax`."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        rate = zeros((), dtype="float64") + h.lr
        return {"step": counter(), "eta": rate, "mu": counter() + 1.0, "ax": zeros_like(p)}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        if h.weight_decay is not None:
            g = g + h.weight_decay * p
        step = s["step"] + 1
        p = p * (1 - h.lambd * s["eta"]) - s["eta"] * g
        new = {
            "step": step,
            "ax": s["ax"] + s["mu"] * (p - s["ax"]),
            "eta": h.lr / (1 + h.lambd * h.lr * step) ** h.alpha,
            "mu": 1 / maximum(step - h.t0, 1.0),
        }
        return p, new
