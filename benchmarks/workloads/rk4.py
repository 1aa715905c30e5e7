"""300 steps of Runge and Kutta through y' = tanh(A y) + sin(t), 8 variables, and the gradient."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from workloads import pure

STEPS, H = 300, 0.02


def data(rng: np.random.Generator) -> Any:
    return [rng.normal(size=(8, 8)) / 2, rng.normal(size=8)]


def loss(library: Any, scan: Any) -> Any:
    """The sum of squares of the last state, as a function of A and the first state."""

    def f(a: Any, y: Any) -> Any:
        def slope(t: Any, y: Any) -> Any:
            return library.tanh(a @ y) + library.sin(t)

        def step(carry: Any, _: Any) -> Any:
            t, y = carry
            k1 = slope(t, y)
            k2 = slope(t + H / 2, y + H / 2 * k1)
            k3 = slope(t + H / 2, y + H / 2 * k2)
            k4 = slope(t + H, y + H * k3)
            return (t + H, y + H / 6 * (k1 + 2 * k2 + 2 * k3 + k4)), None

        (_, last), _ = scan(step, (library.zeros((), dtype=y.dtype), y), STEPS)
        return (last * last).sum()

    return f


def lucid(data: Any) -> Any:
    import lucid
    from lucid.func import grad, scan

    f = loss(lucid, lambda step, init, n: scan(step, init, length=n))
    return pure.lucid(grad(f, argnums=(0, 1)), data)


def jax(data: Any) -> Any:
    import jax

    f = loss(jax.numpy, lambda step, init, n: jax.lax.scan(step, init, length=n))
    return pure.jax(jax.grad(f, argnums=(0, 1)), data)


def torch(data: Any) -> Any:
    import torch

    def unrolled(step: Any, init: Any, n: int) -> Any:
        for _ in range(n):
            init, _ = step(init, None)
        return init, None

    return pure.torch(torch.func.grad(loss(torch, unrolled), argnums=(0, 1)), data)


SYSTEMS = {"lucid": lucid, "jax": jax, "torch": torch}

# The same in a Python loop with backward(), nothing compiled by the user; the time is a number


def eager(library: str, data: Any) -> Any:
    import importlib

    lib = importlib.import_module(library)
    a, start = [lib.tensor(x, requires_grad=True) for x in data]

    def slope(t: float, y: Any) -> Any:
        return lib.tanh(a @ y) + float(np.sin(t))

    def step() -> None:
        a.grad = start.grad = None
        y = start
        for i in range(STEPS):
            t = i * H
            k1 = slope(t, y)
            k2 = slope(t + H / 2, y + H / 2 * k1)
            k3 = slope(t + H / 2, y + H / 2 * k2)
            k4 = slope(t + H, y + H * k3)
            y = y + H / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        (y * y).sum().backward()

    return step, lambda: [x.grad.detach().numpy() for x in (a, start)]


eager_data = data
EAGER_SYSTEMS = {library: partial(eager, library) for library in ("lucid", "torch")}
