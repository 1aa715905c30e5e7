"""A perceptron learns digits on many processes, with the loss of one process on the whole batch.

    python -m lucid.distributed.run -n 2 examples/parallel_digits.py [--eager] [--quick]

Every rank has a part of each batch of 64; gradients are averaged over all of them. On one, two or
four ranks the losses agree up to rounding.
"""

from __future__ import annotations

from typing import Any

import mlp_digits
import support

import lucid
import lucid.distributed as dist
from lucid import nn
from lucid.optim import AdamW

BATCH = 64


def network() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
        nn.Linear(128, 10),
    )  # fmt: skip


def train(epochs: int, compiled: bool = True) -> tuple[nn.Module, list[float]]:
    """The trained network and the loss of every step, over the whole batch."""
    dist.manual_seed(0, same=True)
    model = dist.DataParallel(network())
    optimizer = AdamW(model.parameters(), lr=3e-3)
    sampler = dist.DistributedSampler(mlp_digits.TRAIN_X, batch_size=BATCH)

    def step(x: Any, y: Any) -> Any:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return model.average(loss)

    run = lucid.jit(step) if compiled else step
    losses = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for part in sampler:
            losses.append(run(mlp_digits.TRAIN_X[part], mlp_digits.TRAIN_Y[part]))
    return model.module, [loss.item() for loss in losses]


def main(arguments: list[str] | None = None) -> float:
    options = support.options(__doc__, arguments)
    epochs = 5 if options.quick else 30
    (model, losses), seconds = support.seconds(lambda: train(epochs, not options.eager))
    reached = mlp_digits.accuracy(model, mlp_digits.TEST_X, mlp_digits.TEST_Y)
    if dist.rank() == 0:
        print(
            f"{100 * reached:.1f} % of held-out digits, {dist.world_size()} ranks, {seconds:.1f} s"
        )
        support.picture(
            options.out / "parallel_digits.png", lambda f: f.subplots().semilogy(losses)
        )
    return reached


if __name__ == "__main__":
    main()
