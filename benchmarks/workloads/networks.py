"""MLP, CNN, GPT, LSTM and VAE as Modules and by hand for JAX, for training steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from workloads.modules import eager_systems, initial, jax_entropy, numbers, systems

# MLP

MLP_SIZES, MLP_BATCH = (784, 512, 256, 10), 128


def mlp(lib: Any) -> Any:
    nn = lib.nn

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            a, b, c, d = MLP_SIZES
            self.layers = nn.Sequential(
                nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c), nn.ReLU(), nn.Linear(c, d)
            )

        def forward(self, x: Any, y: Any) -> Any:
            return nn.functional.cross_entropy(self.layers(x), y)

    return Classifier()


def mlp_loss(jax: Any) -> Any:
    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in zip(params[:-2:2], params[1:-2:2]):
            x = jax.nn.relu(x @ w.T + b)
        return jax_entropy(jax, x @ params[-2].T + params[-1], y)

    return loss


def mlp_data(rng: np.random.Generator) -> Any:
    shapes: list[tuple[int, ...]] = []
    for n, m in pairwise(MLP_SIZES):
        shapes += [(m, n), (m,)]
    labels = rng.integers(0, MLP_SIZES[-1], MLP_BATCH)
    return initial(rng, shapes), [numbers(rng, MLP_BATCH, MLP_SIZES[0]), labels]


MLP_SYSTEMS, MLP_EAGER_SYSTEMS = systems(mlp, mlp_loss), eager_systems(mlp)
mlp_eager_data = mlp_data

# CNN

CNN_SIDE, CNN_BATCH, CNN_FEATURES = 28, 32, 32 * 7 * 7


def cnn(lib: Any) -> Any:
    nn = lib.nn

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Flatten(), nn.Linear(CNN_FEATURES, 10),
            )  # fmt: skip

        def forward(self, x: Any, y: Any) -> Any:
            return nn.functional.cross_entropy(self.layers(x), y)

    return Classifier()


def cnn_loss(jax: Any) -> Any:
    def layer(x: Any, weight: Any, bias: Any) -> Any:
        x = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME") + bias[:, None, None]
        window = (1, 1, 2, 2)
        x = jax.nn.relu(x)
        return jax.lax.reduce_window(x, -np.inf, jax.lax.max, window, window, "VALID")

    def loss(params: Any, x: Any, y: Any) -> Any:
        k1, b1, k2, b2, w, b = params
        x = layer(layer(x, k1, b1), k2, b2).reshape(CNN_BATCH, CNN_FEATURES)
        return jax_entropy(jax, x @ w.T + b, y)

    return loss


def cnn_data(rng: np.random.Generator) -> Any:
    shapes = [(16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), (10, CNN_FEATURES), (10,)]
    images = numbers(rng, CNN_BATCH, 1, CNN_SIDE, CNN_SIDE)
    return initial(rng, shapes), [images, rng.integers(0, 10, CNN_BATCH)]


CNN_SYSTEMS, CNN_EAGER_SYSTEMS = systems(cnn, cnn_loss), eager_systems(cnn)
cnn_eager_data = cnn_data

# GPT

LAYERS, WIDTH, HEADS, LENGTH, GPT_BATCH, LETTERS = 2, 128, 4, 64, 8, 65


def gpt(lib: Any) -> Any:
    nn = lib.nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(x).reshape(GPT_BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.transpose(1, 2).reshape(GPT_BATCH, LENGTH, WIDTH))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attend = nn.Sequential(nn.LayerNorm(WIDTH), Attention())
            self.mix = nn.Sequential(
                nn.LayerNorm(WIDTH),
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU("tanh"), nn.Linear(4 * WIDTH, WIDTH),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            x = x + self.attend(x)
            return x + self.mix(x)

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)], nn.LayerNorm(WIDTH))
            self.head = nn.Linear(WIDTH, LETTERS, bias=False)

        def forward(self, codes: Any, following: Any) -> Any:
            scores = self.head(self.blocks(self.letters(codes) + self.places.weight))
            return nn.functional.cross_entropy(scores.reshape(-1, LETTERS), following.reshape(-1))

    return GPT()


def gpt_loss(jax: Any) -> Any:
    numpy = jax.numpy
    mask = np.tri(LENGTH, dtype=bool)

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        middle = x - x.mean(-1, keepdims=True)
        return middle * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift

    def attend(qkv: Any) -> Any:
        parts = qkv.reshape(GPT_BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(2, 3) * (HEADS / WIDTH) ** 0.5
        mixed = jax.nn.softmax(numpy.where(mask, scores, -np.inf), -1) @ v
        return mixed.swapaxes(1, 2).reshape(GPT_BATCH, LENGTH, WIDTH)

    def loss(params: Any, codes: Any, following: Any) -> Any:
        x = params[0][codes] + params[1]
        for i in range(LAYERS):
            p = params[2 + 12 * i : 14 + 12 * i]
            x = x + attend(norm(x, p[0], p[1]) @ p[2].T + p[3]) @ p[4].T + p[5]
            inner = jax.nn.gelu(norm(x, p[6], p[7]) @ p[8].T + p[9], approximate=True)
            x = x + inner @ p[10].T + p[11]
        scores = norm(x, params[-3], params[-2]) @ params[-1].T
        return jax_entropy(jax, scores.reshape(-1, LETTERS), following.reshape(-1))

    return loss


def gpt_data(rng: np.random.Generator) -> Any:
    w = WIDTH
    shapes: list[tuple[int, ...]] = [(LETTERS, w), (LENGTH, w)]
    for _ in range(LAYERS):
        shapes += [(w,), (w,), (3 * w, w), (3 * w,), (w, w), (w,)]
        shapes += [(w,), (w,), (4 * w, w), (4 * w,), (w, 4 * w), (w,)]
    shapes += [(w,), (w,), (LETTERS, w)]
    codes = rng.integers(0, LETTERS, (GPT_BATCH, LENGTH + 1))
    return initial(rng, shapes), [codes[:, :-1].copy(), codes[:, 1:].copy()]


GPT_SYSTEMS, GPT_EAGER_SYSTEMS = systems(gpt, gpt_loss), eager_systems(gpt)
gpt_eager_data = gpt_data

# LSTM

STEPS, LSTM_BATCH, INPUTS, UNITS = 50, 32, 32, 64


def lstm(lib: Any) -> Any:
    nn = lib.nn

    class Forecaster(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(INPUTS, UNITS), nn.Linear(UNITS, INPUTS)

        def forward(self, x: Any, y: Any) -> Any:
            return nn.functional.mse_loss(self.head(self.lstm(x)[0]), y)

    return Forecaster()


def lstm_loss(jax: Any) -> Any:
    numpy, sigmoid = jax.numpy, jax.nn.sigmoid

    def loss(params: Any, x: Any, y: Any) -> Any:
        w, u, b, c, head, shift = params
        inputs = x @ w.T + b + c

        def step(carry: Any, z: Any) -> Any:
            h, memory = carry
            i, f, g, o = numpy.split(z + h @ u.T, 4, 1)
            memory = sigmoid(f) * memory + sigmoid(i) * numpy.tanh(g)
            h = sigmoid(o) * numpy.tanh(memory)
            return (h, memory), h

        zero = numpy.zeros((LSTM_BATCH, UNITS))
        _, hs = jax.lax.scan(step, (zero, zero), inputs)
        return ((hs @ head.T + shift - y) ** 2).mean()

    return loss


def lstm_data(rng: np.random.Generator) -> Any:
    gates = 4 * UNITS
    shapes = [(gates, INPUTS), (gates, UNITS), (gates,), (gates,), (INPUTS, UNITS), (INPUTS,)]
    return initial(rng, shapes), [numbers(rng, STEPS, LSTM_BATCH, INPUTS) for _ in range(2)]


LSTM_SYSTEMS, LSTM_EAGER_SYSTEMS = systems(lstm, lstm_loss), eager_systems(lstm)
lstm_eager_data = lstm_data

# VAE

PIXELS, HIDDEN, LATENT, VAE_BATCH = 784, 400, 20, 128


def vae(lib: Any) -> Any:
    nn = lib.nn

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(
                nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * LATENT)
            )
            self.decoder = nn.Sequential(
                nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, PIXELS)
            )

        def forward(self, x: Any, noise: Any) -> Any:
            mean, spread = self.encoder(x).chunk(2, 1)
            scores = self.decoder(mean + lib.exp(0.5 * spread) * noise)
            entropy = nn.functional.binary_cross_entropy_with_logits
            described = entropy(scores, x, reduction="sum")
            divergence = 0.5 * (mean**2 + lib.exp(spread) - 1 - spread).sum()
            return (described + divergence) / VAE_BATCH

    return VAE()


def vae_loss(jax: Any) -> Any:
    numpy = jax.numpy

    def loss(params: Any, x: Any, noise: Any) -> Any:
        w1, b1, w2, b2, w3, b3, w4, b4 = params
        code = jax.nn.relu(x @ w1.T + b1) @ w2.T + b2
        mean, spread = code[:, :LATENT], code[:, LATENT:]
        z = mean + numpy.exp(0.5 * spread) * noise
        scores = jax.nn.relu(z @ w3.T + b3) @ w4.T + b4
        described = (jax.nn.softplus(scores) - x * scores).sum()
        divergence = 0.5 * (mean**2 + numpy.exp(spread) - 1 - spread).sum()
        return (described + divergence) / VAE_BATCH

    return loss


def vae_data(rng: np.random.Generator) -> Any:
    shapes: list[tuple[int, ...]] = []
    for n, m in ((PIXELS, HIDDEN), (HIDDEN, 2 * LATENT), (LATENT, HIDDEN), (HIDDEN, PIXELS)):
        shapes += [(m, n), (m,)]
    images = rng.uniform(size=(VAE_BATCH, PIXELS)).astype(np.float32)
    return initial(rng, shapes), [images, numbers(rng, VAE_BATCH, LATENT)]


VAE_SYSTEMS, VAE_EAGER_SYSTEMS = systems(vae, vae_loss), eager_systems(vae)
vae_eager_data = vae_data
