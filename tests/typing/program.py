"""A typed program of a user: `mypy --strict` accepts it, and it runs."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import lucid
import lucid.nn.functional as F
from lucid import Tensor, nn
from lucid.optim import SGD, Optimizer


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(2, width)
        self.second = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.first(x))
        assert_type(hidden, Tensor)
        out: Tensor = self.second(hidden)
        return out


@lucid.jit
def energy(x: Tensor, scale: float = 1.0) -> Tensor:
    return (scale * x * x).sum()


@lucid.jit(static_argnums=(1,))
def power(x: Tensor, n: int) -> Tensor:
    return x**n


def functions() -> None:
    x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert_type(x, Tensor)
    assert_type(lucid.sin(x), Tensor)
    assert_type(lucid.add(x, 1.0), Tensor)
    assert_type(lucid.exp(np.ones(3)), Tensor)
    assert_type(lucid.stack([x, x]), Tensor)
    assert_type(lucid.linalg.inv(x), Tensor)
    assert_type(lucid.special.erfcx(x), Tensor)
    assert_type(lucid.fft.rfft(x), Tensor)
    assert_type(lucid.split(x, 1), tuple[Tensor, ...])
    assert_type(lucid.sort(x).values, Tensor)
    assert_type(lucid.linalg.slogdet(x).logabsdet, Tensor)
    assert_type(lucid.allclose(x, x), bool)
    assert_type(lucid.zeros(2, 3, dtype=lucid.float64), Tensor)


def methods() -> None:
    x = lucid.ones(2, 2)
    assert_type(x + 1, Tensor)
    assert_type(2.0 - x, Tensor)
    assert_type(x @ x, Tensor)
    assert_type(x < 3, Tensor)
    assert_type(x[0], Tensor)
    assert_type(-x, Tensor)
    assert_type(x.T, Tensor)
    assert_type(x.exp().clamp(min=0.0).sum(dim=0, keepdim=True), Tensor)
    assert_type(x.add_(1.0), Tensor)
    assert_type(x.reshape(4).float(), Tensor)
    assert_type(x.shape, tuple[int, ...])
    x += 1.0
    assert_type(x, Tensor)
    for row in x:
        assert_type(row, Tensor)


def transforms() -> None:
    x = lucid.ones(3)
    assert_type(energy(x), Tensor)
    assert_type(energy(x, scale=2.0), Tensor)
    assert_type(power(x, 2), Tensor)
    assert_type(lucid.vmap(energy)(lucid.ones(2, 3)), Tensor)
    slope = lucid.func.grad(energy)
    _: Any = slope(x, scale=3.0)
    value, gradient = lucid.func.value_and_grad(energy)(x)
    print(value, gradient, energy.graph(x))


def training() -> None:
    net = Net(4)
    optimizer: Optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = F.mse_loss(net(lucid.ones(5, 2)), lucid.zeros(5, 1))
        assert_type(loss, Tensor)
        loss.backward()
        optimizer.step()
    weight = net.first.weight
    assert weight.grad is not None
    assert_type(weight.grad, Tensor)
    state: dict[str, Any] = net.state_dict()
    print(sorted(state), loss.item())


def main() -> None:
    functions()
    methods()
    transforms()
    training()


if __name__ == "__main__":
    main()
