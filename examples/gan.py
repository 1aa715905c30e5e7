"""Two networks compete: one draws points from eight clusters, the other detects its fakes.

    python examples/gan.py [--eager] [--quick] [--out FOLDER]

Draws all eight clusters, with 87 % of the points inside one, after 6,000 steps in 32 s on two busy
cores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import support

import lucid
import lucid.nn.functional as F
from lucid import nn
from lucid.optim import Adam
from lucid.utils import progress

SPREAD, LATENT, BATCH = 0.05, 8, 256
ANGLES = np.arange(8) * np.pi / 4
CENTERS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], 1).astype(np.float32)


def network(inputs: int, width: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )  # fmt: skip


def real(count: int) -> Any:
    """Points of the eight clusters."""
    chosen = lucid.tensor(CENTERS)[lucid.randint(0, 8, (count,))]
    return chosen + SPREAD * lucid.randn(count, 2)


def penalty(judge: nn.Module, x: Any) -> Any:
    """The mean squared slope of the judge at real points: a loss that contains a derivative."""
    slopes = lucid.func.grad(lambda x: judge(x).sum())(x)
    return (slopes**2).sum(1).mean()


def train(width: int, steps: int, compiled: bool = True) -> nn.Module:
    lucid.manual_seed(0)
    artist, judge = network(LATENT, width, 2), network(2, width, 1)
    drawing = Adam(artist.parameters(), lr=1e-3, betas=(0.5, 0.9))
    judging = Adam(judge.parameters(), lr=1e-3, betas=(0.5, 0.9))

    def step() -> tuple[Any, Any]:
        x, fake = real(BATCH), artist(lucid.randn(BATCH, LATENT))
        loss = F.softplus(-judge(x)).mean() + F.softplus(judge(fake.detach())).mean()
        judging.zero_grad()
        (loss + 0.5 * penalty(judge, x)).backward()
        judging.step()
        fooled = F.softplus(-judge(fake)).mean()
        drawing.zero_grad()
        fooled.backward()
        drawing.step()
        return loss, fooled

    run = lucid.jit(step) if compiled else step
    for _ in (loop := progress(steps, "step")):
        loss, fooled = run()
        loop.show(judge=loss, artist=fooled)
    return artist


def quality(points: np.ndarray) -> tuple[int, float]:
    """How many clusters are drawn, and the share of points within four spreads of one."""
    distances = np.linalg.norm(points[:, None] - CENTERS, axis=2)
    good = distances.min(1) < 4 * SPREAD
    counts = np.bincount(distances.argmin(1)[good], minlength=8)
    return int((counts > len(points) / 80).sum()), float(good.mean())


def main(arguments: list[str] | None = None) -> float:
    options = support.options(__doc__, arguments)
    width, steps = (32, 300) if options.quick else (128, 6000)
    artist, seconds = support.seconds(lambda: train(width, steps, not options.eager))
    with lucid.no_grad():
        points = artist(lucid.randn(4000, LATENT)).numpy()
    clusters, share = quality(points)
    print(f"{clusters} of 8 clusters, {100 * share:.1f} % of the points in one, {seconds:.1f} s")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.scatter(*real(4000).numpy().T, s=2, alpha=0.3, label="real")
        axes.scatter(*points.T, s=2, alpha=0.3, label="generated")
        axes.set_aspect("equal")
        legend = figure.legend(loc="outside upper center", ncols=2, markerscale=5, frameon=False)
        for handle in legend.legend_handles:
            handle.set_alpha(1)

    support.picture(options.out / "gan.png", draw, (5, 5))
    return share


if __name__ == "__main__":
    main()
