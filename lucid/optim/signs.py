"""Rules that ignore the size of the gradient: Lion and Rprop (signs), Muon (orthogonalization)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lucid.errors import ArgumentError
from lucid.ops.elementwise.conditional import clamp, maximum, minimum, where
from lucid.ops.elementwise.exponential import sqrt
from lucid.ops.elementwise.rounding import sign
from lucid.ops.shape.creation import zeros_like
from lucid.optim.optimizer import Optimizer, State, constructor_arguments, counter
from lucid.public.declare import public


@public("optim")
class Lion(Optimizer):
    """Steps along the sign of a running mean of the gradient."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        return {"exp_avg": zeros_like(p)}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        beta1, beta2 = h.betas
        if h.weight_decay is not None:
            p = p * (1 - h.lr * h.weight_decay)
        step = sign(beta1 * s["exp_avg"] + (1 - beta1) * g)
        return p - h.lr * step, {"exp_avg": beta2 * s["exp_avg"] + (1 - beta2) * g}


@public("optim")
class Rprop(Optimizer):
    """Steps along the sign of the gradient, longer while it persists, shorter when it flips."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))
        for group in self.param_groups:
            shorter, longer = group["etas"]
            if not 0 < shorter < 1 < longer:
                raise ArgumentError(
                    f"Rprop: etas must be one number below 1 and one above, not {group['etas']}"
                )

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        return {"step": counter(), "prev": zeros_like(p), "step_size": zeros_like(p) + h.lr}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        (shorter, longer), (least, most) = h.etas, h.step_sizes
        turn = sign(g * s["prev"])
        size = s["step_size"]
        size = where(turn > 0, size * longer, where(turn < 0, size * shorter, size))
        size = minimum(maximum(size, least), most)
        g = where(turn < 0, 0.0, g)
        new = {"step": s["step"] + 1, "prev": g, "step_size": size}
        return p - sign(g) * size, new


@public("optim")
class Muon(Optimizer):
    """Momentum orthogonalized by Newton-Schulz iterations, for the matrices of a network.

    adjust_lr_fn    "original" scales the step by √max(1, rows/columns), "match_rms_adamw" by
                    0.2 √max(rows, columns)
    """

    kinds = "f"

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        **ignored: Any,
    ) -> None:
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ArgumentError(
                f"Muon: adjust_lr_fn must be 'original' or 'match_rms_adamw', not {adjust_lr_fn!r}"
            )
        super().__init__(*constructor_arguments(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ArgumentError(
                        f"Muon: a parameter of shape {p.shape} is not a matrix; optimize it with "
                        "AdamW"
                    )

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        return {"momentum_buffer": zeros_like(p)}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        buffer = s["momentum_buffer"] + (1 - h.momentum) * (g - s["momentum_buffer"])
        step = g + h.momentum * (buffer - g) if h.nesterov else buffer
        rows, columns = p.shape
        rate = h.lr * max(1.0, rows / columns) ** 0.5
        if h.adjust_lr_fn == "match_rms_adamw":
            rate = h.lr * 0.2 * max(rows, columns) ** 0.5
        if h.weight_decay is not None:
            p = p * (1 - h.lr * h.weight_decay)
        return p - rate * orthogonal(step, h), {"momentum_buffer": buffer}


def orthogonal(x: Any, h: SimpleNamespace) -> Any:
    """Bring all singular values of a matrix close to 1 by Newton-Schulz iterations."""
    a, b, c = h.ns_coefficients
    flip = x.shape[0] > x.shape[1]
    x = x.T if flip else x
    x = x / clamp(sqrt((x * x).sum()), min=1e-7 if h.eps is None else h.eps)
    for _ in range(h.ns_steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.T if flip else x
