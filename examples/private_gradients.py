"""Digits learned with differential privacy: no single image can show in the network.

    python examples/private_gradients.py [--eager] [--quick] [--out FOLDER]

The gradient of every image is computed by `vmap(grad(...))` and clipped to norm 1, and noise is
added to their sum. Each step sees all images, so T steps with noise σ are ρ-zCDP, ρ = T / 2σ²: that
is (ρ + 2 √(ρ ln 1/δ), δ)-differential privacy (Bun and Steinke, 2016; one image added or removed).

Reads 97.5 % of held-out digits right without noise, 95 % with ε = 4.8, 92 % with ε = 2.3, 86 % with
ε = 1.1, for δ = 1e-4; 1 s each on two busy cores.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import support

import lucid
import lucid.nn.functional as F
from lucid import nn
from lucid.func import functional_call, grad, vmap
from lucid.optim import Adam
from lucid.utils import progress

TRAIN_X, TRAIN_Y, TEST_X, TEST_Y = support.digits()
CLIP, DELTA = 1.0, 1e-4


def network() -> nn.Module:
    return nn.Sequential(nn.Flatten(0), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


def clipped(slopes: dict[str, Any]) -> dict[str, Any]:
    """The gradient of one image, no longer than CLIP."""
    norm = sum((g**2).sum() for g in slopes.values()).sqrt()
    scale = (CLIP / (norm + 1e-6)).clamp(max=1.0)
    return {name: scale * g for name, g in slopes.items()}


def private_gradient(model: nn.Module, x: Any, y: Any, noise: float) -> dict[str, Any]:
    """The mean of the clipped gradients of all images, with noise."""
    params = {name: p.detach() for name, p in model.named_parameters()}

    def loss(params: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(functional_call(model, params, x), y)

    each = vmap(lambda x, y: clipped(grad(loss)(params, x, y)))(x, y)
    return {
        name: (g.sum(0) + noise * CLIP * lucid.randn_like(params[name])) / len(x)
        for name, g in each.items()
    }


def epsilon(steps: int, noise: float) -> float:
    rho = steps / (2 * noise**2)
    return rho + 2 * math.sqrt(rho * math.log(1 / DELTA))


def train(steps: int, noise: float, compiled: bool = True) -> nn.Module:
    lucid.manual_seed(0)
    model = network()
    optimizer = Adam(model.parameters(), lr=0.02)

    def step(x: Any, y: Any) -> Any:
        for name, g in private_gradient(model, x, y, noise).items():
            model.get_parameter(name).grad = g
        optimizer.step()

    run = lucid.jit(step) if compiled else step
    for _ in progress(steps, f"noise {noise:g}"):
        run(TRAIN_X, TRAIN_Y)
    return model


def accuracy(model: nn.Module) -> float:
    with lucid.no_grad():
        return float((vmap(model)(TEST_X).argmax(1) == TEST_Y).float().mean())


def main(arguments: list[str] | None = None) -> float:
    options = support.options(__doc__, arguments)
    steps, noises = (30, [8.0]) if options.quick else (100, [0.0, 5.0, 10.0, 20.0, 40.0, 80.0])
    reached = []
    for noise in noises:
        model, seconds = support.seconds(partial(train, steps, noise, not options.eager))
        reached.append(accuracy(model))
        bound = f"{epsilon(steps, noise):.1f}" if noise else "∞"
        print(f"ε = {bound:>4}: {100 * reached[-1]:.1f} % of held-out digits, {seconds:.1f} s")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        private = [(epsilon(steps, n), a) for n, a in zip(noises, reached) if n]
        axes.semilogx(*zip(*private), "o-", label=f"private, δ = {DELTA:g}")
        if not noises[0]:
            axes.axhline(reached[0], color="0.6", label="without noise")
        axes.set(xlabel="ε", ylabel="accuracy on held-out digits")
        axes.legend()

    support.picture(options.out / "private_gradients.png", draw)
    return reached[len(reached) // 2]


if __name__ == "__main__":
    main()
