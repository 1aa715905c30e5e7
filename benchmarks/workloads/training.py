"""One step of gradient descent in every library, for a loss(params, *batch) written in it.

Each function takes the loss, the initial parameters and a batch as NumPy arrays. It gives `step`,
which does one step on the current parameters, and `result`: the loss, and how far they have moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Loss = Callable[..., Any]
Arrays = Sequence[np.ndarray]
Made = tuple[Callable[[], Any], Callable[[], list[np.ndarray]]]


def moved(value: Any, params: Sequence[Any], start: Arrays) -> list[np.ndarray]:
    return [np.asarray(value), *[np.asarray(p) - before for p, before in zip(params, start)]]


def functional(
    update: Any, convert: Callable[[np.ndarray], Any], start: Arrays, batch: Arrays
) -> Made:
    """Steps by an `update(params, *batch) -> (params, loss)` that returns when it is done."""
    params, data, value = [convert(p) for p in start], [convert(x) for x in batch], None

    def step() -> None:
        nonlocal params, value
        params, value = update(params, *data)

    return step, lambda: moved(value, params, start)


def lucid(loss: Loss, start: Arrays, batch: Arrays, rate: float = 0.1) -> Made:
    import lucid
    from workloads.lucid_jit import jit

    @jit
    def update(params: Any, *batch: Any) -> Any:
        value, grads = lucid.func.value_and_grad(loss)(params, *batch)
        return [p - rate * g for p, g in zip(params, grads)], value

    return functional(update, lucid.tensor, start, batch)


def lucid_inplace(
    loss: Loss, start: Arrays, batch: Arrays, rate: float = 0.1, compiled: bool = True
) -> Made:
    """`backward()` and writes in place on tensors that the step closes over."""
    import lucid
    from workloads.lucid_jit import jit

    params = [lucid.tensor(p, requires_grad=True) for p in start]
    data, value = [lucid.tensor(x) for x in batch], None

    def update(*batch: Any) -> Any:
        value = loss(params, *batch)
        value.backward()
        with lucid.no_grad():
            for p in params:
                p -= rate * p.grad
                p.grad = None
        return value

    run = jit(update) if compiled else update

    def step() -> None:
        nonlocal value
        value = run(*data)

    return step, lambda: moved(value.numpy(), [p.numpy() for p in params], start)


def lucid_eager(loss: Loss, start: Arrays, batch: Arrays, rate: float = 0.1) -> Made:
    return lucid_inplace(loss, start, batch, rate, compiled=False)


def jax(loss: Loss, start: Arrays, batch: Arrays, rate: float = 0.1) -> Made:
    import jax

    @jax.jit
    def update(params: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return [p - rate * g for p, g in zip(params, grads)], value

    def done(*args: Any) -> Any:
        return jax.block_until_ready(update(*args))

    return functional(done, jax.device_put, start, batch)


def torch(loss: Loss, start: Arrays, batch: Arrays, rate: float = 0.1) -> Made:
    import torch

    params = [torch.tensor(p, requires_grad=True) for p in start]
    data, value = [torch.tensor(x) for x in batch], None

    def step() -> None:
        nonlocal value
        value = loss(params, *data)
        value.backward()
        with torch.no_grad():
            for p in params:
                p -= rate * p.grad
                p.grad = None

    return step, lambda: moved(value.detach(), [p.detach() for p in params], start)


def torch_compile(loss: Loss, start: Arrays, batch: Arrays, rate: float = 0.1) -> Made:
    import torch

    @torch.compile(fullgraph=True)
    def update(params: Any, *batch: Any) -> Any:
        grads, value = torch.func.grad_and_value(loss)(params, *batch)
        return [p - rate * g for p, g in zip(params, grads)], value

    return functional(update, torch.tensor, start, batch)
