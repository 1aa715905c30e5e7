"""A tour of Lucid: gradients, the program behind them, transforms, a custom function, a fit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import lucid
from lucid import func
from lucid.transforms.vjp import vjp


def title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def eager() -> None:
    title("1. Eager tensors remember how they were computed")
    x = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x * x + 3.0 * x).sum()
    print(y.graph())
    y.backward()
    print("x.grad =", x.grad)


def energy(x: lucid.Tensor) -> lucid.Tensor:
    return lucid.tanh(x * x).sum()


def programs() -> None:
    title("2. A function is a program, and so is its derivative")
    graph = lucid.ir.trace(energy)(lucid.tensor([0.5, 1.0]))
    print(graph.stripped())
    print("\nits pullback, from the cotangent of the output to that of x:")
    print(vjp(graph, graph.inputs).graph.stripped())


def transforms() -> None:
    title("3. Transforms compose")
    x = lucid.tensor([0.5, 1.0])
    print("grad         ", func.grad(energy)(x))
    print("hessian      ", func.hessian(energy)(x).tolist())
    batch = lucid.tensor([[0.5, 1.0], [0.0, 2.0], [1.0, 1.0]])
    print("vmap of grad ", func.vmap(func.grad(energy))(batch).tolist())
    _, tangent = func.jvp(func.grad(energy), (x,), (lucid.tensor([1.0, 0.0]),))
    print("jvp of grad  ", tangent)


class StraightThrough(lucid.autograd.Function):
    """Rounding that pretends to be the identity on the way back."""

    @staticmethod
    def forward(ctx: Any, x: lucid.Tensor) -> lucid.Tensor:
        return lucid.round(x)

    @staticmethod
    def backward(ctx: Any, grad: lucid.Tensor) -> lucid.Tensor:
        return grad


def custom() -> None:
    title("4. A derivative of your own")
    x = lucid.tensor([0.2, 0.7, 1.4], requires_grad=True)
    (StraightThrough.apply(x) ** 2).sum().backward()
    print("gradient of round(x)² =", x.grad)


def network(params: dict[str, lucid.Tensor], x: lucid.Tensor) -> lucid.Tensor:
    hidden = lucid.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def fit() -> None:
    title("5. Fit a small network to a sine, eagerly and as one native call a step")
    rng = np.random.default_rng(0)
    x = lucid.tensor(np.linspace(-3, 3, 64, dtype="float32")[:, None])
    target = lucid.sin(x)
    params = {
        "w1": lucid.tensor(rng.normal(size=(1, 16)).astype("float32")),
        "b1": lucid.tensor(np.zeros(16, "float32")),
        "w2": lucid.tensor(rng.normal(size=(16, 1)).astype("float32") / 4),
        "b2": lucid.tensor(np.zeros(1, "float32")),
    }

    def loss(params: dict[str, lucid.Tensor]) -> lucid.Tensor:
        return ((network(params, x) - target) ** 2).mean()

    def step(params: dict[str, lucid.Tensor]) -> tuple[dict[str, lucid.Tensor], lucid.Tensor]:
        value, grads = func.value_and_grad(loss)(params)
        return {name: p - 0.1 * grads[name] for name, p in params.items()}, value

    compiled = lucid.jit(step)
    for name, run in (("eager", step), ("jitted", compiled)):
        state = params
        for i in range(301):
            if i == 201:
                started = time.perf_counter()
            state, value = run(state)
            if i % 100 == 0:
                print(f"{name:6} step {i:3}: loss {value.item():.4f}")
        print(f"{name:6} {1e4 * (time.perf_counter() - started):.0f} µs a step, once warm")
    print("\nits kernels:")
    print(compiled.graph(params, stage="planned"))


def main() -> None:
    for part in (eager, programs, transforms, custom, fit):
        part()


if __name__ == "__main__":
    main()
