"""What random programs call: functions with rules, each the true derivative, and modules."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import lucid
from lucid.autograd import Function


@lucid.func.custom_jvp
def by_jvp(x: Any, y: Any) -> Any:
    return lucid.sin(x) * y


@by_jvp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (t, s) = primals, tangents
    return by_jvp(x, y), lucid.cos(x) * y * t + lucid.sin(x) * s


@lucid.func.custom_vjp
def by_vjp(x: Any) -> Any:
    return lucid.tanh(x)


def _forward(x: Any) -> Any:
    y = lucid.tanh(x)
    return y, y


by_vjp.defvjp(_forward, lambda y, ct: (ct * (1 - y * y),))


class Squash(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x / (1 + x * x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * (1 - x * x) / (1 + x * x) ** 2


class Mapped(Squash):
    """The same with rules for tangents and batches."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * (1 - x * x) / (1 + x * x) ** 2

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return Mapped.apply(x), in_dims[0]


@functools.cache
def numbers() -> Any:
    """A function of Numba's of two numbers, whose derivative is found by running it on tensors."""
    return lucid.func.from_numba(lambda x, y: math.sin(x * y) + x)


@functools.cache
def given() -> Any:
    """One that looks at its argument, with the derivative that was given."""

    def bend(x: float) -> float:
        return x if x > 0 else math.expm1(x)

    def slope(x: Any) -> Any:
        return lucid.where(x > 0, 1.0, lucid.exp(x))

    return lucid.func.from_numba(bend, derivative=slope)


@functools.cache
def sums() -> Any:
    """One of a vector that writes its result, with a reverse rule."""

    def running(x: np.ndarray, out: np.ndarray) -> None:
        total = 0.0
        for i in range(len(x)):
            total += x[i]
            out[i] = total

    def pull(ct: Any, y: Any, x: Any) -> Any:
        return lucid.flip(lucid.cumsum(lucid.flip(ct, [0]), 0), [0])

    return lucid.func.from_numba(running, shape=lambda x: x, vjp=pull)


# Modules and tensors that programs capture, the same in every run


def filled(module: Any) -> Any:
    """A module of float64 whose parameters are given numbers."""
    module = module.to(dtype="float64")
    with lucid.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(lucid.as_tensor(np.cos(np.arange(p.numel()) + i).reshape(p.shape) * 0.6))
    return module


@functools.cache
def linear() -> Any:
    return filled(lucid.nn.Linear(3, 2))


@functools.cache
def norm() -> Any:
    return filled(lucid.nn.LayerNorm(3))


@functools.cache
def conv() -> Any:
    return filled(lucid.nn.Conv1d(1, 2, 2))


def net() -> Any:
    return filled(
        lucid.nn.Sequential(lucid.nn.Linear(3, 4), lucid.nn.Tanh(), lucid.nn.Linear(4, 3))
    )


def table() -> Any:
    return lucid.as_tensor(np.linspace(-1.0, 1.0, 6).reshape(2, 3))


class Gate(lucid.nn.Module):
    """A module whose attribute and mode the programs' state changes between calls."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0

    def forward(self, x: Any) -> Any:
        return x * self.scale if self.training else lucid.tanh(x)
