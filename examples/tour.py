"""A tour of Lucid: gradients, the program behind them, transforms, a custom function, a fit."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import support

import lucid
from lucid import func
from lucid.transforms.vjp import vjp


def title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def indented(x: lucid.Tensor) -> str:
    return str(x).replace("\n", "\n" + 14 * " ")


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
    print("hessian      ", indented(func.hessian(energy)(x)))
    batch = lucid.tensor([[0.5, 1.0], [0.0, 2.0], [1.0, 1.0]])
    print("vmap of grad ", indented(func.vmap(func.grad(energy))(batch)))
    _, tangent = func.jvp(func.grad(energy), (x,), (lucid.tensor([1.0, 0.0]),))
    print("jvp of grad  ", tangent)


class StraightThrough(lucid.autograd.Function):
    """Rounding whose backward pass is that of the identity."""

    @staticmethod
    def forward(ctx: Any, x: lucid.Tensor) -> lucid.Tensor:
        return lucid.round(x)

    @staticmethod
    def backward(ctx: Any, grad: lucid.Tensor) -> lucid.Tensor:
        return grad


def custom() -> None:
    title("4. A custom derivative")
    x = lucid.tensor([0.2, 0.7, 1.4], requires_grad=True)
    (StraightThrough.apply(x) ** 2).sum().backward()
    print("gradient of round(x)² =", x.grad)


def network(params: dict[str, lucid.Tensor], x: lucid.Tensor) -> lucid.Tensor:
    hidden = lucid.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def fit(out: Path) -> None:
    title("5. Fit a small network to a sine, eagerly and as one native call per step")
    rng = np.random.default_rng(0)
    x = lucid.tensor(np.linspace(-3, 3, 64, dtype="float32")[:, None])
    target = lucid.sin(x)
    params = {
        "w1": lucid.tensor(rng.normal(size=(1, 16)).astype("float32")),
        "b1": lucid.tensor(1.5 * rng.normal(size=16).astype("float32")),
        "w2": lucid.tensor(rng.normal(size=(16, 1)).astype("float32") / 4),
        "b2": lucid.tensor(np.zeros(1, "float32")),
    }

    def loss(params: dict[str, lucid.Tensor]) -> lucid.Tensor:
        return ((network(params, x) - target) ** 2).mean()

    def step(params: dict[str, lucid.Tensor]) -> tuple[dict[str, lucid.Tensor], lucid.Tensor]:
        value, grads = func.value_and_grad(loss)(params)
        return {name: p - 0.1 * grads[name] for name, p in params.items()}, value

    compiled = lucid.jit(step)
    curves: dict[str, list[float]] = {}
    for name, run in (("eager", step), ("jitted", compiled)):
        state = params
        for i in range(301):
            if i == 201:
                started = time.perf_counter()
            state, value = run(state)
            curves.setdefault(name, []).append(value.item())
            if i % 100 == 0:
                print(f"{name:6} step {i:3}: loss {value.item():.4f}")
        print(f"{name:6} {1e4 * (time.perf_counter() - started):.0f} µs per step, once warm")
    print("\nthe compiled step, instruction by instruction:")
    print(compiled.graph(params, stage="planned"))
    started = time.perf_counter()
    for _ in range(3_000):
        state, value = compiled(state)
    taken = time.perf_counter() - started
    print(f"\n3,000 more steps in {taken:.2f} s: loss {value.item():.1e}")

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(x.numpy(), target.numpy(), ".", markersize=4, label="sine")
        left.plot(x.numpy(), network(state, x).numpy(), label="network")
        left.legend(loc="upper left", frameon=False)
        left.set(title="The fit after 3,300 steps", xlabel="x")
        right.semilogy(curves["eager"], linewidth=4, alpha=0.4, label="eager")
        right.semilogy(curves["jitted"], label="jitted")
        right.legend(frameon=False)
        right.set(title="The loss, eager and jitted", xlabel="step", ylabel="mean squared error")

    print()
    support.picture(out / "tour.png", draw, (9, 3.6))


NEXT = (
    ("{python} examples/mlp_digits.py", "train a classifier of handwritten digits, in seconds"),
    ("{python} examples/vae.py --quick", "arrange the digits on a plane, as a picture"),
    ("{python} examples/gpt.py --quick", "a transformer that writes"),
    ("{python} -m lucid doctor", "check this installation"),
    ("make docs", "the documentation, in build/site/index.html"),
)


def what_next() -> None:
    title("What to try next")
    here = os.path.relpath(sys.executable)
    python = "python" if here.startswith("..") else here
    for command, meaning in NEXT:
        print(f"{command.format(python=python):42} {meaning}")


def main(arguments: list[str] | None = None) -> None:
    options = support.options(__doc__, arguments)
    for part in (eager, programs, transforms, custom):
        part()
    fit(options.out)
    what_next()


if __name__ == "__main__":
    main()
