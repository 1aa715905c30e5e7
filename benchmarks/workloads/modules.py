"""Training steps in PyTorch's style: a Module, an Adam, `backward()` and `step()`.

A network is a Module, the same for Lucid and PyTorch, whose forward gives the loss, and is written
by hand for JAX over the same list of parameters. All systems start from the same numbers and carry
parameters and Adam's state from step to step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from workloads.training import Made, moved

RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-4  # so large that rounding is not taken for a slope
Shapes = Sequence[tuple[int, ...]]


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def initial(rng: np.random.Generator, shapes: Shapes) -> list[np.ndarray]:
    """Normal numbers, scaled by the fan-in."""
    return [numbers(rng, *shape) / math.sqrt(math.prod(shape[1:])) for shape in shapes]


# Systems


def modules(make: Callable[[Any], Any], mode: str, library: str, data: Any) -> Made:
    """A step in Lucid or PyTorch; `mode` is eager or compiled.

    A model whose networks take turns has `turns()`: pairs of a loss and the Module it trains.
    """
    import importlib

    lib = importlib.import_module(library)
    start, batch = data
    model = make(lib)
    params = list(model.parameters())
    assert [tuple(p.shape) for p in params] == [p.shape for p in start]
    with lib.no_grad():
        for p, value in zip(params, start):
            p.copy_(lib.tensor(value))
    tensors, value = [lib.tensor(x) for x in batch], None
    turns = []
    for forward, part in model.turns() if hasattr(model, "turns") else [(model, model)]:
        optimizer = lib.optim.Adam(part.parameters(), lr=RATE, betas=BETAS, eps=EPSILON)
        update = optimizer.step
        if mode == "compiled" and library == "torch":
            forward, update = lib.compile(forward), lib.compile(update)
        turns.append((forward, optimizer.zero_grad, update))

    def once(*batch: Any) -> Any:
        for forward, zero_grad, update in turns:
            loss = forward(*batch)
            zero_grad()
            loss.backward()
            update()
        return loss

    run = lib.jit(once) if mode == "compiled" and library == "lucid" else once

    def step() -> None:
        nonlocal value
        value = run(*tensors)

    def result() -> list[np.ndarray]:
        return moved(value.detach().numpy(), [p.detach().numpy() for p in params], start)

    return step, result


def jax_steps(make_loss: Callable[[Any], Any], data: Any) -> Made:
    """A step in JAX, with Adam by hand."""
    import jax
    import jax.numpy as jnp

    loss, (start, batch) = make_loss(jax), data
    first, second = BETAS

    @partial(jax.jit, donate_argnums=0)
    def update(state: Any, *batch: Any) -> Any:
        params, means, squares, count = state
        value, slopes = jax.value_and_grad(loss)(params, *batch)
        count = count + 1
        means = [first * m + (1 - first) * g for m, g in zip(means, slopes)]
        squares = [second * s + (1 - second) * g * g for s, g in zip(squares, slopes)]
        rate, root = RATE / (1 - first**count), jnp.sqrt(1 - second**count)
        params = [
            p - rate * m / (jnp.sqrt(s) / root + EPSILON) for p, m, s in zip(params, means, squares)
        ]
        return (params, means, squares, count), value

    params = [jnp.array(p) for p in start]
    zeros = [[jnp.zeros(p.shape) for p in start] for _ in range(2)]
    state, value = (params, *zeros, jnp.float32(0)), None
    tensors = [jax.device_put(x) for x in batch]

    def step() -> None:
        nonlocal state, value
        state, value = jax.block_until_ready(update(state, *tensors))

    return step, lambda: moved(value, state[0], start)


def systems(make: Any, make_loss: Any) -> dict[str, Any]:
    return {
        "lucid": partial(modules, make, "compiled", "lucid"),
        "jax": partial(jax_steps, make_loss),
        "torch": partial(modules, make, "eager", "torch"),
        "torch.compile": partial(modules, make, "compiled", "torch"),
    }


def eager_systems(make: Any) -> dict[str, Any]:
    return {
        "lucid": partial(modules, make, "eager", "lucid"),
        "lucid.jit": partial(modules, make, "compiled", "lucid"),
        "torch": partial(modules, make, "eager", "torch"),
    }


def jax_entropy(jax: Any, scores: Any, labels: Any) -> Any:
    chances = jax.nn.log_softmax(scores)
    return -jax.numpy.take_along_axis(chances, labels[:, None], 1).mean()


# Adam alone


def adam(library: str, data: Any) -> Made:
    """One step of the optimizer over all parameters, with gradients that stay."""
    import importlib

    lib = importlib.import_module(library)
    start, slopes = data
    params = [lib.tensor(p, requires_grad=True) for p in start]
    for p, g in zip(params, slopes):
        p.grad = lib.tensor(g)
    optimizer = lib.optim.Adam(params, lr=RATE)
    return optimizer.step, lambda: moved(0.0, [p.detach().numpy() for p in params], start)


def adam_data(rng: np.random.Generator) -> Any:
    return [[numbers(rng, 32, 32) for _ in range(100)] for _ in range(2)]


ADAM_SYSTEMS = {"lucid": partial(adam, "lucid"), "torch": partial(adam, "torch")}
