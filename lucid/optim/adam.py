"""Adam and its variants: steps scaled by running moments of the gradient."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from lucid.ops.elementwise.conditional import maximum, where
from lucid.ops.elementwise.exponential import sqrt
from lucid.ops.shape.creation import zeros_like
from lucid.optim.optimizer import Optimizer, State, constructor_arguments, counter
from lucid.public.declare import public
from lucid.tape.node import wrap


def update_moments(g: Any, s: State, h: SimpleNamespace) -> tuple[Any, Any, Any]:
    """Return the step count, and the running means of the gradient and of its square."""
    beta1, beta2 = h.betas
    mean = s["exp_avg"] + (1 - beta1) * (g - s["exp_avg"])
    square = beta2 * s["exp_avg_sq"] + (1 - beta2) * g * g
    return s["step"] + 1, mean, square


def apply_weight_decay(p: Any, g: Any, h: SimpleNamespace) -> tuple[Any, Any]:
    """Return the parameter and the gradient, one of which has the weight decay in it."""
    if h.weight_decay is None:
        return p, g
    if h.decoupled_weight_decay:
        return p * (1 - h.lr * h.weight_decay), g
    return p, g + h.weight_decay * p


def init_moments(p: Any) -> State:
    """Return the initial state: a step count and zero moments."""
    return {"step": counter(), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}


@public("optim")
class Adam(Optimizer):
    """Adam: p = p - lr m̂ / (√v̂ + eps), with m and v the running means of g and g².

    params          parameters, or groups {"params": ..., "lr": ...} with settings of their own
    betas           the decay rates of m and v
    weight_decay    weight_decay p is added to g; with decoupled_weight_decay, as in AdamW, p is
                    multiplied by 1 - lr weight_decay instead
    amsgrad         divide by the largest v so far
    maximize        ascend instead of descend
    ignored         PyTorch's foreach, fused and capturable, which have no effect here: a step is
                    one compiled call for all parameters

    >>> import lucid
    >>> w = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adam([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    Tensor([0.75, 1.75])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        state = init_moments(p)
        return {**state, "max_exp_avg_sq": zeros_like(p)} if h.amsgrad else state

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        p, g = apply_weight_decay(p, g, h)
        step, mean, square = update_moments(g, s, h)
        new = {"step": step, "exp_avg": mean, "exp_avg_sq": square}
        if h.amsgrad:
            square = new["max_exp_avg_sq"] = maximum(s["max_exp_avg_sq"], square)
        beta1, beta2 = h.betas
        denominator = sqrt(square) / sqrt(1 - beta2**step) + h.eps
        return p - h.lr / (1 - beta1**step) * (mean / denominator), new


@public("optim")
class AdamW(Adam):
    """Adam with decoupled weight decay: p is multiplied by 1 - lr · weight_decay."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad,
            maximize=maximize, decoupled_weight_decay=True, **ignored,
        )  # fmt: skip


@public("optim")
class NAdam(Optimizer):
    """Adam with Nesterov momentum, on Dozat's momentum schedule."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        return {**init_moments(p), "mu_product": wrap(np.ones((), np.float64))}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        p, g = apply_weight_decay(p, g, h)
        step, mean, square = update_moments(g, s, h)
        beta1, beta2 = h.betas
        now = beta1 * (1 - 0.5 * 0.96 ** (step * h.momentum_decay))
        later = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * h.momentum_decay))
        product = s["mu_product"] * now
        denominator = sqrt(square / (1 - beta2**step)) + h.eps
        p = p - h.lr * (1 - now) / (1 - product) * (g / denominator)
        p = p - h.lr * later / (1 - product * later) * (mean / denominator)
        return p, {"step": step, "exp_avg": mean, "exp_avg_sq": square, "mu_product": product}


@public("optim")
class RAdam(Optimizer):
    """Adam that starts as plain momentum until the second moment is reliable."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        return init_moments(p)

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        p, g = apply_weight_decay(p, g, h)
        step, mean, square = update_moments(g, s, h)
        beta1, beta2 = h.betas
        most = 2 / (1 - beta2) - 1
        length = most - 2 * step * beta2**step / (1 - beta2**step)
        trusted = length > 5.0
        safe = where(trusted, length, 6.0)
        ratio = ((safe - 4) * (safe - 2) * most) / ((most - 4) * (most - 2) * safe)
        scale = sqrt(1 - beta2**step) / (sqrt(square) + h.eps) * sqrt(ratio)
        corrected = mean / (1 - beta1**step)
        p = p - h.lr * corrected * where(trusted, scale, 1.0)
        return p, {"step": step, "exp_avg": mean, "exp_avg_sq": square}


@public("optim")
class Adamax(Optimizer):
    """Adam with the maximum of past gradients in place of the mean square."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(*constructor_arguments(locals()))

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        return {"step": counter(), "exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        if h.weight_decay is not None:
            g = g + h.weight_decay * p
        beta1, beta2 = h.betas
        step = s["step"] + 1
        mean = s["exp_avg"] + (1 - beta1) * (g - s["exp_avg"])
        greatest = maximum(beta2 * s["exp_inf"], g.abs() + h.eps)
        new = {"step": step, "exp_avg": mean, "exp_inf": greatest}
        return p - h.lr / (1 - beta1**step) * (mean / greatest), new
