"""LSTM with diagonal weights, as ADBench has it: the gradient of the loss of a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

LAYERS, STEPS, UNITS = 2, 200, 14
SIZES = [{"l": n, "c": c} for n in (2, 4, 6) for c in (1024, 4096, 8192)]


def data(rng: np.random.Generator, l: int = LAYERS, c: int = STEPS) -> list[Any]:  # noqa: E741
    """Weights and biases of gates (a pair of rows a layer), extra rows, state, sequence."""
    return [
        rng.normal(size=(2 * l, 4 * UNITS)),
        rng.normal(size=(3, UNITS)),
        rng.normal(size=(2 * l, UNITS)),
        rng.integers(0, 2, size=(c, UNITS)).astype(float),
    ]


def cell(lib: Any, weight: Any, bias: Any, hidden: Any, memory: Any, x: Any) -> Any:
    w, b = weight.reshape(4, len(x)), bias.reshape(4, len(x))
    forget = lib.sigmoid(x * w[0] + b[0])
    ingate = lib.sigmoid(hidden * w[1] + b[1])
    outgate = lib.sigmoid(x * w[2] + b[2])
    change = lib.tanh(hidden * w[3] + b[3])
    memory = memory * forget + ingate * change
    return outgate * lib.tanh(memory), memory


def objective(lib: Any, main: Any, extra: Any, state: Any, sequence: Any) -> Any:
    """The mean of -y · log p of the next element; log p is over the units and two more of e⁰."""

    def step(state: Any, x: Any) -> Any:
        y = x * extra[0]
        rows = []
        for i in range(len(main) // 2):
            hidden, memory = state[2 * i], state[2 * i + 1]
            y, memory = cell(lib, main[2 * i], main[2 * i + 1], hidden, memory, y)
            rows += [y, memory]
        return lib.stack(rows), y * extra[1] + extra[2]

    _, predicted = lib.scan(step, state, sequence[:-1])
    norm = lib.log(lib.exp(predicted).sum(1) + 2)
    return -(sequence[1:] * (predicted - norm[:, None])).mean()


def variants(lib: Any, **size: int) -> dict[str, Any]:
    gradient = lib.grad(lambda *args: objective(lib, *args), argnums=(0, 1))
    return {"lstm": lib.compiled(gradient)}
