"""More networks for eager training steps: residual blocks, DCGAN, style, LSTMCell, Transformer."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads.modules import eager_systems, initial, numbers

Data = tuple[list[np.ndarray], list[np.ndarray]]

# Residual blocks with batch normalization

RESNET_SIDE, RESNET_BATCH = 32, 16


def resnet(lib: Any) -> Any:
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, a: int, b: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(),
                nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b),
            )  # fmt: skip
            self.skip = nn.Identity() if a == b else nn.Conv2d(a, b, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.body(x) + self.skip(x))

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                Block(16, 16, 1), Block(16, 32, 2),
                nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
            )  # fmt: skip

        def forward(self, x: Any, y: Any) -> Any:
            return nn.functional.cross_entropy(self.layers(x), y)

    return Classifier()


def resnet_eager_data(rng: np.random.Generator) -> Data:
    shapes = [(16, 3, 3, 3), (16,), (16,)] + 2 * [(16, 16, 3, 3), (16,), (16,)]
    shapes += [(32, 16, 3, 3), (32,), (32,), (32, 32, 3, 3), (32,), (32,), (32, 16, 1, 1)]
    images = numbers(rng, RESNET_BATCH, 3, RESNET_SIDE, RESNET_SIDE)
    return initial(rng, [*shapes, (10, 32), (10,)]), [images, rng.integers(0, 10, RESNET_BATCH)]


RESNET_EAGER_SYSTEMS = eager_systems(resnet)

# DCGAN: two networks that take turns

CODE, DCGAN_BATCH = 64, 16


def dcgan(lib: Any) -> Any:
    nn = lib.nn

    class DCGAN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.generator = nn.Sequential(
                nn.ConvTranspose2d(CODE, 64, 4, 1, 0, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                nn.ConvTranspose2d(32, 1, 4, 2, 1, bias=False), nn.Tanh(),
            )  # fmt: skip
            self.critic = nn.Sequential(
                nn.Conv2d(1, 32, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
                nn.Conv2d(32, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.LeakyReLU(0.2),
                nn.Conv2d(64, 1, 4, 1, 0, bias=False), nn.Flatten(),
            )  # fmt: skip

        def loss(self, x: Any, label: float) -> Any:
            scores = self.critic(x)
            labels = lib.full_like(scores, label)
            return nn.functional.binary_cross_entropy_with_logits(scores, labels)

        def critic_loss(self, images: Any, codes: Any) -> Any:
            return self.loss(images, 1.0) + self.loss(self.generator(codes).detach(), 0.0)

        def generator_loss(self, images: Any, codes: Any) -> Any:
            return self.loss(self.generator(codes), 1.0)

        def turns(self) -> list[Any]:
            return [(self.critic_loss, self.critic), (self.generator_loss, self.generator)]

    return DCGAN()


def dcgan_eager_data(rng: np.random.Generator) -> Data:
    shapes = [(CODE, 64, 4, 4), (64,), (64,), (64, 32, 4, 4), (32,), (32,), (32, 1, 4, 4)]
    shapes += [(32, 1, 4, 4), (64, 32, 4, 4), (64,), (64,), (1, 64, 4, 4)]
    batch = [numbers(rng, DCGAN_BATCH, 1, 16, 16), numbers(rng, DCGAN_BATCH, CODE, 1, 1)]
    return initial(rng, shapes), batch


DCGAN_EAGER_SYSTEMS = eager_systems(dcgan)

# Style transfer: instance normalization, upsampling, Gram matrices

STYLE_SIDE, STYLE_BATCH, STYLE_WIDTH = 32, 4, 16


def style(lib: Any) -> Any:
    nn = lib.nn
    width = STYLE_WIDTH

    def conv(n_in: int, n_out: int, stride: int = 1) -> Any:
        """Without a bias: a normalization follows, and Adam would follow the bias's rounding."""
        return nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(
                conv(width, width), nn.InstanceNorm2d(width, affine=True), nn.ReLU(),
                conv(width, width), nn.InstanceNorm2d(width, affine=True),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return x + self.body(x)

    class Style(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.painter = nn.Sequential(
                conv(3, width, 2), nn.InstanceNorm2d(width, affine=True), nn.ReLU(),
                Residual(), Residual(), nn.Upsample(scale_factor=2), nn.Conv2d(width, 3, 3, 1, 1),
            )  # fmt: skip

        def forward(self, x: Any, style: Any, first: Any, second: Any) -> Any:
            relu, conv = nn.functional.relu, nn.functional.conv2d
            painted = self.painter(x)
            features = relu(conv(painted, first, padding=1))
            deeper = relu(conv(features, second, stride=2, padding=1))
            flat = deeper.flatten(2)
            gram = flat @ flat.transpose(1, 2) / flat.shape[2]
            return ((gram - style) ** 2).mean() + nn.functional.mse_loss(painted, x)

    return Style()


def style_eager_data(rng: np.random.Generator) -> Data:
    w = STYLE_WIDTH
    shapes: list[tuple[int, ...]] = [(w, 3, 3, 3), (w,), (w,)]
    shapes += 4 * [(w, w, 3, 3), (w,), (w,)] + [(3, w, 3, 3), (3,)]
    batch = [numbers(rng, STYLE_BATCH, 3, STYLE_SIDE, STYLE_SIDE), numbers(rng, w, w)]
    return initial(rng, shapes), [*batch, *initial(rng, [(w, 3, 3, 3), (w, w, 3, 3)])]


STYLE_EAGER_SYSTEMS = eager_systems(style)

# LSTMCell in a Python loop

CELL_STEPS, CELL_BATCH, CELL_INPUTS, CELL_UNITS = 100, 32, 32, 64


def cell(lib: Any) -> Any:
    nn = lib.nn

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTMCell(CELL_INPUTS, CELL_UNITS)
            self.head = nn.Linear(CELL_UNITS, CELL_INPUTS)

        def forward(self, xs: Any, y: Any) -> Any:
            state = None
            for x in xs:
                state = self.cell(x, state)
            return nn.functional.mse_loss(self.head(state[0]), y)

    return Reader()


def cell_eager_data(rng: np.random.Generator) -> Data:
    gates = 4 * CELL_UNITS
    shapes = [(gates, CELL_INPUTS), (gates, CELL_UNITS), (gates,), (gates,)]
    shapes += [(CELL_INPUTS, CELL_UNITS), (CELL_INPUTS,)]
    xs = numbers(rng, CELL_STEPS, CELL_BATCH, CELL_INPUTS)
    return initial(rng, shapes), [xs, numbers(rng, CELL_BATCH, CELL_INPUTS)]


CELL_EAGER_SYSTEMS = eager_systems(cell)

# A layer of a Transformer's encoder

WIDTH, HEADS, LENGTH, LAYER_BATCH = 128, 4, 64, 8


def transformer(lib: Any) -> Any:
    nn = lib.nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(
                WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True
            )

        def forward(self, x: Any, y: Any) -> Any:
            return nn.functional.mse_loss(self.layer(x), y)

    return Layer()


def transformer_eager_data(rng: np.random.Generator) -> Data:
    w = WIDTH
    shapes = [(3 * w, w), (3 * w,), (w, w), (w,), (4 * w, w), (4 * w,), (w, 4 * w), (w,)]
    batch = [numbers(rng, LAYER_BATCH, LENGTH, w) for _ in range(2)]
    return initial(rng, [*shapes, (w,), (w,), (w,), (w,)]), batch


TRANSFORMER_EAGER_SYSTEMS = eager_systems(transformer)
