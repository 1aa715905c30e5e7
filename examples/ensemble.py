"""An ensemble of networks, each trained in its own task, estimates its uncertainty.

    python examples/ensemble.py [--quick] [--out FOLDER]
    python examples/ensemble.py --dask ADDRESS          # on the workers of a Dask scheduler

`pmap` runs the whole training for every seed, on local processes or on a Dask client. Where there
are no data the members disagree.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import support

import lucid
import lucid.distributed as dist
from lucid import nn
from lucid.optim import Adam


def predictions(seed: int, steps: int, at: Any) -> Any:
    """Train a network from this seed, and return what it predicts."""
    lucid.manual_seed(seed)
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (64, 1)).astype("float32")
    noise = rng.normal(size=points.shape).astype("float32")
    x, y = lucid.tensor(points), lucid.tensor(np.sin(4 * points) + 0.05 * noise)
    model = nn.Sequential(
        nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    optimizer = Adam(model.parameters(), lr=1e-2)

    @lucid.jit
    def step() -> Any:
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(steps):
        step()
    return model(at)[:, 0].detach()


def main(arguments: list[str] | None = None) -> float:
    given = list(sys.argv[1:] if arguments is None else arguments)
    client = None
    if "--dask" in given:
        import distributed

        place = given.index("--dask")
        client = distributed.Client(given[place + 1])  # type: ignore[no-untyped-call]
        del given[place : place + 2]
    options = support.options(__doc__, given)
    members, steps, workers = (3, 60, 0) if options.quick else (8, 600, None)
    at = lucid.tensor(np.linspace(-2, 2, 81).astype("float32")[:, None])
    train = dist.pmap(
        predictions, client=client, workers=workers, in_dims=(0, None, None), chunk_size=1,
        progress=not options.quick,
    )  # fmt: skip
    found, seconds = support.seconds(lambda: train(range(members), steps, at))
    spread = found.numpy().std(axis=0)
    inside = np.abs(at.numpy()[:, 0]) <= 1
    ratio = float(spread[inside].mean() / spread[~inside].mean())
    print(f"{members} members disagree {1 / ratio:.1f} times as much outside, {seconds:.1f} s")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot(at.numpy()[:, 0], found.numpy().T, linewidth=0.8)
        axes.axvspan(-1, 1, alpha=0.1)

    support.picture(options.out / "ensemble.png", draw)
    return ratio


if __name__ == "__main__":
    main()
