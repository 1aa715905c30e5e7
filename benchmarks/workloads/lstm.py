"""An LSTM of 1,000 steps, 64 units, batch 16, and the gradient of its loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads import pure

STEPS, BATCH, INPUTS, UNITS = 1000, 16, 32, 64


def data(rng: np.random.Generator) -> Any:
    w = rng.normal(size=(INPUTS, 4 * UNITS)) / np.sqrt(INPUTS)
    u = rng.normal(size=(UNITS, 4 * UNITS)) / np.sqrt(UNITS)
    xs = rng.normal(size=(STEPS, BATCH, INPUTS))
    return [x.astype(np.float32) for x in (w, u, np.zeros(4 * UNITS), xs)]


def loss(library: Any, sigmoid: Any, scan: Any) -> Any:
    def f(w: Any, u: Any, b: Any, xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            z = x @ w + h @ u + b
            i, g, o, k = (z[:, j * UNITS : (j + 1) * UNITS] for j in range(4))
            c = sigmoid(g + 1.0) * c + sigmoid(i) * library.tanh(k)
            h = sigmoid(o) * library.tanh(c)
            return (h, c), h

        zero = library.zeros((BATCH, UNITS), dtype=w.dtype)
        (_, _), hs = scan(step, (zero, zero), xs)
        return (hs * hs).mean()

    return f


def lucid(data: Any) -> Any:
    import lucid
    from lucid.func import grad, scan

    return pure.lucid(grad(loss(lucid, lucid.sigmoid, scan), argnums=(0, 1, 2)), data)


def jax(data: Any) -> Any:
    import jax

    f = loss(jax.numpy, jax.nn.sigmoid, jax.lax.scan)
    return pure.jax(jax.grad(f, argnums=(0, 1, 2)), data)


def torch(data: Any) -> Any:
    import torch

    def unrolled(step: Any, carry: Any, xs: Any) -> Any:
        ys = []
        for x in xs:
            carry, y = step(carry, x)
            ys.append(y)
        return carry, torch.stack(ys)

    f = loss(torch, torch.sigmoid, unrolled)
    return pure.torch(torch.func.grad(f, argnums=(0, 1, 2)), data)


SYSTEMS = {"lucid": lucid, "jax": jax, "torch": torch}
