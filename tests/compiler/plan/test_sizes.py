"""A new batch size compiles nothing, and neither does a new learning rate."""

from __future__ import annotations

import numpy as np
import pytest

import lucid


def array(*shape: int) -> lucid.Tensor:
    return lucid.tensor(np.random.default_rng(len(shape)).normal(size=shape).astype("float32"))


def labels(n: int, classes: int) -> lucid.Tensor:
    return lucid.tensor(np.arange(n) % classes)


def cross_entropy(x: lucid.Tensor, y: lucid.Tensor) -> lucid.Tensor:
    return -lucid.log_softmax(x, 1).gather(1, y[:, None]).mean()


def normalized(x: lucid.Tensor, scale: lucid.Tensor) -> lucid.Tensor:
    return (x - x.mean(-1, keepdim=True)) * lucid.rsqrt(x.var(-1, keepdim=True) + 1e-5) * scale


def mlp_step(n: int, rate: float = 0.1):
    def step(w, v, x, y):
        loss, grads = lucid.func.value_and_grad(
            lambda w, v: cross_entropy(lucid.tanh(x @ w) @ v, y), argnums=(0, 1)
        )(w, v)
        return loss, w - rate * grads[0], v - rate * grads[1]

    return step, (array(5, 7), array(7, 3), array(n, 5), labels(n, 3))


def attention(q, k, v):
    scores = q @ k.transpose(-1, -2) / 3.0
    causal = lucid.tril(lucid.ones_like(scores)) > 0
    return lucid.softmax(lucid.where(causal, scores, -1e9), -1) @ v


def gpt_step(n: int):
    def loss(table, w, scale, tokens):
        x = table[tokens]
        h = normalized(x, scale)
        h = x + attention(h @ w, h, h)
        h = h + lucid.erf(h @ w) * 0.7
        return cross_entropy((h @ table.T).reshape(-1, 11), tokens.reshape(-1))

    tokens = lucid.tensor(np.arange(n * 9).reshape(n, 9) % 11)
    step = lucid.func.grad(loss, argnums=(0, 1, 2))
    return step, (array(11, 6), array(6, 6), array(6), tokens)


def convolution(n: int):
    """The convolution as a product with the 9 shifted images, then the largest of 2 x 2."""

    def loss(x, w, b):
        x = lucid.pad(x, (1, 1, 1, 1))
        shifted = [x[:, :, i : i + 8, j : j + 8] for i in range(3) for j in range(3)]
        columns = lucid.stack(shifted, 2).reshape(-1, 18, 64)
        y = lucid.relu(w @ columns + b[:, None]).reshape(-1, 3, 4, 2, 4, 2).amax((3, 5))
        return (y * y).mean()

    return lucid.func.grad(loss, argnums=(0, 1, 2)), (array(n, 2, 8, 8), array(3, 18), array(3))


def plain(f, *shape):
    return lambda n: (f, (array(n, *shape),))


def gathered(n: int):
    loss = lambda x, i: (x[i] ** 2).mean()  # noqa: E731
    return lucid.func.grad(loss), (array(13, 4), lucid.tensor(np.arange(n) % 13))


PROGRAMS = {
    "mlp step": mlp_step,
    "gpt step": gpt_step,
    "convolution": convolution,
    "mean": plain(lambda x: x.mean(), 5),
    "mean of rows": plain(lambda x: x.mean(0), 5),
    "variance": plain(lucid.func.grad(lambda x: x.var()), 5),
    "standardized": plain(lambda x: (x - x.mean(0)) / x.std(0), 5),
    "softmax cross entropy": lambda n: (
        lucid.func.grad(cross_entropy),
        (array(n, 7), labels(n, 7)),
    ),
    "sort": plain(lambda x: lucid.sort(x, 1), 9),
    "sort of columns": plain(lambda x: lucid.sort(x, 0), 9),
    "argmax": plain(lambda x: (lucid.argmax(x, 0), lucid.argmin(x, 1)), 5),
    "cumsum": plain(lambda x: (lucid.cumsum(x, 0), lucid.cumsum(x, 1)), 5),
    "gather": gathered,
    "pad": plain(lambda x: lucid.pad(x, (1, 2, 3, 0)) * 2.0, 5),
    "cat": plain(lambda x: lucid.cat([x, x * 3.0, x[:3]], 0), 5),
    "slices": plain(lucid.func.grad(lambda x: (x[1:] * x[:-1]).sum()), 5),
    "roll": plain(lambda x: lucid.roll(x, 2, 0) - x, 5),
    "flip": plain(lambda x: lucid.flip(x, (0,)) * x, 5),
    "triangle": plain(lambda x: lucid.tril(x @ x.T, -2), 5),
    "linspace": lambda n: (lambda x: x * lucid.arange(n) / n, (array(n),)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_new_batch_size_compiles_nothing(name, new_kernels):
    for n in (10, 16, 37, 300):
        f, args = PROGRAMS[name](n)
        lucid.jit(f)(*args)
        assert new_kernels if n == 10 else not new_kernels
        new_kernels.clear()


def test_a_new_learning_rate_compiles_nothing(new_kernels):
    for rate in (0.1, 0.05, 0.025):
        f, args = mlp_step(8, rate)
        lucid.jit(f)(*args)
        assert new_kernels if rate == 0.1 else not new_kernels
        new_kernels.clear()


def test_numbers_that_the_code_depends_on_stay_in_it(new_kernels):
    for power in (3.0, 2.5):
        lucid.jit(lambda x, p=power: x**p)(array(4, 5))
        assert new_kernels
        new_kernels.clear()
