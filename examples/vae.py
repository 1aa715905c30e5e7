"""A variational autoencoder arranges handwritten digits on a plane.

    python examples/vae.py [--eager] [--quick] [--out FOLDER]

Describes a held-out digit in 24.1 nats after 200 epochs, 9 s on two busy cores.
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
from lucid.utils.data import DataLoader, TensorDataset

TRAIN_X, TRAIN_Y, TEST_X, TEST_Y = support.digits()


class VAE(nn.Module):
    def __init__(self, width: int = 128, latent: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 2 * latent),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 64),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """-ELBO: the mean number of nats to describe an image; gray is the probability of black."""
        mean, log_variance = self.encoder(x).chunk(2, 1)
        z = mean + lucid.exp(0.5 * log_variance) * lucid.randn_like(mean)
        described = F.binary_cross_entropy_with_logits(
            self.decoder(z), x.flatten(1), reduction="sum"
        )
        divergence = 0.5 * (mean**2 + lucid.exp(log_variance) - 1 - log_variance).sum()
        return (described + divergence) / len(x)


def train(epochs: int, compiled: bool = True) -> VAE:
    lucid.manual_seed(0)
    model = VAE()
    optimizer = Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(TRAIN_X), batch_size=64, shuffle=True, drop_last=True)

    def step(x: Any) -> Any:
        loss = model(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    run = lucid.jit(step) if compiled else step
    for _ in (epoch := progress(epochs, "epoch")):
        for (x,) in loader:
            loss = run(x)
        epoch.show(loss=loss)
    return model


def draw(figure: Any, model: VAE) -> None:
    """The positions of the held-out digits, and what the decoder draws across the plane."""
    left, right = figure.subplots(1, 2)
    with lucid.no_grad():
        places = model.encoder(TEST_X)[:, :2].numpy()
        side = np.linspace(-2.2, 2.2, 11, dtype=np.float32)
        grid = np.stack(np.meshgrid(side, side[::-1]), -1).reshape(-1, 2)
        images = lucid.sigmoid(model.decoder(lucid.tensor(grid))).numpy()
    points = left.scatter(*places.T, c=TEST_Y.numpy(), cmap="tab10", s=12)
    figure.colorbar(points, ax=left, ticks=range(10))
    left.set(title="held-out digits", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
    framed = np.pad(images.reshape(11, 11, 8, 8), ((0, 0), (0, 0), (1, 1), (1, 1)))
    tiles = framed.transpose(0, 2, 1, 3).reshape(110, 110)
    right.imshow(tiles, cmap="gray_r")
    right.set(title="decoded", xticks=[], yticks=[])


def main(arguments: list[str] | None = None) -> float:
    options = support.options(__doc__, arguments)
    epochs = 40 if options.quick else 200
    model, seconds = support.seconds(lambda: train(epochs, not options.eager))
    with lucid.no_grad():
        reached = float(np.mean([model(TEST_X).item() for _ in range(10)]))
    print(f"-ELBO of held-out digits: {reached:.2f} nats per image, {seconds:.1f} s")
    support.picture(options.out / "vae.png", lambda figure: draw(figure, model), (10, 4.5))
    return reached


if __name__ == "__main__":
    main()
