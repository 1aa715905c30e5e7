"""A physics-informed network solves Burgers' equation from the equation alone.

    u_t + u u_x = ν u_xx,    u(x, 0) = -sin(πx),    u(±1, t) = 0

    python examples/pinn.py [--eager] [--quick] [--out FOLDER]

The loss contains second derivatives of the network, and training differentiates it once more.

Reaches a relative error of 2.3e-3 after 4,000 steps in 17 s on two busy cores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import support

import lucid
from lucid import nn
from lucid.func import grad, jvp, vmap
from lucid.optim import Adam
from lucid.optim.lr_scheduler import CosineAnnealingLR
from lucid.utils import progress

VISCOSITY = 0.1 / np.pi


def network(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
        nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1),
    )  # fmt: skip


def solution(model: nn.Module, x: Any, t: Any) -> Any:
    """The network, transformed to have the given values at t = 0 and x = ±1 by construction."""
    free = model(lucid.stack([x, t], -1))[..., 0]
    return -lucid.sin(np.pi * x) + t * (1 - x * x) * free


def residual(model: nn.Module, x: Any, t: Any) -> Any:
    """The residual of the equation at one point."""

    def u(x: Any, t: Any) -> Any:
        return solution(model, x, t)

    (u_x, u_t), (u_xx, _) = jvp(grad(u, (0, 1)), (x, t), (lucid.ones_like(x), lucid.zeros_like(t)))
    return u_t + u(x, t) * u_x - VISCOSITY * u_xx


def train(width: int, steps: int, points: int, compiled: bool = True) -> nn.Module:
    lucid.manual_seed(0)
    model = network(width)
    optimizer = Adam(model.parameters(), lr=3e-3)
    schedule = CosineAnnealingLR(optimizer, T_max=steps)

    def step() -> Any:
        x, t = 2 * lucid.rand(points) - 1, lucid.rand(points)
        loss = (vmap(lambda x, t: residual(model, x, t))(x, t) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    run = lucid.jit(step) if compiled else step
    for _ in (loop := progress(steps, "step")):
        loss = run()
        schedule.step()
        loop.show(loss=loss)
    return model


def exact(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The solution by Cole and Hopf's transform, integrated by Gauss and Hermite's rule."""
    nodes, weights = np.polynomial.hermite.hermgauss(100)
    y = x[..., None] - 2 * np.sqrt(VISCOSITY * t[..., None]) * nodes
    density = weights * np.exp(-np.cos(np.pi * y) / (2 * np.pi * VISCOSITY))
    return np.asarray(-(np.sin(np.pi * y) * density).sum(-1) / density.sum(-1))


def main(arguments: list[str] | None = None) -> float:
    options = support.options(__doc__, arguments)
    width, steps, points = (16, 60, 128) if options.quick else (32, 4000, 512)
    model, seconds = support.seconds(lambda: train(width, steps, points, not options.eager))
    x, t = np.meshgrid(np.linspace(-1, 1, 101), np.linspace(0, 1, 51))
    with lucid.no_grad():
        u = solution(model, lucid.tensor(x).float(), lucid.tensor(t).float()).numpy()
    truth = exact(x, t)
    error = float(np.linalg.norm(u - truth) / np.linalg.norm(truth))
    print(f"relative error {error:.1e} on the whole domain, {seconds:.1f} s")

    def draw(figure: Any) -> None:
        field, cuts = figure.subplots(1, 2)
        shown = field.pcolormesh(t, x, u, cmap="RdBu", shading="gouraud")
        figure.colorbar(shown, ax=field)
        field.set(xlabel="t", ylabel="x", title="the network's u")
        for i in (0, 20, 50):
            cuts.plot(x[0], truth[i], "0.7", linewidth=4)
            cuts.plot(x[0], u[i], label=f"t = {t[i, 0]:.1f}")
        cuts.set(xlabel="x", xticks=(-1, -0.5, 0, 0.5, 1), title="exact (gray) and learned")
        cuts.legend()

    support.picture(options.out / "pinn.png", draw, (10, 4))
    return error


if __name__ == "__main__":
    main()
