"""Gradient descent, with momentum."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.ops.creation import zeros_like
from lucid.optim.optimizer import Optimizer, State


class SGD(Optimizer):
    """Gradient descent: v = momentum v + (1 - dampening) g, p = p - lr v.

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
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentError(
                f"SGD: nesterov needs a momentum, and no dampening{at_line()}"
            )
        super().__init__(
            params,
            {
                "lr": float(lr),
                "momentum": float(momentum),
                "dampening": float(dampening),
                "weight_decay": float(weight_decay),
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        return {} if h.momentum is None else {"momentum_buffer": zeros_like(p)}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        if h.weight_decay is not None:
            g = g + h.weight_decay * p
        if h.momentum is None:
            return p - h.lr * g, {}
        fresh = g if h.dampening is None else (1 - h.dampening) * g
        v = h.momentum * s["momentum_buffer"] + fresh
        step = g + h.momentum * v if h.nesterov else v
        return p - h.lr * step, {"momentum_buffer": v}
