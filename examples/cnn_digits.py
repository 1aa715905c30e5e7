"""A convolutional network with batch norm and dropout learns handwritten digits.

    python examples/cnn_digits.py [--eager] [--quick] [--out FOLDER]

Reads 99.4 % of the 360 held-out digits right after 30 epochs (99.2 % eager: rounding differs, and
grows over 660 steps): 14 s jitted, 19 s eager, on two busy cores with OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

from typing import Any

import support

import lucid
from lucid import nn
from lucid.optim import AdamW
from lucid.optim.lr_scheduler import OneCycleLR
from lucid.utils import progress
from lucid.utils.data import DataLoader, TensorDataset

TRAIN_X, TRAIN_Y, TEST_X, TEST_Y = support.digits()


def block(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class Network(nn.Module):
    """8 x 8 pixels, then 4 x 4 of 32 channels, then 2 x 2 of 64."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            block(1, width), block(width, width), nn.MaxPool2d(2),
            block(width, 2 * width), nn.MaxPool2d(2),
        )  # fmt: skip
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(2 * width * 4, 10)

    def forward(self, x: Any) -> Any:
        x = self.blocks(x.unsqueeze(1))
        return self.head(self.dropout(x.flatten(1)))


def train(epochs: int, compiled: bool = True, seed: int = 0) -> tuple[nn.Module, list[float]]:
    """The trained network and the loss of every step."""
    lucid.manual_seed(seed)
    model = Network()
    optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
    data = TensorDataset(TRAIN_X, TRAIN_Y)
    loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    schedule = OneCycleLR(optimizer, max_lr=1e-2, total_steps=epochs * len(loader))

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    run = lucid.jit(step) if compiled else step
    losses = []
    for _ in (epoch := progress(epochs, "epoch")):
        for x, y in loader:
            losses.append(run(x, y))
            schedule.step()
        epoch.show(loss=losses[-1])
    return model, [loss.item() for loss in losses]


def accuracy(model: nn.Module, x: Any, y: Any) -> float:
    model.eval()
    with lucid.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def draw(figure: Any, model: Network, losses: list[float]) -> None:
    """The loss, and what the first layer looks for."""
    curve, filters = figure.subfigures(1, 2)
    axes = curve.subplots()
    axes.plot(losses, linewidth=0.7)
    axes.set(xlabel="step", ylabel="cross entropy, smoothed labels")
    weights = model.blocks[0][0].weight.detach().numpy()[:, 0]
    for place, weight in zip(filters.subplots(4, 8).flat, weights):
        place.imshow(weight, cmap="RdBu", vmin=-abs(weight).max(), vmax=abs(weight).max())
        place.axis("off")
    filters.suptitle("filters of the first layer")


def main(arguments: list[str] | None = None) -> float:
    options = support.options(__doc__, arguments)
    epochs = 2 if options.quick else 30
    (model, losses), seconds = support.seconds(lambda: train(epochs, not options.eager))
    reached = accuracy(model, TEST_X, TEST_Y)
    print(f"{100 * reached:.1f} % of {len(TEST_Y)} held-out digits are read right, {seconds:.1f} s")
    support.picture(options.out / "cnn_digits.png", lambda f: draw(f, model, losses), (8, 4))
    return reached


if __name__ == "__main__":
    main()
